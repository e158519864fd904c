//! Optional recommendations: a breaker of three, probed by hand, and an empty list that is not worth keeping.
//!
//! Run it: `cargo run -p evenkeel --example recommendations`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    cell::{Cell, RefCell},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use evenkeel::{
    Answer, Class, Engine, ManualClock, Outage, Read, Reason, Rung, Skipped, State, Unanswered, default,
    stale,
};

type Picks = Vec<&'static str>;

#[derive(Clone, Debug, PartialEq)]
struct Down;

const SIMPLIFIED: [&str; 1] = ["bestseller"];
const SECOND: Duration = Duration::from_secs(1);

/// The recommendation service: says what it is told to, and counts.
struct Service {
    says: RefCell<Result<Picks, Down>>,
    calls: Cell<u32>,
}

struct Stage {
    clock: ManualClock,
    guard: Read<Picks, Down>,
    service: Service,
}

impl Stage {
    fn new() -> Result<Self, evenkeel::Problems> {
        let clock = ManualClock::new();
        let guard = Engine::new(clock.clone(), 1)
            .read::<Picks>("recommendations")
            .breaker(|b| b.consecutive(3).open_until_probed())
            .classify(|_: &Down| Class::Outage(Outage::Failed))
            .keep_if(|picks| !picks.is_empty())
            .ladder([stale(120 * SECOND), default(|| SIMPLIFIED.to_vec())])
            .build()?;
        Ok(Self {
            clock,
            guard,
            service: Service {
                says: RefCell::new(Err(Down)),
                calls: Cell::new(0),
            },
        })
    }

    fn seed(&self, picks: &[&'static str], age: Option<Duration>) {
        let now = UNIX_EPOCH + Duration::from_nanos(self.clock.now().wall.as_nanos().unsigned_abs());
        let observed: Option<SystemTime> = age.map(|age| now - age);
        self.guard
            .seed((), "home", picks.to_vec(), observed)
            .expect("there is no scope to be empty");
    }

    fn says(&self, says: Result<Picks, Down>) {
        *self.service.says.borrow_mut() = says;
    }

    fn ask(&self) -> impl Future<Output = Result<Picks, Down>> {
        self.service.calls.set(self.service.calls.get() + 1);
        let says = self.service.says.borrow().clone();
        async { says }
    }

    async fn call(&self) -> Answer<Picks, Down> {
        told(self.guard.call((), "home", |_| self.ask()).await)
    }

    async fn probe(&self) -> Answer<Picks, Down> {
        told(self.guard.probe((), "home", |_| self.ask()).await)
    }

    /// How often the service was called since the last look.
    fn calls(&self) -> u32 {
        self.service.calls.replace(0)
    }

    fn state(&self) -> State {
        self.guard
            .dependency()
            .status()
            .state
            .expect("the guard has a breaker")
    }
}

/// This guard ends in a default, so that every call is answered.
fn told(answer: Result<Answer<Picks, Down>, Unanswered<Down>>) -> Answer<Picks, Down> {
    let answer = answer.expect("a ladder that ends in a default always answers");
    let age = answer
        .age
        .map_or_else(|| "-".to_owned(), |age| format!("{} s", age.as_secs()));
    let reason = answer.reason.map_or("-", Reason::as_str);
    println!(
        "{:<8} age {age:<6} reason {reason:<18} {:?}",
        answer.rung.as_str(),
        answer.value
    );
    answer
}

/// Plays every line and asserts it.
pub(crate) async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let stage = Stage::new()?;

    // It starts with a snapshot that somebody put in, ninety seconds old.
    stage.seed(&["seeded"], Some(90 * SECOND));
    let answer = stage.call().await;
    assert_eq!(
        (answer.rung, answer.age, answer.value),
        (Rung::Stale, Some(90 * SECOND), vec!["seeded"])
    );
    assert_eq!(
        (answer.reason, stage.calls()),
        (Some(Reason::DependencyFailed), 1)
    );

    // A success is live, and the snapshot is now this value, age zero.
    stage.says(Ok(vec!["fresh picks"]));
    let answer = stage.call().await;
    assert_eq!(
        (answer.rung, answer.age, answer.reason),
        (Rung::Live, Some(Duration::ZERO), None)
    );
    assert_eq!((answer.value, stage.calls()), (vec!["fresh picks"], 1));

    // An empty list is given to its caller but is not worth keeping: the snapshot stays.
    stage.says(Ok(vec![]));
    let answer = stage.call().await;
    assert_eq!(
        (answer.rung, answer.value, stage.calls()),
        (Rung::Live, vec![], 1)
    );

    // A failure at exactly 120 s gives the last successful value, age 120.
    stage.says(Err(Down));
    stage.clock.advance(120 * SECOND);
    let answer = stage.call().await;
    assert_eq!((answer.rung, answer.age), (Rung::Stale, Some(120 * SECOND)));
    assert_eq!(
        (answer.value, answer.cause, stage.calls()),
        (vec!["fresh picks"], Some(Down), 1)
    );

    // At 121 s it is too old: the simplified answer.
    stage.clock.advance(SECOND);
    let answer = stage.call().await;
    assert_eq!(
        (answer.rung, answer.age, answer.value),
        (Rung::Default, None, SIMPLIFIED.to_vec())
    );
    assert_eq!(
        (answer.reason, stage.calls()),
        (Some(Reason::DependencyFailed), 1)
    );
    assert_eq!(answer.skipped.why(Rung::Stale), Some(Skipped::TooOld));
    assert_eq!(stage.state(), State::Closed);

    // A third failure in a row opens the breaker.
    let answer = stage.call().await;
    assert_eq!(
        (answer.reason, stage.calls()),
        (Some(Reason::DependencyFailed), 1)
    );
    assert_eq!(stage.state(), State::Open);

    // The next ordinary call asks nobody.
    let answer = stage.call().await;
    assert_eq!(
        (answer.rung, answer.reason),
        (Rung::Default, Some(Reason::BreakerOpen))
    );
    assert_eq!((answer.cause, stage.calls()), (None, 0));

    // A failed probe makes exactly one call and stays open; the next ordinary call again asks nobody.
    let answer = stage.probe().await;
    assert_eq!(
        (answer.rung, answer.reason, stage.calls()),
        (Rung::Default, Some(Reason::ProbeFailed), 1)
    );
    assert_eq!((answer.cause, stage.state()), (Some(Down), State::Open));
    stage.clock.advance(3600 * SECOND);
    let answer = stage.call().await;
    assert_eq!((answer.reason, stage.calls()), (Some(Reason::BreakerOpen), 0));

    // A successful probe closes.
    stage.says(Ok(vec!["back again"]));
    let answer = stage.probe().await;
    assert_eq!(
        (answer.rung, answer.age, answer.reason),
        (Rung::Live, Some(Duration::ZERO), None)
    );
    assert_eq!((stage.calls(), stage.state()), (1, State::Closed));
    let answer = stage.call().await;
    assert_eq!((answer.rung, stage.calls()), (Rung::Live, 1));

    // With nothing kept, and with a snapshot of unknown age, the simplified answer.
    for (seed, why) in [(false, Skipped::NoSnapshot), (true, Skipped::UnknownAge)] {
        let stage = Stage::new()?;
        if seed {
            stage.seed(&["of unknown age"], None);
        }
        let answer = stage.call().await;
        assert_eq!((answer.rung, answer.value), (Rung::Default, SIMPLIFIED.to_vec()));
        assert_eq!(
            (answer.reason, answer.skipped.why(Rung::Stale)),
            (Some(Reason::DependencyFailed), Some(why))
        );
    }
    Ok(())
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run().await
}
