//! Decides which healthy calls also try what would stand in for them, and what came of it.
//! It exists so that no stand-in is used for the first time in an incident, when it is too late to mend it.
//! It refuses to let anybody wait for it, to give its results to a caller, and to go beyond the alternate's own budget.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use evenkeel_core::{Asker, Class, Criticality, HoldMode, Limit, Problems, Rung, RungRule};
use tokio::runtime::Handle;

use crate::{
    counts::Exercised,
    dependency,
    event::EventKind,
    flight,
    lent::Lent,
    read::{ReadBuilder, attempt::Attempted, running::Running, shared::Inner},
};

type Agree<T> = Box<dyn Fn(Rung, &T, &T) -> bool + Send + Sync>;

/// What a guard knows of its exercises.
pub(crate) struct Exercise<T> {
    /// The share of live answers, in parts per million.
    ppm: u32,
    agree: Agree<T>,
    /// Whether the last exercise of the alternate, and of the default, went wrong: told when that begins.
    ails: [AtomicBool; 2],
}

impl<T, C, S> ReadBuilder<T, C, S> {
    /// Has a share of the live answers, in parts per million (1 to 1 000 000), also try the alternate and the default in the
    /// background. What they bring is given to `agrees` beside the live answer, and thrown away.
    ///
    /// The alternate is asked within its own permits and breaker, like any call to it, and nobody waits.
    /// [`Counts::exercises`](crate::Counts::exercises) says what came of it, and an event
    /// ([`EventKind::Exercised`](crate::EventKind::Exercised)) tells when a rung that was well no longer is. Needs an
    /// alternate or a default, and a tokio runtime to run in.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, Exercised, Rung, default};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = Engine::system()
    ///     .read::<Vec<u32>>("picks")
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .exercise(1_000_000, |_rung, live, other| live.len() >= other.len()) // in earnest, 1_000
    ///     .ladder([default(Vec::new)])
    ///     .build()?;
    /// guard.call((), "home", |_| async { Ok(vec![7]) }).await?;
    /// tokio::task::yield_now().await;
    /// assert_eq!(guard.counts().exercises(Rung::Default, Exercised::Agreed), 1);
    /// # Ok(()) }
    /// ```
    pub fn exercise(
        mut self,
        ppm: u32,
        agrees: impl Fn(Rung, &T, &T) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.exercise = Some(Exercise {
            ppm,
            agree: Box::new(agrees),
            ails: Default::default(),
        });
        self
    }

    /// Adds a problem for an exercise that has nothing to try, or no share.
    pub(super) fn check_exercise(&self, problems: &mut Problems) {
        let Some(exercise) = &self.exercise else { return };
        problems.range(&["exercise"], u64::from(exercise.ppm), 1, 1_000_000);
        let stands_in = |rule: &RungRule| !matches!(rule, RungRule::Stale { .. });
        if !self.draft.ladder.iter().any(stands_in) {
            problems.add(
                "exercise",
                "set on a ladder without an alternate or a default",
                "beside one of them: a copy needs no exercise",
                "add one, or remove this",
            );
        }
    }
}

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Tries what would stand in for this live answer, if it is one of those that do.
    pub(super) fn exercise(&mut self, live: &T) {
        let guard = self.guard;
        let Some(exercise) = &guard.exercise else { return };
        // What the dependency refuses is nothing that a stand-in could agree with.
        let is_drawn = guard.draws.next() % 1_000_000 < u64::from(exercise.ppm);
        if !is_drawn || guard.class_of(live) != Class::Answer {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if guard.default.is_some() {
            let trial = Trial::of(guard, Rung::Default, live);
            runtime.spawn(async move { trial.of_default() });
        }
        let Some(spare) = self.spare.take() else { return };
        let mut trial = Trial::of(guard, Rung::Alternate, live);
        let now = guard.now();
        let hold = spare.dependency.held(now.mono).map(|(mode, _)| mode);
        let observes = hold.is_some_and(HoldMode::lets_ask);
        let dependency = Lent::Shared(Arc::clone(spare.dependency));
        let overtakes = spare.dependency.overtakes(Criticality::Sheddable, observes);
        let admitted = if (hold.is_some() && !observes) || overtakes.is_err() {
            None
        } else {
            dependency::Inner::admit(dependency, Criticality::Sheddable, now, Asker::Traffic, observes).ok()
        };
        let Some(mut ticket) = admitted else {
            trial.came_to = Exercised::Refused;
            return;
        };
        if ticket.limit == Limit::None {
            ticket.limit = Limit::Deadline(now.mono.after(flight::LEASE));
        }
        ticket.may_outlive = spare.outlives;
        ticket.apart = true;
        // Made now, because it borrows from the call; it runs later.
        let (call, permit) = ticket.start();
        // Somebody else's code: what breaks in an exercise must not break the healthy call beside it.
        let Ok(work) = catch_unwind(AssertUnwindSafe(|| (spare.work)(call, permit))) else {
            return;
        };
        let again = Arc::clone(guard);
        runtime.spawn(async move {
            // It has begun: the attempt only waits for it.
            let begun = |_call, _permit| work;
            if let Attempted::Value { value, .. } = again.attempt(None, &mut ticket, begun).await
                && again.class_of(&value) == Class::Answer
            {
                trial.compare(&value);
            }
        });
    }
}

/// One rung tried once. Dropping it counts and tells what it came to.
struct Trial<T, E> {
    guard: Arc<Inner<T, E>>,
    rung: Rung,
    live: T,
    came_to: Exercised,
}

impl<T: Clone, E> Trial<T, E> {
    fn of(guard: &Arc<Inner<T, E>>, rung: Rung, live: &T) -> Self {
        Self {
            guard: Arc::clone(guard),
            rung,
            live: live.clone(),
            came_to: Exercised::Failed,
        }
    }
}

impl<T, E> Trial<T, E> {
    fn of_default(mut self) {
        let guard = Arc::clone(&self.guard);
        if let Some(default) = &guard.default {
            self.compare(&default());
        }
    }

    fn compare(&mut self, other: &T) {
        let guard = Arc::clone(&self.guard);
        let Some(exercise) = &guard.exercise else { return };
        self.came_to = if (exercise.agree)(self.rung, &self.live, other) {
            Exercised::Agreed
        } else {
            Exercised::Differed
        };
    }
}

impl<T, E> Drop for Trial<T, E> {
    fn drop(&mut self) {
        let (rung, came_to) = (self.rung, self.came_to);
        self.guard.counters.exercised(rung, came_to);
        let Some(exercise) = &self.guard.exercise else {
            return;
        };
        let [alternate, default] = &exercise.ails;
        let ails = if rung == Rung::Default { default } else { alternate };
        let ailed = match came_to {
            Exercised::Agreed => ails.swap(false, Ordering::Relaxed),
            Exercised::Differed | Exercised::Failed => ails.swap(true, Ordering::Relaxed),
            // That there was no room for it says nothing about the rung.
            Exercised::Refused => return,
        };
        if came_to != Exercised::Agreed && !ailed {
            self.guard.tell(EventKind::Exercised { rung, came_to });
        }
    }
}
