//! Decides how a snapshot stands in the tables, and which rows are believed.
//! It exists as the one place with the text of statements, so that what is written and what is read fit.
//! It refuses a row whose checksum does not fit, one by one: the others are as good as they were.

use std::hash::Hasher as _;
use std::{collections::hash_map::DefaultHasher, sync::Arc};

use evenkeel_core::{
    Mono, Wall,
    store::{Body, Found, Marks, Order, Purge, PurgeHow, Record, Stamp},
};
use rusqlite::{Connection, OptionalExtension as _, Row, params, types::Value};

/// What the rows of a file are read and written with.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Counts how often the file was opened: what was written in an earlier run is earlier than anything of this one.
    pub(super) run: i64,
    /// The first run since the machine was started.
    boot_run: i64,
    /// Keeps outsiders from choosing keys that fall on one hash.
    seed: u64,
}

/// A row that was looked for.
pub(super) enum Looked {
    Nothing,
    /// One, and whether it was written since the file was opened.
    Found(Box<Found>, bool),
    /// It cannot be believed.
    Damaged,
}

/// What is held under a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// Something that was written before the file was opened last.
    Earlier,
    /// Something written since.
    Now(Order),
}

impl Held {
    fn is_covered_by(self, order: Order) -> bool {
        match self {
            Self::Nothing => false,
            Self::Earlier => true,
            Self::Now(held) => order.covers(held),
        }
    }
}

impl Form {
    /// Begins a run.
    pub(super) fn begin(connection: &mut Connection, boot: &str, seed: u64) -> rusqlite::Result<Self> {
        let change = connection.transaction()?;
        let sql = "SELECT run, boot, boot_run, seed, proof FROM store";
        let read = |row: &Row<'_>| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, i64>(3)?.cast_unsigned(),
                row.get::<_, i64>(4)?,
            ))
        };
        let known = change.query_row(sql, [], read).optional()?;
        let form = match known {
            Some((run, known_boot, boot_run, seed, proof)) if proof == proof_of(seed) => Self {
                run: run + 1,
                boot_run: if !boot.is_empty() && known_boot == boot {
                    boot_run
                } else {
                    run + 1
                },
                seed,
            },
            // Hashes came out differently when this was written: nothing in it can be found.
            Some((run, ..)) => {
                change.execute_batch("DELETE FROM copies; DELETE FROM contents; DELETE FROM tags;")?;
                Self {
                    run: run + 1,
                    boot_run: run + 1,
                    seed,
                }
            }
            None => Self {
                run: 1,
                boot_run: 1,
                seed,
            },
        };
        change.execute(
            "INSERT OR REPLACE INTO store (only, run, boot, boot_run, seed, proof) VALUES (1, ?, ?, ?, ?, ?)",
            params![
                form.run,
                boot,
                form.boot_run,
                form.seed.cast_signed(),
                proof_of(form.seed)
            ],
        )?;
        change.commit()?;
        Ok(form)
    }

    pub(super) fn hash(&self, key: &[u8]) -> i64 {
        hashed(self.seed, &[key])
    }

    /// Writes a snapshot, unless a later one is there: `None`. Else tells whether nothing was there before.
    pub(super) fn put(
        &self,
        connection: &Connection,
        record: &Record,
        used: i64,
    ) -> rusqlite::Result<Option<bool>> {
        let hash = self.hash(&record.key);
        let held = self.held(connection, hash)?;
        if let Held::Now(order) = held
            && !record.order.is_after(order)
            && self.key_of(connection, hash)?.is_none_or(|key| key == record.key)
        {
            return Ok(None);
        }
        let tags = record.marks.tags.join("\n");
        let Order { turn, started } = record.order;
        let marks = &record.marks;
        connection
            .prepare_cached("DELETE FROM tags WHERE hash = ? AND ?")?
            .execute(params![hash, held != Held::Nothing])?;
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO copies (hash, uri, route, scope, run, turn, started, soft, used)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                hash,
                marks.uri,
                marks.route,
                marks.scope,
                self.run,
                turn.cast_signed(),
                started.map(Mono::as_nanos),
                record.soft,
                used
            ])?;
        let (mono, wall) = (
            record.stamp.mono.map(Mono::as_nanos),
            record.stamp.wall.map(Wall::as_nanos),
        );
        let sum = self.sum(record);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO contents (hash, key, mono, wall, tags, facts, body, sum)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                hash,
                record.key,
                mono,
                wall,
                tags,
                record.facts,
                record.body.bytes(),
                sum
            ])?;
        let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO tags (tag, hash) VALUES (?, ?)")?;
        for tag in &record.marks.tags {
            insert.execute(params![tag, hash])?;
        }
        Ok(Some(held == Held::Nothing))
    }

    /// Tells what is held under a hash.
    fn held(&self, connection: &Connection, hash: i64) -> rusqlite::Result<Held> {
        let held = connection
            .prepare_cached("SELECT run, turn, started FROM copies WHERE hash = ?")?
            .query_row([hash], |row| self.order(row, 0))
            .optional()?;
        Ok(held.unwrap_or(Held::Nothing))
    }

    /// Returns how many of these keys have no row.
    pub(super) fn missing(&self, connection: &Connection, keys: &[Arc<[u8]>]) -> rusqlite::Result<u64> {
        let mut missing = 0;
        for key in keys {
            missing += u64::from(self.held(connection, self.hash(key))? == Held::Nothing);
        }
        Ok(missing)
    }

    fn key_of(&self, connection: &Connection, hash: i64) -> rusqlite::Result<Option<Vec<u8>>> {
        connection
            .prepare_cached("SELECT key FROM contents WHERE hash = ?")?
            .query_row([hash], |row| row.get(0))
            .optional()
    }

    /// Reads three columns.
    fn order(&self, row: &Row<'_>, at: usize) -> rusqlite::Result<Held> {
        let run: i64 = row.get(at)?;
        let turn: i64 = row.get(at + 1)?;
        let started: Option<i64> = row.get(at + 2)?;
        Ok(if run == self.run {
            Held::Now(Order {
                turn: turn.cast_unsigned(),
                started: started.map(Mono::from_nanos),
            })
        } else {
            Held::Earlier
        })
    }

    /// Takes a snapshot away, unless a later one is there; tells whether it did.
    pub(super) fn remove(&self, connection: &Connection, key: &[u8], order: Order) -> rusqlite::Result<bool> {
        let hash = self.hash(key);
        let goes = self.held(connection, hash)?.is_covered_by(order)
            && self.key_of(connection, hash)?.is_none_or(|held| held == key);
        if goes {
            drop_row(connection, hash)?;
        }
        Ok(goes)
    }

    /// Looks a row up by its key.
    pub(super) fn get(&self, connection: &Connection, key: &[u8]) -> rusqlite::Result<Looked> {
        let hash = self.hash(key);
        let looked = connection
            .prepare_cached(&format!("{READ} WHERE copies.hash = ?"))?
            .query_row([hash], |row| {
                Ok((self.read(row)?, row.get::<_, i64>(3)? == self.run))
            })
            .optional();
        let looked = match looked {
            // A column holds another kind of thing than was written there.
            Err(error) if error.sqlite_error_code().is_none() => return Ok(Looked::Damaged),
            looked => looked?,
        };
        Ok(match looked {
            None => Looked::Nothing,
            // A damaged key cannot be told from another one; its checksum says which.
            Some((None, _)) => Looked::Damaged,
            Some((Some(found), is_of_this_run)) if found.record.key == key => {
                Looked::Found(Box::new(found), is_of_this_run)
            }
            Some((Some(_), _)) => Looked::Nothing,
        })
    }

    /// Reads the rows used last, behind a place. Those that are damaged are left out.
    pub(super) fn latest(
        &self,
        connection: &Connection,
        after: Option<i64>,
        (most, bytes): (usize, u64),
    ) -> rusqlite::Result<(Vec<Found>, Option<i64>)> {
        let sql = format!("{READ} WHERE used < ? ORDER BY used DESC");
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([after.unwrap_or(i64::MAX)])?;
        let (mut given, mut last, mut size) = (Vec::new(), None, 0);
        let mut looked_at = 0;
        while let Some(row) = rows.next()? {
            if looked_at >= most || (size >= bytes && looked_at > 0) {
                return Ok((given, last));
            }
            last = Some(row.get(7)?);
            looked_at += 1;
            // What cannot be read here will be found damaged when it is asked for.
            let found = self.read(row).ok().flatten();
            if let Some(found) = found {
                size += found.record.bytes();
                given.push(found);
            }
        }
        Ok((given, None))
    }

    /// Reads a whole row; `None` in the stead of one that cannot be believed.
    fn read(&self, row: &Row<'_>) -> rusqlite::Result<Option<Found>> {
        let run: i64 = row.get(3)?;
        let turn: i64 = row.get(4)?;
        let tags: String = row.get(11)?;
        let body: Vec<u8> = row.get(13)?;
        let record = Record {
            key: row.get(8)?,
            marks: Marks {
                uri: row.get(0)?,
                route: row.get(1)?,
                scope: row.get(2)?,
                tags: tags
                    .split('\n')
                    .filter(|tag| !tag.is_empty())
                    .map(str::to_owned)
                    .collect(),
            },
            order: Order {
                turn: turn.cast_unsigned(),
                started: row.get::<_, Option<i64>>(5)?.map(Mono::from_nanos),
            },
            stamp: Stamp {
                mono: row.get::<_, Option<i64>>(9)?.map(Mono::from_nanos),
                wall: row.get::<_, Option<i64>>(10)?.map(Wall::from_nanos),
            },
            soft: row.get(6)?,
            facts: row.get(12)?,
            body: Body::of(Arc::<[u8]>::from(body)),
        };
        let sum: i64 = row.get(14)?;
        let same_boot = run >= self.boot_run;
        // A run that has not been yet is no proof of anything.
        let believed = sum == self.sum(&record) && run <= self.run;
        Ok(believed.then_some(Found { record, same_boot }))
    }

    /// Takes away or softens up to `most` rows behind a place; returns how many, and where to go on.
    pub(super) fn purge(
        &self,
        connection: &Connection,
        (purge, how, order): (&Purge, PurgeHow, Order),
        after: i64,
        most: i64,
    ) -> rusqlite::Result<(u64, Option<i64>)> {
        let (wanted, value) = condition(purge);
        let sql = format!(
            "SELECT hash, run, turn, started FROM
                (SELECT *, instr(uri, '://') + 2 + instr(substr(uri, instr(uri, '://') + 3), '/') AS path FROM copies)
             WHERE hash > ?1 AND {wanted} ORDER BY hash LIMIT ?3"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, self.order(row, 1)?));
        let rows: Vec<(i64, Held)> = statement
            .query_map(params![after, value, most], read)?
            .collect::<Result<_, _>>()?;
        let mut concerned = 0;
        for (hash, held) in &rows {
            if !held.is_covered_by(order) {
                continue;
            }
            concerned += 1;
            match how {
                PurgeHow::Hard => drop_row(connection, *hash)?,
                PurgeHow::Soft => {
                    let mut soften =
                        connection.prepare_cached("UPDATE copies SET soft = 1 WHERE hash = ?")?;
                    soften.execute([hash])?;
                }
            }
        }
        let is_all = i64::try_from(rows.len()).unwrap_or(i64::MAX) < most;
        let last = rows.last().map(|(hash, _)| *hash).filter(|_| !is_all);
        Ok((concerned, last))
    }

    /// Returns what proves that a row is as it was written.
    fn sum(&self, record: &Record) -> i64 {
        let number = |number: Option<i64>| {
            number.map_or([0; 9], |number| {
                let mut bytes = [1; 9];
                bytes[1..].copy_from_slice(&number.to_be_bytes());
                bytes
            })
        };
        let tags = record.marks.tags.join("\n");
        hashed(
            self.seed,
            &[
                &record.key,
                record.marks.uri.as_bytes(),
                record.marks.route.as_bytes(),
                &record.marks.scope,
                tags.as_bytes(),
                &number(record.stamp.mono.map(Mono::as_nanos)),
                &number(record.stamp.wall.map(Wall::as_nanos)),
                &record.facts,
                record.body.bytes(),
            ],
        )
    }
}

const READ: &str =
    "SELECT uri, route, scope, run, turn, started, soft, used, key, mono, wall, tags, facts, body, sum
    FROM copies JOIN contents USING (hash)";

fn condition(purge: &Purge) -> (&'static str, Value) {
    match purge {
        Purge::Uri(uri) => ("uri = ?2", uri.clone().into()),
        Purge::Prefix(prefix) => ("substr(uri, 1, length(?2)) = ?2", prefix.clone().into()),
        Purge::Target(target) => ("substr(uri, path) = ?2", target.clone().into()),
        Purge::TargetPrefix(prefix) => ("substr(uri, path, length(?2)) = ?2", prefix.clone().into()),
        Purge::Tag(tag) => (
            "hash IN (SELECT hash FROM tags WHERE tag = ?2)",
            tag.clone().into(),
        ),
        Purge::Scope(scope) => ("scope = ?2", scope.clone().into()),
        Purge::Route(route) => ("route = ?2", route.clone().into()),
        Purge::All => ("?2 IS NULL", Value::Null),
    }
}

/// Takes a row away, whatever it is.
pub(super) fn drop_row(connection: &Connection, hash: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM copies WHERE hash = ?",
        "DELETE FROM contents WHERE hash = ?",
        "DELETE FROM tags WHERE hash = ?",
    ] {
        connection.prepare_cached(sql)?.execute([hash])?;
    }
    Ok(())
}

/// Makes room: takes away what was used longest ago; returns how many rows.
pub(super) fn evict(connection: &Connection, most: i64) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached("SELECT hash FROM copies ORDER BY used LIMIT ?")?;
    let rows: Vec<i64> = statement
        .query_map([most], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for hash in &rows {
        drop_row(connection, *hash)?;
    }
    Ok(rows.len() as u64)
}

fn hashed(seed: u64, parts: &[&[u8]]) -> i64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    hasher.finish().cast_signed()
}

/// Returns what shows that hashes still come out as when the file was written.
fn proof_of(seed: u64) -> i64 {
    hashed(seed, &[b"evenkeel"])
}
