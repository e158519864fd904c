//! Decides what is still owed when work outlives its result: the verdict of the attempt, the ending of the call, and
//! the old snapshot that the result supersedes.
//! It exists because a head is not an answer: a body that breaks off after it is the dependency's failure, and who
//! reads it has not been answered.
//! It refuses to owe anything twice: each debt is taken when it is paid, by whoever comes last.

use std::{
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use evenkeel_core::{Class, Ending, Mono, Outage, Pass, Reason, Rung};
use parking_lot::Mutex;

use crate::{counts::lane, dependency::Inner, key::Key};

/// What ticket and permit have in common, where the work may outlive its result.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    state: Mutex<State>,
    /// The work says that the dependency has nothing of it yet.
    unsent: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Set when the work has ended.
    ended: Option<WorkEnd>,
    /// Set when a result came before that, until the work ends.
    result: Option<Due>,
    /// Whose call the result has answered, until the work ends.
    call: Option<Answered>,
}

/// How the work behind a result ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkEnd {
    /// All of it came.
    Well,
    /// It broke off.
    Cut,
    /// Nobody wanted the rest.
    Abandoned,
}

/// What is due when the work behind a result ends.
#[derive(Debug)]
pub(crate) struct Due {
    /// The right to one verdict; `None` if it was given at the head.
    pub(crate) pass: Option<Pass>,
    /// What the head says.
    pub(crate) class: Class,
    /// The snapshot that is superseded if all of the result comes.
    pub(crate) superseded: Option<Box<Superseded>>,
}

/// A snapshot that is to go, unless it was observed later than this.
pub(crate) struct Superseded {
    pub(crate) guard: Arc<dyn Guard>,
    pub(crate) key: Key,
    pub(crate) at: Mono,
}

impl fmt::Debug for Superseded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Superseded")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// What a guard does after the work behind one of its answers; of any types.
pub(crate) trait Guard: fmt::Debug + Send + Sync {
    /// Counts the ending of a call that was answered by work which went on.
    fn ended(&self, ending: Ending, reason: Option<Reason>);

    /// Takes the snapshot away that was observed up to `at`.
    fn retire(&self, key: &Key, at: Mono);
}

/// A call that was answered by work which goes on.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) guard: Arc<dyn Guard>,
    pub(crate) rung: Rung,
    /// What kept it from being live.
    pub(crate) reason: Option<Reason>,
}

impl Answered {
    fn ended(self, end: WorkEnd) {
        let ending = end.ending(self.rung);
        // A cut and a caller who left have no reason: they were answered until then.
        let reason = self.reason.filter(|_| ending.rung().is_some());
        self.guard.ended(ending, reason);
    }
}

impl WorkEnd {
    /// Returns what the attempt was, whose head was of `class`.
    pub(crate) const fn class(self, class: Class) -> Class {
        match self {
            Self::Well => class,
            Self::Cut => Class::Outage(Outage::Cut),
            Self::Abandoned => Class::Cancelled,
        }
    }

    /// Returns what the call came to that was answered from `rung`.
    const fn ending(self, rung: Rung) -> Ending {
        match self {
            Self::Well => Ending::Answered(rung),
            Self::Cut => Ending::Cut,
            Self::Abandoned => Ending::Abandoned,
        }
    }
}

impl Tail {
    /// Notes whether the dependency has got what the work sends.
    pub(crate) fn note_sent(&self, sent: bool) {
        self.unsent.store(!sent, Ordering::Relaxed);
    }

    /// Tells whether it has got nothing.
    pub(crate) fn is_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Returns how the work ended, if it has.
    pub(crate) fn ended(&self) -> Option<WorkEnd> {
        self.state.lock().ended
    }

    /// Leaves what is due to the end of the work; if it has ended, everything is paid now.
    pub(crate) fn owe(&self, due: Due, dependency: &Inner) {
        let end = {
            let mut state = self.state.lock();
            let Some(end) = state.ended else {
                state.result = Some(due);
                return;
            };
            end
        };
        due.pay(end, dependency);
    }

    /// Counts the ending of the call that the result answers: now if the work has ended, else then.
    pub(crate) fn answers(&self, call: Answered) {
        let end = {
            let mut state = self.state.lock();
            let Some(end) = state.ended else {
                state.call = Some(call);
                return;
            };
            end
        };
        call.ended(end);
    }

    /// Ends the work and pays what is due.
    pub(crate) fn end(&self, end: WorkEnd, dependency: &Inner) {
        let state = {
            let mut state = self.state.lock();
            let left = State {
                ended: Some(end),
                ..State::default()
            };
            mem::replace(&mut *state, left)
        };
        if let Some(due) = state.result {
            due.pay(end, dependency);
        }
        if let Some(call) = state.call {
            call.ended(end);
        }
    }
}

impl Due {
    /// Tells everybody how the work ended.
    fn pay(self, end: WorkEnd, dependency: &Inner) {
        if let Some(pass) = self.pass {
            let class = end.class(self.class);
            let now = dependency.engine.now().mono;
            dependency.attempted(class);
            dependency.changed(dependency.seat.settle(pass, class, true, lane(), now));
        }
        if let (Some(superseded), WorkEnd::Well) = (self.superseded, end) {
            superseded.guard.retire(&superseded.key, superseded.at);
        }
    }
}
