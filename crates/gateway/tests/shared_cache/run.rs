//! Plays scripts against a proxy: many at once, each on a path of its own, each step judged from both sides.
//! The client knows what it got, the origin knows what it was asked; a script passes when both are right.
//! It gives up on a script at its first wrong step, because what follows would only repeat the fault.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{net::TcpStream, sync::Semaphore, task::JoinSet, time::timeout};

use crate::{
    check,
    dates::{Names, unix_now},
    origin::{Now, Origin, Part, Parts, Seen, unlatin},
    script::{Answer, Framing, Kind, Script, Step},
    wire::{Head, Wire, latin},
};

/// How many scripts are under way at once.
const SCRIPTS_AT_ONCE: usize = 64;
/// Nothing here takes longer, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a request in the background is waited for.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(5);

/// In place of a status: whichever of 502, 503 and 504 fits the failure.
const ANY_GATEWAY_ERROR: &str = "50x";

/// What was wrong with one script.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) script: Script,
    /// The number of the step, the condition and what came instead.
    pub(crate) step: usize,
    pub(crate) problem: String,
}

/// What a client got.
struct Got {
    status: u16,
    head: Head,
    body: String,
    complete: bool,
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
    let (mortal, others): (Vec<_>, Vec<_>) =
        scripts.into_iter().partition(|played| played.down_at().is_some());
    let mut failures = at_once(&others, |played| (0, played.script.steps.len())).await;
    failures.extend(at_once(&mortal, |played| (0, played.down_at().unwrap_or(0))).await);
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
        Self { script, proxy, part }
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
        let mut clients = JoinSet::new();
        for _ in 0..step.times {
            clients.spawn(ask(self.proxy, self.request(step), step.method == "HEAD"));
        }
        let answers = clients.join_all().await;
        if step.background {
            self.wait_for_background().await;
        }
        let seen = self.part.now.lock().seen.clone();
        if let Some(problem) = self.origin_saw(step, &seen) {
            return Some(problem);
        }
        answers.into_iter().find_map(|answer| match answer {
            None => (!step.cut).then(|| "an answer | none".to_owned()),
            Some(got) => self.client_got(step, number, &got, seen.len()),
        })
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
        let has_body =
            !step.body.is_empty() || !matches!(step.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "DELETE");
        if has_body {
            text.push_str(&format!("content-length: {}\r\n", step.body.len()));
        }
        text.push_str("\r\n");
        text.push_str(&step.body);
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

    fn origin_saw(&self, step: &Step, seen: &[Seen]) -> Option<String> {
        let usual = usize::from(step.answer.is_some()) + usize::from(step.again.is_some());
        let wanted = step.asked.unwrap_or(usual);
        // A connection that ends without a byte may have been taken for an idle one that ended by itself.
        let is_silent = step
            .answer
            .as_ref()
            .is_some_and(|answer| answer.framing == Framing::Nothing);
        let again = is_silent && seen.len() == wanted + 1;
        let right = seen.len() == wanted || again || (step.maybe && seen.len() < wanted);
        if !right {
            let lines: Vec<String> = seen
                .iter()
                .map(|seen| format!("{} {}", seen.method, seen.target))
                .collect();
            return Some(format!(
                "the origin is asked {wanted} times | {} times {}",
                seen.len(),
                lines.join(", ")
            ));
        }
        let first = seen.first()?;
        let body = latin(&first.body);
        if body != step.body && !step.body.is_empty() {
            return Some(format!("the origin gets the body {:?} | {body:?}", step.body));
        }
        let of_method = |condition: &String| condition.chars().all(|one| one.is_ascii_uppercase());
        step.sees.iter().find_map(|condition| {
            if of_method(condition) {
                (first.method != *condition)
                    .then(|| format!("the origin sees {condition} | {}", first.method))
            } else {
                check::field(condition, &first.head, &self.part.names)
                    .map(|wrong| format!("the origin sees {wrong}"))
            }
        })
    }

    fn client_got(&self, step: &Step, number: usize, got: &Got, asked: usize) -> Option<String> {
        if step.cut {
            let seen = !got.complete || got.status >= 500;
            return (!seen).then(|| format!("a visible cut or an error | {} {:?}", got.status, got.body));
        }
        if !got.complete {
            return Some(format!("a whole body | {:?} and then an end", got.body));
        }
        let stated = step.gets.first().filter(|first| is_status(first));
        let source = self.source(step, number);
        let wanted = match stated {
            Some(stated) => stated.clone(),
            None => source.map_or_else(String::new, |answer| answer.status.to_string()),
        };
        if !wanted.is_empty() && !is_one_of(got.status, &wanted) {
            return Some(format!("status {wanted} | {} {:?}", got.status, short(&got.body)));
        }
        if let Some(wanted) = self
            .body(step, source, got.status)
            .filter(|wanted| *wanted != got.body)
        {
            return Some(format!("the body {:?} | {:?}", short(&wanted), short(&got.body)));
        }
        let conditions = step.gets.iter().filter(|condition| Some(*condition) != stated);
        let wrong = conditions
            .filter_map(|condition| check::field(condition, &got.head, &self.part.names))
            .next()
            .or_else(|| {
                always(
                    &got.head,
                    asked == 0 && step.from.is_some_and(|from| from <= number),
                )
            });
        let wrong = wrong.or_else(|| {
            step.label
                .as_ref()
                .and_then(|label| check::label(label, &got.head))
        });
        wrong.map(|wrong| format!("the client gets {wrong}"))
    }

    /// The answer of the origin whose status and body the client must get.
    fn source<'s>(&'s self, step: &'s Step, number: usize) -> Option<&'s Answer> {
        let sound = |answer: &&Answer| !matches!(answer.framing, Framing::Nothing | Framing::Garbage);
        match step.from {
            Some(from) => {
                let step = self.script.steps.get(from - 1)?;
                step.again.as_ref().or(step.answer.as_ref())
            }
            None if step.maybe => None,
            None => self
                .script
                .steps
                .get(number)?
                .again
                .as_ref()
                .or(step.answer.as_ref())
                .filter(sound),
        }
    }

    fn body(&self, step: &Step, source: Option<&Answer>, status: u16) -> Option<String> {
        if step.method == "HEAD" || matches!(status, 204 | 304) {
            return Some(String::new());
        }
        if let Some(gives) = &step.gives {
            return Some(self.part.names.fill(gives));
        }
        let source = source?;
        // A 416 describes nothing, so whoever makes it may say what they like.
        let comparable = status != 416 && (source.status == status || step.from.is_some());
        comparable.then(|| self.part.names.fill(&source.text))
    }
}

/// What holds for every answer: a `Date` (H16), a readable label (CS1, CS2), and `Age` on what is reused (C11).
fn always(head: &Head, reused: bool) -> Option<String> {
    let age = head.combined("age");
    if reused
        && !age
            .as_deref()
            .is_some_and(|age| age.bytes().all(|one| one.is_ascii_digit()) && !age.is_empty())
    {
        return Some(format!("an age in seconds | {age:?}"));
    }
    if head.lines("date").count() != 1 {
        return Some(format!("one date | {:?}", head.combined("date")));
    }
    check::any_label(head)
}

/// Sends one request on a connection of its own; `None` when no head came.
async fn ask(proxy: SocketAddr, request: Vec<u8>, head_only: bool) -> Option<Got> {
    let exchange = async {
        let mut wire = Wire::new(TcpStream::connect(proxy).await.ok()?);
        wire.send(&request).await;
        loop {
            let head = wire.head().await?;
            let status: u16 = head.line.split(' ').nth(1)?.parse().ok()?;
            if status >= 200 {
                let bodiless = head_only || matches!(status, 204 | 304);
                let (body, complete) = wire.answer_body(&head, bodiless).await;
                return Some(Got {
                    status,
                    head,
                    body: latin(&body),
                    complete,
                });
            }
        }
    };
    timeout(PATIENCE, exchange).await.ok().flatten()
}

/// Whether the first expectation is about the status: `200`, `50x`, or several of them as in `206/50x`.
fn is_status(text: &str) -> bool {
    text.split('/')
        .all(|one| one == ANY_GATEWAY_ERROR || one.parse::<u16>().is_ok())
}

fn is_one_of(status: u16, wanted: &str) -> bool {
    let is =
        |one: &str| one == status.to_string() || (one == ANY_GATEWAY_ERROR && matches!(status, 502..=504));
    wanted.split('/').any(is)
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The failures as a table, worst first, and a line for each kind.
pub(crate) fn table(scripts: &[Script], failures: &[Failure]) -> String {
    let mut rows: Vec<String> = failures
        .iter()
        .map(|failure| {
            let Failure {
                script,
                step,
                problem,
            } = failure;
            let kind = format!("{:?}", script.kind).to_lowercase();
            format!(
                "{kind:4} {:16} {:60} [{}] step {step}: {problem}",
                script.file, script.name, script.rule
            )
        })
        .collect();
    rows.sort_unstable();
    let mut failed: HashMap<String, usize> = HashMap::new();
    for failure in failures {
        *failed.entry(format!("{:?}", failure.script.kind)).or_default() += 1;
    }
    for kind in [Kind::Must, Kind::May, Kind::Own] {
        let all = scripts.iter().filter(|script| script.kind == kind).count();
        let wrong = failed.get(&format!("{kind:?}")).copied().unwrap_or(0);
        rows.push(format!("{kind:?}: {} of {all}", all - wrong));
    }
    rows.push("(condition | what came instead)".to_owned());
    rows.join("\n")
}
