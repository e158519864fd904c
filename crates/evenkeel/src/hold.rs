//! Decides whether a hold is in force at this moment.
//! It exists because every call looks and almost none finds one: looking is one load.
//! It refuses anonymous holds and holds without a reason.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use evenkeel_core::{HoldMode, Mono, Problems};
use parking_lot::Mutex;

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

    /// Returns the hold in force at `now` and when it ends, or the one that has just expired.
    pub(crate) fn look(&self, now: Mono) -> Look {
        let mode = self.mode.load(Ordering::Acquire);
        if mode == 0 {
            return Look::None;
        }
        let mut slot = self.hold.lock();
        match slot.as_ref() {
            None => Look::None,
            Some((hold, until)) if now < *until => Look::Held(hold.mode, *until),
            Some(_) => {
                self.mode.store(0, Ordering::Release);
                slot.take()
                    .map_or(Look::None, |(hold, _)| Look::Expired(hold.mode))
            }
        }
    }

    pub(crate) fn current(&self) -> Option<Hold> {
        self.hold.lock().as_ref().map(|(hold, _)| hold.clone())
    }
}

/// What a look at the slot finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    None,
    Held(HoldMode, Mono),
    Expired(HoldMode),
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
        assert_eq!(
            slot.look(until.before(Duration::from_nanos(1))),
            Look::Held(HoldMode::StaleOnly, until)
        );
        assert_eq!(slot.look(until), Look::Expired(HoldMode::StaleOnly));
        assert_eq!(slot.look(until), Look::None);
    }

    #[test]
    fn a_hold_without_expiry_stays_until_taken() {
        let slot = HoldSlot::default();
        slot.put(hold(None), Mono::ORIGIN);
        assert_eq!(
            slot.look(Mono::END.before(Duration::from_nanos(1))),
            Look::Held(HoldMode::StaleOnly, Mono::END)
        );
        assert_eq!(slot.take(), Some(hold(None)));
        assert_eq!(slot.look(Mono::ORIGIN), Look::None);
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
