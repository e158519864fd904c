//! Decides which of two changes of one key is the later one.
//! It exists because changes reach a store in another order than they happened in: threads meet, and a load may begin
//! early and end late.
//! It refuses the wall clock, which may step, as a witness.

use crate::time::Mono;

/// Where a change of a key stands among the others.
///
/// ```
/// use evenkeel_core::{Mono, store::Order};
/// let early = Order { turn: 9, started: Some(Mono::from_nanos(1)) };
/// let late = Order { turn: 3, started: Some(Mono::from_nanos(2)) };
/// // The newest start wins, whoever came last.
/// assert!(late.is_after(early) && !early.is_after(late));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// A number drawn while the key was held in memory: it grows with every change there.
    pub turn: u64,
    /// When the attempt that produced the data began, where that decides; `None` where the turn alone does.
    pub started: Option<Mono>,
}

impl Order {
    /// Tells whether this change is later than the other.
    #[must_use]
    pub fn is_after(self, other: Self) -> bool {
        match (self.started, other.started) {
            (Some(own), Some(others)) => (own, self.turn) > (others, other.turn),
            (Some(_) | None, _) => self.turn > other.turn,
        }
    }

    /// Tells whether a removal of this order takes away what has the other: all that is not later.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        !other.is_after(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(turn: u64, started: Option<i64>) -> Order {
        Order {
            turn,
            started: started.map(Mono::from_nanos),
        }
    }

    #[test]
    fn e47_the_newest_start_wins_and_the_turn_decides_among_equals() {
        assert!(order(1, Some(20)).is_after(order(2, Some(10))));
        assert!(order(2, Some(10)).is_after(order(1, Some(10))));
        assert!(!order(1, Some(10)).is_after(order(1, Some(10))));
        assert!(order(2, None).is_after(order(1, None)));
        assert!(order(2, None).is_after(order(1, Some(30))));
    }

    #[test]
    fn e46_a_removal_covers_what_was_there_and_what_had_begun() {
        let removal = order(5, Some(100));
        assert!(removal.covers(order(9, Some(99))), "a late load");
        assert!(removal.covers(order(4, Some(100))), "it was there");
        assert!(
            !removal.covers(order(4, Some(101))),
            "a late removal leaves what began after it"
        );
        assert!(!removal.covers(order(6, Some(100))));
        assert!(!removal.covers(order(6, None)));
        assert!(removal.covers(order(5, None)));
    }

    proptest! {
        #[test]
        fn of_two_changes_of_one_kind_at_most_one_is_later(
            turns in [0_u64..4, 0..4],
            starts in proptest::option::of([0_i64..4, 0..4]),
        ) {
            let [one, other] = [0, 1].map(|at| order(turns[at], starts.map(|starts| starts[at])));
            prop_assert!(!(one.is_after(other) && other.is_after(one)));
            prop_assert_eq!(one == other, !one.is_after(other) && !other.is_after(one));
        }
    }
}
