//! The origin behind the proxy: it answers each request as the script whose path it bears wants at that moment.
//! One origin serves all scripts at once, on one port, so that a proxy needs one line of settings.
//! It decides nothing: what was asked is written down, and judged elsewhere.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    dates::Names,
    script::{Answer, Framing},
    wire::{Head, Wire},
};

/// What one script wants of the origin now, and what the origin has seen of it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) names: Names,
    pub(crate) now: Mutex<Now>,
}

/// The answers of the step under way, and the requests that came during it.
#[derive(Debug, Default)]
pub(crate) struct Now {
    pub(crate) answer: Option<Answer>,
    pub(crate) again: Option<Answer>,
    pub(crate) seen: Vec<Seen>,
}

/// A request as the origin got it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

/// The parts by the first segment of their paths.
pub(crate) type Parts = Arc<Mutex<HashMap<String, Arc<Part>>>>;

/// Listens until it is dropped.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

impl Origin {
    pub(crate) async fn start(address: &str, parts: Parts) -> Self {
        let listener = TcpListener::bind(address)
            .await
            .expect("the port of the origin is free");
        let address = listener.local_addr().expect("a bound port");
        Self {
            address,
            accepting: tokio::spawn(accept(listener, parts)),
        }
    }

    /// Connections are refused from now on, and the open ones end.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        assert!(self.accepting.await.is_err(), "an aborted task ends as one");
    }
}

async fn accept(listener: TcpListener, parts: Parts) {
    let mut open = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            open.spawn(serve(stream, Arc::clone(&parts)));
        }
        while open.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, parts: Parts) {
    drop(stream.set_nodelay(true));
    let mut wire = Wire::new(stream);
    while let Some(head) = wire.head().await {
        let body = wire.request_body(&head).await;
        let Some((answer, names, method)) = answer_for(head, body, &parts) else {
            return;
        };
        tokio::time::sleep(answer.delay).await;
        if !send(&mut wire, &answer, &names, &method).await {
            wire.finish().await;
            return;
        }
    }
}

/// Writes the request down and finds what to say; `None` when no script has this path.
fn answer_for(head: Head, body: Vec<u8>, parts: &Parts) -> Option<(Answer, Names, String)> {
    let mut words = head.line.split(' ');
    let method = words.next()?.to_owned();
    let target = words.next()?.to_owned();
    let path = target.strip_prefix("http://").map_or(target.as_str(), |rest| {
        rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/")
    });
    let first = path.trim_start_matches('/').split(['/', '?', ';']).next()?;
    let part = Arc::clone(parts.lock().get(first)?);
    let mut now = part.now.lock();
    let answer = match (now.seen.len(), &now.again) {
        (1.., Some(again)) => Some(again.clone()),
        _ => now.answer.clone(),
    };
    let answer = answer.map(|answer| answer.for_range(head.combined("range").is_some()));
    now.seen.push(Seen {
        method: method.clone(),
        target,
        head,
        body,
    });
    drop(now);
    let names = part.names.clone();
    Some((answer.unwrap_or_else(unexpected), names, method))
}

impl Answer {
    /// An origin sends parts only to those who ask for them.
    fn for_range(mut self, asked: bool) -> Self {
        if let (false, Some(whole)) = (asked, self.whole.take()) {
            self.status = 200;
            self.fields.retain(|line| !line.starts_with("content-range:"));
            self.text = whole;
        }
        self
    }
}

/// What a request gets that nobody should have made.
fn unexpected() -> Answer {
    Answer {
        status: 200,
        fields: vec!["cache-control: no-store".to_owned()],
        text: "nobody should have asked".to_owned(),
        whole: None,
        framing: Framing::Length,
        trailers: Vec::new(),
        interim: Vec::new(),
        delay: Duration::ZERO,
    }
}

/// Sends an answer; false when the connection must end.
async fn send(wire: &mut Wire, answer: &Answer, names: &Names, method: &str) -> bool {
    if answer.framing == Framing::Nothing {
        return false;
    }
    if answer.framing == Framing::Garbage {
        wire.send(b"this is no answer\r\n\r\n").await;
        return false;
    }
    let text = names.fill(&answer.text);
    let bodiless = matches!(answer.status, 204 | 304);
    let mut head = String::new();
    if let Some((status, fields)) = answer.interim.split_first() {
        head.push_str(&format!("HTTP/1.1 {status} Interim\r\n"));
        fields
            .iter()
            .for_each(|line| head.push_str(&format!("{line}\r\n")));
        head.push_str("\r\n");
    }
    head.push_str(&format!("HTTP/1.1 {} Scripted\r\n", answer.status));
    if !answer
        .fields
        .iter()
        .any(|line| line.starts_with("date:") || line == "!date")
    {
        head.push_str(&names.fill("date: {now}\r\n"));
    }
    for line in answer.fields.iter().filter(|line| !line.starts_with('!')) {
        head.push_str(&names.fill(line));
        head.push_str("\r\n");
    }
    let stated = answer
        .fields
        .iter()
        .any(|line| line.starts_with("content-length:"));
    match answer.framing {
        Framing::Length if !bodiless && !stated => {
            head.push_str(&format!("content-length: {}\r\n", text.len()));
        }
        Framing::CutLength => head.push_str(&format!("content-length: {}\r\n", text.len() + 10)),
        Framing::Chunked | Framing::Bytewise | Framing::CutChunked => {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        Framing::Close => head.push_str("connection: close\r\n"),
        Framing::Length | Framing::Nothing | Framing::Garbage => {}
    }
    head.push_str("\r\n");
    let mut bytes = unlatin(&head);
    if method != "HEAD" && !bodiless {
        bytes.extend(framed(&text, answer, names));
    }
    wire.send(&bytes).await
        && matches!(
            answer.framing,
            Framing::Length | Framing::Chunked | Framing::Bytewise
        )
}

fn framed(text: &str, answer: &Answer, names: &Names) -> Vec<u8> {
    let mut framed = String::new();
    match answer.framing {
        Framing::Chunked | Framing::CutChunked => framed.push_str(&format!("{:x}\r\n{text}\r\n", text.len())),
        Framing::Bytewise => text
            .chars()
            .for_each(|one| framed.push_str(&format!("1\r\n{one}\r\n"))),
        Framing::Length | Framing::Close | Framing::CutLength | Framing::Nothing | Framing::Garbage => {
            framed.push_str(text);
        }
    }
    if matches!(answer.framing, Framing::Chunked | Framing::Bytewise) {
        framed.push_str("0\r\n");
        for line in &answer.trailers {
            framed.push_str(&names.fill(line));
            framed.push_str("\r\n");
        }
        framed.push_str("\r\n");
    }
    framed.into_bytes()
}

/// Each character below 256 as the byte of that number.
pub(crate) fn unlatin(text: &str) -> Vec<u8> {
    text.chars()
        .map(|one| u8::try_from(u32::from(one)).unwrap_or(b'?'))
        .collect()
}
