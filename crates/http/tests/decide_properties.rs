//! The reuse decision under every combination of directives, ages and terms: it is total, an older copy is never
//! more usable, a stricter request never gets more, and no prohibition is ever passed over.
//! It exists because a decision made of thirty inputs cannot be trusted to examples alone.
//! It refuses to repeat the decision: each property is stated without it.

use std::time::Duration;

use evenkeel_http::decide::{Found, Origin, RequestSay, Terms, decide};
use evenkeel_http::decision::Decision;
use evenkeel_http::directives::{MaxStale, RequestDirectives, ResponseDirectives};
use evenkeel_http::facts::{MethodKind, RequestFacts, Sharing, StoredFacts};
use evenkeel_http::lifetime::Lifetime;
use evenkeel_http::reuse::Prohibition;
use evenkeel_http::stored::StoredCopy;
use http::StatusCode;
use proptest::prelude::*;

/// Few values, so that equal ones and both sides of every limit are met often.
fn seconds() -> impl Strategy<Value = Duration> {
    (0_u64..12).prop_map(Duration::from_secs)
}

fn maybe() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of(seconds())
}

fn response() -> impl Strategy<Value = ResponseDirectives> {
    let rarely = || prop::bool::weighted(0.15);
    (
        (rarely(), rarely(), rarely(), rarely(), any::<bool>()),
        maybe(),
        prop::option::weighted(0.2, seconds()),
        maybe(),
        maybe(),
    )
        .prop_map(
            |(flags, max_age, s_maxage, stale_while_revalidate, stale_if_error)| {
                let (no_cache, must_revalidate, proxy_revalidate, unreadable, public) = flags;
                ResponseDirectives {
                    no_cache,
                    must_revalidate,
                    proxy_revalidate,
                    unreadable,
                    public,
                    max_age,
                    s_maxage,
                    stale_while_revalidate,
                    stale_if_error,
                    ..ResponseDirectives::default()
                }
            },
        )
}

fn max_stale() -> impl Strategy<Value = Option<MaxStale>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(MaxStale::Any)),
        3 => seconds().prop_map(|most| Some(MaxStale::UpTo(most))),
    ]
}

fn request() -> impl Strategy<Value = RequestFacts> {
    let rarely = || prop::bool::weighted(0.15);
    let method = prop_oneof![
        8 => Just(MethodKind::Get),
        1 => Just(MethodKind::Head),
        1 => Just(MethodKind::Other),
    ];
    let numbers = (maybe(), maybe(), max_stale(), maybe());
    (method, rarely(), rarely(), rarely(), rarely(), numbers).prop_map(
        |(method, authorization, cookies, no_cache, only_if_cached, numbers)| {
            let (max_age, min_fresh, max_stale, stale_if_error) = numbers;
            RequestFacts {
                method,
                authorization,
                cookies,
                directives: RequestDirectives {
                    no_cache,
                    only_if_cached,
                    max_age,
                    min_fresh,
                    max_stale,
                    stale_if_error,
                    ..RequestDirectives::default()
                },
            }
        },
    )
}

fn copy() -> impl Strategy<Value = StoredCopy> {
    let status = prop_oneof![4 => Just(StatusCode::OK), 1 => Just(StatusCode::NOT_FOUND)];
    let rarely = || prop::bool::weighted(0.15);
    (response(), status, rarely(), any::<bool>(), rarely()).prop_map(
        |(directives, status, authorization, has_validator, expired)| StoredCopy {
            facts: StoredFacts {
                authorization,
                directives,
            },
            status,
            lifetime: directives
                .s_maxage
                .or(directives.max_age)
                .map_or(Lifetime::Unknown, Lifetime::Stated),
            has_validator,
            expired,
        },
    )
}

#[derive(Clone, Debug)]
struct Route {
    requests: RequestSay,
    stale_age: Option<Duration>,
    age_cap: Option<Duration>,
    stale_while_revalidate: Option<Duration>,
}

impl Route {
    fn terms<'a>(&self, set_aside: &'a [Prohibition]) -> Terms<'a> {
        Terms {
            sharing: Sharing::Shared,
            requests: self.requests,
            stale_age: self.stale_age,
            age_cap: self.age_cap,
            stale_while_revalidate: self.stale_while_revalidate,
            set_aside,
        }
    }
}

fn route() -> impl Strategy<Value = Route> {
    let requests = prop::sample::select(vec![
        RequestSay::Ignored,
        RequestSay::BeforeAsking,
        RequestSay::Always,
    ]);
    (requests, maybe(), maybe(), maybe()).prop_map(
        |(requests, stale_age, age_cap, stale_while_revalidate)| Route {
            requests,
            stale_age,
            age_cap,
            stale_while_revalidate,
        },
    )
}

fn origin() -> impl Strategy<Value = Origin> {
    prop::sample::select(vec![Origin::NotAsked, Origin::NoAnswer, Origin::ErrorAnswer])
}

/// How much of a copy a decision lets the client have; more is more usable.
const fn usability(decision: Decision) -> u8 {
    match decision {
        Decision::Fresh | Decision::FreshOnError => 3,
        Decision::StaleWhileRevalidating => 2,
        Decision::StaleAccepted | Decision::StaleOnError => 1,
        Decision::Validate(_)
        | Decision::Fetch(_)
        | Decision::OnlyIfCached
        | Decision::Answer
        | Decision::ErrorAnswer(_)
        | Decision::Refuse(_) => 0,
    }
}

const fn is_stale(decision: Decision) -> bool {
    matches!(usability(decision), 1 | 2)
}

/// Makes a request stricter in one way.
fn stricter(mut request: RequestFacts, way: u8, by: Duration) -> RequestFacts {
    let asked = &mut request.directives;
    match way {
        0 => asked.no_cache = true,
        1 => asked.max_age = Some(asked.max_age.map_or(by, |most| most.min(by))),
        2 => asked.min_fresh = Some(asked.min_fresh.map_or(by, |least| least.max(by))),
        3 => {
            if let Some(MaxStale::UpTo(most)) = asked.max_stale {
                asked.max_stale = Some(MaxStale::UpTo(most.min(by)));
            }
        }
        4 => asked.stale_if_error = asked.stale_if_error.map(|most| most.min(by)),
        5 => request.authorization = true,
        _ => request.cookies = true,
    }
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn each_state_of_the_origin_has_its_own_outcomes(
        request in request(), copy in copy(), age in maybe(), route in route(), kept in any::<bool>(),
    ) {
        let found = if kept { Found::Copy { copy: &copy, age } } else { Found::Nothing };
        let of = |origin| decide(&request, found, origin, &route.terms(&[]));
        prop_assert!(matches!(
            of(Origin::NotAsked),
            Decision::Fresh | Decision::StaleWhileRevalidating | Decision::StaleAccepted | Decision::Validate(_)
                | Decision::Fetch(_) | Decision::OnlyIfCached
        ));
        prop_assert!(matches!(
            of(Origin::NoAnswer),
            Decision::FreshOnError | Decision::StaleOnError | Decision::Refuse(_)
        ));
        prop_assert!(matches!(
            of(Origin::ErrorAnswer),
            Decision::FreshOnError | Decision::StaleOnError | Decision::ErrorAnswer(_)
        ));
        prop_assert_eq!(of(Origin::Answered), Decision::Answer);
    }

    #[test]
    fn c16_an_older_copy_is_never_more_usable(
        request in request(), copy in copy(), ages in (seconds(), seconds()), route in route(), origin in origin(),
    ) {
        let terms = route.terms(&[]);
        let at = |age| decide(&request, Found::Copy { copy: &copy, age }, origin, &terms);
        let (young, old) = (ages.0.min(ages.1), ages.0.max(ages.1));
        prop_assert!(usability(at(Some(old))) <= usability(at(Some(young))));
        prop_assert_eq!(usability(at(None)), 0);
    }

    #[test]
    fn c19_a_stricter_request_never_gets_more(
        request in request(), copy in copy(), age in seconds(), route in route(), origin in origin(),
        way in 0_u8..7, by in seconds(),
    ) {
        let terms = route.terms(&[]);
        let found = Found::Copy { copy: &copy, age: Some(age) };
        let before = decide(&request, found, origin, &terms);
        let after = decide(&stricter(request, way, by), found, origin, &terms);
        prop_assert!(usability(after) <= usability(before), "{:?} became {:?}", before, after);
    }

    #[test]
    fn c15_c16_no_prohibition_is_ever_passed_over(
        request in request(), copy in copy(), age in seconds(), route in route(), origin in origin(),
    ) {
        let decision = decide(&request, Found::Copy { copy: &copy, age: Some(age) }, origin, &route.terms(&[]));
        let said = copy.facts.directives;
        if decision.gives_the_copy() {
            prop_assert!(!said.no_cache && !said.unreadable);
            prop_assert!(request.method != MethodKind::Other && !request.cookies);
        }
        if is_stale(decision) {
            prop_assert!(!said.must_revalidate && !said.proxy_revalidate);
            prop_assert!(copy.status.is_success());
            let permitted = (decision == Decision::StaleOnError && said.stale_if_error.is_some())
                || (decision == Decision::StaleWhileRevalidating && said.stale_while_revalidate.is_some());
            prop_assert!(said.s_maxage.is_none() || permitted);
            prop_assert!(said.public || !(request.authorization || copy.facts.authorization));
        }
    }

    #[test]
    fn c18_s05_nothing_stale_passes_any_stated_limit(
        request in request(), copy in copy(), age in seconds(), route in route(), origin in origin(),
    ) {
        let decision = decide(&request, Found::Copy { copy: &copy, age: Some(age) }, origin, &route.terms(&[]));
        let said = copy.facts.directives;
        let from_expiry = |window: Option<Duration>| window.map(|window| copy.lifetime.span() + window);
        let within = |limit: Option<Duration>| limit.is_none_or(|limit| age <= limit);
        if is_stale(decision) {
            prop_assert!(within(route.stale_age) && within(route.age_cap));
        }
        let heard = route.requests != RequestSay::Ignored;
        let asked = request.directives.stale_if_error.filter(|_| heard);
        if decision == Decision::StaleOnError {
            prop_assert!(within(from_expiry(said.stale_if_error)) && within(from_expiry(asked)));
            prop_assert!(route.stale_age.is_some() || said.stale_if_error.is_some() || asked.is_some());
        }
        if decision == Decision::StaleWhileRevalidating {
            prop_assert!(within(from_expiry(said.stale_while_revalidate)));
            prop_assert!(within(from_expiry(route.stale_while_revalidate)));
            prop_assert!(said.stale_while_revalidate.is_some() || route.stale_while_revalidate.is_some());
        }
        if decision == Decision::StaleAccepted {
            prop_assert!(heard && request.directives.max_stale.is_some());
        }
    }

    #[test]
    fn x2_setting_prohibitions_aside_only_ever_widens(
        request in request(), copy in copy(), age in seconds(), route in route(), origin in origin(),
    ) {
        let found = Found::Copy { copy: &copy, age: Some(age) };
        let strict = decide(&request, found, origin, &route.terms(&[]));
        let wide = decide(&request, found, origin, &route.terms(&Prohibition::ALL));
        prop_assert!(usability(strict) <= usability(wide));
        // And never before the origin was asked where the response demands it.
        if origin == Origin::NotAsked && copy.facts.directives.no_cache {
            prop_assert!(!wide.gives_the_copy());
        }
    }

    #[test]
    fn c20_only_if_cached_never_asks(
        mut request in request(), copy in copy(), age in maybe(), route in route(),
    ) {
        request.directives.only_if_cached = true;
        for found in [Found::Nothing, Found::OtherVariants, Found::Copy { copy: &copy, age }] {
            let decision = decide(&request, found, Origin::NotAsked, &route.terms(&[]));
            prop_assert!(!matches!(decision, Decision::Validate(_) | Decision::Fetch(_)));
        }
    }
}
