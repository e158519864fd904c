//! Decides how a look-up is answered: by a thread that may wait for the disk, so that nobody else does.
//! It exists so that readers never meet the writer: each has a connection of its own, and sees what is committed.
//! It refuses to give what has been taken away since it was asked for.

use evenkeel_core::store::{Done, Found, Record, StoreError};
use rusqlite::Connection;

use super::{
    file::{Place, Unusable},
    rows::{Form, Looked},
    shared::{OpenFile, Read, Shared},
};

/// A look-up by key.
pub(super) struct Job {
    pub(super) key: Vec<u8>,
    /// What waited to be written for it when it was asked for: it may be in the file by the time that is read, or after.
    pub(super) waited: Option<Box<Found>>,
    /// How many removals had been done when it was asked for.
    pub(super) removals: u64,
}

/// What is asked of the readers.
pub(super) enum Asked {
    Get(Job, Done<Option<Found>>),
    Latest(Option<i64>, (usize, u64), Done<(Vec<Found>, Option<i64>)>),
}

impl Asked {
    /// Ends it without a result.
    pub(super) fn fail(self, why: StoreError) {
        match self {
            Self::Get(_, done) => done(Err(why)),
            Self::Latest(.., done) => done(Err(why)),
        }
    }
}

/// Answers look-ups until the store is closed.
pub(super) fn run(shared: &Shared) {
    let mut open: Option<(Connection, OpenFile)> = None;
    loop {
        let mut lookups = shared.lookups.lock();
        let asked = loop {
            if lookups.closed {
                return;
            }
            match lookups.waiting.pop_front() {
                Some(asked) => break asked,
                None => shared.asked.wait(&mut lookups),
            }
        };
        drop(lookups);
        let mut state = shared.state.lock();
        while state.open.is_none() && state.is_opening() {
            shared.opened.wait(&mut state);
        }
        let now = state.open.clone();
        drop(state);
        let Some(now) = now else {
            open = None;
            asked.fail(StoreError::Down("the file is not open".to_owned()));
            continue;
        };
        if open
            .as_ref()
            .is_none_or(|(_, known)| known.generation != now.generation)
        {
            open = None;
            match Place::open_to_read(&shared.options.directory) {
                Ok(connection) => open = Some((connection, now)),
                Err(error) => {
                    shared.counts.read_ended(Read::Failed);
                    asked.fail(StoreError::Down(error.detail().to_owned()));
                    continue;
                }
            }
        }
        if let Some((connection, known)) = &open
            && !answer(shared, connection, &known.form, asked)
        {
            open = None;
        }
    }
}

/// Answers one; `false` if the connection is of no more use.
fn answer(shared: &Shared, connection: &Connection, form: &Form, asked: Asked) -> bool {
    match asked {
        Asked::Get(job, done) => match form.get(connection, &job.key) {
            Ok(looked) => {
                done(Ok(judged(shared, form, job, looked)));
                true
            }
            Err(error) => failed(shared, &error.into(), done),
        },
        Asked::Latest(after, limits, done) => match form.latest(connection, after, limits) {
            Ok((mut given, next)) => {
                given.retain(|found| {
                    let backlog = shared.backlog.lock();
                    // What waits is newer; what is being taken away is not given.
                    backlog.get(&found.record.key).is_none()
                        && !backlog.hides(&found.record.key, &found.record.marks, None)
                });
                done(Ok((given, next)));
                true
            }
            Err(error) => failed(shared, &error.into(), done),
        },
    }
}

/// Puts together what the file held and what waited: the latest of it that has not been taken away.
fn judged(shared: &Shared, form: &Form, job: Job, looked: Looked) -> Option<Found> {
    let backlog = shared.backlog.lock();
    let gone = |found: &Found, is_of_this_run: bool| {
        let Record {
            key, marks, order, ..
        } = &found.record;
        // Removals that were not done when this was asked for may be done by now.
        backlog.hides(key, marks, is_of_this_run.then_some(*order))
            || backlog.tombs.count != job.removals
                && if is_of_this_run {
                    backlog.tombs.cover(key, marks, *order)
                } else {
                    backlog.tombs.mention(key, marks)
                }
    };
    let mut latest = None;
    let mut consider = |found: Found, is_of_this_run: bool| {
        let is_later = latest
            .as_ref()
            .is_none_or(|(held, held_of_this_run): &(Found, bool)| {
                match (is_of_this_run, *held_of_this_run) {
                    (true, true) => found.record.order.is_after(held.record.order),
                    (this, other) => this && !other,
                }
            });
        if is_later && !gone(&found, is_of_this_run) {
            latest = Some((found, is_of_this_run));
        }
    };
    let mut read = Read::Miss;
    match looked {
        Looked::Nothing => {}
        Looked::Damaged => {
            shared.saw(form.hash(&job.key), true);
            read = Read::Damaged;
        }
        Looked::Found(found, is_of_this_run) => {
            shared.saw(form.hash(&job.key), false);
            consider(*found, is_of_this_run);
        }
    }
    for waiting in job
        .waited
        .map(|waited| *waited)
        .into_iter()
        .chain(backlog.get(&job.key))
    {
        consider(waiting, true);
    }
    let found = latest.map(|(found, _)| found);
    drop(backlog);
    shared
        .counts
        .read_ended(if found.is_some() { Read::Hit } else { read });
    found
}

fn failed<T>(shared: &Shared, error: &Unusable, done: Done<T>) -> bool {
    shared.counts.read_ended(Read::Failed);
    if let Unusable::Damaged(detail) = error {
        // The writer puts the file aside.
        shared.state.lock().suspect = Some(detail.clone());
        shared.more.notify_one();
    }
    done(Err(StoreError::Down(error.detail().to_owned())));
    false
}
