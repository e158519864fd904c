//! Decides which holds are in force in this gateway, until when, and that each change of them is written down.
//! It exists because the engine knows a hold on a guard or a dependency that it has, and people decide about names: what
//! they decided outlives the guard in a reload and the process in a restart.
//! It refuses holds that the contract does not permit, holds without an end, and to forget one whose name is gone: it is
//! shown as not applicable until it expires or is released.

mod audit;
mod kept;
mod target;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use evenkeel::{Hold, HoldMode, Mono, Now, Wall};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::audit::Audit;
use crate::{
    proxy::{App, Current},
    telemetry::{Level, Log, rfc3339},
};

pub(crate) use audit::Entry;
pub(crate) use target::{Refusal, Target};

/// How long a hold lasts when nobody says.
pub const HOLD_DEFAULT: Duration = Duration::from_secs(3600);
/// The longest that a hold may last: whoever wants it for longer changes the contract.
pub const HOLD_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often it is looked whether a hold ends.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The most characters of an author or a reason.
pub const WORDS_MAX: usize = 500;

/// A hold that somebody has put on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) mode: HoldMode,
    pub(crate) by: String,
    pub(crate) why: String,
    pub(crate) since: Wall,
    /// When it ends, by the wall clock of the time when it was put on.
    pub(crate) until: Wall,
    /// The same by the clock that counts.
    pub(crate) ends: Mono,
    /// A ramp has been begun for its end.
    prepared: bool,
}

impl Held {
    /// Writes it for people and programs.
    pub(crate) fn to_json(&self, target: &Target, now: Mono) -> Value {
        json!({
            "kind": target.kind(),
            "name": target.name(),
            "mode": self.mode.as_str(),
            "by": self.by,
            "reason": self.why,
            "since": rfc3339(self.since),
            "until": rfc3339(self.until),
            "remaining_seconds": self.ends.since(now).as_secs(),
        })
    }
}

/// The holds of one gateway.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    register: Mutex<Register>,
    /// Taken before the register by whoever changes something, and held while files are written: the register never waits
    /// for a disk.
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Register {
    holds: BTreeMap<Target, Held>,
    /// Why they are not kept at the moment.
    trouble: Option<String>,
}

#[derive(Debug, Default)]
struct Files {
    /// Where holds are kept over a restart.
    holds: Option<PathBuf>,
    audit: Audit,
}

/// What a person wants to be in force.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) target: Target,
    pub(crate) mode: HoldMode,
    pub(crate) by: String,
    pub(crate) why: String,
    pub(crate) lasts: Duration,
}

impl Steering {
    /// Keeps holds in this directory from now on, and takes up those that are there. What cannot be read is put aside and
    /// said aloud: traffic does not wait for it.
    pub(crate) fn open(&self, directory: &Path, now: Now, log: &Log) {
        let mut files = self.files.lock();
        if let Err(error) = kept::make(directory) {
            let why = format!("{}: {error}", directory.display());
            log.note(Level::Error, "state-unusable", &[("error", &why)]);
            self.register.lock().trouble = Some(why);
            return;
        }
        files.audit = Audit::at(directory.join("audit.jsonl"));
        let file = directory.join("holds.json");
        match kept::read(&file, now) {
            Ok(holds) => self.register.lock().holds = holds,
            Err(error) => {
                let aside = file.with_extension("damaged");
                let moved = std::fs::rename(&file, &aside).is_ok();
                let aside = if moved {
                    aside.display().to_string()
                } else {
                    "nowhere".to_owned()
                };
                let fields = [("error", &*error.to_string()), ("put-aside", &aside)];
                log.note(Level::Error, "holds-lost", &fields);
            }
        }
        files.holds = Some(file);
    }

    /// Puts every hold on an app, and has it take over in the same step: none that is put on meanwhile is missed.
    pub(crate) fn carry<R>(&self, app: &App, now: Now, take_over: impl FnOnce() -> R) -> R {
        let register = self.register.lock();
        for (target, held) in &register.holds {
            let hold = hold_of(held, now.mono);
            if !target.has(app, &hold) {
                // What does not suit this contract is shown as not applicable.
                drop(target.put_on(app, &hold));
            }
        }
        take_over()
    }

    /// Puts a hold on, replacing any other on the same target, and returns the one before.
    ///
    /// # Errors
    /// When there is no such target, or its contract does not permit the mode; then nothing has changed.
    pub(crate) fn hold(
        &self,
        current: &Current,
        wish: Wish,
        now: Now,
        peer: &str,
    ) -> Result<Change, Refusal> {
        let files = self.files.lock();
        let Wish {
            target,
            mode,
            by,
            why,
            lasts,
        } = wish;
        let held = Held {
            mode,
            by: by.clone(),
            why,
            since: now.wall,
            until: now.wall_of(now.mono.after(lasts)),
            ends: now.mono.after(lasts),
            prepared: false,
        };
        let after = held.to_json(&target, now.mono);
        let (before, put) = {
            let mut register = self.register.lock();
            let before = register
                .holds
                .get(&target)
                .map(|before| before.to_json(&target, now.mono));
            // Under the lock: another app does not take over in between.
            let put = target.put_on(&current.app(), &hold_of(&held, now.mono));
            if put.is_ok() {
                register.holds.insert(target.clone(), held);
            }
            (before, put)
        };
        let entry = Entry {
            what: "hold",
            by: &by,
            peer,
            target: &target.to_string(),
            before,
            after: put.is_ok().then(|| after.clone()),
            refused: put.as_ref().err().map(ToString::to_string),
        };
        let audited = files.audit.write(now.wall, &entry);
        put?;
        Ok(self.changed(&files, after, audited))
    }

    /// Takes a hold off.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn release(
        &self,
        current: &Current,
        target: &Target,
        by: &str,
        now: Now,
        peer: &str,
    ) -> Result<Change, Refusal> {
        let files = self.files.lock();
        let (before, none) = {
            let mut register = self.register.lock();
            let before = register
                .holds
                .remove(target)
                .map(|before| before.to_json(target, now.mono));
            if before.is_some() {
                target.take_off(&current.app(), by);
            }
            let there: Vec<String> = register.holds.keys().map(ToString::to_string).collect();
            let none = before
                .is_none()
                .then(|| Refusal::not_there(&format!("hold on {target}"), &there));
            (before, none)
        };
        let entry = Entry {
            what: "release",
            by,
            peer,
            target: &target.to_string(),
            before: before.clone(),
            after: None,
            refused: none.as_ref().map(ToString::to_string),
        };
        let audited = files.audit.write(now.wall, &entry);
        match none {
            Some(none) => Err(none),
            None => Ok(self.changed(&files, before.unwrap_or_default(), audited)),
        }
    }

    /// Tells whether a hold ends before the next look.
    fn is_due(&self, now: Mono) -> bool {
        let register = self.register.lock();
        let mut ends = register.holds.values().map(|held| held.ends);
        ends.any(|end| end <= now.after(LOOK_EVERY))
    }

    /// Ends the holds that have run out, and prepares for the end of those that are about to.
    pub(crate) fn expire(&self, current: &Current, now: Now) {
        let files = self.files.lock();
        let over: Vec<(Target, Held)> = {
            let mut register = self.register.lock();
            let app = current.app();
            for (target, held) in &mut register.holds {
                if !held.prepared && held.ends <= now.mono.after(LOOK_EVERY) {
                    held.prepared = true;
                    target.prepare(&app, held.mode, "expiry");
                }
            }
            let over = register.holds.extract_if(.., |_, held| held.ends <= now.mono);
            let over: Vec<(Target, Held)> = over.collect();
            // The engine ends them at the next call by itself; those without calls are told of here.
            over.iter().for_each(|(target, _)| target.look(&app));
            over
        };
        for (target, held) in &over {
            let entry = Entry {
                what: "expire",
                by: "expiry",
                peer: "-",
                target: &target.to_string(),
                before: Some(held.to_json(target, now.mono)),
                after: None,
                refused: None,
            };
            drop(files.audit.write(now.wall, &entry));
        }
        if !over.is_empty() {
            self.changed(&files, Value::Null, Ok(()));
        }
    }

    /// Keeps what there is now.
    fn changed(&self, files: &Files, hold: Value, audited: Result<(), String>) -> Change {
        let holds = self.register.lock().holds.clone();
        let kept = files.holds.as_deref().map(|file| kept::write(file, &holds));
        let mut register = self.register.lock();
        if let Some(kept) = &kept {
            register.trouble = kept.as_ref().err().map(ToString::to_string);
        }
        Change {
            hold,
            kept: matches!(kept, Some(Ok(()))),
            trouble: register.trouble.clone().or_else(|| audited.err()),
        }
    }

    /// Returns the holds, with whether the contract that runs has a use for each.
    pub(crate) fn list(&self, app: &App, now: Mono) -> Vec<Value> {
        let register = self.register.lock();
        let holds = register.holds.iter();
        holds
            .map(|(target, held)| {
                let mut shown = held.to_json(target, now);
                shown["applicable"] = Value::from(target.is_held(app));
                shown
            })
            .collect()
    }

    /// Returns the hold on a target.
    pub(crate) fn on(&self, target: &Target) -> Option<Held> {
        self.register.lock().holds.get(target).cloned()
    }

    /// Writes down a change of another kind.
    ///
    /// # Errors
    /// Why it could not be written; without a directory for it nothing is written, and that is no error.
    pub(crate) fn note(&self, now: Now, entry: &Entry<'_>) -> Result<(), String> {
        self.files.lock().audit.write(now.wall, entry)
    }

    /// Returns why holds are not kept over a restart.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.register.lock().trouble.clone()
    }
}

/// Ends holds when they have run out, for as long as the gateway runs.
pub(crate) async fn watch(current: Arc<Current>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let process = Arc::clone(current.process());
        if process.steering.is_due(process.engine.now().mono) {
            let current = Arc::clone(&current);
            // What has ended is written down, and files are not written on a worker.
            let looked = tokio::task::spawn_blocking(move || {
                process.steering.expire(&current, process.engine.now());
            });
            drop(looked.await);
        }
    }
}

/// What came of a change.
#[derive(Debug)]
pub(crate) struct Change {
    /// The hold that it is about.
    pub(crate) hold: Value,
    /// It survives a restart.
    pub(crate) kept: bool,
    /// Why it does not, or is not written down.
    pub(crate) trouble: Option<String>,
}

/// Returns a hold in the engine's form, for the time that is left of it.
fn hold_of(held: &Held, now: Mono) -> Hold {
    Hold {
        mode: held.mode,
        by: held.by.clone(),
        why: held.why.clone(),
        lasts: Some(held.ends.since(now)),
    }
}
