//! Decides the order of events in the demo: 50 requests, the upstream dies, 150 more; then the way back.
//! It exists so that hard and graceful see exactly the same outage.
//! It refuses to let a breaker spare the upstream calls in the comparison: there it is off on both sides, and
//! on only where the way back is shown.

use std::time::Duration;

use evenkeel::{Class, Engine, EventKind, Mono, State};

use super::{
    client::{Client, Seen, Source},
    origin::Origin,
};
use crate::{Gateway, config, proxy::Limits};

/// Requests in each run of the comparison.
pub(super) const REQUESTS: usize = 200;
/// The upstream dies after so many of them.
pub(super) const DIES_AFTER: usize = 50;
/// Different products asked for in turn, so that each has been live before the upstream dies.
const PRODUCTS: usize = 10;
/// Requests while the upstream is down, on the way back.
const WHILE_DOWN: usize = 40;
/// The way back takes no longer than this, or something is wrong.
const HEALED_WITHIN: Duration = Duration::from_secs(5);

/// What one run of the comparison came to.
#[derive(Debug)]
pub struct Run {
    seen: Vec<Seen>,
    /// Attempts that the gateway made.
    pub attempts: u64,
    /// Requests that arrived at the upstream, by its own counter.
    pub received: u64,
}

/// What the way back came to.
#[derive(Debug)]
pub struct WayBack {
    /// Requests while the upstream was down.
    pub requests: usize,
    /// Of these, how many led to an attempt.
    pub attempts: u64,
    /// From the healing to the closed breaker.
    pub closed_after: Option<Duration>,
    /// Answers, from the death to the first live answer after it, that were no data at all.
    pub failed: usize,
    /// How the breaker got there.
    pub steps: Vec<(State, &'static str)>,
}

/// What the whole demo came to.
#[derive(Debug)]
pub struct Outcome {
    /// Without a ladder.
    pub hard: Run,
    /// With one.
    pub graceful: Run,
    /// With a breaker too.
    pub way_back: WayBack,
}

impl Run {
    /// Returns how many requests were made.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn count(&self, source: Source) -> usize {
        self.seen.iter().filter(|seen| seen.source == source).count()
    }

    /// Returns how many were answered with data of any kind.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.requests() - self.count(Source::Failed)
    }

    pub(super) fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// Returns the time within which `share` per cent of the requests were answered.
    #[must_use]
    pub fn percentile(&self, share: usize) -> Duration {
        let mut times: Vec<Duration> = self.seen.iter().map(|seen| seen.took).collect();
        times.sort_unstable();
        let at = (times.len() * share).div_ceil(100).saturating_sub(1);
        times.get(at).copied().unwrap_or_default()
    }
}

impl Outcome {
    /// Tells whether the promise was held: every request of the graceful run had live data while there was any,
    /// by the upstream's own count, and the last good data afterwards; and the way back was found without one
    /// failed answer.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.broken().is_empty()
    }

    /// Says what was promised and not held, one sentence each.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let graceful = &self.graceful;
        let after = REQUESTS - DIES_AFTER;
        let (live, stale) = (graceful.count(Source::Live), graceful.count(Source::Stale));
        let (received, failed) = (graceful.received, self.way_back.failed);
        [
            (
                graceful.requests() != REQUESTS || live != DIES_AFTER || received != DIES_AFTER as u64,
                format!(
                    "live data while there is any: {live} of {DIES_AFTER} answers were live, and {received} requests reached the upstream"
                ),
            ),
            (
                stale != after,
                format!(
                    "the last good data afterwards: {stale} of {after} answers were stale, {} default, {} failed",
                    graceful.count(Source::Default),
                    graceful.count(Source::Failed)
                ),
            ),
            (
                failed != 0,
                format!("a way back without a failed answer: {failed} failed"),
            ),
            (
                self.way_back.closed_after.is_none(),
                "a breaker that closes when the upstream is back: it did not".to_owned(),
            ),
        ]
        .into_iter()
        .filter_map(|(is_broken, what)| is_broken.then_some(what))
        .collect()
    }
}

/// Runs the whole demo. `without_stale` takes the stale rung out of the ladders.
///
/// # Errors
/// Why it could not run, in words.
pub async fn run(without_stale: bool) -> Result<Outcome, String> {
    let ladder = if without_stale {
        "ladder = [ DEFAULT ]"
    } else {
        "ladder = [ { stale = \"60s\" }, DEFAULT ]"
    };
    let ladder = ladder.replace(
        "DEFAULT",
        "{ default = { content_type = \"application/json\", body = \"{}\" } }",
    );
    Ok(Outcome {
        hard: compare("").await?,
        graceful: compare(&ladder).await?,
        way_back: way_back(&ladder).await?,
    })
}

/// The contract of the demo; printed by nobody, but meant to be read.
fn contract(origin: &Origin, breaker: &str, ladder: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [dependencies.catalog]\nurls = [\"http://{}\"]\nbreaker = {breaker}\n\
         [[routes]]\nname = \"product\"\nmatch = {{ path = \"/products/{{id}}\" }}\nclass = \"read\"\n\
         from = \"catalog\"\n{ladder}\n",
        origin.address()
    )
}

async fn start(contract: &str, engine: &Engine) -> Result<Gateway, String> {
    let loaded = config::parse("demo.toml", contract).map_err(|problems| problems.to_string())?;
    Gateway::start(&loaded.contract, engine, Limits::default())
        .await
        .map_err(|error| error.to_string())
}

async fn compare(ladder: &str) -> Result<Run, String> {
    let engine = Engine::system();
    let mut origin = Origin::start()
        .await
        .map_err(|error| format!("start an upstream: {error}"))?;
    let gateway = start(&contract(&origin, "\"off\"", ladder), &engine).await?;
    let mut client = Client::connect(gateway.address(), &engine).await?;
    let mut seen = Vec::with_capacity(REQUESTS);
    for number in 0..REQUESTS {
        if number == DIES_AFTER {
            origin.die().await;
        }
        seen.push(client.ask(number % PRODUCTS).await?);
    }
    Ok(Run {
        seen,
        attempts: attempts(&gateway),
        received: origin.received(),
    })
}

fn attempts(gateway: &Gateway) -> u64 {
    gateway.app().dependency("catalog").map_or(0, |catalog| {
        catalog.attempts(Class::Answer) + catalog.attempts(Class::OUTAGE)
    })
}

async fn way_back(ladder: &str) -> Result<WayBack, String> {
    let engine = Engine::system();
    let mut origin = Origin::start()
        .await
        .map_err(|error| format!("start an upstream: {error}"))?;
    let gateway = start(&contract(&origin, "{ consecutive = 5 }", ladder), &engine).await?;
    let mut client = Client::connect(gateway.address(), &engine).await?;
    for product in 0..PRODUCTS {
        client.ask(product).await?;
    }
    origin.die().await;
    let before = attempts(&gateway);
    let mut failed = 0;
    for number in 0..WHILE_DOWN {
        failed += usize::from(client.ask(number % PRODUCTS).await?.source == Source::Failed);
    }
    let attempts = attempts(&gateway) - before;
    origin
        .heal()
        .await
        .map_err(|error| format!("heal the upstream: {error}"))?;
    let healed = engine.now().mono;
    failed += until_live(&mut client, &engine, healed).await?;
    let (steps, closed) = steps(&engine);
    Ok(WayBack {
        requests: WHILE_DOWN,
        attempts,
        closed_after: closed.map(|at| at.since(healed)),
        failed,
        steps,
    })
}

/// Asks on until an answer is live again; returns how many answers were no data.
async fn until_live(client: &mut Client, engine: &Engine, healed: Mono) -> Result<usize, String> {
    let mut failed = 0;
    for number in 0.. {
        let seen = client.ask(number % PRODUCTS).await?;
        failed += usize::from(seen.source == Source::Failed);
        if seen.source == Source::Live || engine.now().mono.since(healed) > HEALED_WITHIN {
            break;
        }
        // Real clients pause too; without it thousands of requests would tell no more.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(failed)
}

/// Reads the breaker's steps from the engine's events, and when it closed.
fn steps(engine: &Engine) -> (Vec<(State, &'static str)>, Option<Mono>) {
    let mut steps = Vec::new();
    let mut closed = None;
    for event in engine.drain_events() {
        if let EventKind::Breaker(transition) = event.kind {
            steps.push((transition.to, transition.cause.as_str()));
            if transition.to == State::Closed {
                closed = Some(transition.at);
            }
        }
    }
    (steps, closed)
}
