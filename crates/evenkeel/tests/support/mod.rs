//! What the tests of the library share: an engine in virtual time, an error type, and hands to drive futures with.
//! It exists so that a test shows its act and its check and nothing else.
//! It refuses to check anything itself.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::panic,
    reason = "each test program includes this and uses a part of it"
)]

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use evenkeel::{Answer, Class, Engine, ManualClock, Outage, Unanswered};
use tokio::sync::Notify;

pub const NS: Duration = Duration::from_nanos(1);
pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);

/// What the dependencies of the tests say when they do not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    Down,
    Late,
    No,
    Gone,
    Busy,
    Bug,
}

impl Fail {
    pub fn class(&self) -> Class {
        match self {
            Self::Down => Class::OUTAGE,
            Self::Late => Class::Outage(Outage::TimedOut),
            Self::No => Class::Refusal,
            Self::Gone => Class::Gone,
            Self::Busy => Class::Busy,
            Self::Bug => Class::Fault,
        }
    }
}

pub type End<T> = Result<Answer<T, Fail>, Unanswered<Fail>>;

/// An engine that lives by a clock moved by hand.
pub fn engine() -> (ManualClock, Engine) {
    let clock = ManualClock::new();
    (clock.clone(), Engine::new(clock, 7))
}

/// The clock's wall time as people write it.
pub fn wall(clock: &ManualClock) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(clock.now().wall.as_nanos().unsigned_abs())
}

/// Lets every task of the runtime that can go on do so. Needs the current-thread runtime.
pub async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Lets the tasks go on until `holds`. What does not come about in a great many turns never does.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if holds() {
            return;
        }
        settle().await;
    }
    panic!("never: {what}");
}

/// Polls once, with a waker that wakes nobody.
pub fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A dependency that answers when it is told to, and counts who asks it and who is inside.
#[derive(Clone, Debug, Default)]
pub struct Origin(Arc<Inside>);

#[derive(Debug, Default)]
struct Inside {
    asked: AtomicU64,
    inside: AtomicU32,
    most: AtomicU32,
    gate: Notify,
}

impl Origin {
    /// How often it was asked.
    pub fn asked(&self) -> u64 {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// How many are being served.
    pub fn inside(&self) -> u32 {
        self.0.inside.load(Ordering::SeqCst)
    }

    /// The most that were ever served at once.
    pub fn most(&self) -> u32 {
        self.0.most.load(Ordering::SeqCst)
    }

    /// Lets everybody who is inside go on.
    pub fn open(&self) {
        self.0.gate.notify_waiters();
    }

    /// Asks it; it answers `says` once the gate opens.
    pub async fn ask<T>(self, says: Result<T, Fail>) -> Result<T, Fail> {
        let _inside = self.enter();
        self.0.gate.notified().await;
        says
    }

    /// Asks it; it answers at once.
    pub async fn ask_now<T>(self, says: Result<T, Fail>) -> Result<T, Fail> {
        drop(self.enter());
        says
    }

    /// Asks it; it never answers.
    pub async fn hang<T>(self) -> Result<T, Fail> {
        let _inside = self.enter();
        std::future::pending().await
    }

    /// Asks it; it breaks once the gate opens.
    pub async fn break_down<T>(self) -> Result<T, Fail> {
        let _inside = self.enter();
        self.0.gate.notified().await;
        panic!("the wrapped code breaks, as this test wants");
    }

    /// Enters; who drops the pass has left.
    pub fn enter(&self) -> Pass {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let inside = self.0.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(inside, Ordering::SeqCst);
        Pass(self.clone())
    }
}

/// Somebody being served.
#[derive(Debug)]
pub struct Pass(Origin);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}
