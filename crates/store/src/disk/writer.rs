//! Decides when and how what waits is written: removals first, snapshots in batches, one transaction each.
//! It exists as the one thread that owns the file: it opens it, writes it, keeps it within its bound, and begins anew.
//! It refuses to give up: a file that cannot be used is tried again, and what waits stays, up to the bound.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use evenkeel_core::store::{Order, PurgeHow, Record, StoreError};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    DiskOptions,
    backlog::What,
    file::{Place, Unusable},
    rows::{self, Form},
    shared::{DiskEvent, Hand, OpenFile, Seen, Shared, add},
};

/// So many snapshots are written at once: beyond that a transaction costs nothing less for each.
pub(super) const BATCH: usize = 500;
/// How long the first one of a batch waits for others: what a crash can lose, against how often the file is touched.
const GATHER: Duration = Duration::from_millis(50);
/// How long until a file that cannot be used is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How often the file is looked after when there is nothing to write.
const TICK: Duration = Duration::from_secs(1);
/// So many rows are purged or evicted in one transaction.
const STEP: i64 = 1000;

/// A file in use.
struct Open {
    place: Place,
    identity: Option<(u64, u64)>,
    connection: Connection,
    form: Form,
    /// The next number by which the order of use is known.
    used: i64,
    page: u64,
}

/// The thread that writes.
struct Writer<'s> {
    shared: &'s Shared,
    open: Option<Open>,
    generation: u64,
}

/// Writes until the store is closed.
pub(super) fn run(shared: &Hand) {
    let mut writer = Writer {
        shared,
        open: None,
        generation: 0,
    };
    while writer.turn() {}
    writer.end();
}

impl Writer<'_> {
    /// Does what is to be done now, or waits for something. `false` if the store is closed and nothing more can be written.
    fn turn(&mut self) -> bool {
        if self.open.is_none() {
            if let Err(error) = self.open() {
                self.failed(&error);
                return self.rest(AGAIN);
            }
            // What waited while there was no file goes first.
            return true;
        }
        let closed = self.wait();
        match self.work() {
            Ok(()) if closed => !self.shared.backlog.lock().is_empty(),
            Ok(()) => true,
            Err(error) => {
                let is_damaged = matches!(error, Unusable::Damaged(_));
                self.failed(&error);
                let reopens = is_damaged && self.begin_anew(error.detail());
                !closed && (reopens || self.rest(AGAIN))
            }
        }
    }

    /// Waits a while, unless the store is closed. `false` if it is.
    ///
    /// Whoever wakes it meanwhile is answered and lengthens nothing: under a steady stream of removals, too, the file is
    /// tried again.
    #[expect(
        clippy::disallowed_types,
        reason = "how long this thread rests, and nothing that is stored"
    )]
    fn rest(&self, span: Duration) -> bool {
        let end_of_rest = std::time::Instant::now() + span;
        let mut backlog = self.shared.backlog.lock();
        let mut is_over = false;
        while !backlog.closed && !is_over {
            is_over = self.shared.more.wait_until(&mut backlog, end_of_rest).timed_out();
            // Whoever waits for something to be durable is told that it is not.
            let told = backlog.urgent_failed();
            let flushes = std::mem::take(&mut backlog.flushes);
            drop(backlog);
            self.tell_failed(told, flushes);
            backlog = self.shared.backlog.lock();
        }
        !backlog.closed
    }

    fn tell_failed(
        &self,
        urgent: Vec<evenkeel_core::store::Done<u64>>,
        flushes: Vec<evenkeel_core::store::Done<()>>,
    ) {
        let why = self
            .shared
            .state
            .lock()
            .down
            .as_ref()
            .map_or_else(String::new, |(_, why)| why.clone());
        for done in urgent {
            done(Err(StoreError::Down(why.clone())));
        }
        for done in flushes {
            done(Err(StoreError::Down(why.clone())));
        }
    }

    /// Waits for something to write; tells whether the store is closed.
    fn wait(&self) -> bool {
        let mut backlog = self.shared.backlog.lock();
        if backlog.is_empty() && !backlog.is_urgent() {
            let _tick = self.shared.more.wait_for(&mut backlog, TICK);
        }
        if !backlog.is_empty() && !backlog.is_urgent() && !backlog.fills(BATCH) {
            // More may come; whoever is in a hurry wakes us.
            let _gathered = self.shared.more.wait_while_for(
                &mut backlog,
                |backlog| !backlog.is_urgent() && !backlog.fills(BATCH),
                GATHER,
            );
        }
        backlog.closed
    }

    fn open(&mut self) -> Result<(), Unusable> {
        let options = &self.shared.options;
        let place = Place::take(&options.directory)?;
        let open = match Self::open_at(place, options) {
            Ok(open) => open,
            Err((Unusable::Damaged(detail), Some(place))) => {
                self.put_aside(&place, &detail)?;
                Self::open_at(place, options).map_err(|(error, _)| error)?
            }
            Err((error, _)) => return Err(error),
        };
        self.generation += 1;
        {
            let mut state = self.shared.state.lock();
            state.suspect = None;
            // Readers may begin; counting what is there takes a while.
            state.open = Some(OpenFile {
                form: open.form.clone(),
                generation: self.generation,
            });
        }
        self.shared.opened.notify_all();
        let count = "SELECT count(*) FROM copies";
        let entries: i64 = open
            .connection
            .query_row(count, [], |row| row.get(0))
            .map_err(Unusable::from)?;
        self.shared.entries.store(entries, Ordering::Relaxed);
        self.shared.bytes.store(open.place.bytes(), Ordering::Relaxed);
        self.shared.came_up(|| open.place.ignored());
        self.open = Some(open);
        Ok(())
    }

    fn open_at(place: Place, options: &DiskOptions) -> Result<Open, (Unusable, Option<Place>)> {
        let opened = |place: &Place| {
            let mut connection = place.open(file_bytes(options))?;
            let form = Form::begin(&mut connection, &options.boot, options.seed)?;
            let used: i64 =
                connection.query_row("SELECT coalesce(max(used), 0) + 1 FROM copies", [], |row| {
                    row.get(0)
                })?;
            let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            Ok::<_, Unusable>((connection, form, used, page.unsigned_abs()))
        };
        match opened(&place) {
            Ok((connection, form, used, page)) => Ok(Open {
                identity: place.identity(),
                place,
                connection,
                form,
                used,
                page,
            }),
            Err(error) => Err((error, Some(place))),
        }
    }

    fn put_aside(&self, place: &Place, detail: &str) -> Result<(), Unusable> {
        let name = place.put_aside()?;
        add(&self.shared.counts.put_aside, 1);
        self.shared.tell(DiskEvent::PutAside {
            name,
            detail: detail.to_owned(),
        });
        Ok(())
    }

    /// Puts a damaged file aside. `true` if a new one can be begun at once.
    fn begin_anew(&mut self, detail: &str) -> bool {
        let Some(Open {
            place, connection, ..
        }) = self.open.take()
        else {
            return false;
        };
        // Closed first: what it still holds must not be written into a file of another name.
        drop(connection.close());
        self.put_aside(&place, detail).is_ok()
    }

    fn failed(&mut self, error: &Unusable) {
        add(&self.shared.counts.failed_batches, u64::from(self.open.is_some()));
        // A file that is only locked or full is still there to be read.
        let stays = matches!(error, Unusable::InUse(_) | Unusable::Full(_)) && self.open.is_some();
        if matches!(error, Unusable::Io(_)) {
            self.open = None;
        }
        self.shared.went_down(error.as_str(), error.detail(), stays);
        let mut backlog = self.shared.backlog.lock();
        let told = backlog.urgent_failed();
        let flushes = std::mem::take(&mut backlog.flushes);
        drop(backlog);
        self.tell_failed(told, flushes);
    }

    /// Writes what is urgent and one batch.
    fn work(&mut self) -> Result<(), Unusable> {
        if let Some(detail) = self.shared.state.lock().suspect.take() {
            return Err(Unusable::Damaged(detail));
        }
        let Some(open) = self.open.as_mut() else {
            return Ok(());
        };
        if open.identity.is_some() && open.place.identity() != open.identity {
            return Err(Unusable::Damaged(
                "the file was taken away or replaced".to_owned(),
            ));
        }
        let urgent = self.shared.backlog.lock().take_urgent();
        if !urgent.is_empty() {
            let counts = open.urgent(self.shared, &urgent)?;
            let told = self.shared.backlog.lock().urgent_done(&counts);
            for (done, count) in told {
                done(Ok(count));
            }
        }
        let batch = self
            .shared
            .backlog
            .lock()
            .take(BATCH, batch_bytes(&self.shared.options));
        let seen = std::mem::take(&mut *self.shared.seen.lock());
        if !batch.is_empty() || !seen.used.is_empty() || !seen.damaged.is_empty() {
            match open.batch(self.shared, &batch, &seen) {
                Ok(()) => self.shared.backlog.lock().written(&batch),
                Err(error) => {
                    self.shared.backlog.lock().put_back(&batch);
                    if matches!(error, Unusable::Full(_)) {
                        // It may be our own bound that is reached.
                        open.make_room(self.shared, true)?;
                    }
                    return Err(error);
                }
            }
        }
        open.make_room(self.shared, false)?;
        open.tend_journal(&self.shared.options)?;
        self.shared.bytes.store(open.place.bytes(), Ordering::Relaxed);
        self.shared.came_up(Vec::new);
        let mut backlog = self.shared.backlog.lock();
        if backlog.is_empty() {
            let flushes = std::mem::take(&mut backlog.flushes);
            drop(backlog);
            for done in flushes {
                done(Ok(()));
            }
        }
        Ok(())
    }

    /// Lets go of the file.
    fn end(&mut self) {
        let mut backlog = self.shared.backlog.lock();
        let told = backlog.urgent_failed();
        let flushes = std::mem::take(&mut backlog.flushes);
        drop(backlog);
        for done in told {
            done(Err(StoreError::Closed));
        }
        for done in flushes {
            done(Err(StoreError::Closed));
        }
        self.shared.state.lock().open = None;
        if let Some(open) = self.open.take() {
            // Whether or not it works, the journal is played in when the file is opened next.
            drop(open.connection.close());
        }
    }
}

/// The bytes of the file itself; the rest of the bound is for its journal.
fn file_bytes(options: &DiskOptions) -> u64 {
    options.bytes.max(DiskOptions::BYTES_MIN) / 4 * 3
}

/// The bytes written at once: a batch, its journal and what readers hold back must fit beside the file.
fn batch_bytes(options: &DiskOptions) -> u64 {
    (options.bytes.max(DiskOptions::BYTES_MIN) / 32).min(4 << 20)
}

/// Begins a change of the file. It waits its turn here, if somebody else writes, and not in the middle.
fn begin(connection: &mut Connection) -> Result<Transaction<'_>, Unusable> {
    Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

impl Open {
    /// Does what is urgent, each so that it survives a loss of power, and returns the numbers of snapshots concerned.
    fn urgent(&mut self, shared: &Shared, urgent: &[(What, Order)]) -> Result<Vec<u64>, Unusable> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        let mut counts = Vec::with_capacity(urgent.len());
        let mut gone = 0;
        let mut change = begin(&mut self.connection)?;
        for (what, order) in urgent {
            let mut count = 0;
            match what {
                What::Settle => {}
                What::Remove(key) => {
                    count = u64::from(self.form.remove(&change, key, *order)?);
                    gone += count;
                }
                What::Purge(purge, how, keys) => {
                    count += self.form.missing(&change, keys)?;
                    let mut after = Some(i64::MIN);
                    while let Some(place) = after {
                        let (concerned, next) =
                            self.form.purge(&change, (purge, *how, *order), place, STEP)?;
                        count += concerned;
                        gone += if *how == PurgeHow::Hard { concerned } else { 0 };
                        after = next;
                        if after.is_some() {
                            // A purge of a million rows is many steps, so that the journal stays small.
                            change.commit()?;
                            shared.grew(-std::mem::take(&mut gone).cast_signed());
                            change = begin(&mut self.connection)?;
                        }
                    }
                }
            }
            counts.push(count);
        }
        change.commit()?;
        shared.grew(-gone.cast_signed());
        add(&shared.counts.removed, counts.iter().sum());
        self.connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(counts)
    }

    /// Writes one batch, and what readers have seen.
    fn batch(&mut self, shared: &Shared, batch: &[Arc<Record>], seen: &Seen) -> Result<(), Unusable> {
        let change = begin(&mut self.connection)?;
        let (mut written, mut entries) = (0, 0);
        for hash in &seen.damaged {
            rows::drop_row(&change, *hash)?;
        }
        for hash in &seen.used {
            change
                .prepare_cached("UPDATE copies SET used = ? WHERE hash = ?")?
                .execute([self.used, *hash])?;
            self.used += 1;
        }
        for record in batch {
            if let Some(is_new) = self.form.put(&change, record, self.used)? {
                self.used += 1;
                written += 1;
                entries += i64::from(is_new);
            }
        }
        change.commit()?;
        shared.grew(entries);
        add(&shared.counts.written, written);
        add(&shared.counts.batches, u64::from(!batch.is_empty()));
        Ok(())
    }

    /// Takes away what was used longest ago while the file is nearly as large as it may be.
    fn make_room(&mut self, shared: &Shared, at_once: bool) -> Result<(), Unusable> {
        let limit = file_bytes(&shared.options);
        if !at_once && self.in_use()? < limit / 10 * 9 {
            return Ok(());
        }
        loop {
            let change = begin(&mut self.connection)?;
            let rows = rows::evict(&change, STEP / 4)?;
            change.commit()?;
            add(&shared.counts.evicted, rows);
            shared.grew(-rows.cast_signed());
            if rows == 0 || self.in_use()? < limit / 10 * 8 {
                return Ok(());
            }
        }
    }

    /// Returns the bytes of pages in use.
    fn in_use(&self) -> Result<u64, Unusable> {
        let pages = |name: &str| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let used = pages("page_count")? - pages("freelist_count")?;
        Ok(used.unsigned_abs() * self.page)
    }

    /// Plays the journal into the file when it has grown, and gives pages back that nobody needs.
    fn tend_journal(&mut self, options: &DiskOptions) -> Result<(), Unusable> {
        if self.place.journal_bytes() < options.bytes.max(DiskOptions::BYTES_MIN) / 16 {
            return Ok(());
        }
        self.connection.execute_batch("PRAGMA incremental_vacuum(256)")?;
        // One that readers hold up works the next time.
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}
