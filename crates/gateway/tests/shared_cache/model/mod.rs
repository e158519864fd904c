//! Makes scripts at random and says by plain models what must follow.
//! The scripts of the folder look at one rule each; here rules meet, with models short enough to check by eye.
//! They know no pauses: what is stale here came stale.

pub(crate) mod answers;
pub(crate) mod stories;

/// Numbers that look random and are the same for the same seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.roll().is_multiple_of(many)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = usize::try_from(self.roll() % 1_000_000).unwrap_or(0) % choices.len();
        choices[at]
    }
}
