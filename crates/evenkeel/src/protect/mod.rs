//! Decides what a Protect guard offers: a decision of its authority, or the word that there is none.
//! It exists as a type of its own, so that a door can never get a rung: there is no method to give it a copy, a
//! default, a second authority or somebody else's decision.
//! It refuses to call anything allowed or denied that the authority has not said in answer to this very call.

mod builder;
mod counts;

use std::{
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use evenkeel_core::{Criticality, Ending, Mono, Problems, Protection, Reason};

pub use builder::ProtectBuilder;
pub use counts::ProtectCounts;

use crate::{
    answer::{Answer, Misuse, Unanswered},
    dependency::Dependency,
    hold::Hold,
    read::Read,
    ticket::Call,
};
use counts::{Counters, Counting};

/// What an authority says: yes with what it knows of the caller, or no with what the caller may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<T, D = ()> {
    /// Yes.
    Allow(T),
    /// No.
    Deny(D),
}

/// What a protect step came to.
///
/// ```
/// use evenkeel::Decided;
///
/// /// The status that a caller is told when the operation does not run.
/// fn status<T, D, E>(decided: &Decided<T, D, E>) -> Option<u16> {
///     match decided {
///         Decided::Allow(_) => None, // and only now the operation runs
///         Decided::Deny(_) => Some(403),
///         Decided::Unavailable(_) => Some(503), // not 403: nobody has said no
///     }
/// }
/// # assert_eq!(status(&Decided::<(), (), ()>::Deny(())), Some(403));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is protected may run only if this says Allow"]
pub enum Decided<T, D, E> {
    /// The authority said yes.
    Allow(T),
    /// The authority said no.
    Deny(D),
    /// Nobody decided.
    Unavailable(Unavailable<E>),
}

impl<T, D, E> Decided<T, D, E> {
    /// Returns which of the three it is.
    #[must_use]
    pub const fn protection(&self) -> Protection {
        match self {
            Self::Allow(_) => Protection::Allowed,
            Self::Deny(_) => Protection::Denied,
            Self::Unavailable(_) => Protection::Unavailable,
        }
    }

    /// Returns what the authority knows of a caller whom it allows; nothing in the other two cases.
    #[must_use]
    pub fn allowed(self) -> Option<T> {
        match self {
            Self::Allow(known) => Some(known),
            Self::Deny(_) | Self::Unavailable(_) => None,
        }
    }
}

/// Nobody decided: the authority was asked in vain, or not asked at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable<E> {
    /// What kept the authority from deciding. [`Reason::Fault`] also stands for an answer of the authority that is no
    /// decision, for an error that no classifier knows, and for work that panicked.
    pub reason: Reason,
    /// When asking again may help, where that is known: the next probe, or the end of a hold.
    pub retry_after: Option<Duration>,
    /// The authority's error, unchanged, if it was asked and failed.
    pub cause: Option<E>,
    /// The call itself was wrong.
    pub misuse: Option<Misuse>,
}

impl<E> fmt::Display for Unavailable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protection unavailable: {}", self.reason)?;
        if let Some(misuse) = self.misuse {
            write!(f, ": {misuse}")?;
        }
        Ok(())
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Unavailable<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// A guard around decisions that protect something: authentication, authorisation, spending limits. Clones share
/// everything.
///
/// `T` is what the authority knows of a caller whom it allows, `D` what one whom it denies may be told, `E` the error of
/// the authority. A call comes to [`Decided`]: allow, deny or unavailable. Whatever goes wrong is unavailable: an
/// outage, a timeout, an open breaker, no permit, a hold, an answer that is no decision, an error that no classifier knows,
/// code that panics. What is protected does not run then, and nobody is told that they are forbidden.
///
/// Timeout, deadline, permits, breaker, ramp, queue and retries are those of every guard. There is no ladder; no decision
/// is kept, and none is shared with another call.
///
/// ```
/// use evenkeel::{Class, Decided, Decision, Engine, Reason};
/// use std::{io, time::Duration};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let door = Engine::system()
///     .protect("sso")
///     .timeout(Duration::from_millis(250))
///     .concurrency(64)
///     .breaker(|breaker| breaker.consecutive(3))
///     .classify(|_: &io::Error| Class::OUTAGE)
///     .build()?;
///
/// let asked = |token: &'static str| door.decide(move |_call| async move { ask(token) });
/// assert!(matches!(asked("ana's").await, Decided::Allow("ana")));
/// assert!(matches!(asked("nobody's").await, Decided::Deny(401)));
/// let Decided::Unavailable(nobody) = asked("slow").await else { panic!() };
/// assert_eq!(nobody.reason, Reason::DependencyFailed);
///
/// // In earnest, a client of your own.
/// fn ask(token: &str) -> io::Result<Decision<&'static str, u16>> {
///     match token {
///         "ana's" => Ok(Decision::Allow("ana")),
///         "slow" => Err(io::ErrorKind::ConnectionReset.into()),
///         _ => Ok(Decision::Deny(401)),
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Protect<T, D, E> {
    guard: Read<Decision<T, D>, E>,
    counters: Arc<Counters>,
}

impl<T, D, E> Clone for Protect<T, D, E> {
    fn clone(&self) -> Self {
        Self {
            guard: self.guard.clone(),
            counters: Arc::clone(&self.counters),
        }
    }
}

impl<T, D, E> fmt::Debug for Protect<T, D, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protect")
            .field("name", &self.guard.name())
            .finish_non_exhaustive()
    }
}

impl<T, D, E> Protect<T, D, E>
where
    T: Clone + Send + Sync + 'static,
    D: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Asks the authority by `work`, at most once.
    ///
    /// `work` may borrow and need not be `Send`; it is dropped where it stands when its time is up or the caller leaves.
    /// A panic in it is caught: nobody has decided then, and it counts as a failure of the authority.
    pub async fn decide<'a, F, Fut>(&'a self, work: F) -> Decided<T, D, E>
    where
        F: FnOnce(Call<'a>) -> Fut,
        Fut: Future<Output = Result<Decision<T, D>, E>>,
    {
        let counting = Counting::of(&self.counters);
        counting.end(decided(caught(self.guard.call((), [], work)).await))
    }

    /// Asks the authority by work that may be repeated without harm: it is run once for each attempt, as often as
    /// [`retry`](ProtectBuilder::retry) grants. A decision is never followed by another attempt, whichever it is.
    ///
    /// A question about what somebody may do is usually repeatable. One that spends something, such as a rate limit, is
    /// not: ask it by [`Protect::decide`].
    pub async fn decide_repeatable<F, Fut>(&self, work: F) -> Decided<T, D, E>
    where
        F: Fn(Call<'static>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Decision<T, D>, E>> + Send + 'static,
    {
        let counting = Counting::of(&self.counters);
        counting.end(decided(caught(self.guard.call_repeatable((), [], work)).await))
    }

    /// Forces a mode on this guard: forced-open and forced-off keep its calls from the authority, so that every one of
    /// them is unavailable; forced-closed leaves everything as usual, with a breaker that only observes. No mode opens it.
    ///
    /// # Errors
    /// When author or reason are missing, or the mode chooses among rungs: there are none.
    pub fn hold(&self, hold: Hold) -> Result<(), Problems> {
        if hold.mode.on_protect().is_some() {
            return self.guard.hold(hold);
        }
        let mut problems = hold.check().err().unwrap_or_default();
        problems.add(
            "mode",
            &format!("{} on a guard that protects", hold.mode.as_str()),
            "forced-open, forced-off, forced-closed",
            "choose one of these; no hold lets anybody through without a decision",
        );
        Err(problems)
    }

    /// Takes the hold off and returns it.
    pub fn release(&self, by: &str) -> Option<Hold> {
        self.guard.release(by)
    }

    /// Returns the hold in force on this guard, if there is one.
    #[must_use]
    pub fn held(&self) -> Option<Hold> {
        self.guard.held()
    }
}

impl<T, D, E> Protect<T, D, E> {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// Returns the dependency that it asks: the authority.
    #[must_use]
    pub fn dependency(&self) -> &Dependency {
        self.guard.dependency()
    }

    /// Returns a handle on the same guard whose calls arrived at this time, see [`Read::arrived_at`].
    #[must_use]
    pub fn arrived_at(&self, arrived: Mono) -> Self {
        Self {
            guard: self.guard.arrived_at(arrived),
            counters: Arc::clone(&self.counters),
        }
    }

    /// Returns a handle on the same guard whose calls end by this time at the latest, see [`Read::ending_by`]: one that is not
    /// decided by then is unavailable.
    #[must_use]
    pub fn ending_by(&self, at: Mono) -> Self {
        Self {
            guard: self.guard.ending_by(at),
            counters: Arc::clone(&self.counters),
        }
    }

    /// Returns a handle on the same guard whose calls matter this much, see [`Read::with_criticality`].
    #[must_use]
    pub fn with_criticality(&self, criticality: Criticality) -> Self {
        Self {
            guard: self.guard.with_criticality(criticality),
            counters: Arc::clone(&self.counters),
        }
    }

    /// Returns what its calls came to.
    #[must_use]
    pub fn counts(&self) -> ProtectCounts {
        self.counters.read()
    }
}

/// Drives a call to its end. `None` if its code panicked; whatever it held is given back by then.
async fn caught<F: Future>(call: F) -> Option<F::Output> {
    let mut call = pin!(call);
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(polled) => polled.map(Some),
            // It is not polled again.
            Err(_) => Poll::Ready(None),
        },
    )
    .await
}

type End<T, D, E> = Result<Answer<Decision<T, D>, E>, Unanswered<E>>;

/// Reads what a call came to. Values and errors only fill in what the rule has decided.
fn decided<T, D, E>(end: Option<End<T, D, E>>) -> Decided<T, D, E> {
    let nobody = |reason, retry_after, cause, misuse| {
        Decided::Unavailable(Unavailable {
            reason: Protection::why(reason),
            retry_after,
            cause,
            misuse,
        })
    };
    match end {
        None => nobody(Some(Reason::Fault), None, None, None),
        Some(Err(end)) => nobody(end.reason, end.retry_after, end.cause, end.misuse),
        Some(Ok(answer)) => {
            let allows = matches!(answer.value, Decision::Allow(_));
            let protection = Protection::of(Ending::Answered(answer.rung), Some(allows));
            match (protection, answer.value) {
                (Protection::Allowed, Decision::Allow(known)) => Decided::Allow(known),
                (Protection::Denied, Decision::Deny(told)) => Decided::Deny(told),
                (
                    Protection::Unavailable | Protection::Allowed | Protection::Denied,
                    Decision::Allow(_) | Decision::Deny(_),
                ) => nobody(answer.reason, None, answer.cause, None),
            }
        }
    }
}
