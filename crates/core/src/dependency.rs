//! Decides who may ask a dependency, and what each result does to it: breaker, bulkhead and resources together.
//! It exists here so that real time and virtual time admit by the very same code.
//! It refuses without asking: what is not admitted here never reaches the dependency.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    breaker::{Admission, Asker, Cause, Gate, Generation, Probe, Recovery, State, Transition},
    bulkhead::{Bulkhead, acquire_all},
    class::{Class, Verdict},
    contract::DependencyContract,
    lane::Lane,
    reason::Reason,
    time::Mono,
};

/// Exclusive access to something that several calls change: a lock in real time, a cell in virtual time.
///
/// Core takes no lock; a driver brings its own.
pub trait Exclusive<T> {
    /// Puts a value under exclusive access.
    fn guard(value: T) -> Self;

    /// Runs `change` with the value, while nobody else has it. It is short and calls nobody.
    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

/// A refusal by evenkeel itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// When asking again may help, where that is known.
    pub retry_at: Option<Mono>,
}

/// How an attempt passed the breaker. Report its result with [`Dependency::settle`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// There is no breaker, or it has nothing to learn from this.
    Free,
    /// Closed; the result counts in this generation.
    Counted(Generation),
    /// As a probe.
    Probe(Probe),
}

impl Pass {
    /// Tells whether the attempt is a probe.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        matches!(self, Self::Probe(_))
    }
}

/// What of a dependency is shared by all who ask it. `L` is the driver's way to exclusive access.
#[derive(Debug)]
pub struct Dependency<L> {
    contract: DependencyContract,
    breaker: Option<(Gate, L)>,
    bulkhead: Option<Bulkhead>,
    resources: Vec<Arc<Bulkhead>>,
}

impl<L: Exclusive<Recovery>> Dependency<L> {
    /// Makes a dependency that is closed and idle. `seed` draws the jitter of its open periods.
    #[must_use]
    pub fn new(contract: DependencyContract, resources: Vec<Arc<Bulkhead>>, seed: u64) -> Self {
        let breaker = contract
            .breaker()
            .map(|rules| (Gate::new(rules), L::guard(Recovery::new(*rules, seed))));
        let bulkhead = contract.concurrency().map(Bulkhead::new);
        Self {
            contract,
            breaker,
            bulkhead,
            resources,
        }
    }

    /// Returns the contract.
    #[must_use]
    pub const fn contract(&self) -> &DependencyContract {
        &self.contract
    }

    /// Admits one attempt, or refuses it and leaves nothing taken. While `observe` holds, the breaker lets
    /// everything pass and only watches.
    ///
    /// Whoever is admitted calls [`Dependency::release`] when the work has ended and [`Dependency::settle`] when
    /// its result is known. The second value is a change of the breaker's state, for the log.
    ///
    /// # Errors
    /// The refusal.
    pub fn admit(
        &self,
        now: Mono,
        asker: Asker,
        observe: bool,
    ) -> (Result<Pass, Refusal>, Option<Transition>) {
        let Some((gate, recovery)) = &self.breaker else {
            return (self.reserve().map(|()| Pass::Free), None);
        };
        if observe {
            let pass = gate.observe().map_or(Pass::Free, Pass::Counted);
            return (self.reserve().map(|()| pass), None);
        }
        match (gate.admit(now), asker) {
            (Admission::Admitted(generation), _) => {
                (self.reserve().map(|()| Pass::Counted(generation)), None)
            }
            (Admission::Refused { next_probe }, Asker::Traffic) => (Err(open(next_probe)), None),
            (Admission::Refused { .. } | Admission::MayProbe, _) => {
                // The permit comes first: a probe that could not start would hold up the recovery.
                if let Err(refusal) = self.reserve() {
                    return (Err(refusal), None);
                }
                let (granted, transition) = recovery.with(|recovery| recovery.probe(gate, now, asker));
                let pass = match granted {
                    Ok(probe) => Ok(Pass::Probe(probe)),
                    // Somebody else's probe may have closed the breaker since we looked.
                    Err(next_probe) => gate.observe().map(Pass::Counted).ok_or_else(|| open(next_probe)),
                };
                if pass.is_err() {
                    self.release();
                }
                (pass, transition)
            }
        }
    }

    /// Gives back what an admission took, when the work has ended.
    pub fn release(&self) {
        for bulkhead in self.bulkheads() {
            bulkhead.release();
        }
    }

    /// Counts a result. `blame` is false where a failure is not the dependency's doing.
    ///
    /// A success of a counted pass looks at `now` only if [`Dependency::counts_by_time`].
    pub fn settle(&self, pass: Pass, class: Class, blame: bool, lane: Lane, now: Mono) -> Option<Transition> {
        let verdict = match self.contract.table().row(class).breaker {
            Verdict::Failure if !blame => Verdict::Neutral,
            verdict @ (Verdict::Failure | Verdict::Success | Verdict::Neutral) => verdict,
        };
        self.tell(pass, class, verdict, lane, now)
    }

    /// Counts code that broke: a fault, and a failure too.
    pub fn broke(&self, pass: Pass, lane: Lane, now: Mono) -> Option<Transition> {
        self.tell(pass, Class::Fault, Verdict::Failure, lane, now)
    }

    fn tell(&self, pass: Pass, class: Class, verdict: Verdict, lane: Lane, now: Mono) -> Option<Transition> {
        let (gate, recovery) = self.breaker.as_ref()?;
        let transition = match (pass, verdict) {
            (Pass::Free, _) | (Pass::Counted(_), Verdict::Neutral) => None,
            (Pass::Counted(generation), Verdict::Success) => {
                gate.succeeded(lane, now, generation);
                None
            }
            (Pass::Counted(generation), Verdict::Failure) => {
                let trip = gate.failed(lane, now, generation)?;
                recovery.with(|recovery| recovery.tripped(gate, trip, now))
            }
            (Pass::Probe(probe), verdict) => {
                recovery.with(|recovery| recovery.settle(gate, probe, verdict, now))
            }
        };
        transition.map(|transition| Transition {
            class: match transition.cause {
                Cause::Tripped | Cause::ProbeFailed | Cause::Proven => Some(class),
                // Another probe's lease, or a person, brought it about.
                Cause::LeaseExpired | Cause::Probing | Cause::Reset => None,
            },
            ..transition
        })
    }

    /// Closes the breaker by a person's word.
    pub fn reset(&self, now: Mono) -> Option<Transition> {
        let (gate, recovery) = self.breaker.as_ref()?;
        recovery.with(|recovery| recovery.reset(gate, now))
    }
}

impl<L> Dependency<L> {
    fn reserve(&self) -> Result<(), Refusal> {
        acquire_all(self.bulkheads()).map_err(|_| Refusal {
            reason: Reason::AtCapacity,
            retry_at: None,
        })
    }

    fn bulkheads(&self) -> impl Iterator<Item = &Bulkhead> + Clone {
        self.bulkhead
            .iter()
            .chain(self.resources.iter().map(|resource| &**resource))
    }

    /// Tells whether a success has to know the time.
    #[must_use]
    pub fn counts_by_time(&self) -> bool {
        self.breaker
            .as_ref()
            .is_some_and(|(gate, _)| gate.counts_by_time())
    }

    /// Returns the state of the breaker; `None` without one.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.breaker.as_ref().map(|(gate, _)| gate.state())
    }

    /// Returns when the next probe may start, while that is known and the breaker is not closed.
    #[must_use]
    pub fn next_probe(&self) -> Option<Mono> {
        self.breaker.as_ref().and_then(|(gate, _)| gate.next_probe())
    }

    /// Tells whether attempts can be refused for want of a permit: its own, or a resource's.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.bulkheads().next().is_some()
    }

    /// Returns the dependency's own bulkhead; `None` where no limit is declared.
    #[must_use]
    pub const fn bulkhead(&self) -> Option<&Bulkhead> {
        self.bulkhead.as_ref()
    }
}

const fn open(next_probe: Option<Mono>) -> Refusal {
    Refusal {
        reason: Reason::BreakerOpen,
        retry_at: next_probe,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{BreakerRules, DependencyDraft, TripRule};
    use core::{cell::RefCell, time::Duration};

    struct OneThread<T>(RefCell<T>);

    impl<T> Exclusive<T> for OneThread<T> {
        fn guard(value: T) -> Self {
            Self(RefCell::new(value))
        }

        fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
            change(&mut self.0.borrow_mut())
        }
    }

    fn dependency(permits: u32, resources: Vec<Arc<Bulkhead>>) -> Dependency<OneThread<Recovery>> {
        let breaker = Some(BreakerRules {
            consecutive: Some(1),
            ..BreakerRules::NONE
        });
        let draft = DependencyDraft {
            name: "d".into(),
            concurrency: Some(permits),
            breaker,
            ..DependencyDraft::default()
        };
        Dependency::new(draft.check().expect("the draft is valid"), resources, 1)
    }

    const NOW: Mono = Mono::ORIGIN;

    fn trip(dependency: &Dependency<OneThread<Recovery>>) {
        let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
        assert!(
            dependency
                .settle(pass.expect("closed"), Class::OUTAGE, true, Lane::new(0), NOW)
                .is_some()
        );
        dependency.release();
    }

    #[test]
    fn e07_a_probe_without_a_permit_leaves_the_breaker_open_and_nothing_taken() {
        let shared = Arc::new(Bulkhead::new(1));
        let dependency = dependency(1, alloc::vec![Arc::clone(&shared)]);
        trip(&dependency);
        let later = NOW.after(Duration::from_secs(10));
        assert!(shared.acquire());
        let (refused, transition) = dependency.admit(later, Asker::Traffic, false);
        assert_eq!(
            refused,
            Err(Refusal {
                reason: Reason::AtCapacity,
                retry_at: None
            })
        );
        assert_eq!((transition, dependency.state()), (None, Some(State::Open)));
        assert_eq!(dependency.bulkhead().map(Bulkhead::in_use), Some(0));
        shared.release();
        let (pass, transition) = dependency.admit(later, Asker::Traffic, false);
        assert!(pass.unwrap().is_probe());
        assert_eq!(transition.map(|t| t.to), Some(State::HalfOpen));
    }

    #[test]
    fn a_probe_that_is_refused_gives_its_permit_back() {
        let dependency = dependency(5, Vec::new());
        trip(&dependency);
        let later = NOW.after(Duration::from_secs(10));
        let (probe, _) = dependency.admit(later, Asker::Traffic, false);
        assert!(probe.unwrap().is_probe());
        let (second, _) = dependency.admit(later, Asker::Person, false);
        assert_eq!(second.unwrap_err().reason, Reason::BreakerOpen);
        assert_eq!(dependency.bulkhead().map(Bulkhead::in_use), Some(1));
    }

    #[test]
    fn a_change_of_state_says_what_brought_it_about() {
        let dependency = dependency(5, Vec::new());
        let told = |pass, class| dependency.settle(pass, class, true, Lane::new(0), NOW);
        let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
        let tripped = told(pass.unwrap(), Class::OUTAGE).unwrap();
        assert_eq!(
            (tripped.cause, tripped.rule, tripped.class),
            (Cause::Tripped, Some(TripRule::Consecutive), Some(Class::OUTAGE))
        );
        let later = NOW.after(Duration::from_secs(10));
        let (pass, probing) = dependency.admit(later, Asker::Traffic, false);
        assert_eq!(probing.map(|told| (told.rule, told.class)), Some((None, None)));
        let proven = told(pass.unwrap(), Class::Answer).unwrap();
        assert_eq!(
            (proven.cause, proven.rule, proven.class),
            (Cause::Proven, None, Some(Class::Answer))
        );
    }

    #[test]
    fn an_observing_breaker_lets_pass_and_still_learns() {
        let dependency = dependency(5, Vec::new());
        let (pass, _) = dependency.admit(NOW, Asker::Traffic, true);
        let transition = dependency.settle(pass.unwrap(), Class::OUTAGE, true, Lane::new(0), NOW);
        assert_eq!(transition.map(|t| t.to), Some(State::Open));
        assert_eq!(dependency.admit(NOW, Asker::Traffic, true).0, Ok(Pass::Free));
    }
}
