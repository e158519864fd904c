//! The contract of tower services, probed on the layer: readiness, back-pressure, clones, errors, leaving.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

use evenkeel::{
    Class, Ending, Engine, ManualClock, Read, Reason, Rung, State, WhenBusy, stale,
    tower::{ReadLayer, ReadService},
};
use support::{Fail, MS, Origin, SECOND, engine, poll, settle};
use tower_layer::Layer as _;
use tower_service::Service;

/// A service with one seat, reserved by whoever polls it until it is ready; it breaks if called without.
#[derive(Debug)]
struct Seated {
    shared: Arc<Shared>,
    has_seat: bool,
}

#[derive(Debug, Default)]
struct Shared {
    taken: AtomicBool,
    polled: AtomicU32,
    /// What polling it fails by.
    unready: AtomicBool,
    /// It never gets ready.
    stuck: AtomicBool,
    /// What it says when asked.
    down: AtomicBool,
    /// It answers when the gate opens, and not at once.
    waits: AtomicBool,
    origin: Origin,
}

impl Shared {
    fn asked(&self) -> u64 {
        self.origin.asked()
    }
}

impl Clone for Seated {
    /// As tower has it: a clone is not ready because the original was.
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            has_seat: false,
        }
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        if self.has_seat {
            self.shared.taken.store(false, SeqCst);
        }
    }
}

impl Service<&'static str> for Seated {
    type Response = u32;
    type Error = Fail;
    type Future = Pin<Box<dyn Future<Output = Result<u32, Fail>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Fail>> {
        self.shared.polled.fetch_add(1, SeqCst);
        if self.shared.unready.load(SeqCst) {
            return Poll::Ready(Err(Fail::Down));
        }
        if self.shared.stuck.load(SeqCst) {
            return Poll::Pending;
        }
        if !self.has_seat {
            if self.shared.taken.swap(true, SeqCst) {
                return Poll::Pending;
            }
            self.has_seat = true;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: &'static str) -> Self::Future {
        assert!(std::mem::take(&mut self.has_seat), "called without being ready");
        let shared = Arc::clone(&self.shared);
        let says = if shared.down.load(SeqCst) {
            Err(Fail::Down)
        } else {
            Ok(7)
        };
        let seat = Self {
            shared: Arc::clone(&shared),
            has_seat: true,
        };
        Box::pin(async move {
            let _seat = seat;
            let origin = shared.origin.clone();
            if shared.waits.load(SeqCst) {
                origin.ask(says).await
            } else {
                origin.ask_now(says).await
            }
        })
    }
}

type Whose = fn(&&'static str);
type What = fn(&&'static str) -> &'static str;
type Wrapped = ReadService<Seated, u32, Fail, (), Whose, What>;

struct Stage {
    clock: ManualClock,
    guard: Read<u32, Fail>,
    layer: ReadLayer<u32, Fail, (), Whose, What>,
    shared: Arc<Shared>,
}

impl Stage {
    fn new(when_busy: WhenBusy) -> Self {
        let (clock, engine) = engine();
        let guard = guard(&engine, when_busy);
        let layer = ReadLayer::new(&guard, (|_| ()) as Whose, (|request| *request) as What);
        Self {
            clock,
            guard,
            layer,
            shared: Arc::new(Shared::default()),
        }
    }

    /// Wraps one more clone of the service.
    fn service(&self) -> Wrapped {
        self.wrap(&self.layer)
    }

    fn wrap(&self, layer: &ReadLayer<u32, Fail, (), Whose, What>) -> Wrapped {
        layer.layer(Seated {
            shared: Arc::clone(&self.shared),
            has_seat: false,
        })
    }

    fn is_seat_taken(&self) -> bool {
        self.shared.taken.load(SeqCst)
    }

    fn in_use(&self) -> u32 {
        self.guard.dependency().status().in_use
    }

    /// Opens the breaker by one failure, with a snapshot at hand for "k".
    async fn open_the_breaker(&self) {
        let mut service = self.service();
        assert!(ready(&mut service));
        assert_eq!(service.call("k").await.unwrap().rung, Rung::Live);
        self.shared.down.store(true, SeqCst);
        assert!(ready(&mut service));
        assert_eq!(service.call("k").await.unwrap().rung, Rung::Stale);
        assert_eq!(self.guard.dependency().status().state, Some(State::Open));
    }
}

fn guard(engine: &Engine, when_busy: WhenBusy) -> Read<u32, Fail> {
    engine
        .read::<u32>("g")
        .concurrency(1)
        .timeout(SECOND)
        .deadline(2 * SECOND)
        .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
        .classify(Fail::class)
        .ladder([stale(60 * SECOND)])
        .when_busy(when_busy)
        .build()
        .unwrap()
}

/// Polls it once; tells whether it is ready. It never fails.
fn ready(service: &mut Wrapped) -> bool {
    match service.poll_ready(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(result) => {
            result.unwrap();
            true
        }
        Poll::Pending => false,
    }
}

#[tokio::test]
async fn the_service_that_was_polled_ready_is_the_one_that_is_called() {
    let stage = Stage::new(WhenBusy::Ladder);
    let mut service = stage.service();
    for _ in 0..3 {
        assert!(ready(&mut service)); // reserves the seat; the mock breaks if another clone is called
        assert_eq!(service.call("k").await.unwrap().value, 7);
        assert!(!stage.is_seat_taken());
    }
}

#[tokio::test]
async fn back_pressure_of_the_inner_service_goes_on_to_the_caller() {
    let stage = Stage::new(WhenBusy::Ladder);
    let (mut first, mut second) = (stage.service(), stage.service());
    assert!(ready(&mut first));
    assert!(!ready(&mut second));
    assert_eq!(stage.guard.counts().calls(), 0, "no call has begun");
    drop(first);
    assert!(ready(&mut second));
}

#[tokio::test]
async fn a_service_polled_ready_and_not_called_gives_nothing_away() {
    let stage = Stage::new(WhenBusy::Ladder);
    let mut service = stage.service();
    assert!(ready(&mut service) && ready(&mut service));
    assert_eq!(stage.in_use(), 0, "polling takes no permit of the guard");
    assert!(stage.is_seat_taken());
    drop(service);
    assert!(!stage.is_seat_taken());
    assert_eq!((stage.shared.asked(), stage.guard.counts().calls()), (0, 0));
}

#[tokio::test]
async fn a_clone_is_not_ready_because_its_original_was() {
    let stage = Stage::new(WhenBusy::Ladder);
    let mut service = stage.service();
    assert!(ready(&mut service));
    let mut clone = service.clone();
    assert!(!ready(&mut clone), "the seat is the original's");
    drop(service);
    assert!(ready(&mut clone));
    assert_eq!(clone.call("k").await.unwrap().rung, Rung::Live);
}

#[tokio::test]
async fn services_made_one_for_each_request_share_one_breaker() {
    let stage = Stage::new(WhenBusy::Ladder);
    stage.open_the_breaker().await;
    let asked = stage.shared.asked();
    let mut another = stage.service();
    assert!(ready(&mut another));
    assert_eq!(another.call("k").await.unwrap().reason, Some(Reason::BreakerOpen));
    assert_eq!(stage.shared.asked(), asked);
    assert_eq!(another.guard().counts().calls(), 3);
}

#[tokio::test]
async fn a_failure_to_become_ready_is_classified_and_leads_to_the_ladder() {
    let stage = Stage::new(WhenBusy::Ladder);
    let mut service = stage.service();
    assert!(ready(&mut service));
    service.call("k").await.unwrap();
    stage.shared.unready.store(true, SeqCst);
    assert!(ready(&mut service), "the failure is the call's");
    let polled = stage.shared.polled.load(SeqCst);
    assert!(ready(&mut service), "one that has failed is not polled again");
    assert_eq!(stage.shared.polled.load(SeqCst), polled);

    let answer = service.call("k").await.unwrap();
    assert_eq!(
        (answer.rung, answer.reason),
        (Rung::Stale, Some(Reason::DependencyFailed))
    );
    assert_eq!(answer.cause, Some(Fail::Down));
    let dependency = stage.guard.dependency();
    assert_eq!(
        (dependency.attempts(Class::OUTAGE), dependency.status().state),
        (1, Some(State::Open))
    );
    assert_eq!(stage.shared.asked(), 1);
}

#[tokio::test]
async fn what_was_reserved_for_a_call_that_is_refused_is_given_back() {
    let stage = Stage::new(WhenBusy::Ladder);
    stage.open_the_breaker().await;
    let mut service = stage.service();
    assert!(ready(&mut service) && stage.is_seat_taken());
    assert_eq!(service.call("k").await.unwrap().rung, Rung::Stale);
    assert!(!stage.is_seat_taken());
}

#[tokio::test]
async fn when_busy_refuses_without_touching_the_inner_service() {
    let stage = Stage::new(WhenBusy::Refuse);
    stage.open_the_breaker().await;
    let (asked, polled) = (stage.shared.asked(), stage.shared.polled.load(SeqCst));
    let layer = stage.layer.clone().ready_in_call();
    let mut service = stage.wrap(&layer);
    assert!(ready(&mut service));
    let refused = service.call("k").await.unwrap_err();
    assert_eq!(
        (refused.ending, refused.reason),
        (Ending::Refused, Some(Reason::BreakerOpen))
    );
    assert_eq!(
        (stage.shared.asked(), stage.shared.polled.load(SeqCst)),
        (asked, polled)
    );
}

#[tokio::test]
async fn a_service_that_never_gets_ready_leads_to_the_ladder_where_the_call_waits_for_it() {
    let stage = Stage::new(WhenBusy::Ladder);
    let layer = stage.layer.clone().ready_in_call();
    let mut service = stage.wrap(&layer);
    assert!(ready(&mut service));
    service.call("k").await.unwrap();
    stage.shared.stuck.store(true, SeqCst);
    assert!(ready(&mut service), "the call waits, not its caller");
    let mut call = service.call("k");
    assert!(poll(call.as_mut()).is_pending());
    stage.clock.advance(SECOND);
    let answer = call.await.unwrap();
    assert_eq!(
        (answer.rung, answer.reason),
        (Rung::Stale, Some(Reason::TimedOut))
    );
    assert_eq!(stage.in_use(), 0);
}

#[tokio::test]
async fn the_inner_service_is_polled_again_where_nobody_had_polled_it() {
    let stage = Stage::new(WhenBusy::Ladder);
    // A caller who breaks the contract of tower: the service is not called before it is ready.
    let answer = stage.service().call("k").await.unwrap();
    assert_eq!(answer.rung, Rung::Live);
}

#[tokio::test]
async fn a_call_that_is_dropped_at_any_await_leaves_counts_right() {
    for steps in 0..4 {
        let stage = Stage::new(WhenBusy::Ladder);
        stage.shared.waits.store(true, SeqCst);
        let mut service = stage.service();
        assert!(ready(&mut service));
        let mut call = service.call("k");
        for step in 0..steps {
            assert!(poll(call.as_mut()).is_pending(), "step {step} of {steps}");
            settle().await;
            stage.clock.advance(MS);
        }
        drop(call);
        settle().await;
        let counts = stage.guard.counts();
        assert_eq!(
            (stage.in_use(), stage.shared.origin.inside()),
            (0, 0),
            "after {steps}"
        );
        assert!(!stage.is_seat_taken(), "after {steps}");
        assert_eq!(
            counts.calls(),
            u64::from(steps > 0),
            "after {steps}: a call begins when it is polled"
        );
        assert_eq!(
            counts.total(Ending::Abandoned),
            u64::from(steps > 0),
            "after {steps}"
        );
        assert_eq!(stage.guard.dependency().status().state, Some(State::Closed));
        assert_eq!(stage.clock.sleepers(), 0, "after {steps}");

        stage.shared.waits.store(false, SeqCst);
        assert!(ready(&mut service));
        assert_eq!(service.call("k").await.unwrap().rung, Rung::Live);
    }
}

#[tokio::test]
async fn a_call_outlives_the_service_that_made_it() {
    let stage = Stage::new(WhenBusy::Ladder);
    let mut service = stage.service();
    assert!(ready(&mut service));
    let call = service.call("k");
    drop(service);
    assert_eq!(tokio::spawn(call).await.unwrap().unwrap().rung, Rung::Live);
}
