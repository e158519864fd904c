//! Decides how keys are asked once each, at a rate or as fast as connections allow, or one key by all at once.
//!
//! It exists because a first answer can be had only once per key. It refuses to count the time
//! of opening connections: they are open before the first request.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::client::{Client, Outcome};
use super::options::Options;
use super::tally::Tally;

/// Requests for `path` followed by 0, 1, 2 ... `keys` - 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    port: u16,
    path: String,
    keys: u32,
    connections: u32,
    rate: f64,
    timeout: Duration,
}

impl Each {
    /// Takes what it needs from a command line; `rate` 0 means without pause.
    ///
    /// # Errors
    /// As [`Options::take`].
    pub fn take(options: &mut Options) -> io::Result<Self> {
        Ok(Self {
            port: options.take("port")?,
            path: options.take("path")?,
            keys: options.take("keys")?,
            connections: options.take("connections")?,
            rate: options.take("rate")?,
            timeout: Duration::from_millis(options.take("timeout_ms")?),
        })
    }

    /// Sends the requests, `connections` of them in flight at most, and returns what they came to.
    ///
    /// # Errors
    /// What opening the first connections fails with.
    pub async fn run(self) -> io::Result<Tally> {
        let client = Rc::new(Client::new(self.port, self.timeout));
        client.open_ahead(self.connections as usize).await?;
        let room = Rc::new(Semaphore::new(self.connections as usize));
        let mut tally = Tally::default();
        let mut running = JoinSet::new();
        let start = Instant::now();
        for key in 0..self.keys {
            if self.rate > 0.0 {
                sleep_until(start + Duration::from_secs_f64(f64::from(key) / self.rate)).await;
            }
            let place = room.acquire().await.map_err(io::Error::other)?;
            place.forget();
            let (client, room) = (Rc::clone(&client), Rc::clone(&room));
            let path = format!("{}{key}", self.path);
            running.spawn_local(async move {
                let asked = timed(&client, &path).await;
                room.add_permits(1);
                asked
            });
            while let Some(asked) = running.try_join_next() {
                add(&mut tally, asked);
            }
        }
        while let Some(asked) = running.join_next().await {
            add(&mut tally, asked);
        }
        Ok(tally)
    }
}

/// `count` requests for one path at the same instant, each on a connection of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    port: u16,
    path: String,
    count: u32,
    timeout: Duration,
}

impl Burst {
    /// Takes what it needs from a command line.
    ///
    /// # Errors
    /// As [`Options::take`].
    pub fn take(options: &mut Options) -> io::Result<Self> {
        Ok(Self {
            port: options.take("port")?,
            path: options.take("path")?,
            count: options.take("count")?,
            timeout: Duration::from_millis(options.take("timeout_ms")?),
        })
    }

    /// Sends the requests and returns what they came to.
    ///
    /// # Errors
    /// What opening the connections fails with.
    pub async fn run(self) -> io::Result<Tally> {
        let client = Rc::new(Client::new(self.port, self.timeout));
        client.open_ahead(self.count as usize).await?;
        let mut running = JoinSet::new();
        for _ in 0..self.count {
            let (client, path) = (Rc::clone(&client), self.path.clone());
            running.spawn_local(async move { timed(&client, &path).await });
        }
        let mut tally = Tally::default();
        while let Some(asked) = running.join_next().await {
            add(&mut tally, asked);
        }
        Ok(tally)
    }
}

async fn timed(client: &Client, path: &str) -> (Outcome, Duration) {
    let start = Instant::now();
    let outcome = client.get(path).await;
    (outcome, start.elapsed())
}

/// Adds a finished request; one whose task ended early counts as broken.
fn add(tally: &mut Tally, asked: Result<(Outcome, Duration), tokio::task::JoinError>) {
    let (outcome, span) = asked.unwrap_or((Outcome::Broken, Duration::ZERO));
    tally.add(outcome, span);
}
