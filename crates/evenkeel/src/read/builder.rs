//! Decides how a Read contract is written in code, and checks it whole.
//! It exists so that a guard takes about ten lines, reads like its contract, and cannot be built half.
//! It refuses to build without a classifier for the error type: that is a compile error.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use evenkeel_core::{
    Advice, Class, Criticality, LimitRules, Problem, Problems, RampRules, ReadDraft, RetryRules, Row,
    RungRule, WhenBusy,
};

use crate::{
    breaker::BreakerBuilder,
    dependency::{Dependency, DependencyBuilder},
    engine::{Engine, Resource},
    flight::Flights,
    key::Scope,
    memory::Memory,
    read::{
        Read, build_refresh,
        draws::Draws,
        exercise::Exercise,
        shared::{self, Inner},
        succession::Before,
        terms::Terms,
    },
};

/// One rung of a ladder with what it needs. Made by [`stale`] and [`default`].
pub struct LadderRung<T>(Kind<T>);

enum Kind<T> {
    Stale(Duration),
    Default(Box<dyn Fn() -> T + Send + Sync>),
}

impl<T> fmt::Debug for LadderRung<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Stale(max_age) => f.debug_tuple("Stale").field(max_age).finish(),
            Kind::Default(_) => f.write_str("Default"),
        }
    }
}

/// The last good answer, while it is at most this old: 1 ns to 365 days. The limit itself is served.
#[must_use]
pub const fn stale<T>(max_age: Duration) -> LadderRung<T> {
    LadderRung(Kind::Stale(max_age))
}

/// A declared constant, or the result of a cheap local function that calls nobody. Last in a ladder.
pub fn default<T>(make: impl Fn() -> T + Send + Sync + 'static) -> LadderRung<T> {
    LadderRung(Kind::Default(Box::new(make)))
}

/// No classifier yet: such a contract cannot be built.
#[derive(Debug)]
pub struct Unclassified(());

/// A classifier for errors of type `E`.
pub struct Classifier<E> {
    class: Box<dyn Fn(&E) -> Class + Send + Sync>,
    /// Copies an error for each of several callers; set by `coalesce`.
    copy: Option<fn(&E) -> E>,
    advice: Of<E, Advice>,
}

impl<E> fmt::Debug for Classifier<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Classifier")
    }
}

/// A classifier for errors of type `E`: what a contract has once [`ReadBuilder::classify`] was called.
#[diagnostic::on_unimplemented(
    message = "a guard needs a classifier for its dependency's errors",
    label = "no classifier yet",
    note = "say `.classify(..)` before `.build()`: only you know which error is an outage and which is a bug",
    note = "ready-made classifiers are in `evenkeel::classify`"
)]
pub trait Classified<E>: Into<Classifier<E>> {}

impl<E> Classified<E> for Classifier<E> {}

type Of<T, R> = Option<Box<dyn Fn(&T) -> R + Send + Sync>>;

/// A Read contract, being written. Nothing is on unless declared.
#[must_use = "a contract does nothing until it is built"]
pub struct ReadBuilder<T, C = Unclassified, S = ()> {
    pub(super) engine: Engine,
    pub(super) draft: ReadDraft,
    own: DependencyBuilder,
    pub(super) from: Option<Dependency>,
    default: Option<Box<dyn Fn() -> T + Send + Sync>>,
    keep_if: Of<T, bool>,
    terms: Of<T, Terms>,
    class_of: Of<T, Class>,
    advice_of: Of<T, Advice>,
    share_if: Of<T, bool>,
    weigh: Of<T, usize>,
    memory: Option<Memory<T>>,
    pub(super) exercise: Option<Exercise<T>>,
    pub(super) before: Before,
    /// Set by [`crate::Pass`]: its work keeps the time itself.
    untimed: bool,
    classify: C,
    scope: PhantomData<fn(S)>,
}

impl<T, C: fmt::Debug, S> fmt::Debug for ReadBuilder<T, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuilder")
            .field("draft", &self.draft)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

impl<T> ReadBuilder<T> {
    pub(crate) fn new(engine: Engine, name: &str) -> Self {
        Self {
            own: engine.dependency(name),
            engine,
            draft: ReadDraft {
                name: name.to_owned(),
                ..ReadDraft::default()
            },
            from: None,
            default: None,
            keep_if: None,
            terms: None,
            class_of: None,
            advice_of: None,
            share_if: None,
            weigh: None,
            memory: None,
            exercise: None,
            before: Before::default(),
            untimed: false,
            classify: Unclassified(()),
            scope: PhantomData,
        }
    }
}

impl<T, S> ReadBuilder<T, Unclassified, S> {
    /// Classifies the dependency's errors: outage, refusal, busy or fault. Required, and fixes the error type.
    ///
    /// Ready-made ones are in [`crate::classify`]. What you do not know, call [`Class::Fault`]: it is shown,
    /// never hidden behind old data.
    pub fn classify<E>(
        self,
        class: impl Fn(&E) -> Class + Send + Sync + 'static,
    ) -> ReadBuilder<T, Classifier<E>, S> {
        self.retyped(|_| Classifier {
            class: Box::new(class),
            copy: None,
            advice: None,
        })
    }
}

impl<T, C, S> ReadBuilder<T, C, S> {
    /// The same contract with another classifier or scope type.
    fn retyped<D, R>(self, classify: impl FnOnce(C) -> D) -> ReadBuilder<T, D, R> {
        ReadBuilder {
            engine: self.engine,
            draft: self.draft,
            own: self.own,
            from: self.from,
            default: self.default,
            keep_if: self.keep_if,
            terms: self.terms,
            class_of: self.class_of,
            advice_of: self.advice_of,
            share_if: self.share_if,
            weigh: self.weigh,
            memory: self.memory,
            exercise: self.exercise,
            before: self.before,
            untimed: self.untimed,
            classify: classify(self.classify),
            scope: PhantomData,
        }
    }

    /// Leaves the dependency's timeout to the work.
    pub(crate) fn untimed(mut self) -> Self {
        self.untimed = true;
        self
    }

    fn own(self, change: impl FnOnce(DependencyBuilder) -> DependencyBuilder) -> Self {
        Self {
            own: change(self.own),
            ..self
        }
    }

    /// Ends an attempt after this long, and counts it as a failure: 1 ms to 1 h. Its work is dropped then and there.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.own(|own| own.timeout(timeout))
    }

    /// Lets this many attempts be in flight at once, 1 to 1 000 000; more are refused without waiting.
    pub fn concurrency(self, permits: u32) -> Self {
        self.own(|own| own.concurrency(permits))
    }

    /// Stops asking a dependency that fails, by these rules. Called again, it changes the rules it made before.
    pub fn breaker(self, rules: impl FnOnce(BreakerBuilder) -> BreakerBuilder) -> Self {
        self.own(|own| own.breaker(rules))
    }

    /// Draws on a resource that others draw on too: each attempt takes a permit of the dependency and one of each
    /// resource, or none of any.
    pub fn uses(self, resource: &Resource) -> Self {
        self.own(|own| own.uses(resource))
    }

    /// Replaces a row of the classification table: what a result of this class does to the breaker, and whether
    /// the call may go on to a lower rung. Rows for answers, faults, local refusals and cancelled calls are fixed.
    pub fn row(self, class: Class, row: Row) -> Self {
        self.own(|own| own.row(class, row))
    }

    /// Lets traffic back in stages after the breaker has closed, see [`DependencyBuilder::ramp`].
    pub fn ramp(self, stages: impl Into<Vec<u8>>) -> Self {
        self.own(|own| own.ramp(stages))
    }

    /// Lets traffic back by these rules after the breaker has closed, see [`DependencyBuilder::ramp_rules`].
    pub fn ramp_rules(self, rules: RampRules) -> Self {
        self.own(|own| own.ramp_rules(rules))
    }

    /// Says how much its calls matter where permits are scarce, unless a handle says otherwise, see
    /// [`Read::with_criticality`]: those that matter less are refused first. Without this they are
    /// [`Criticality::Critical`].
    pub fn criticality(mut self, criticality: Criticality) -> Self {
        self.draft.criticality = criticality;
        self
    }

    /// Begins no more attempts while this many may still be worked on, see [`DependencyBuilder::abandoned`].
    pub fn abandoned(self, most: u32) -> Self {
        self.own(|own| own.abandoned(most))
    }

    /// Lets calls wait for a permit, see [`DependencyBuilder::queue`].
    pub fn queue(self, length: u32, longest_wait: Duration) -> Self {
        self.own(|own| own.queue(length, longest_wait))
    }

    /// Asks once more after an outage, where the work may be repeated: see [`DependencyBuilder::retry`], and
    /// [`Read::call_repeatable`], the call that makes use of it.
    pub fn retry(self, rules: RetryRules) -> Self {
        self.own(|own| own.retry(rules))
    }

    /// Learns how many attempts the dependency bears, see [`DependencyBuilder::learned_limit`].
    pub fn learned_limit(self, rules: LimitRules) -> Self {
        self.own(|own| own.learned_limit(rules))
    }

    /// Asks a dependency of the same engine that other guards ask too, with its timeout, permits and breaker. Nothing
    /// of these may then be declared here.
    pub fn from(mut self, dependency: &Dependency) -> Self {
        self.from = Some(dependency.clone());
        self
    }

    /// Ends a whole call after this long: 1 ms to 1 h. Waiting for a shared attempt spends from it too.
    ///
    /// Where it ends an attempt before the timeout does, the dependency is not blamed.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.draft.deadline = Some(deadline);
        self
    }

    /// Serves an answer that is younger than this without a call, as fresh: 1 ms to 365 days, and at most the limit
    /// of the stale rung where there is one. Without this every call asks.
    pub fn fresh_for(mut self, lifetime: Duration) -> Self {
        self.draft.fresh_for = Some(lifetime);
        self
    }

    /// Serves from these rungs, in this order, when the dependency cannot answer. Called again, it adds to them.
    ///
    /// Each rung once, the default last. Without a ladder a call that cannot be live is refused.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, stale, default};
    /// # use std::time::Duration;
    /// let problems = Engine::system()
    ///     .read::<u32>("g")
    ///     .classify(|_: &()| Class::OUTAGE)
    ///     .ladder([default(|| 0), stale(Duration::ZERO)])
    ///     .build()
    ///     .unwrap_err();
    /// assert_eq!(
    ///     problems.to_string(),
    ///     "read.ladder[0]: default before other rungs; allowed: default last: it always answers; move it to the end\n\
    ///      read.ladder[1].stale: 0ns; allowed: 1ns to 31536000s; raise it to 1ns",
    /// );
    /// ```
    pub fn ladder(mut self, rungs: impl IntoIterator<Item = LadderRung<T>>) -> Self {
        for LadderRung(kind) in rungs {
            self.draft.ladder.push(match kind {
                Kind::Stale(max_age) => RungRule::Stale { max_age },
                Kind::Default(make) => {
                    self.default = Some(make);
                    RungRule::Default
                }
            });
        }
        self
    }

    /// Nothing but an answer asked for this call: balances, prices at checkout, stock. Forbids a ladder, fresh
    /// copies, sharing, and holds that would serve old data.
    pub fn exact(mut self) -> Self {
        self.draft.exact = true;
        self
    }

    /// Says what calls get that were refused without asking, by an open breaker or for want of a permit: the ladder
    /// (as without this), or a refusal.
    pub fn when_busy(mut self, what: WhenBusy) -> Self {
        self.draft.when_busy = what;
        self
    }

    /// Keeps an answer only if this says that it is worth it; otherwise the old snapshot stays. Its own caller gets
    /// the answer either way. Goes together with [`fresh_for`](Self::fresh_for) or a stale rung, like all that is
    /// about keeping: without either nothing is kept.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, NotKept, Rung, stale};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = Engine::system()
    ///     .read::<Vec<u32>>("picks")
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .ladder([stale(Duration::from_secs(60))])
    ///     .keep_if(|picks| !picks.is_empty())
    ///     .build()?;
    /// guard.call((), "home", |_| async { Ok(vec![1]) }).await?;
    /// assert!(guard.call((), "home", |_| async { Ok(vec![]) }).await?.is_empty());
    /// let old = guard.call((), "home", |_| async { Err(std::fmt::Error) }).await?;
    /// assert_eq!((old.rung, old.value), (Rung::Stale, vec![1]));
    /// assert_eq!(guard.counts().not_kept(NotKept::NotWorthKeeping), 1);
    /// # Ok(()) }
    /// ```
    pub fn keep_if(mut self, worth_keeping: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.keep_if = Some(Box::new(worth_keeping));
        self
    }

    /// Reads from each answer on which terms it may be kept and served, where the data itself has a say, such as
    /// an HTTP response by its headers. Terms can only narrow what the contract permits.
    pub fn terms(mut self, terms: impl Fn(&T) -> Terms + Send + Sync + 'static) -> Self {
        self.terms = Some(Box::new(terms));
        self
    }

    /// Classifies values: some clients return the dependency's refusals as values, such as an HTTP 404.
    ///
    /// Such a value is returned as live, because it is the dependency's answer, but it is not kept and not
    /// shared; [`Class::Gone`] also retires the snapshot. To use the ladder, return an error.
    pub fn class_of(mut self, class: impl Fn(&T) -> Class + Send + Sync + 'static) -> Self {
        self.class_of = Some(Box::new(class));
        self
    }

    /// Reads the same from a value that [`class_of`](Self::class_of) calls busy, see [`advice`](ReadBuilder::advice).
    pub fn advice_of(mut self, advice: impl Fn(&T) -> Advice + Send + Sync + 'static) -> Self {
        self.advice_of = Some(Box::new(advice));
        self
    }

    /// Keeps snapshots in this store. Without one the guard has its own of [`Memory::BYTES_DEFAULT`]. Several guards
    /// may share a store; their names keep their snapshots apart.
    pub fn memory(mut self, memory: &Memory<T>) -> Self {
        self.memory = Some(memory.clone());
        self
    }

    /// Says how many bytes a value takes in the store. Without this a value counts as its own size, plus
    /// 1024 bytes if it owns anything.
    pub fn weigh(mut self, bytes: impl Fn(&T) -> usize + Send + Sync + 'static) -> Self {
        self.weigh = Some(Box::new(bytes));
        self
    }
}

impl<T, C> ReadBuilder<T, C> {
    /// Makes these parts, such as tenant and locale, part of every key. A call without them, or with the parts
    /// swapped, does not compile; one with an empty part fails without asking anybody.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, stale};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = Engine::system()
    ///     .read::<u32>("stock")
    ///     .scope::<(&str,)>() // in earnest, a type of your own
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .ladder([stale(Duration::from_secs(60))])
    ///     .build()?;
    /// guard.call(("acme",), "42", |_| async { Ok(3) }).await?;
    /// assert!(guard.call(("acme",), "42", |_| async { Err(std::fmt::Error) }).await.is_ok());
    /// assert!(guard.call(("other",), "42", |_| async { Err(std::fmt::Error) }).await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn scope<S: Scope>(self) -> ReadBuilder<T, C, S> {
        self.retyped(|classify| classify)
    }
}

impl<T, E, S> ReadBuilder<T, Classifier<E>, S> {
    /// Reads from an error what it says about asking again, such as a `Retry-After` field.
    ///
    /// A retry waits at least that long, or is not made if the call ends before. With [`Class::Busy`] it holds up all
    /// retries and refreshes of the dependency. [`Advice::Never`] is for failures that a layer nearer to them has
    /// retried already.
    pub fn advice(mut self, advice: impl Fn(&E) -> Advice + Send + Sync + 'static) -> Self {
        self.classify.advice = Some(Box::new(advice));
        self
    }
}

impl<T, E: Clone, S> ReadBuilder<T, Classifier<E>, S> {
    /// Lets calls made by [`Read::call_owned`] share an attempt for the same key that is under way. Each keeps
    /// its own deadline. Errors are copied for each, so their type must be `Clone`.
    ///
    /// The attempt belongs to nobody: any caller may leave, and it stops when nobody waits. Once it has taken as
    /// long as the timeout (without one, the first caller's deadline, else 30 s), later callers do not wait for it.
    /// At most 10 000 attempts are shared at once; beyond that calls go alone.
    pub fn coalesce(mut self) -> Self {
        self.draft.coalesce = true;
        self.classify.copy = Some(E::clone);
        self
    }

    /// Shares a result only if this says so; otherwise those who waited make their own attempts, and nobody
    /// waits for this key again for ten seconds. Has an effect with [`ReadBuilder::coalesce`] only.
    pub fn share_if(mut self, shareable: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.share_if = Some(Box::new(shareable));
        self
    }
}

impl<T, C, S> ReadBuilder<T, C, S> {
    /// Tells whether anything in the contract can serve a snapshot, so that some are kept.
    pub(crate) fn keeps(&self) -> bool {
        let stale = |rule: &RungRule| matches!(rule, RungRule::Stale { .. });
        self.draft.fresh_for.is_some()
            || self.draft.refresh.own_lifetimes
            || self.draft.ladder.iter().any(stale)
    }

    /// Adds a problem for each setting that would have no effect, or contradicts another, as it stands.
    fn check_effects(&self, problems: &mut Problems) {
        if self.share_if.is_some() && !self.draft.coalesce {
            problems.add(
                "share_if",
                "set without `coalesce`",
                "together with `coalesce`",
                "add it, or remove this",
            );
        }
        self.check_exercise(problems);
        let keeps = self.keeps();
        for (setting, is_set) in [
            ("keep_if", self.keep_if.is_some()),
            ("terms", self.terms.is_some()),
            ("memory", self.memory.is_some()),
            ("weigh", self.weigh.is_some()),
        ] {
            if is_set && !keeps {
                problems.add(
                    setting,
                    "set on a guard that keeps nothing",
                    "together with `fresh_for` or a stale rung",
                    "add one of them, or remove this",
                );
            }
        }
        let Some(from) = &self.from else { return };
        if !self.own.is_bare() {
            problems.add(
                "from",
                "a dependency, and a timeout, concurrency, breaker, ramp, learned limit, resource or row of this guard's own",
                "one or the other",
                "move them to the dependency",
            );
        }
        if !from.0.engine.is(&self.engine) {
            problems.add(
                "from",
                &format!("`{}`, a dependency of another engine", from.name()),
                "a dependency of the engine that this guard is of: they share its clock and its events",
                "build both from one engine, or from clones of it",
            );
        }
    }
}

impl<T, C, S> ReadBuilder<T, C, S> {
    /// Checks the contract.
    ///
    /// # Errors
    /// Every problem found, each with its place, what stands there, what may, and how to mend it.
    // The bounds stand here and not at the `impl`, so that a missing classifier is told in its own words.
    pub fn build<E>(self) -> Result<Read<T, E, S>, Problems>
    where
        T: Clone + Send + Sync + 'static,
        C: Classified<E>,
        E: Send + Sync + 'static,
    {
        let mut problems = Problems::default();
        self.check_effects(&mut problems);
        let Classifier { class, copy, advice } = self.classify.into();
        let contract = self
            .draft
            .check()
            .map_err(|found| problems.absorb("read", found))
            .ok();
        let dependency = match self.from {
            Some(dependency) => Some(dependency),
            None => self
                .own
                .build()
                .map_err(|found| {
                    // It has the guard's name, which is told once.
                    let others = found.list().iter().filter(|problem| problem.place != "name");
                    for problem in others {
                        problems.push(Problem {
                            place: format!("dependency.{}", problem.place),
                            ..problem.clone()
                        });
                    }
                })
                .ok(),
        };
        let (Some(contract), Some(dependency)) = (contract, dependency) else {
            return Err(problems);
        };
        build_refresh::check_beside(&contract, dependency.contract(), &mut problems);
        problems.or(())?;
        let (key, counters, hold) = self.before.parts(&contract);
        let inner = Inner {
            name: contract.name().into(),
            key,
            dependency,
            classify: class,
            class_of: self.class_of,
            keep_if: self.keep_if,
            terms: self.terms,
            advice,
            advice_of: self.advice_of,
            share_if: self.share_if,
            weigh: self.weigh.unwrap_or_else(|| Box::new(|_| shared::guess::<T>())),
            default: self.default,
            memory: self.memory.unwrap_or_default(),
            hold,
            counters,
            flights: (contract.coalesce() || contract.refreshes()).then(|| Arc::new(Flights::new())),
            copy_error: copy,
            untimed: self.untimed,
            exercise: self.exercise,
            draws: Draws::new(self.engine.draw_seed()),
            contract,
        };
        Ok(Read {
            criticality: inner.contract.criticality(),
            inner: Arc::new(inner),
            arrived: None,
            ends: None,
            alternate: None,
            scope: PhantomData,
        })
    }
}
