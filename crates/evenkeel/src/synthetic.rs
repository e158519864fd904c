//! Decides how an open dependency is probed although nobody asks it: by work that was stored for the purpose.
//! It exists because a recovery that waits for the next caller makes that caller wait, and at night nobody calls.
//! It refuses to probe on its own terms: it asks for admission like traffic, when the breaker says that it is time.

use std::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use evenkeel_core::{Asker, Class, Criticality, Mono, Outage, State};
use tokio::runtime::Handle;

use crate::{
    clock::NoTimer,
    dependency::{Dependency, DependencyBuilder, Inner},
    lent::Lent,
    parked::park,
    until::{Outcome, until_past},
};

/// How long to wait where the time for a probe has come and it found no permit, or a hold keeps it from asking.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

type Probe = Pin<Box<dyn Future<Output = Class> + Send>>;

/// The work of a probe, and whether a task is there that does it.
pub(crate) struct Synthetic {
    work: Box<dyn Fn() -> Probe + Send + Sync>,
    watched: AtomicBool,
}

impl fmt::Debug for Synthetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Synthetic")
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

impl DependencyBuilder {
    /// Probes an open dependency with this work when the time has come, although nobody asks it; callers may still be
    /// the ones who do. It returns what the attempt came to. Needs a breaker, and a runtime where that opens; under
    /// [`open_until_probed`](crate::BreakerBuilder::open_until_probed) a person probes, and nobody else.
    ///
    /// A probe takes permits like any attempt, and ends by the timeout, or without one with its lease.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine};
    /// # async fn ping() -> std::io::Result<()> { Ok(()) }
    /// let stock = Engine::system()
    ///     .dependency("stock")
    ///     .breaker(|breaker| breaker.consecutive(5))
    ///     .probe_with(|| async {
    ///         match ping().await {
    ///             Ok(()) => Class::Answer,
    ///             Err(_) => Class::OUTAGE,
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    #[must_use]
    pub fn probe_with<F, Fut>(mut self, work: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Class> + Send + 'static,
    {
        self.synthetic = Some(Synthetic {
            work: Box::new(move || Box::pin(work())),
            watched: AtomicBool::new(false),
        });
        self
    }
}

impl Dependency {
    /// Tells whether it is probed although nobody asks it.
    #[must_use]
    pub fn is_probed_by_itself(&self) -> bool {
        self.0.synthetic.is_some()
    }
}

impl Inner {
    /// Starts the task that probes, unless there is one, or nothing to probe with.
    pub(crate) fn watch(&self) {
        let (Some(synthetic), Ok(runtime)) = (&self.synthetic, Handle::try_current()) else {
            return;
        };
        if !synthetic.watched.swap(true, Ordering::SeqCst) {
            let watch = Watch(self.this.clone());
            runtime.spawn(async move { watch.run().await });
        }
    }
}

/// The one task that probes a dependency. It keeps nothing alive while it sleeps.
struct Watch(Weak<Inner>);

impl Watch {
    async fn run(self) {
        while let Some(at) = self.next() {
            let Some(clock) = self.0.upgrade().map(|inner| inner.engine.shared().clock.clone()) else {
                return;
            };
            if clock.sleep_until(at).await == Err(NoTimer) {
                return;
            }
            let Some(inner) = self.0.upgrade() else { return };
            if !probe(&inner).await {
                let later = clock.now().mono.after(AGAIN_AFTER);
                drop(inner);
                if clock.sleep_until(later).await == Err(NoTimer) {
                    return;
                }
            }
        }
    }

    /// Returns when to look again, while the breaker is not closed and a time is set.
    fn next(&self) -> Option<Mono> {
        let inner = self.0.upgrade()?;
        // Whoever has taken over is watched by itself.
        inner.is_newest().then(|| inner.seat.next_probe()).flatten()
    }
}

impl Drop for Watch {
    /// The task has ended, or the work broke. An opening that came in between is watched anew.
    fn drop(&mut self) {
        let Some(inner) = self.0.upgrade() else { return };
        if let Some(synthetic) = &inner.synthetic {
            synthetic.watched.store(false, Ordering::SeqCst);
            let is_due = inner.seat.state() != Some(State::Closed) && inner.seat.next_probe().is_some();
            if is_due {
                inner.watch();
            }
        }
    }
}

/// Probes once. `false` if it is to be tried again a little later.
async fn probe(inner: &Arc<Inner>) -> bool {
    let now = inner.engine.now();
    if inner.held(now.mono).is_some_and(|(mode, _)| !mode.lets_ask()) {
        return false;
    }
    let Some(synthetic) = &inner.synthetic else {
        return true;
    };
    let admitted = Inner::admit(
        Lent::Shared(Arc::clone(inner)),
        Criticality::default(),
        now,
        Asker::Traffic,
        false,
    );
    let mut ticket = match admitted {
        Ok(ticket) => ticket,
        // Somebody else probes, until then.
        Err(refusal) => return refusal.retry_at.is_some_and(|at| at > now.mono),
    };
    if !ticket.is_probe() {
        // It has closed; the ticket was never used and is given back.
        return true;
    }
    let limit = inner.probe_limit(now.mono);
    ticket.limit = limit;
    // Nothing is slow without a rule; the look at the end of its time then finds nothing to count.
    let slow_at = ticket.slow_at().or_else(|| limit.at()).unwrap_or(Mono::END);
    let (_, permit) = ticket.start();
    let outcome = {
        let clock = &inner.engine.shared().clock;
        let work = pin!((synthetic.work)());
        let (parked, mut crossing) = ticket.waiting();
        let waiting = until_past(clock, slow_at, move || crossing.cross(), limit.at(), work);
        park(parked, pin!(waiting)).await
    };
    drop(permit);
    let class = match outcome {
        Outcome::AtOnce(class) | Outcome::Later(class) => class,
        Outcome::OutOfTime => Class::Outage(Outage::TimedOut),
        Outcome::NoTimer => Class::Cancelled,
    };
    ticket.settle(class, true, inner.engine.now().mono);
    true
}
