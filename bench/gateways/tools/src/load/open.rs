//! Decides how an open-loop load runs: so many requests a second, whether or not the ones before were answered.
//!
//! It exists because people do not wait for each other: a load that slows down with the server
//! hides a collapse. It refuses to have more than [`IN_FLIGHT_MAX`] requests open, and counts the
//! others as not answered.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::client::{Client, Outcome};
use super::options::Options;

/// Most requests open at once, each with one connection.
pub const IN_FLIGHT_MAX: usize = 8192;

/// Length of one entry of the counts.
const STEP: Duration = Duration::from_millis(100);

/// Requests for `path` followed by a drawn number below `keys`.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    port: u16,
    path: String,
    keys: u32,
    rate: f64,
    secs: u32,
    timeout: Duration,
    retries: u32,
    pause: Duration,
    current_ms: u64,
}

/// Counts by the step in which a request was first made, whatever its retries came to later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    asked: Vec<u32>,
    served: Vec<u32>,
    current: Vec<u32>,
}

impl Counts {
    fn new(steps: usize) -> Self {
        Self {
            asked: vec![0; steps],
            served: vec![0; steps],
            current: vec![0; steps],
        }
    }

    /// Adds a request of a step within the load's time; `age_ms` is the answer's age, if it is known.
    fn add(&mut self, step: usize, outcome: Outcome, age_ms: Option<u64>, current_ms: u64) {
        self.asked[step] += 1;
        if matches!(outcome, Outcome::Answer { status: 200, .. }) {
            self.served[step] += 1;
            self.current[step] += u32::from(age_ms.is_some_and(|age| age <= current_ms));
        }
    }

    /// Returns one line of JSON.
    #[must_use]
    pub fn json(&self, started_ms: u64) -> String {
        format!(
            "{{\"started_ms\":{started_ms},\"asked\":{:?},\"served\":{:?},\"current\":{:?}}}",
            self.asked, self.served, self.current
        )
    }
}

impl Open {
    /// Takes what it needs from a command line.
    ///
    /// # Errors
    /// As [`Options::take`].
    pub fn take(options: &mut Options) -> io::Result<Self> {
        Ok(Self {
            port: options.take("port")?,
            path: options.take("path")?,
            keys: options.take("keys")?,
            rate: options.take("rate")?,
            secs: options.take("secs")?,
            timeout: Duration::from_millis(options.take("timeout_ms")?),
            retries: options.take("retries")?,
            pause: Duration::from_millis(options.take("pause_ms")?),
            current_ms: options.take("current_ms")?,
        })
    }

    /// Sends the load, waits for the last answers, and returns its start and its counts.
    pub async fn run(self) -> (u64, Counts) {
        let plan = Rc::new(self);
        let client = Rc::new(Client::new(plan.port, plan.timeout));
        let counts = Rc::new(RefCell::new(Counts::new(plan.secs as usize * STEPS_PER_SEC)));
        let mut random = Random::default();
        let mut running = JoinSet::new();
        let (started_ms, start) = (now_ms(), Instant::now());
        for number in 0.. {
            let after = Duration::from_secs_f64(f64::from(number) / plan.rate);
            let Some(step) = plan.step(after) else {
                break;
            };
            // Also where it is late already, so that the answers get their turn.
            sleep_until(start + after).await;
            while running.try_join_next().is_some() {}
            if running.len() >= IN_FLIGHT_MAX {
                counts.borrow_mut().add(step, Outcome::Late, None, 0);
                continue;
            }
            let path = format!("{}{}", plan.path, random.below(plan.keys));
            let (plan, client, counts) = (Rc::clone(&plan), Rc::clone(&client), Rc::clone(&counts));
            running.spawn_local(async move {
                let (outcome, age_ms) = plan.ask(&client, &path).await;
                counts.borrow_mut().add(step, outcome, age_ms, plan.current_ms);
            });
        }
        while running.join_next().await.is_some() {}
        (started_ms, counts.take())
    }

    fn step(&self, after: Duration) -> Option<usize> {
        let step = usize::try_from(after.as_millis() / STEP.as_millis()).ok()?;
        (step < self.secs as usize * STEPS_PER_SEC).then_some(step)
    }

    /// Asks until an answer is 200 or the retries are used up, as an eager client does.
    async fn ask(&self, client: &Client, path: &str) -> (Outcome, Option<u64>) {
        let mut retries = self.retries;
        loop {
            let outcome = client.get(path).await;
            if let Outcome::Answer { status: 200, made_at } = outcome {
                return (outcome, made_at.map(|made| now_ms().saturating_sub(made)));
            }
            if retries == 0 {
                return (outcome, None);
            }
            retries -= 1;
            sleep(self.pause).await;
        }
    }
}

const STEPS_PER_SEC: usize = 10;

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The same keys in the same order in every run (xorshift64).
struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    fn below(&mut self, end: u32) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % u64::from(end.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Outcome = Outcome::Answer {
        status: 200,
        made_at: None,
    };

    #[test]
    fn an_answer_is_current_up_to_its_limit_and_served_beyond_it() {
        let mut counts = Counts::new(2);
        counts.add(1, ANSWER, Some(6000), 6000);
        counts.add(1, ANSWER, Some(6001), 6000);
        counts.add(1, ANSWER, None, 6000);
        let refused = Outcome::Answer {
            status: 503,
            made_at: Some(0),
        };
        counts.add(0, refused, Some(0), 6000);
        assert_eq!(
            counts.json(7),
            r#"{"started_ms":7,"asked":[1, 3],"served":[0, 3],"current":[0, 1]}"#
        );
    }

    #[test]
    fn the_load_ends_with_its_last_second() {
        let words = "port=1 path=/ keys=1 rate=1 secs=2 timeout_ms=1 retries=0 pause_ms=0 current_ms=0";
        let mut options = Options::read(words.split(' ').map(ToOwned::to_owned)).unwrap();
        let open = Open::take(&mut options).unwrap();
        assert_eq!(open.step(Duration::from_millis(1999)), Some(19));
        assert_eq!(open.step(Duration::from_millis(2000)), None);
    }

    #[test]
    fn drawn_keys_stay_below_their_end() {
        let mut random = Random::default();
        let drawn: Vec<u64> = (0..1000).map(|_| random.below(3)).collect();
        for key in 0..3 {
            assert!(drawn.contains(&key), "{key}");
        }
        assert!(drawn.iter().all(|key| *key < 3));
    }
}
