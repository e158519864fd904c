//! Plays scripts against a proxy: many at once, each on a path of its own, each step judged from both sides.
//! The client knows what it got, the origin knows what it was asked; a script passes when both are right.
//! It gives up on a script at its first wrong step, because what follows would only repeat the fault.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

use crate::{
    client::{Got, ask},
    dates::{Names, unix_now},
    judge::Judge,
    origin::{Now, Origin, Part, Parts, unlatin},
    script::{Script, Step},
    wire::Wire,
};

/// How many scripts are under way at once.
const SCRIPTS_AT_ONCE: usize = 64;
/// How long a request in the background is waited for.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(5);

/// What was wrong with one script.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) script: Script,
    /// The number of the step, the condition and what came instead.
    pub(crate) step: usize,
    pub(crate) problem: String,
}

/// Plays all scripts and returns those that failed. The origin is at `parts`; it is stopped at the end, because
/// some scripts go on without it.
pub(crate) async fn play(
    scripts: Vec<Script>,
    proxy: SocketAddr,
    origin: Origin,
    parts: &Parts,
) -> Vec<Failure> {
    let scripts: Vec<Arc<Played>> = scripts
        .into_iter()
        .enumerate()
        .map(|(number, script)| Arc::new(Played::new(script, number, proxy, parts)))
        .collect();
    let (mut mortal, others): (Vec<_>, Vec<_>) =
        scripts.into_iter().partition(|played| played.down_at().is_some());
    let (busy, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|played| played.says_busy());
    let mut failures = at_once(&others, |played| (0, played.script.steps.len())).await;
    failures.extend(at_once(&busy, |played| (0, played.script.steps.len())).await);
    failures.extend(at_once(&mortal, |played| (0, played.down_at().unwrap_or(0))).await);
    mortal.retain(|played| {
        !failures
            .iter()
            .any(|failure| failure.script.name == played.script.name)
    });
    origin.stop().await;
    failures.extend(
        at_once(&mortal, |played| {
            (played.down_at().unwrap_or(0), played.script.steps.len())
        })
        .await,
    );
    failures
}

/// Plays some steps of many scripts at the same time.
async fn at_once(scripts: &[Arc<Played>], steps: impl Fn(&Played) -> (usize, usize)) -> Vec<Failure> {
    let room = Arc::new(Semaphore::new(SCRIPTS_AT_ONCE));
    let mut tasks = JoinSet::new();
    for played in scripts.iter().map(Arc::clone) {
        let (first, end) = steps(&played);
        let room = Arc::clone(&room);
        tasks.spawn(async move {
            let _place = room.acquire().await.expect("nobody closes it");
            played.steps(first, end).await
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// A script and its part of the origin.
struct Played {
    script: Script,
    proxy: SocketAddr,
    part: Arc<Part>,
    connection: Mutex<Option<Wire>>,
}

impl Played {
    fn new(script: Script, number: usize, proxy: SocketAddr, parts: &Parts) -> Self {
        let start = unix_now();
        // A proxy that outlives the run must not take this run's paths for the last one's.
        let segment = format!("{start}-{}-{number}", std::process::id());
        let names = Names {
            path: format!("/{segment}"),
            authority: "suite.example".to_owned(),
            start,
        };
        let part = Arc::new(Part {
            names,
            now: Mutex::new(Now::default()),
        });
        parts.lock().insert(segment, Arc::clone(&part));
        Self {
            script,
            proxy,
            part,
            connection: Mutex::new(None),
        }
    }

    /// A 429 may be heeded for everything that the same origin is asked, so the others have their turn before.
    fn says_busy(&self) -> bool {
        let answers = self.script.steps.iter().flat_map(|step| &step.answer);
        answers.into_iter().any(|answer| answer.status == 429)
    }

    fn down_at(&self) -> Option<usize> {
        self.script.steps.iter().position(|step| step.down)
    }

    async fn steps(&self, first: usize, end: usize) -> Option<Failure> {
        for number in first..end {
            let Some(step) = self.script.steps.get(number) else {
                break;
            };
            if let Some(problem) = self.step(step, number).await {
                let script = self.script.clone();
                return Some(Failure {
                    script,
                    step: number + 1,
                    problem,
                });
            }
        }
        None
    }

    async fn step(&self, step: &Step, number: usize) -> Option<String> {
        tokio::time::sleep(step.pause).await;
        *self.part.now.lock() = Now {
            answer: step.answer.clone(),
            again: step.again.clone(),
            seen: Vec::new(),
        };
        let answers = self.ask(step).await;
        if step.background {
            self.wait_for_background().await;
        }
        let seen = self.part.now.lock().seen.clone();
        let judge = Judge {
            script: &self.script,
            names: &self.part.names,
        };
        if let Some(problem) = judge.origin_saw(step, &seen) {
            return Some(problem);
        }
        answers.into_iter().find_map(|answer| match answer {
            None => (!step.cut).then(|| "an answer | none".to_owned()),
            Some(got) => judge.client_got(step, number, &got, seen.len()),
        })
    }

    /// Sends the request of a step: once on the connection of the script, or several times on new ones.
    async fn ask(&self, step: &Step) -> Vec<Option<Got>> {
        let head_only = step.method == "HEAD";
        if step.times == 1 {
            let kept = self.connection.lock().take();
            let (got, kept) = ask(self.proxy, kept, self.request(step), head_only).await;
            *self.connection.lock() = kept;
            return vec![got];
        }
        let mut clients = JoinSet::new();
        for _ in 0..step.times {
            clients.spawn(ask(self.proxy, None, self.request(step), head_only));
        }
        clients.join_all().await.into_iter().map(|(got, _)| got).collect()
    }

    fn request(&self, step: &Step) -> Vec<u8> {
        let names = &self.part.names;
        let mut text = format!(
            "{} {}{} HTTP/1.1\r\n",
            step.method,
            names.path,
            names.fill(&step.suffix)
        );
        if !step.fields.iter().any(|line| line.starts_with("host:")) {
            text.push_str(&format!("host: {}\r\n", names.authority));
        }
        for line in &step.fields {
            text.push_str(&names.fill(line));
            text.push_str("\r\n");
        }
        let body = names.fill(&step.body);
        let has_body =
            !body.is_empty() || !matches!(step.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "DELETE");
        if has_body {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        unlatin(&text)
    }

    /// Waits until the origin was asked and had the time to answer.
    async fn wait_for_background(&self) {
        let asked = async {
            while self.part.now.lock().seen.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(BACKGROUND_PATIENCE, asked).await.is_ok() {
            let delay = self
                .part
                .now
                .lock()
                .answer
                .as_ref()
                .map_or(Duration::ZERO, |answer| answer.delay);
            tokio::time::sleep(delay + Duration::from_millis(300)).await;
        }
    }
}
