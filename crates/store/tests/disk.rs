//! Decides what a store on disk does when the file, the disk or the process fails: each failure is made to happen.
//! It exists because a store that works while all is well says nothing about the day it is there for.
//! It refuses to pretend a failure: files are cut, locked and overwritten, and processes are killed.
#![cfg(feature = "disk")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::semicolon_if_nothing_returned,
    clippy::type_complexity,
    clippy::string_slice,
    clippy::let_underscore_must_use,
    clippy::disallowed_methods,
    reason = "tests; a process of its own is told its part by its environment"
)]

mod kit;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use evenkeel_core::store::{Body, NotTaken, Purge, PurgeHow, SnapshotStore as _, StoreError};
use evenkeel_store::{Disk, DiskEvent, DiskOptions, Read};
use kit::{Directory, at, flush, get, held, order, record, remove, until, wait};
use rusqlite::Connection;

fn open(options: DiskOptions) -> Disk {
    let disk = Disk::start(options).unwrap();
    until("the file is open", || disk.stats().up);
    disk
}

fn fill(disk: &Disk, keys: std::ops::Range<u64>) {
    for turn in keys {
        disk.put(record(&format!("k{turn}"), turn), at(1)).unwrap();
    }
    flush(disk);
}

fn down_for(disk: &Disk, why: &str) {
    until(why, || disk.down().is_some_and(|(word, _)| word == why));
}

#[test]
fn case_040_what_is_written_is_there_after_a_restart_with_its_times() {
    let directory = Directory::new();
    let disk = open(directory.options());
    fill(&disk, 1..1001);
    disk.join();
    let disk = open(directory.options());
    assert_eq!(disk.stats().entries, 1000);
    for turn in 1..1001 {
        let found = get(&disk, &format!("k{turn}")).unwrap();
        assert_eq!(found.record, record(&format!("k{turn}"), turn));
        assert!(found.same_boot);
    }
    disk.join();
    let other_boot = DiskOptions {
        boot: "another boot".to_owned(),
        ..directory.options()
    };
    let disk = open(other_boot.clone());
    assert!(!get(&disk, "k1").unwrap().same_boot);
    disk.put(record("k1", 1), at(1)).unwrap();
    flush(&disk);
    disk.join();
    let disk = open(other_boot);
    assert!(get(&disk, "k1").unwrap().same_boot && !get(&disk, "k2").unwrap().same_boot);
    disk.join();
    // Where nobody can tell one boot from the next, nothing is taken for the same.
    for _ in 0..2 {
        let disk = open(DiskOptions {
            boot: String::new(),
            ..directory.options()
        });
        assert!(!get(&disk, "k1").unwrap().same_boot);
        disk.join();
    }
}

#[test]
fn case_040_what_is_asked_while_the_file_is_being_opened_is_answered_when_it_is_open() {
    let directory = Directory::new();
    let disk = open(directory.options());
    fill(&disk, 1..100);
    disk.join();
    for _ in 0..20 {
        let disk = Disk::start(directory.options()).unwrap();
        for turn in 1..100 {
            assert_eq!(held(&disk, &format!("k{turn}")), Some(turn));
        }
        disk.join();
    }
    // One that is closed meanwhile answers too.
    let disk = Disk::start(directory.options()).unwrap();
    disk.close();
    assert!(wait(|done| disk.get(b"k1", done)).is_err());
    disk.join();
}

#[test]
fn what_was_written_before_a_restart_is_earlier_than_anything_after_it() {
    let directory = Directory::new();
    let disk = open(directory.options());
    fill(&disk, 500..501);
    disk.join();
    let disk = open(directory.options());
    // Its numbers begin anew, and its clock may too.
    let mut after = record("k500", 500);
    after.order = order(1, -1000);
    disk.put(after.clone(), at(1)).unwrap();
    assert_eq!(get(&disk, "k500").unwrap().record, after);
    flush(&disk);
    assert_eq!(get(&disk, "k500").unwrap().record, after);
    assert_eq!(remove(&disk, "k500", order(2, -999)), 1);
    assert_eq!(get(&disk, "k500"), None);
}

#[test]
fn files_are_for_their_owner_alone() {
    let directory = Directory::new();
    let disk = open(directory.options());
    fill(&disk, 1..3);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(directory.path()), 0o700);
    let mut files = 0;
    for entry in fs::read_dir(directory.path()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
        files += 1;
    }
    assert!(files >= 3, "the file, its journal, the lock");
}

#[test]
fn a_second_process_is_refused_and_gets_its_turn_when_the_first_has_ended() {
    let directory = Directory::new();
    let first = open(directory.options());
    fill(&first, 1..3);
    let second = Disk::start(directory.options()).unwrap();
    down_for(&second, "in-use");
    let (_, why) = second.down().unwrap();
    assert!(why.contains("another process writes in"), "{why}");
    assert!(matches!(
        wait(|done| second.get(b"k1", done)),
        Err(StoreError::Down(_))
    ));
    // What is handed to it waits; what must be durable is refused.
    second.put(record("k9", 9), at(1)).unwrap();
    let removed = wait(|done| second.remove(b"k1", order(9, 9), done));
    assert!(matches!(removed, Err(StoreError::Down(_))), "{removed:?}");
    first.join();
    until("it is its turn", || second.stats().up);
    flush(&second);
    assert_eq!(held(&second, "k9"), Some(9));
    assert_eq!(held(&second, "k1"), None, "the removal was not forgotten");
    assert_eq!(held(&second, "k2"), Some(2));
}

/// Ways to damage a file that is not open.
fn damages() -> Vec<(&'static str, fn(&Directory))> {
    vec![
        ("a text file", |at| {
            fs::write(at.file(), "not a database\n".repeat(1000)).unwrap()
        }),
        ("random bytes", |at| {
            let noise: Vec<u8> = (0..100_000_u32)
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect();
            fs::write(at.file(), noise).unwrap();
        }),
        ("no bytes", |at| fs::write(at.file(), "").unwrap()),
        ("half a file", |at| {
            let whole = fs::read(at.file()).unwrap();
            fs::write(at.file(), &whole[..whole.len() / 2 + 100]).unwrap();
        }),
        ("its head alone", |at| {
            let whole = fs::read(at.file()).unwrap();
            fs::write(at.file(), &whole[..100]).unwrap();
        }),
        ("another middle", |at| {
            let mut whole = fs::read(at.file()).unwrap();
            let length = whole.len();
            for byte in &mut whole[4096..length - 4096] {
                *byte ^= 0x5a;
            }
            fs::write(at.file(), whole).unwrap();
        }),
        ("nothing", |at| fs::remove_file(at.file()).unwrap()),
    ]
}

#[test]
fn case_042_a_damaged_file_is_put_aside_and_a_new_one_begins() {
    for (what, damage) in damages() {
        let directory = Directory::new();
        let disk = open(directory.options());
        fill(&disk, 1..200);
        disk.join();
        fs::write(directory.path().join("readme.txt"), "somebody else's").unwrap();
        damage(&directory);
        let disk = Disk::start(directory.options()).unwrap();
        // Whatever is asked is answered: what is there is right, and what is not right is not given.
        until(what, || disk.stats().up);
        for turn in 1..200 {
            if let Ok(Some(found)) = wait(|done| disk.get(format!("k{turn}").as_bytes(), done)) {
                assert_eq!(found.record, record(&format!("k{turn}"), turn), "{what}");
            }
        }
        // Reading may have shown that the file is broken; then another one is there soon.
        until("it can be written", || {
            let _dropped = disk.put(record("new", 1000), at(1));
            wait(|done| disk.flush(done)).is_ok() && held(&disk, "new") == Some(1000)
        });
        let events = disk.events();
        let ignores =
            |event: &DiskEvent| matches!(event, DiskEvent::Up { ignored, .. } if *ignored == ["readme.txt"]);
        assert!(events.iter().any(ignores), "{what}: {events:?}");
        assert_eq!(
            disk.counts().put_aside > 0,
            directory.path().join("damaged-1").exists(),
            "{what}: {events:?}"
        );
        if what.contains("text") || what.contains("random") {
            assert_eq!(disk.counts().put_aside, 1, "{what}");
        }
        disk.join();
        let file = Connection::open(directory.file()).unwrap();
        let check: String = file
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok", "{what}");
    }
}

#[test]
fn damaged_files_are_kept_in_a_bounded_number_and_the_latest_is_the_first() {
    let directory = Directory::new();
    for round in 0..5 {
        fs::create_dir_all(directory.path()).unwrap();
        fs::write(directory.file(), format!("damage {round} ").repeat(1000)).unwrap();
        open(directory.options()).join();
    }
    let first = |name: &str| fs::read_to_string(directory.path().join(name)).map(|text| text[..8].to_owned());
    assert_eq!(first("damaged-1").unwrap(), "damage 4");
    assert_eq!(first("damaged-3").unwrap(), "damage 2");
    assert!(!directory.path().join("damaged-4").exists());
}

#[test]
fn one_damaged_row_is_refused_alone_and_taken_away() {
    let directory = Directory::new();
    let disk = open(directory.options());
    fill(&disk, 1..10);
    disk.join();
    let file = Connection::open(directory.file()).unwrap();
    let change = |sql: &str| {
        let changed = file.execute(sql, []).unwrap();
        assert_eq!(changed, 1, "{sql}");
    };
    change("UPDATE contents SET body = CAST('k3 as of 4' AS BLOB) WHERE key = CAST('k3' AS BLOB)");
    change("UPDATE contents SET wall = wall + 1 WHERE key = CAST('k4' AS BLOB)");
    change("UPDATE contents SET facts = 'text' WHERE key = CAST('k5' AS BLOB)");
    change("UPDATE contents SET key = CAST('k7' AS BLOB) WHERE key = CAST('k6' AS BLOB)");
    drop(file);
    let disk = open(directory.options());
    for (turn, is_there) in (1..10).map(|turn| (turn, !(3..7).contains(&turn))) {
        assert_eq!(get(&disk, &format!("k{turn}")).is_some(), is_there, "k{turn}");
    }
    let damaged = Read::ALL.iter().position(|read| *read == Read::Damaged).unwrap();
    assert_eq!(disk.counts().reads[damaged], 4);
    fill(&disk, 10..11);
    disk.join();
    let file = Connection::open(directory.file()).unwrap();
    let left: i64 = file
        .query_row("SELECT count(*) FROM copies", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 6);
}

#[test]
fn a_file_of_a_later_form_or_of_somebody_else_is_left_alone() {
    for sql in [
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 77",
        "PRAGMA application_id = 0; PRAGMA user_version = 0",
    ] {
        let directory = Directory::new();
        let disk = open(directory.options());
        fill(&disk, 1..3);
        disk.join();
        Connection::open(directory.file())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let before = fs::read(directory.file()).unwrap();
        let disk = Disk::start(directory.options()).unwrap();
        down_for(&disk, "foreign");
        let (_, why) = disk.down().unwrap();
        assert!(why.contains("another directory"), "{why}");
        disk.put(record("a", 1), at(1)).unwrap();
        disk.join();
        assert!(fs::read(directory.file()).unwrap() == before, "{sql}");
    }
}

#[test]
fn a_file_that_is_taken_away_while_it_is_open_is_begun_anew() {
    let ways: [fn(&Directory); 3] = [
        |at| fs::remove_file(at.file()).unwrap(),
        |at| {
            let text = at.path().join("other");
            fs::write(&text, "not a database ".repeat(1000)).unwrap();
            fs::rename(text, at.file()).unwrap();
        },
        |at| fs::remove_dir_all(at.path()).unwrap(),
    ];
    for way in ways {
        let directory = Directory::new();
        let disk = open(directory.options());
        fill(&disk, 1..10);
        assert_eq!(held(&disk, "k1"), Some(1));
        way(&directory);
        until("it begins anew", || {
            let _dropped = disk.put(record("new", 1000), at(1));
            wait(|done| disk.flush(done)).is_ok() && directory.file().exists()
        });
        fill(&disk, 2000..2001);
        disk.join();
        let disk = open(directory.options());
        assert_eq!(held(&disk, "k2000"), Some(2000));
    }
}

#[test]
fn a_file_that_is_overwritten_while_it_is_open_stops_nobody() {
    let directory = Directory::new();
    let disk = open(DiskOptions {
        backlog_entries: 5000,
        ..directory.options()
    });
    fill(&disk, 1..2000);
    let length = usize::try_from(fs::metadata(directory.file()).unwrap().len()).unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(directory.file()).unwrap();
    file.write_all(&vec![0x5a; length]).unwrap();
    for turn in 1..2000 {
        if let Ok(Some(found)) = wait(|done| disk.get(format!("k{turn}").as_bytes(), done)) {
            assert_eq!(found.record, record(&format!("k{turn}"), turn));
        }
        let _dropped = disk.put(record(&format!("k{turn}"), 5000 + turn), at(1));
    }
    until("it can be written again", || {
        let _dropped = disk.put(record("new", 9000), at(1));
        wait(|done| disk.flush(done)).is_ok()
    });
    disk.join();
    let disk = open(directory.options());
    until("it holds what was written last", || {
        held(&disk, "new") == Some(9000)
    });
}

#[test]
fn a_writer_that_stands_still_costs_a_bounded_backlog_that_is_seen() {
    let directory = Directory::new();
    let disk = open(DiskOptions {
        backlog_entries: 100,
        backlog_bytes: 1 << 20,
        ..directory.options()
    });
    fill(&disk, 1..10);
    let other = Connection::open(directory.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let taken = (0..1000_u64)
        .map(|turn| {
            disk.put(
                record(&format!("n{turn}"), 1000 + turn),
                at(500 + i64::try_from(turn).unwrap()),
            )
        })
        .filter(Result::is_ok)
        .count();
    assert_eq!(taken, 100);
    // One for a key that waits takes its place: that is no growth.
    disk.put(record("n5", 9000), at(9000)).unwrap();
    let stats = disk.stats();
    assert!(
        stats.backlog >= 100 && stats.backlog_bytes <= 1 << 20,
        "{stats:?}"
    );
    assert_eq!(
        stats.backlog_since,
        Some(at(500)),
        "the time it has waited counts on"
    );
    down_for(&disk, "in-use");
    let full = NotTaken::ALL
        .iter()
        .position(|why| *why == NotTaken::Full)
        .unwrap();
    assert_eq!(disk.counts().dropped[full], 900);
    // Reading goes on, also of what waits.
    assert_eq!(held(&disk, "k3"), Some(3));
    assert_eq!(held(&disk, "n5"), Some(9000));
    // What must be durable is told not to be, soon; and is not given any more.
    let removed = wait(|done| disk.remove(b"k3", order(9001, 9001), done));
    assert!(matches!(removed, Err(StoreError::Down(_))), "{removed:?}");
    assert_eq!(held(&disk, "k3"), None);
    other.execute_batch("ROLLBACK").unwrap();
    until("the backlog is gone", || {
        disk.stats().backlog == 0 && disk.stats().up
    });
    assert_eq!(held(&disk, "n5"), Some(9000));
    disk.join();
    let disk = open(directory.options());
    assert_eq!((held(&disk, "k3"), held(&disk, "n7")), (None, Some(1007)));
}

#[test]
fn a_steady_stream_of_removals_does_not_keep_a_file_from_being_tried_again() {
    let directory = Directory::new();
    // A file in the place of the directory: it cannot be used, and can be mended.
    fs::write(directory.path(), "in the way").unwrap();
    let disk = Disk::start(directory.options()).unwrap();
    until("it is down", || {
        disk.down().is_some_and(|(word, _)| word != "opening")
    });
    fs::remove_file(directory.path()).unwrap();
    let mut turn = 0;
    until("the file is open", || {
        turn += 1;
        let key = format!("k{turn}");
        disk.remove(key.as_bytes(), order(turn, 1), Box::new(|_| ()));
        disk.stats().up
    });
    disk.join();
}

#[test]
fn more_removals_than_can_wait_take_everything_and_bring_nothing_back() {
    let directory = Directory::new();
    let disk = open(directory.options());
    fill(&disk, 1..10);
    let other = Connection::open(directory.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for turn in 0..10_000_u64 {
        disk.remove(
            format!("r{turn}").as_bytes(),
            order(100 + turn, 100),
            Box::new(|_| ()),
        );
    }
    assert!(disk.stats().backlog < 10_000);
    other.execute_batch("ROLLBACK").unwrap();
    until("they are done", || disk.stats().backlog == 0 && disk.stats().up);
    assert_eq!(disk.stats().entries, 0);
}

#[test]
fn the_file_stays_within_its_bound_and_what_was_used_longest_ago_goes_first() {
    let directory = Directory::new();
    let options = DiskOptions {
        bytes: DiskOptions::BYTES_MIN,
        ..directory.options()
    };
    let disk = open(options.clone());
    let large = |turn: u64| {
        let mut record = record(&format!("k{turn}"), turn);
        record.body = Body::of(vec![turn.to_be_bytes()[7]; 20_000]);
        record
    };
    let mut largest = 0;
    for turn in 1..3000_u64 {
        while disk.put(large(turn), at(1)) == Err(NotTaken::Full) {
            flush(&disk);
        }
        if turn % 100 == 0 {
            flush(&disk);
            // What is asked for again and again stays.
            assert!(get(&disk, "k1").is_some(), "{turn}");
            largest = largest.max(bytes_of(&directory));
        }
    }
    flush(&disk);
    assert!(largest <= options.bytes, "{largest}");
    assert!(disk.counts().evicted > 1000);
    assert_eq!(held(&disk, "k2999"), Some(2999));
    assert_eq!(held(&disk, "k2"), None);
    assert!(disk.stats().entries > 100 && disk.stats().up);
    let mut too_big = record("big", 1);
    too_big.body = Body::of(vec![0; 2 << 20]);
    assert_eq!(disk.put(too_big, at(1)), Err(NotTaken::TooBig));
}

fn bytes_of(directory: &Directory) -> u64 {
    let entries = fs::read_dir(directory.path()).unwrap();
    entries
        .map(|entry| entry.unwrap().metadata().map_or(0, |found| found.len()))
        .sum()
}

#[test]
fn a_purge_of_many_is_whole() {
    let directory = Directory::new();
    let disk = open(DiskOptions {
        backlog_entries: 20_000,
        ..directory.options()
    });
    fill(&disk, 1..10_001);
    let purged = wait(|done| {
        disk.purge(
            Purge::Tag("all".to_owned()),
            PurgeHow::Soft,
            order(20_000, 20_000),
            done,
        )
    });
    assert_eq!(purged, Ok(10_000));
    let purged = wait(|done| disk.purge(Purge::All, PurgeHow::Hard, order(20_001, 20_001), done));
    assert_eq!(purged, Ok(10_000));
    assert_eq!(disk.stats().entries, 0);
}

const DIRECTORY: &str = "EVENKEEL_STORE_TEST_DIRECTORY";
const FIRST: &str = "EVENKEEL_STORE_TEST_FIRST";

/// The process that is killed: it writes and takes away, and says what is durable.
#[test]
#[ignore = "run by the test that kills it"]
fn writes_until_it_is_killed() {
    let (Ok(directory), Ok(first)) = (std::env::var(DIRECTORY), std::env::var(FIRST)) else {
        return;
    };
    let disk = open(kit::options(directory.as_ref()));
    let mut say = std::io::stdout();
    for turn in first.parse::<u64>().unwrap().. {
        let key = format!("k{}", turn % 40);
        disk.put(record(&key, turn), at(1)).unwrap();
        if turn % 7 == 0 {
            let gone = format!("k{}", (turn / 7) % 40);
            remove(&disk, &gone, order(turn, i64::try_from(turn).unwrap()));
            writeln!(say, "removed {gone} {turn}").unwrap();
        }
        if turn % 10 == 0 {
            flush(&disk);
            writeln!(say, "written {key} {turn}").unwrap();
        }
    }
}

#[test]
fn case_040_what_was_written_survives_a_kill_and_what_was_taken_away_stays_away() {
    let directory = Directory::new();
    let mut first = 1;
    for round in 0..20_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_until_it_is_killed", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(FIRST, first.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        let enough = 20 + round * 13;
        while said.len() < enough {
            let line = lines.next().expect("the child goes on").unwrap();
            said.extend(told(&line));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said while it was being killed counts too; its last line may be cut.
        said.extend(lines.map_while(Result::ok).filter_map(|line| told(&line)));
        let file = Connection::open(directory.file()).unwrap();
        let check: String = file
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        drop(file);
        let disk = open(directory.options());
        for key in 0..40 {
            let key = format!("k{key}");
            let last = |what: &str| {
                let of_key = said.iter().filter(|(word, of, _)| word == what && *of == key);
                of_key.map(|(.., turn)| *turn).max().unwrap_or(0)
            };
            let found = get(&disk, &key).map(|found| found.record);
            let turn = found.as_ref().map_or(0, |found| found.order.turn);
            if let Some(found) = &found {
                assert_eq!(*found, record(&key, turn), "round {round}");
            }
            let (written, removed) = (last("written"), last("removed"));
            assert!(
                turn == 0 || turn > removed,
                "round {round}: {key} {turn} came back after {removed}"
            );
            if written > removed && turn != 0 {
                assert!(turn >= written, "round {round}: {key} of {written} was lost");
            }
            if written > removed && turn == 0 {
                // Only a removal that was under way, and could not be told any more, takes it away.
                let (last, number) = (
                    said.iter().map(|(.., turn)| *turn).max().unwrap(),
                    key[1..].parse().unwrap(),
                );
                let mut next = last..last + 20;
                assert!(
                    next.any(|turn| turn % 7 == 0 && (turn / 7) % 40 == number),
                    "round {round}: {key} was lost"
                );
            }
        }
        disk.join();
        first = said.iter().map(|(.., turn)| turn).max().unwrap() + 10_000;
    }
}

/// Reads a line of the process that is killed.
fn told(line: &str) -> Option<(String, String, u64)> {
    let mut words = line.split(' ');
    let (word, key, turn) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    ["written", "removed"]
        .contains(&word)
        .then(|| (word.to_owned(), key.to_owned(), turn))
}
