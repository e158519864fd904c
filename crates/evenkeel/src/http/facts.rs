//! Decides in which form the facts of a stored answer are kept: seconds in four bytes, and everything that is yes or no in
//! one word. It exists because a shelf holds a million of them, and options of durations take four times as much.
//! It refuses to decide anything by them; they are taken out whole and handed to the rule book.

use std::time::Duration;

use evenkeel_http::{
    directives::ResponseDirectives, facts::StoredFacts, lifetime::Lifetime, stored::StoredCopy,
};
use http::StatusCode;

/// The facts of one stored answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    lifetime: Lifetime,
    max_age: Seconds,
    s_maxage: Seconds,
    stale_while_revalidate: Seconds,
    stale_if_error: Seconds,
    status: StatusCode,
    flags: u16,
}

/// Whole seconds, as `Cache-Control` has them: at most 2^31 of them (C07), so that there is room for "not said".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seconds(u32);

impl Seconds {
    const NOT_SAID: Self = Self(u32::MAX);

    fn of(said: Option<Duration>) -> Self {
        said.map_or(Self::NOT_SAID, |said| {
            Self(
                u32::try_from(said.as_secs())
                    .unwrap_or(u32::MAX)
                    .min(u32::MAX - 1),
            )
        })
    }

    fn get(self) -> Option<Duration> {
        (self != Self::NOT_SAID).then(|| Duration::from_secs(u64::from(self.0)))
    }
}

impl Facts {
    /// Packs them.
    pub(super) fn of(copy: &StoredCopy) -> Self {
        let StoredCopy {
            facts:
                StoredFacts {
                    authorization,
                    directives: said,
                },
            status,
            lifetime,
            has_validator,
            expired,
        } = *copy;
        let flags = [
            said.no_store,
            said.no_cache,
            said.private,
            said.public,
            said.must_revalidate,
            said.proxy_revalidate,
            said.must_understand,
            said.no_transform,
            said.unreadable,
            authorization,
            has_validator,
            expired,
        ];
        let flags = flags
            .iter()
            .enumerate()
            .fold(0, |word, (place, flag)| word | (u16::from(*flag) << place));
        Self {
            lifetime,
            max_age: Seconds::of(said.max_age),
            s_maxage: Seconds::of(said.s_maxage),
            stale_while_revalidate: Seconds::of(said.stale_while_revalidate),
            stale_if_error: Seconds::of(said.stale_if_error),
            status,
            flags,
        }
    }

    /// Takes them out.
    pub(super) fn get(self) -> StoredCopy {
        let is = |place: u32| self.flags >> place & 1 == 1;
        StoredCopy {
            facts: StoredFacts {
                authorization: is(9),
                directives: ResponseDirectives {
                    no_store: is(0),
                    no_cache: is(1),
                    private: is(2),
                    public: is(3),
                    must_revalidate: is(4),
                    proxy_revalidate: is(5),
                    must_understand: is(6),
                    no_transform: is(7),
                    max_age: self.max_age.get(),
                    s_maxage: self.s_maxage.get(),
                    stale_while_revalidate: self.stale_while_revalidate.get(),
                    stale_if_error: self.stale_if_error.get(),
                    unreadable: is(8),
                },
            },
            status: self.status,
            lifetime: self.lifetime,
            has_validator: is(10),
            expired: is(11),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{bool::ANY, prelude::*};

    fn seconds() -> impl Strategy<Value = Option<Duration>> {
        proptest::option::of((0..=1_u64 << 31).prop_map(Duration::from_secs))
    }

    proptest! {
        #[test]
        fn facts_come_out_as_they_went_in(
            flags in prop::array::uniform12(ANY),
            spans in prop::array::uniform4(seconds()),
            lifetime in prop_oneof![
                Just(Lifetime::Unknown),
                (0..u64::MAX).prop_map(|nanos| Lifetime::Guessed(Duration::from_nanos(nanos))),
                (0..=1_u64 << 31).prop_map(|seconds| Lifetime::Stated(Duration::from_secs(seconds))),
            ],
            status in 100_u16..1000,
        ) {
            let copy = StoredCopy {
                facts: StoredFacts {
                    authorization: flags[0],
                    directives: ResponseDirectives {
                        no_store: flags[1],
                        no_cache: flags[2],
                        private: flags[3],
                        public: flags[4],
                        must_revalidate: flags[5],
                        proxy_revalidate: flags[6],
                        must_understand: flags[7],
                        no_transform: flags[8],
                        unreadable: flags[9],
                        max_age: spans[0],
                        s_maxage: spans[1],
                        stale_while_revalidate: spans[2],
                        stale_if_error: spans[3],
                    },
                },
                status: StatusCode::from_u16(status).unwrap(),
                lifetime,
                has_validator: flags[10],
                expired: flags[11],
            };
            prop_assert_eq!(Facts::of(&copy).get(), copy);
        }
    }

    #[test]
    fn they_take_less_than_half() {
        assert!(size_of::<Facts>() * 2 < size_of::<StoredCopy>());
    }
}
