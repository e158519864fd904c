//! Every Read call there is, against a plain statement of what should come of it.
//!
//! Contracts, holds, snapshots and events are few enough to try all of them together.
#![cfg(not(loom))]

use core::time::Duration;

use evenkeel_core::{
    Class, Facts, HoldMode, Limit, Mono, Outage, ReadCall, ReadContract, ReadDraft, Reason, Refresh,
    RefreshRules, Row, Rung, RungRule, Skipped, Step, Table, Verdict, WhenBusy,
};

const S: Duration = Duration::from_secs(1);
const NS: Duration = Duration::from_nanos(1);
const FRESH_FOR: Duration = Duration::from_secs(10);
const MAX_AGE: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_secs(20);
const NOW: Mono = Mono::from_nanos(1_000_000_000_000);

/// What the dependency side does to the call.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Admission is refused.
    Refuse(Reason),
    /// The attempt ends like this, made as a probe or not.
    Attempt(Class, bool),
}

/// What came of a call.
#[derive(Debug, PartialEq)]
struct Outcome {
    end: Step,
    reason: Option<Reason>,
    skips: Vec<(Rung, Skipped)>,
    asked: bool,
}

/// Everything that decides a call.
#[derive(Debug)]
struct Case<'a> {
    contract: &'a ReadContract,
    table: &'a Table,
    hold: Option<HoldMode>,
    snapshot: Option<Facts>,
    event: Event,
    /// Its work may go on without it.
    owned: bool,
    /// What becomes of the alternate; answered without a word.
    alternate: Option<Skipped>,
}

impl Case<'_> {
    fn age_within(&self, limit: Duration) -> Result<Duration, Skipped> {
        let facts = self.snapshot.ok_or(Skipped::NoSnapshot)?;
        let age = facts
            .observed
            .map(|observed| NOW.as_nanos() - observed.as_nanos());
        let limit = facts.own_limit.map_or(limit, |own| own.min(limit)).as_nanos();
        match age {
            _ if facts.forbidden => Err(Skipped::Forbidden),
            None => Err(Skipped::UnknownAge),
            Some(age) if age < 0 => Err(Skipped::FutureDated),
            Some(age) if u128::from(age.unsigned_abs()) <= limit => {
                Ok(Duration::from_nanos(age.unsigned_abs()))
            }
            Some(_) => Err(Skipped::TooOld),
        }
    }

    /// Goes down the ladder. `bottom` is what is left when no rung answers.
    fn ladder(&self, reason: Reason, bottom: Step) -> Outcome {
        let mut outcome = Outcome {
            end: bottom,
            reason: Some(reason),
            skips: Vec::new(),
            asked: false,
        };
        for rule in self.contract.ladder().rungs() {
            let held = match (self.hold, rule) {
                (Some(HoldMode::StaleOnly), RungRule::Default | RungRule::Alternate { .. })
                | (Some(HoldMode::DefaultOnly), RungRule::Stale { .. } | RungRule::Alternate { .. }) => {
                    Err(Skipped::Held)
                }
                _ => Ok(()),
            };
            let used = held.and_then(|()| match rule {
                RungRule::Stale { .. } if self.snapshot.is_some_and(|facts| facts.stale_forbidden) => {
                    Err(Skipped::Forbidden)
                }
                RungRule::Stale { max_age } => self
                    .age_within(*max_age)
                    .map(|age| Step::Serve(Rung::Stale, Some(age))),
                RungRule::Alternate { .. } => match self.alternate {
                    Some(why) => Err(why),
                    None => Ok(Step::Serve(Rung::Alternate, Some(Duration::ZERO))),
                },
                RungRule::Default => Ok(Step::Serve(Rung::Default, None)),
            });
            match used {
                Ok(end) => {
                    outcome.end = end;
                    return outcome;
                }
                Err(why) => outcome.skips.push((rule.rung(), why)),
            }
        }
        outcome
    }

    fn plain(end: Step, reason: Option<Reason>, asked: bool) -> Outcome {
        Outcome {
            end,
            reason,
            skips: Vec::new(),
            asked,
        }
    }

    /// The age of a snapshot that is past its lifetime and inside its window.
    fn in_window(&self) -> Option<Duration> {
        let facts = self.snapshot?;
        let lifetime = facts.lifetime.or_else(|| self.contract.fresh_for())?;
        let windows = [facts.revalidate, self.contract.stale_while_revalidate()];
        let window = windows.into_iter().flatten().min()?;
        let age = self.age_within(lifetime + window).ok()?;
        let limits_hold = self
            .contract
            .ladder()
            .max_age()
            .is_none_or(|max_age| age <= max_age);
        let looks = self.contract.fresh_for().is_some() || self.contract.refresh().own_lifetimes;
        (looks && age >= lifetime && limits_hold && !facts.stale_forbidden).then_some(age)
    }

    /// What should come of the call.
    fn expected(&self) -> Outcome {
        let looks = self.contract.fresh_for().is_some() || self.contract.refresh().own_lifetimes;
        let own = self.snapshot.and_then(|facts| facts.lifetime);
        let lifetime = own.or_else(|| self.contract.fresh_for()).filter(|_| looks);
        let fresh = lifetime.and_then(|lifetime| {
            let age = self.age_within(lifetime).ok()?;
            (age < lifetime).then_some(age)
        });
        match (self.hold, fresh) {
            (Some(HoldMode::ForcedOff), _) => return Self::plain(Step::Refuse, Some(Reason::Held), false),
            (None | Some(HoldMode::ForcedClosed | HoldMode::ForcedOpen), Some(age)) => {
                return Self::plain(Step::Serve(Rung::Fresh, Some(age)), None, false);
            }
            (Some(HoldMode::ForcedOpen | HoldMode::StaleOnly | HoldMode::DefaultOnly), _) => {
                return self.ladder(Reason::Held, Step::Refuse);
            }
            (None | Some(HoldMode::ForcedClosed), None) => {}
        }
        if let Some(age) = self.in_window().filter(|_| self.owned) {
            let reason = match self.event {
                Event::Refuse(reason) => reason,
                Event::Attempt(..) => Reason::Revalidating,
            };
            let asked = matches!(self.event, Event::Attempt(..));
            return Self::plain(Step::Serve(Rung::Stale, Some(age)), Some(reason), asked);
        }
        let local = |reason| match self.contract.when_busy() {
            WhenBusy::Ladder => self.ladder(reason, Step::Refuse),
            WhenBusy::Refuse => Self::plain(Step::Refuse, Some(reason), false),
        };
        let (class, probe) = match self.event {
            Event::Refuse(reason) => return local(reason),
            Event::Attempt(class, probe) => (class, probe),
        };
        let row = self.table.row(class);
        // The word for the failure, and whether the dependency said something that can be handed on.
        let (word, said) = match class {
            Class::Answer => return Self::plain(Step::Serve(Rung::Live, Some(Duration::ZERO)), None, true),
            Class::Local => {
                let outcome = local(Reason::AtCapacity);
                return Outcome {
                    asked: true,
                    ..outcome
                };
            }
            Class::Outage(Outage::Failed) => (Some(Reason::DependencyFailed), false),
            Class::Outage(Outage::TimedOut) => (Some(Reason::TimedOut), false),
            Class::Outage(Outage::Cut) => (Some(Reason::Cut), false),
            Class::Outage(Outage::ErrorAnswer) => (Some(Reason::ErrorAnswer), true),
            Class::Busy => (Some(Reason::Busy), true),
            Class::Refusal | Class::Gone if row.lower_rung => (Some(Reason::ErrorAnswer), true),
            Class::Refusal | Class::Gone => (None, true),
            Class::Fault => (Some(Reason::Fault), false),
            Class::Cancelled => (None, false),
        };
        let probe_failed = probe && row.breaker == Verdict::Failure;
        let reason = word.map(|word| if probe_failed { Reason::ProbeFailed } else { word });
        match reason {
            Some(reason) if row.lower_rung => Outcome {
                asked: true,
                ..self.ladder(reason, if said { Step::Fail } else { Step::Refuse })
            },
            reason => Self::plain(Step::Fail, reason, true),
        }
    }

    /// What does come of it: a driver in a few lines.
    fn driven(&self) -> Outcome {
        let (mut call, mut step) = ReadCall::begin(self.contract, self.table, Some(S), self.hold, NOW);
        let mut asked = false;
        // Two looks (fresh, stale), a refresh, one admission, one attempt, one alternate: a seventh step ends every call.
        for _ in 0..7 {
            step = match (step, self.event) {
                (Step::Refresh, _) if !self.owned => call.refreshed(Refresh::Impossible),
                (Step::Refresh, Event::Refuse(reason)) => call.refreshed(Refresh::Refused(reason)),
                (Step::Refresh, Event::Attempt(..)) => {
                    asked = true;
                    call.refreshed(Refresh::UnderWay)
                }
                (Step::Alternate, _) => match (call.alternate(NOW), self.alternate) {
                    (Err(step), _) => step,
                    (Ok(limit), None) => {
                        assert_eq!(limit, Limit::Timeout(NOW.after(S)));
                        call.alternate_answered()
                    }
                    (Ok(_), Some(why)) => call.alternate_skipped(why),
                },
                (Step::Look, _) => call.found(self.snapshot, NOW),
                (Step::Admit, Event::Refuse(reason)) => call.refused(reason),
                (Step::Admit, Event::Attempt(..)) => call.admitted(NOW),
                (Step::Attempt(_), Event::Attempt(class, probe)) => {
                    assert!(!asked, "one call asks once");
                    asked = true;
                    call.attempted(class, probe)
                }
                (Step::Attempt(_), Event::Refuse(_)) => unreachable!("a refused call reached the dependency"),
                (end @ (Step::Serve(..) | Step::Refuse | Step::Fail), _) => {
                    return Outcome {
                        end,
                        reason: call.reason(),
                        skips: call.skips().iter().collect(),
                        asked,
                    };
                }
            };
        }
        unreachable!("{self:?} does not end")
    }
}

fn contracts() -> Vec<ReadContract> {
    let stale = RungRule::Stale { max_age: MAX_AGE };
    let alternate = RungRule::Alternate { timeout: Some(S) };
    let ladders = [
        vec![],
        vec![stale],
        vec![RungRule::Default],
        vec![stale, RungRule::Default],
        vec![alternate],
        vec![stale, alternate, RungRule::Default],
        vec![alternate, stale],
    ];
    let mut contracts = Vec::new();
    for ladder in ladders {
        for when_busy in [WhenBusy::Ladder, WhenBusy::Refuse] {
            for (fresh_for, own_lifetimes, window) in [
                (None, false, None),
                (Some(FRESH_FOR), false, None),
                (None, true, None),
                (Some(FRESH_FOR), false, Some(WINDOW)),
                (None, true, Some(WINDOW)),
            ] {
                if window.is_some() && !ladder.contains(&stale) {
                    continue;
                }
                let draft = ReadDraft {
                    name: "stock".into(),
                    fresh_for,
                    ladder: ladder.clone(),
                    when_busy,
                    refresh: RefreshRules {
                        own_lifetimes,
                        stale_while_revalidate: window,
                        ..RefreshRules::default()
                    },
                    ..ReadDraft::default()
                };
                contracts.push(draft.check().expect("a sound draft"));
            }
        }
    }
    contracts
}

fn tables() -> [Table; 3] {
    let changed = |rows: &[(Class, Verdict, bool)]| {
        let mut table = Table::default();
        for (class, breaker, lower_rung) in rows.iter().copied() {
            table.set(class, Row { breaker, lower_rung });
        }
        table
    };
    [
        Table::default(),
        changed(&[
            (Class::Refusal, Verdict::Failure, true),
            (Class::Gone, Verdict::Success, true),
            (Class::Busy, Verdict::Failure, true),
        ]),
        changed(&[
            (Class::OUTAGE, Verdict::Neutral, false),
            (Class::Busy, Verdict::Failure, false),
            (Class::Refusal, Verdict::Failure, false),
        ]),
    ]
}

fn snapshots() -> Vec<Option<Facts>> {
    let aged = |age| Facts {
        observed: Some(NOW.before(age)),
        ..Facts::default()
    };
    let mut facts: Vec<Facts> = [Duration::ZERO, S, 2 * MAX_AGE].into_iter().map(aged).collect();
    for limit in [FRESH_FOR, MAX_AGE] {
        facts.extend([limit - NS, limit, limit + NS].map(aged));
    }
    for own in [Duration::ZERO, S - NS, S, S + NS, 2 * MAX_AGE] {
        facts.push(Facts {
            own_limit: Some(own),
            ..aged(S)
        });
    }
    facts.push(Facts {
        own_limit: Some(2 * MAX_AGE),
        ..aged(MAX_AGE + NS)
    });
    for ahead in [NS, S, Duration::MAX] {
        facts.push(Facts {
            observed: Some(NOW.after(ahead)),
            ..Facts::default()
        });
    }
    facts.push(Facts::default());
    facts.push(Facts {
        own_limit: Some(MAX_AGE),
        ..Facts::default()
    });
    facts.push(Facts {
        forbidden: true,
        ..aged(Duration::ZERO)
    });
    for age in [S - NS, S, S + WINDOW / 2, S + WINDOW / 2 + NS, S + WINDOW + NS] {
        facts.push(Facts {
            lifetime: Some(S),
            revalidate: Some(WINDOW / 2),
            ..aged(age)
        });
    }
    for (lifetime, revalidate, stale_forbidden) in [
        (Some(Duration::ZERO), None, false),
        (Some(2 * MAX_AGE), Some(WINDOW), false),
        (Some(S), Some(WINDOW), true),
        (None, Some(MAX_AGE), false),
    ] {
        facts.push(Facts {
            lifetime,
            revalidate,
            stale_forbidden,
            ..aged(FRESH_FOR + S)
        });
    }
    facts.push(Facts {
        stale_forbidden: true,
        ..aged(FRESH_FOR + WINDOW)
    });
    facts.push(aged(FRESH_FOR + WINDOW));
    facts.push(aged(FRESH_FOR + WINDOW + NS));
    facts.into_iter().map(Some).chain([None]).collect()
}

fn events() -> Vec<Event> {
    let kinds = [Outage::Failed, Outage::TimedOut, Outage::Cut, Outage::ErrorAnswer];
    let classes = Class::ALL.into_iter().chain(kinds.map(Class::Outage));
    let attempts = classes.flat_map(|class| [false, true].map(|probe| Event::Attempt(class, probe)));
    let refusals = [Reason::BreakerOpen, Reason::Ramping, Reason::AtCapacity].map(Event::Refuse);
    attempts.chain(refusals).collect()
}

/// Runs `check` on every case.
fn for_every_case(mut check: impl FnMut(&Case<'_>)) {
    let holds: Vec<Option<HoldMode>> = HoldMode::ALL.into_iter().map(Some).chain([None]).collect();
    let (tables, events) = (tables(), events());
    for contract in &contracts() {
        for table in &tables {
            for hold in holds.iter().copied() {
                for snapshot in snapshots() {
                    for event in events.iter().copied() {
                        let outcomes: &[_] = match contract.ladder().has_alternate() {
                            true => &[None, Some(Skipped::Failed)],
                            false => &[None],
                        };
                        for (owned, alternate) in [false, true]
                            .into_iter()
                            .flat_map(|owned| outcomes.iter().map(move |outcome| (owned, *outcome)))
                        {
                            check(&Case {
                                contract,
                                table,
                                hold,
                                snapshot,
                                event,
                                owned,
                                alternate,
                            });
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_call_comes_to_what_the_plain_model_says() {
    let mut cases = 0;
    for_every_case(|case| {
        assert_eq!(case.driven(), case.expected(), "{case:?}");
        cases += 1;
    });
    // 58 contracts, of which 26 have an alternate that answers or does not.
    assert_eq!(cases, (32 + 26 * 2) * 3 * 6 * 34 * 27 * 2);
}

#[test]
fn whoever_is_told_that_a_rung_could_answer_does_get_an_answer() {
    for_every_case(|case| {
        let (call, _) = ReadCall::begin(case.contract, case.table, None, None, NOW);
        let promised = call.has_servable_rung(case.snapshot, NOW);
        let refused = Case {
            hold: None,
            event: Event::Refuse(Reason::BreakerOpen),
            owned: false,
            alternate: Some(Skipped::Failed),
            ..*case
        };
        let answered = match refused.driven().end {
            Step::Serve(Rung::Stale | Rung::Default, _) => true,
            // A fresh snapshot is served before anybody asks for admission.
            Step::Serve(Rung::Fresh | Rung::Live, _) => promised,
            // An alternate that does not answer promises nothing.
            Step::Serve(Rung::Alternate, _)
            | Step::Look
            | Step::Admit
            | Step::Attempt(_)
            | Step::Refresh
            | Step::Alternate
            | Step::Refuse
            | Step::Fail => false,
        };
        assert_eq!(promised, answered, "{case:?}");
    });
}

#[test]
fn a_slow_call_is_answered_exactly_where_the_stale_rung_could_answer_and_otherwise_goes_on_unchanged() {
    for_every_case(|case| {
        let (mut call, _) = ReadCall::begin(case.contract, case.table, None, None, NOW);
        let age = case.contract.ladder().max_age().and_then(|max_age| {
            let forbidden = case.snapshot.is_some_and(|facts| facts.stale_forbidden);
            case.age_within(max_age).ok().filter(|_| !forbidden)
        });
        let step = call.slow(case.snapshot, NOW);
        assert_eq!(
            step,
            age.map(|age| Step::Serve(Rung::Stale, Some(age))),
            "{case:?}"
        );
        assert_eq!(call.reason(), step.map(|_| Reason::Slow), "{case:?}");
        assert!(call.skips().is_empty(), "{case:?}");
    });
}

#[test]
fn holds_keep_the_dependency_from_being_asked_except_forced_closed() {
    for_every_case(|case| {
        let may_ask = matches!(case.hold, None | Some(HoldMode::ForcedClosed));
        assert!(may_ask || !case.driven().asked, "{case:?}");
    });
}

#[test]
fn an_answer_below_live_always_says_why_and_a_live_or_fresh_one_has_no_reason() {
    for_every_case(|case| {
        let outcome = case.driven();
        if let Step::Serve(rung, age) = outcome.end {
            assert_eq!(outcome.reason.is_some(), rung.is_degraded(), "{case:?}");
            assert_eq!(age.is_some(), rung != Rung::Default, "{case:?}");
        }
    });
}
