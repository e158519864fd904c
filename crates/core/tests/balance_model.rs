//! The addresses of a dependency against a plain model: lists and counters, no atomics, nothing packed.
//!
//! Random rules and random histories; after every step both must agree on everything a driver can see.
#![cfg(not(loom))]

use core::{cell::RefCell, time::Duration};

use evenkeel_core::{Balance, BalanceEvent, Chosen, EjectRules, Ejections, Exclusive, Mono, Spread};
use proptest::prelude::*;

struct Alone<T>(RefCell<T>);

impl<T> Exclusive<T> for Alone<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }
    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

type Addresses = Balance<Alone<Ejections>>;

const S: Duration = Duration::from_secs(1);

/// Rules without jitter, so that times can be compared.
fn rules(consecutive: u32, max_share_ppm: u32) -> EjectRules {
    EjectRules {
        consecutive,
        first: S,
        longest: 5 * S,
        jitter_ppm: 0,
        max_share_ppm,
    }
}

/// One address, said as plainly as possible.
#[derive(Clone, Default)]
struct Plain {
    in_flight: u32,
    failures: u32,
    until: Option<Mono>,
    doubled: u32,
    last: Duration,
    returned: Option<Mono>,
    era: u32,
}

struct Model {
    rules: EjectRules,
    all: Vec<Plain>,
}

impl Model {
    fn pass_to(&mut self, now: Mono) {
        for one in &mut self.all {
            if one.until.is_some_and(|until| until <= now) {
                one.returned = one.until.take();
                one.failures = self.rules.consecutive - 1;
                one.era += 1;
            }
        }
    }

    fn marked(&self) -> usize {
        self.all.iter().filter(|one| one.until.is_some()).count()
    }

    fn overrides(&self) -> bool {
        let most = self.all.len() as u64 * u64::from(self.rules.max_share_ppm) / 1_000_000;
        self.marked() as u64 > most
    }

    fn result(&mut self, index: usize, era: u32, failed: bool, now: Mono) {
        let rules = self.rules;
        let one = &mut self.all[index];
        if one.era != era {
            return;
        }
        match (failed, one.until) {
            (true, Some(_)) => {}
            (true, None) => {
                one.failures += 1;
                if one.failures >= rules.consecutive {
                    if one.returned.is_some_and(|at| now.since(at) >= one.last) {
                        one.doubled = 0;
                    }
                    one.last = (S * 2_u32.pow(one.doubled.min(10))).min(rules.longest);
                    one.doubled += 1;
                    one.until = Some(now.after(one.last));
                    one.era += 1;
                }
            }
            (false, was) => {
                one.failures = 0;
                if was.is_some() {
                    one.until = None;
                    one.returned = Some(now);
                    one.era += 1;
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Move {
    Ask { tried: u64, draw: u64 },
    Result { which: usize, failed: bool },
    Leave { which: usize },
    Wait { millis: u64 },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (any::<u64>(), any::<u64>()).prop_map(|(tried, draw)| Move::Ask { tried: tried & draw, draw }),
        5 => (any::<usize>(), prop::bool::weighted(0.7)).prop_map(|(which, failed)| Move::Result { which, failed }),
        1 => any::<usize>().prop_map(|which| Move::Leave { which }),
        2 => (0_u64..3000).prop_map(|millis| Move::Wait { millis }),
    ];
    prop::collection::vec(one, 1..200)
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop::sample::select(Spread::ALL.to_vec())
}

proptest! {
    #[test]
    fn it_does_what_the_model_does(
        count in 1_usize..6, consecutive in 1_u32..4, share in 1_u32..1_000_000, spread in spreads(), moves in moves(),
    ) {
        let rules = rules(consecutive, share);
        let balance = Addresses::new(spread, Some(rules), count, 7);
        let mut model = Model { rules, all: vec![Plain::default(); count] };
        let mut now = Mono::ORIGIN;
        let mut flying: Vec<(Chosen, u32)> = Vec::new();
        let mut overridden = 0;
        for step in moves {
            match step {
                Move::Ask { tried, draw } => {
                    model.pass_to(now);
                    let chosen = balance.choose(now, tried, draw);
                    let index = chosen.index();
                    let is_marked = model.all[index].until.is_some();
                    let others = |wanted: &dyn Fn(usize, &Plain) -> bool| {
                        model.all.iter().enumerate().any(|(index, one)| wanted(index, one))
                    };
                    let untried = |index: usize| tried & (1 << index) == 0;
                    if is_marked {
                        prop_assert!(model.overrides(), "a marked address only where too few are left");
                        overridden += 1;
                    }
                    prop_assert_eq!(chosen.is_overridden(), is_marked);
                    if !untried(index) {
                        let overrides = model.overrides();
                        prop_assert!(
                            !others(&|index, one| untried(index) && (overrides || one.until.is_none())),
                            "one that was tried only where no other is left"
                        );
                    }
                    if spread == Spread::LeastLoaded {
                        let overrides = model.overrides();
                        let load = model.all[index].in_flight;
                        let lower = others(&|other, one| {
                            one.in_flight < load
                                && (overrides || one.until.is_none())
                                && (untried(other) || !untried(index))
                        });
                        prop_assert!(!lower);
                    }
                    model.all[index].in_flight += 1;
                    flying.push((chosen, model.all[index].era));
                }
                Move::Result { which, failed } if !flying.is_empty() => {
                    let (chosen, era) = flying.swap_remove(which % flying.len());
                    balance.told(chosen, failed, now);
                    balance.left(chosen);
                    model.result(chosen.index(), era, failed, now);
                    model.all[chosen.index()].in_flight -= 1;
                }
                Move::Leave { which } if !flying.is_empty() => {
                    let (chosen, _) = flying.swap_remove(which % flying.len());
                    balance.left(chosen);
                    model.all[chosen.index()].in_flight -= 1;
                }
                Move::Result { .. } | Move::Leave { .. } => {}
                Move::Wait { millis } => {
                    now = now.after(Duration::from_millis(millis));
                    model.pass_to(now);
                    drop(balance.status(now));
                }
            }
            if rand_looks(now) {
                model.pass_to(now);
                let status = balance.status(now);
                for (seen, plain) in status.addresses.iter().zip(&model.all) {
                    prop_assert_eq!(seen.in_flight, plain.in_flight);
                    prop_assert_eq!(seen.ejected_until, plain.until);
                    if plain.until.is_none() {
                        prop_assert_eq!(seen.failures, plain.failures);
                    }
                }
                prop_assert_eq!(status.overrides, model.overrides());
                prop_assert_eq!(balance.overridden(), overridden);
            }
        }
    }

    /// Whatever fails, and however often: while one address answers it is asked, and the others no more than is needed
    /// to see that they do not.
    #[test]
    fn while_one_of_them_answers_it_gets_what_comes(
        count in 2_u32..9, spread in spreads(), good in any::<prop::sample::Index>(), seed in any::<u64>(),
    ) {
        let good = good.index(count as usize);
        let balance = Addresses::new(spread, Some(rules(3, 900_000)), count as usize, seed);
        let mut draws = evenkeel_core::Rng::new(seed);
        let mut wasted = 0;
        for _ in 0..1000 {
            let chosen = balance.choose(Mono::ORIGIN, 0, draws.next_u64());
            let failed = chosen.index() != good;
            wasted += u32::from(failed);
            balance.told(chosen, failed, Mono::ORIGIN);
            balance.left(chosen);
        }
        prop_assert_eq!(wasted, 3 * (count - 1));
    }
}

/// Looks are not part of every step, so that choices are made on what nobody has looked at.
fn rand_looks(now: Mono) -> bool {
    now.as_nanos() % 3 != 1
}

#[test]
fn without_rules_nothing_is_ever_left_out() {
    let balance = Addresses::new(Spread::RoundRobin, None, 3, 1);
    for turn in 0..30 {
        let chosen = balance.choose(Mono::ORIGIN, 0, 0);
        assert_eq!(chosen.index(), turn % 3, "each in turn");
        balance.told(chosen, true, Mono::ORIGIN);
        balance.left(chosen);
    }
    assert!(balance.take_news().is_empty());
}

/// Each time twice as long, up to the longest; one that has stayed for as long as it was left out begins anew.
#[test]
fn an_address_that_fails_again_at_once_is_left_out_for_longer() {
    let balance = Addresses::new(Spread::RoundRobin, Some(rules(1, 900_000)), 2, 1);
    let mut now = Mono::ORIGIN;
    let fail_first = |now: Mono| {
        let chosen = balance.choose(now, 0b10, 0);
        assert_eq!(chosen.index(), 0);
        balance.left(chosen);
        balance.told(chosen, true, now);
        let until = balance.status(now).addresses[0].ejected_until.unwrap();
        until.since(now)
    };
    for seconds in [1, 2, 4, 5, 5] {
        assert_eq!(fail_first(now), seconds * S);
        now = now.after(seconds * S);
    }
    now = now.after(5 * S);
    assert_eq!(fail_first(now), S, "it had stayed for as long as it was left out");
}

/// Case 075: all of them are marked, all are asked, and it is said for each that it is by way of exception.
#[test]
fn case_075_too_many_marked_addresses_are_all_used_and_it_is_told_when_that_begins_and_ends() {
    for marked in [1_u32, 2, 3] {
        let count = marked as usize;
        let balance = Addresses::new(Spread::RoundRobin, Some(rules(1, 900_000)), count, 1);
        let now = Mono::ORIGIN;
        for _ in 0..count {
            let chosen = balance.choose(now, 0, 0);
            balance.told(chosen, true, now);
            balance.left(chosen);
        }
        assert!(balance.status(now).overrides);
        let mut asked = vec![0; count];
        for _ in 0..10 * count {
            let chosen = balance.choose(now, 0, 0);
            assert!(chosen.is_overridden());
            asked[chosen.index()] += 1;
            balance.told(chosen, true, now);
            balance.left(chosen);
        }
        assert_eq!(asked, vec![10; count]);
        assert_eq!(balance.overridden(), u64::from(10 * marked));
        // One answers: it is used again at once, and the others are left out.
        let chosen = balance.choose(now, 0, 0);
        balance.told(chosen, false, now);
        balance.left(chosen);
        assert!(!balance.status(now).overrides);
        assert!((0..10).all(|_| balance.choose(now, 0, 0).index() == chosen.index()));
        let told: Vec<BalanceEvent> = balance.take_news().into_iter().map(|(_, event)| event).collect();
        let most = marked - 1;
        assert_eq!(
            told[told.len() - 3..],
            [
                BalanceEvent::Overridden { marked, most },
                BalanceEvent::Returned {
                    index: chosen.index(),
                    proven: true
                },
                BalanceEvent::InForce { marked: most },
            ]
        );
    }
}

#[test]
fn a_result_of_an_attempt_that_began_before_the_mark_changes_nothing() {
    let balance = Addresses::new(Spread::RoundRobin, Some(rules(1, 900_000)), 2, 1);
    let now = Mono::ORIGIN;
    let (early, other) = (balance.choose(now, 0b10, 0), balance.choose(now, 0b10, 0));
    balance.told(other, true, now);
    balance.told(early, false, now);
    assert!(balance.status(now).addresses[0].ejected_until.is_some());
    // And one that began while it was marked says nothing about it after its return.
    let later = now.after(S);
    assert!(balance.status(later).addresses[0].ejected_until.is_none());
    balance.told(other, true, later);
    assert!(balance.status(later).addresses[0].ejected_until.is_none());
}

#[test]
fn a_slow_address_is_asked_less_where_the_load_counts() {
    for (spread, at_most) in [
        (Spread::RoundRobin, 500),
        (Spread::LeastLoaded, 1),
        (Spread::PowerOfTwo, 1),
    ] {
        let balance = Addresses::new(spread, None, 2, 1);
        let mut draws = evenkeel_core::Rng::new(9);
        let mut slow = 0;
        for _ in 0..1000 {
            let chosen = balance.choose(Mono::ORIGIN, 0, draws.next_u64());
            // Address 0 never answers.
            if chosen.index() == 0 {
                slow += 1;
            } else {
                balance.left(chosen);
            }
        }
        assert!(slow <= at_most, "{spread:?} {slow}");
    }
}
