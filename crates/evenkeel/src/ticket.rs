//! Decides the life of one attempt: from its admission to its one verdict, whatever happens in between.
//! It exists because futures are dropped, panic and run late: the permit lives with the work, and the verdict is
//! given exactly once, by hand or by dropping.
//! It refuses to blame the dependency for a caller who left.

use std::{fmt, sync::Arc, time::Duration};

use evenkeel_core::{Advice, Class, Limit, Mono, Now, Pass};

use crate::{
    counts::lane,
    dependency::Inner,
    lent::Lent,
    tail::{Due, Superseded, Tail, WorkEnd},
};

/// The right to have one attempt in flight. Dropping it gives it back; keep it exactly as long as the work lasts.
///
/// Work that hands it on with its result, such as a streamed body (see [`Read::call_work`](crate::Read::call_work)),
/// says by it how the rest of the result came out, and only then the attempt has its verdict and the call its ending:
///
/// | the permit | the attempt was | the call was |
/// |---|---|---|
/// | is dropped | what the result is | answered |
/// | [`cut`](Self::cut) | an outage | [`Ending::Cut`](crate::Ending::Cut) |
/// | [`abandon`](Self::abandon) | cancelled | [`Ending::Abandoned`](crate::Ending::Abandoned) |
///
/// ```
/// # use evenkeel::{Class, Ending, Engine, Permit};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The body of an answer, and the permit that it takes until it has ended.
/// #[derive(Clone)]
/// struct Body(std::sync::Arc<std::sync::Mutex<Option<Permit<'static>>>>);
///
/// let guard = Engine::system()
///     .read::<Body>("downloads")
///     .concurrency(10)
///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
///     .build()?;
/// let work = |_call, permit| async move { Ok(Body(std::sync::Arc::new(std::sync::Mutex::new(permit)))) };
/// let answer = guard.call_work((), "large.iso", None, work).await?;
/// // The head is here, the body flows: the permit is in use, and nothing is decided yet.
/// assert_eq!((guard.dependency().status().in_use, guard.counts().calls()), (1, 0));
///
/// // The connection breaks in the middle.
/// if let Some(permit) = answer.0.lock().unwrap().take() {
///     permit.cut();
/// }
/// assert_eq!(guard.counts().total(Ending::Cut), 1);
/// assert_eq!(guard.dependency().attempts(Class::OUTAGE), 1);
/// assert_eq!(guard.dependency().status().in_use, 0);
/// # Ok(()) }
/// ```
pub struct Permit<'a> {
    dependency: Lent<'a, Inner>,
    /// Only work that may outlive its result has one; taken when the work has ended.
    tail: Option<Arc<Tail>>,
}

impl<'a> Permit<'a> {
    /// Takes over permits that were acquired.
    pub(crate) const fn new(dependency: Lent<'a, Inner>) -> Self {
        Self {
            dependency,
            tail: None,
        }
    }

    /// Ends the work because it broke off: what it had handed on is not all there is.
    ///
    /// The breaker and the counters learn it under the admission that the attempt had, unless the attempt has failed
    /// already. Work that has not handed its result on should return an error instead, which alone says what the
    /// caller gets; after this such a result counts as cut, too, and is not kept.
    pub fn cut(mut self) {
        self.end(WorkEnd::Cut);
    }

    /// Ends the work because nobody wants the rest of it.
    ///
    /// That says nothing about the dependency. A probe is then undecided, and its place is free for another.
    pub fn abandon(mut self) {
        self.end(WorkEnd::Abandoned);
    }

    /// Says that the dependency has got nothing of this work yet, or not all that it needs to begin: a connection is still
    /// being made, say. A timeout then leaves no work behind, so the attempt does not linger, nor does it count as
    /// [abandoned](crate::DependencyBuilder::abandoned). Work that says nothing counts as sent.
    pub fn not_sent(&self) {
        self.note_sent(false);
    }

    /// Says that the dependency has got it, after [`not_sent`](Self::not_sent).
    pub fn sent(&self) {
        self.note_sent(true);
    }

    fn note_sent(&self, sent: bool) {
        if let Some(tail) = &self.tail {
            tail.note_sent(sent);
        }
    }

    fn end(&mut self, end: WorkEnd) {
        if let Some(tail) = self.tail.take() {
            tail.end(end, &self.dependency);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // Whoever finds the permit free finds everything told.
        self.end(WorkEnd::Well);
        self.dependency.seat.release();
        self.dependency.freed();
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.dependency.name).finish()
    }
}

/// What an attempt may know about the call that it serves.
#[derive(Debug)]
pub struct Call<'a> {
    dependency: Lent<'a, Inner>,
    limit: Limit,
    probe: bool,
}

impl Call<'_> {
    /// Returns what remains for this attempt now; [`Duration::MAX`] where nothing limits it. Hand it on to
    /// whatever you call, so that nobody works longer than somebody waits.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let now = || self.dependency.engine.now().mono;
        self.limit.at().map_or(Duration::MAX, |at| at.since(now()))
    }

    /// Tells whether this attempt is a probe of an open breaker.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.probe
    }
}

/// One admitted attempt that has no verdict yet.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    dependency: Lent<'a, Inner>,
    permit: Option<Permit<'a>>,
    /// Taken when the verdict is given.
    pass: Option<Pass>,
    /// When it was admitted: what it produces was observed then.
    pub(crate) began: Now,
    /// When it ends.
    pub(crate) limit: Limit,
    /// Whether it was admitted as a probe; true also when the verdict has been given.
    pub(crate) was_probe: bool,
    /// Whether the work waits; see [`crate::parked`].
    pub(crate) parked: bool,
    started: bool,
    /// Whether the work keeps its permit for as long as it likes, also beyond its result.
    pub(crate) may_outlive: bool,
    /// Whether nobody will see the result.
    pub(crate) apart: bool,
    tail: Option<Arc<Tail>>,
}

impl<'a> Ticket<'a> {
    pub(crate) fn new(permit: Permit<'a>, pass: Pass, began: Now) -> Self {
        let dependency = permit.dependency.again();
        let limit = dependency.own_limit(began.mono);
        let was_probe = pass.is_probe();
        Self {
            dependency,
            permit: Some(permit),
            pass: Some(pass),
            began,
            limit,
            was_probe,
            parked: false,
            started: false,
            may_outlive: false,
            apart: false,
            tail: None,
        }
    }

    /// See [`Pass::disregard_time`].
    pub(crate) fn disregard_time(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.disregard_time();
        }
    }

    pub(crate) fn is_probe(&self) -> bool {
        self.pass.as_ref().is_some_and(Pass::is_probe)
    }

    /// Starts the attempt and hands out what the work gets: its view of the call, and the permit, which is the work's from now on.
    pub(crate) fn start(&mut self) -> (Call<'a>, Option<Permit<'a>>) {
        self.started = true;
        let call = Call {
            dependency: self.dependency.again(),
            limit: self.limit,
            probe: self.is_probe(),
        };
        let mut permit = self.permit.take();
        if let (true, Some(permit)) = (self.may_outlive, &mut permit) {
            let tail = Arc::new(Tail::default());
            permit.tail = Some(Arc::clone(&tail));
            self.tail = Some(tail);
        }
        (call, permit)
    }

    /// Returns what ticket and permit share, if the work may outlive its result.
    pub(crate) const fn tail(&self) -> Option<&Arc<Tail>> {
        self.tail.as_ref()
    }

    /// Tells whether the work has handed on its result and goes on.
    pub(crate) fn goes_on(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.ended().is_none())
    }

    /// Leaves the verdict on a result of `class`, and what is to go because of it, to the end of the work. A failure
    /// is told at once: nothing that follows could make it better.
    pub(crate) fn owe(&mut self, tail: &Tail, class: Class, superseded: Option<Box<Superseded>>) {
        let now = self.dependency.engine.now().mono;
        let seat = &self.dependency.seat;
        if let Some(pass) = self.pass.as_mut() {
            let (waits, slow) = seat.answered(pass, class, lane(), now);
            self.dependency.changed(slow);
            if !waits {
                self.settle(class, true, now);
            }
        }
        let due = Due {
            pass: self.pass.take(),
            class,
            superseded,
        };
        tail.owe(due, &self.dependency);
    }

    /// Tells whether a success has to know the time: only a window and a probe do.
    pub(crate) fn wants_time(&self) -> bool {
        self.is_probe() || self.dependency.seat.counts_by_time()
    }

    /// Has the dependency left alone that was asked, if what it said is that it is busy.
    pub(crate) fn heed(&self, class: Class, advice: Advice, now: Mono) {
        self.dependency.seat.heed(class, advice, now);
    }

    /// Returns the mark to be kept while the work waits, and what to do when it becomes slow.
    pub(crate) fn waiting(&mut self) -> (&mut bool, Crossing<'_>) {
        let crossing = Crossing {
            dependency: &self.dependency,
            pass: &mut self.pass,
        };
        (&mut self.parked, crossing)
    }

    /// Returns when the attempt becomes slow, if the breaker wants to know and it ends no sooner.
    pub(crate) fn slow_at(&self) -> Option<Mono> {
        let at = self.dependency.seat.slow_at(self.pass.as_ref()?)?;
        (self.limit.at().is_none_or(|limit| at < limit)).then_some(at)
    }

    /// Gives the verdict. `blame` is false where a failure is not the dependency's doing.
    pub(crate) fn settle(&mut self, class: Class, blame: bool, now: Mono) {
        if let Some(mut pass) = self.pass.take() {
            if self.tail.as_ref().is_some_and(|tail| tail.is_unsent()) {
                pass.was_not_sent();
            }
            self.dependency.attempted(class);
            self.dependency
                .changed(self.dependency.seat.settle(pass, class, blame, lane(), now));
        }
    }
}

/// An attempt that waits and may become slow.
#[derive(Debug)]
pub(crate) struct Crossing<'t> {
    dependency: &'t Inner,
    pass: &'t mut Option<Pass>,
}

impl Crossing<'_> {
    /// Counts it as slow, now that it is.
    pub(crate) fn cross(&mut self) {
        if let Some(pass) = self.pass {
            let now = self.dependency.engine.now().mono;
            self.dependency
                .changed(self.dependency.seat.crossed(pass, lane(), now));
        }
    }
}

impl Drop for Ticket<'_> {
    /// The attempt ended without a verdict: it was never made, its caller left, or the wrapped code broke.
    fn drop(&mut self) {
        let Some(pass) = self.pass.take() else { return };
        let now = self.dependency.engine.now().mono;
        let transition = match (self.started, self.parked) {
            (true, false) => {
                self.dependency.attempted(Class::Fault);
                self.dependency.seat.broke(pass, lane(), now)
            }
            (true, true) => {
                self.dependency.attempted(Class::Cancelled);
                self.dependency
                    .seat
                    .settle(pass, Class::Cancelled, false, lane(), now)
            }
            // It was never made, so it is no attempt; only its place is given back.
            (false, _) => self
                .dependency
                .seat
                .settle(pass, Class::Cancelled, false, lane(), now),
        };
        self.dependency.changed(transition);
    }
}
