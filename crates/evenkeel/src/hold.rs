//! Decides whether a hold is in force at this moment.
//! It exists because every call looks and almost none finds one: looking is one load.
//! It refuses anonymous holds and holds without a reason.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use evenkeel_core::{HoldMode, Mono, Problems};
use parking_lot::Mutex;

use crate::{
    dependency::{Dependency, Inner},
    event::EventKind,
};

/// An operator's forced mode with its author, reason and duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What is forced.
    pub mode: HoldMode,
    /// Who forces it. Not empty.
    pub by: String,
    /// Why. Not empty.
    pub why: String,
    /// For how long; `None` until somebody releases it.
    pub lasts: Option<Duration>,
}

impl Hold {
    pub(crate) fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for (place, text) in [("by", &self.by), ("why", &self.why)] {
            if text.trim().is_empty() {
                problems.add(
                    place,
                    "nothing",
                    "the name and the reason of a person",
                    "say who holds it and why",
                );
            }
        }
        problems.or(())
    }
}

impl Dependency {
    /// Forces a mode on this dependency, for every guard that asks it, replacing any other hold on it.
    ///
    /// Forced-open keeps every call from it: callers get their guard's ladder. Forced-off refuses them without trying
    /// rungs. Forced-closed lets everything pass within permits. Where a guard is held too the stricter of both modes
    /// is in force; see [`HoldMode::or_stricter`].
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, Hold, HoldMode, Reason};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::system();
    /// let database = engine.dependency("catalog-db").build()?;
    /// let stock = engine.read::<u32>("stock").from(&database).classify(|_: &()| Class::OUTAGE).build()?;
    /// database.hold(Hold {
    ///     mode: HoldMode::ForcedOpen,
    ///     by: "ana".into(),
    ///     why: "migration".into(),
    ///     lasts: Some(std::time::Duration::from_secs(600)),
    /// })?;
    /// let refused = stock.call((), "42", |_| async { Ok(3) }).await.unwrap_err();
    /// assert_eq!(refused.reason, Some(Reason::Held));
    /// assert!(database.release("ana").is_some());
    /// assert!(stock.call((), "42", |_| async { Ok(3) }).await.is_ok());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When author or reason are missing, or the mode chooses among rungs: those are a guard's.
    pub fn hold(&self, hold: Hold) -> Result<(), Problems> {
        let mut problems = hold.check().err().unwrap_or_default();
        if !hold.mode.suits_a_dependency() {
            problems.add(
                "mode",
                &format!("{} on a dependency", hold.mode.as_str()),
                "forced-open, forced-off, forced-closed",
                "choose one of these, or hold the guards",
            );
        }
        problems.or(())?;
        let Hold { mode, by, why, lasts } = hold.clone();
        let inner = &self.0;
        inner.hold.put(hold, inner.engine.now().mono);
        inner
            .engine
            .tell(&inner.name, EventKind::Held { mode, by, why, lasts });
        inner.call_all();
        Ok(())
    }

    /// Takes the hold off and returns it.
    pub fn release(&self, by: &str) -> Option<Hold> {
        let hold = self.0.hold.take()?;
        let (mode, by) = (hold.mode, Some(by.to_owned()));
        self.0.engine.tell(&self.0.name, EventKind::Released { mode, by });
        Some(hold)
    }

    /// Returns the hold in force on this dependency, if there is one. Holds on guards are the guards'.
    #[must_use]
    pub fn held(&self) -> Option<Hold> {
        self.0.held(self.0.engine.now().mono)?;
        self.0.hold.current()
    }
}

impl Inner {
    /// Returns the mode forced on this dependency at `now` and when it ends, telling once when it has run out.
    pub(crate) fn held(&self, now: Mono) -> Option<(HoldMode, Mono)> {
        self.hold.look(now, |mode| {
            self.engine
                .tell(&self.name, EventKind::Released { mode, by: None });
        })
    }
}

/// Returns what is in force where guard and dependency may both be held: the stricter mode, and when calls get
/// through again as far as holds are concerned.
pub(crate) fn both(
    guard: Option<(HoldMode, Mono)>,
    dependency: Option<(HoldMode, Mono)>,
) -> Option<(HoldMode, Mono)> {
    let (Some((mode, until)), Some((other, other_until))) = (guard, dependency) else {
        return guard.or(dependency);
    };
    let until = match (mode.lets_ask(), other.lets_ask()) {
        (false, true) => until,
        (true, false) => other_until,
        (true, true) | (false, false) => until.max(other_until),
    };
    Some((mode.or_stricter(other), until))
}

#[derive(Debug, Default)]
pub(crate) struct HoldSlot {
    /// The mode's place in [`HoldMode::ALL`] plus one; zero for none.
    mode: AtomicU8,
    hold: Mutex<Option<(Hold, Mono)>>,
}

impl HoldSlot {
    /// Puts a hold on, replacing any other.
    pub(crate) fn put(&self, hold: Hold, now: Mono) {
        let mut slot = self.hold.lock();
        let until = hold.lasts.map_or(Mono::END, |lasts| now.after(lasts));
        let place = HoldMode::ALL
            .iter()
            .position(|mode| *mode == hold.mode)
            .unwrap_or(0);
        *slot = Some((hold, until));
        self.mode
            .store(u8::try_from(place + 1).unwrap_or(0), Ordering::Release);
    }

    /// Takes the hold off and returns it.
    pub(crate) fn take(&self) -> Option<Hold> {
        let mut slot = self.hold.lock();
        self.mode.store(0, Ordering::Release);
        slot.take().map(|(hold, _)| hold)
    }

    /// Returns the mode in force at `now` and when it ends. `expired` is told once of a hold that has run out.
    pub(crate) fn look(&self, now: Mono, expired: impl FnOnce(HoldMode)) -> Option<(HoldMode, Mono)> {
        if self.mode.load(Ordering::Acquire) == 0 {
            return None;
        }
        let gone = {
            let mut slot = self.hold.lock();
            if let Some((hold, until)) = slot.as_ref()
                && now < *until
            {
                return Some((hold.mode, *until));
            }
            self.mode.store(0, Ordering::Release);
            slot.take()
        };
        if let Some((hold, _)) = gone {
            expired(hold.mode);
        }
        None
    }

    pub(crate) fn current(&self) -> Option<Hold> {
        self.hold.lock().as_ref().map(|(hold, _)| hold.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(lasts: Option<Duration>) -> Hold {
        Hold {
            mode: HoldMode::StaleOnly,
            by: "ana".into(),
            why: "migration".into(),
            lasts,
        }
    }

    #[test]
    fn a_hold_ends_at_its_expiry_and_is_reported_expired_once() {
        let slot = HoldSlot::default();
        let now = Mono::ORIGIN;
        let second = Duration::from_secs(1);
        slot.put(hold(Some(second)), now);
        let until = now.after(second);
        let mut expired = Vec::new();
        let mut look = |now| slot.look(now, |mode| expired.push(mode));
        assert_eq!(
            look(until.before(Duration::from_nanos(1))),
            Some((HoldMode::StaleOnly, until))
        );
        assert_eq!((look(until), look(until)), (None, None));
        assert_eq!(expired, [HoldMode::StaleOnly]);
    }

    #[test]
    fn a_hold_without_expiry_stays_until_taken() {
        let slot = HoldSlot::default();
        slot.put(hold(None), Mono::ORIGIN);
        let look = |now| slot.look(now, |mode| panic!("{mode:?} has expired"));
        assert_eq!(
            look(Mono::END.before(Duration::from_nanos(1))),
            Some((HoldMode::StaleOnly, Mono::END))
        );
        assert_eq!(slot.take(), Some(hold(None)));
        assert_eq!(look(Mono::ORIGIN), None);
    }

    #[test]
    fn an_anonymous_hold_and_one_without_reason_are_problems_both_named() {
        let nobody = Hold {
            by: " ".into(),
            why: String::new(),
            ..hold(None)
        };
        assert_eq!(nobody.check().unwrap_err().list().len(), 2);
        assert!(hold(None).check().is_ok());
    }
}
