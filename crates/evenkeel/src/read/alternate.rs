//! Decides how a call asks another dependency when its own could not answer: once, inside that one's own budget.
//! It exists because a spare is a dependency like any other: it has permits, a breaker and a timeout, and can be killed.
//! It refuses to keep its answers as the first one's data, and to hide the first error behind the second.

use std::{fmt, pin::pin, sync::Arc};

use evenkeel_core::{Asker, Class, HoldMode, Problems, Refusal, Rung, RungRule, Skipped, Step};

use crate::{
    dependency::{self, Dependency},
    lent::Lent,
    parked::park,
    read::{
        Classifier, LadderRung, Read, ReadBuilder,
        again::Working,
        attempt::Attempted,
        running::{End, Running},
    },
    ticket::{Call, Permit},
};

type Work<T, E, S> =
    Box<dyn Fn(&S, &[u8], Call<'static>, Option<Permit<'static>>) -> Working<T, E> + Send + Sync>;

/// Another dependency, and how it is asked.
pub(crate) struct Alternate<T, E, S> {
    pub(crate) dependency: Dependency,
    work: Work<T, E, S>,
    /// Whether its work may keep its permit beyond its result.
    outlives: bool,
}

impl<T, E, S> Alternate<T, E, S> {
    /// Returns the work for one call.
    pub(crate) fn work<'a>(
        &'a self,
        scope: &'a S,
        key: &'a [u8],
    ) -> impl Fn(Call<'static>, Option<Permit<'static>>) -> Working<T, E> + 'a {
        move |call, permit| (self.work)(scope, key, call, permit)
    }

    /// Returns what a call has to know of it.
    pub(crate) fn for_call<'c>(&'c self, work: &'c AskOnce<'c, T, E>) -> Spare<'c, T, E> {
        Spare {
            dependency: &self.dependency.0,
            outlives: self.outlives,
            work,
        }
    }
}

/// The work of the alternate for one call.
pub(crate) type AskOnce<'c, T, E> =
    dyn Fn(Call<'static>, Option<Permit<'static>>) -> Working<T, E> + Sync + 'c;

/// The alternate as one call sees it.
pub(crate) struct Spare<'c, T, E> {
    pub(super) dependency: &'c Arc<dependency::Inner>,
    pub(super) outlives: bool,
    pub(super) work: &'c AskOnce<'c, T, E>,
}

impl<T, E, S> ReadBuilder<T, Classifier<E>, S> {
    /// Adds a rung: another dependency, asked by `work` when the first could not answer and no rung before it could. It is
    /// handed whose data and what is asked for, as in the call.
    ///
    /// It is admitted by its own permits, resources and breaker, and asked at most once; the first one's permit is given
    /// back before. Of a deadline its timeout is kept free for it. Its answer is labelled [`Rung::Alternate`], never kept
    /// as a snapshot, and counted by itself; its errors are classified as those of the first, and travel in
    /// [`Answer::alternate_cause`](crate::Answer::alternate_cause) beside them. Only what is a good answer is used.
    ///
    /// Everything but further rungs is declared before.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, Reason, Rung, default, stale};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn ask_spare(_tenant: &str, _key: &[u8]) -> Result<u32, std::fmt::Error> { Ok(2) }
    /// let engine = Engine::system();
    /// let database = engine.resource("catalog-db", 100)?; // both draw on it
    /// let spare = engine
    ///     .dependency("spare")
    ///     .timeout(Duration::from_millis(300))
    ///     .concurrency(8)
    ///     .uses(&database)
    ///     .build()?;
    /// let stock = engine
    ///     .read::<u32>("stock")
    ///     .scope::<(String,)>()
    ///     .timeout(Duration::from_millis(500))
    ///     .deadline(Duration::from_secs(1))
    ///     .uses(&database)
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .ladder([stale(Duration::from_secs(60))])
    ///     .alternate(&spare, |(tenant,), key, _call| {
    ///         let (tenant, key) = (tenant.clone(), key.to_vec());
    ///         async move { ask_spare(&tenant, &key).await }
    ///     })
    ///     .ladder([default(|| 0)])
    ///     .build()?;
    ///
    /// let answer = stock.call(("acme".to_owned(),), "42", |_| async { Err(std::fmt::Error) }).await?;
    /// assert_eq!((*answer, answer.rung, answer.reason), (2, Rung::Alternate, Some(Reason::DependencyFailed)));
    /// # Ok(()) }
    /// ```
    ///
    /// [`Rung::Alternate`]: crate::Rung::Alternate
    pub fn alternate<W, Fut>(self, dependency: &Dependency, work: W) -> AlternateBuilder<T, E, S>
    where
        W: Fn(&S, &[u8], Call<'static>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = move |scope: &S, key: &[u8], call: Call<'static>, permit: Option<Permit<'static>>| {
            let working = work(scope, key, call);
            let whole = async move {
                let result = working.await;
                drop(permit);
                result
            };
            Box::pin(whole) as Working<T, E>
        };
        self.with_alternate(dependency, Box::new(work), false)
    }

    /// Adds a rung like [`ReadBuilder::alternate`], by work that outlives its result, such as a streamed body; see
    /// [`Read::call_work`] about the permit.
    pub fn alternate_work<W, Fut>(self, dependency: &Dependency, work: W) -> AlternateBuilder<T, E, S>
    where
        W: Fn(&S, &[u8], Call<'static>, Option<Permit<'static>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = move |scope: &S, key: &[u8], call: Call<'static>, permit: Option<Permit<'static>>| {
            Box::pin(work(scope, key, call, permit)) as Working<T, E>
        };
        self.with_alternate(dependency, Box::new(work), true)
    }

    fn with_alternate(
        mut self,
        dependency: &Dependency,
        work: Work<T, E, S>,
        outlives: bool,
    ) -> AlternateBuilder<T, E, S> {
        let timeout = dependency.contract().timeout();
        self.draft.ladder.push(RungRule::Alternate { timeout });
        AlternateBuilder {
            read: self,
            alternate: Alternate {
                dependency: dependency.clone(),
                work,
                outlives,
            },
        }
    }
}

/// A Read contract with an alternate, being written. Made by [`ReadBuilder::alternate`].
#[must_use = "a contract does nothing until it is built"]
pub struct AlternateBuilder<T, E, S = ()> {
    read: ReadBuilder<T, Classifier<E>, S>,
    alternate: Alternate<T, E, S>,
}

impl<T, E, S> fmt::Debug for AlternateBuilder<T, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlternateBuilder")
            .field("read", &self.read)
            .field("alternate", &self.alternate.dependency.name())
            .finish()
    }
}

impl<T, E, S> AlternateBuilder<T, E, S> {
    /// Adds rungs below the alternate, see [`ReadBuilder::ladder`].
    pub fn ladder(self, rungs: impl IntoIterator<Item = LadderRung<T>>) -> Self {
        Self {
            read: self.read.ladder(rungs),
            ..self
        }
    }

    /// Checks the contract.
    ///
    /// # Errors
    /// Every problem found, each with its place, what stands there, what may, and how to mend it.
    pub fn build(self) -> Result<Read<T, E, S>, Problems>
    where
        T: Clone + Send + Sync + 'static,
        E: Send + Sync + 'static,
    {
        let mut problems = Problems::default();
        let dependency = &self.alternate.dependency;
        if !dependency.0.engine.is(&self.read.engine) {
            problems.add(
                "alternate",
                &format!("`{}`, a dependency of another engine", dependency.name()),
                "a dependency of the engine that this guard is of: they share its clock and its events",
                "build both from one engine, or from clones of it",
            );
        }
        if self
            .read
            .from
            .as_ref()
            .is_some_and(|from| Arc::ptr_eq(&from.0, &dependency.0))
        {
            problems.add(
                "alternate",
                &format!("`{}`, the dependency that could not answer", dependency.name()),
                "another dependency",
                "choose another, or remove the rung: to ask once more is a retry",
            );
        }
        let mut read = match self.read.build::<E>() {
            Ok(read) => problems.or(read)?,
            Err(found) => {
                for problem in found.list() {
                    problems.push(problem.clone());
                }
                return Err(problems);
            }
        };
        read.alternate = Some(Arc::new(self.alternate));
        Ok(read)
    }
}

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Ends a call by the rest of its ladder.
    pub(super) async fn conclude(&mut self, mut step: Step) -> End<T, E> {
        if self.spare.is_none() {
            return self.finish(step);
        }
        while step == Step::Look {
            step = self.look_up();
        }
        if step == Step::Alternate {
            // Boxed: what few calls need is not to be carried by all.
            return Box::pin(self.ask_alternate()).await;
        }
        self.finish(step)
    }

    /// Asks the alternate and ends the call: by its answer, or by what the ladder has below it.
    async fn ask_alternate(&mut self) -> End<T, E> {
        let why = match self.alternate_answer().await {
            Ok(end) => return end,
            Err(why) => why,
        };
        self.now = self.guard.now();
        let step = match why {
            Passed::Over(step) => step,
            Passed::Skipped(why) => self.call.alternate_skipped(why),
        };
        self.finish(step)
    }

    async fn alternate_answer(&mut self) -> Result<End<T, E>, Passed> {
        let spare = self.spare.take().ok_or(Passed::Skipped(Skipped::Failed))?;
        self.now = self.guard.now();
        let limit = self.call.alternate(self.now.mono).map_err(Passed::Over)?;
        let hold = spare.dependency.held(self.now.mono).map(|(mode, _)| mode);
        if hold.is_some_and(|mode| !mode.lets_ask()) {
            return Err(Passed::Skipped(Skipped::Held));
        }
        let observes = hold.is_some_and(HoldMode::lets_ask);
        let refused = |refusal: Refusal| Passed::Skipped(Skipped::of_refusal(refusal.reason));
        spare
            .dependency
            .overtakes(self.criticality, observes)
            .map_err(refused)?;
        let dependency = Lent::Shared(Arc::clone(spare.dependency));
        let mut ticket =
            dependency::Inner::admit(dependency, self.criticality, self.now, Asker::Traffic, observes)
                .map_err(refused)?;
        ticket.limit = limit;
        ticket.may_outlive = spare.outlives;
        let guard = self.guard;
        let attempted = {
            let work = |call, permit| (spare.work)(call, permit);
            // Without a key nothing is kept under it, and nothing retired.
            park(&mut self.parked, pin!(guard.attempt(None, &mut ticket, work))).await
        };
        match attempted {
            Attempted::Value {
                value, began, tail, ..
            } if guard.class_of(&value) == Class::Answer => {
                Ok(self.answered(Rung::Alternate, value, began, tail))
            }
            Attempted::Value { .. } | Attempted::Untimed => Err(Passed::Skipped(Skipped::Failed)),
            Attempted::Error { error, .. } => {
                self.alternate_cause = error;
                Err(Passed::Skipped(Skipped::Failed))
            }
        }
    }
}

/// Why the alternate did not answer.
enum Passed {
    /// There was no time, and this is the next step.
    Over(Step),
    Skipped(Skipped),
}
