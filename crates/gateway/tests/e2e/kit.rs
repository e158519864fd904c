//! A scripted origin, a raw client and a gateway between them, all on loopback and ports of the system's choice.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of the kit"
)]

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use evenkeel::{Engine, ManualClock};
use evenkeel_gateway::{Gateway, config, proxy::Limits};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Nothing here takes longer, however slow the machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What an origin does with one request.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The head and body are sent as these bytes instead.
    pub raw: Option<Vec<u8>>,
    pub wait: Duration,
    pub then: Then,
}

/// How an origin goes on after a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    KeepAlive,
    Close,
    /// Closes so that the peer sees a reset.
    Reset,
    /// Never says another byte.
    Hang,
}

impl Reply {
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::status(200).body(body)
    }

    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            raw: None,
            wait: Duration::ZERO,
            then: Then::KeepAlive,
        }
    }

    pub fn raw(bytes: impl AsRef<[u8]>, then: Then) -> Self {
        Self {
            raw: Some(bytes.as_ref().to_vec()),
            then,
            ..Self::status(200)
        }
    }

    /// Never answers.
    pub fn hang() -> Self {
        Self::raw("", Then::Hang)
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    fn bytes(&self, head_only: bool) -> Vec<u8> {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut bytes = format!("HTTP/1.1 {} X\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        if !matches!(self.status, 204 | 304) {
            bytes.extend(format!("content-length: {}\r\n", self.body.len()).into_bytes());
        }
        bytes.extend(b"\r\n");
        if !head_only {
            bytes.extend(&self.body);
        }
        bytes
    }
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// An upstream that does what its script says.
pub struct Origin {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    script: Mutex<Script>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    open: Mutex<Vec<JoinHandle<()>>>,
}

impl Origin {
    pub async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Arc::new(script)),
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let accepting = Mutex::new(Some(tokio::spawn(accept(listener, Arc::clone(&shared)))));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// An origin that gives the same answer for ever.
    pub async fn always(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    pub fn script(&self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) {
        *self.shared.script.lock() = Arc::new(script);
    }

    pub fn now(&self, reply: Reply) {
        self.script(move |_| reply.clone());
    }

    /// Stops: connections are refused from now on, and the open ones are cut.
    pub async fn stop(&self) {
        let accepting = self.accepting.lock().take();
        if let Some(accepting) = accepting {
            accepting.abort();
            assert!(accepting.await.is_err());
        }
        for open in self.shared.open.lock().drain(..) {
            open.abort();
        }
    }

    /// Heals: listens again on the same port.
    pub async fn heal(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        *self.accepting.lock() = Some(tokio::spawn(accept(listener, Arc::clone(&self.shared))));
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }

    pub fn hits(&self) -> usize {
        self.shared.seen.lock().len()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let connection = shared.connections.fetch_add(1, Ordering::SeqCst);
        let serving = tokio::spawn(serve(stream, connection, Arc::clone(&shared)));
        shared.open.lock().push(serving);
    }
}

async fn serve(mut stream: TcpStream, connection: usize, shared: Arc<Shared>) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    loop {
        let Some(head) = read_head(&mut stream, &mut buffer).await else {
            return;
        };
        let (line, headers) = parse_head(&head);
        let seen = Seen {
            line,
            headers,
            connection,
        };
        let script = Arc::clone(&*shared.script.lock());
        shared.seen.lock().push(seen.clone());
        let reply = script(&seen);
        if !reply.wait.is_zero() {
            tokio::time::sleep(reply.wait).await;
        }
        if stream
            .write_all(&reply.bytes(seen.line.starts_with("HEAD ")))
            .await
            .is_err()
        {
            return;
        }
        match reply.then {
            Then::KeepAlive => {}
            Then::Close => return,
            Then::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
            Then::Hang => std::future::pending().await,
        }
    }
}

/// Reads up to the blank line; `None` when the peer has left.
async fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head: Vec<u8> = buffer.drain(..end + 4).collect();
            return Some(String::from_utf8_lossy(&head).into_owned());
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend(&chunk[..read]),
        }
    }
}

fn parse_head(head: &str) -> (String, Vec<(String, String)>) {
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    (line, headers)
}

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

/// A response as a client saw it.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body ended as its framing says.
    pub complete: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn freshness(&self) -> &str {
        self.header("x-data-freshness").unwrap_or("-")
    }
}

/// One connection of a client.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Returns the connection itself, to write to it in pieces.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Gives the connection away, to read and write at the same time.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Sends a GET with these further fields and reads the answer.
    pub async fn get(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.request("GET", path, fields).await
    }

    pub async fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: shop.example\r\n");
        for (name, value) in fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        self.send(&text).await;
        self.answer(method == "HEAD").await
    }

    pub async fn answer(&mut self, head_only: bool) -> Answer {
        tokio::time::timeout(PATIENCE, self.read_answer(head_only))
            .await
            .expect("an answer in time")
    }

    async fn read_answer(&mut self, head_only: bool) -> Answer {
        let head = read_head(&mut self.stream, &mut self.buffer)
            .await
            .expect("an answer, not a closed connection");
        let (line, headers) = parse_head(&head);
        let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
            complete: true,
        };
        if head_only || matches!(status, 204 | 304) {
            return answer;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.complete = self.read_chunks(&mut answer.body).await;
        } else if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.buffer.len() < length && self.fill().await {}
            answer.complete = self.buffer.len() >= length;
            answer.body = self.buffer.drain(..length.min(self.buffer.len())).collect();
        } else {
            while self.fill().await {}
            answer.body = std::mem::take(&mut self.buffer);
        }
        answer
    }

    async fn read_chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") else {
                if self.fill().await {
                    continue;
                }
                return false;
            };
            let size = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
            let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
            while self.buffer.len() < end + 2 + size + 2 {
                if !self.fill().await {
                    return false;
                }
            }
            body.extend(&self.buffer[end + 2..end + 2 + size]);
            self.buffer.drain(..end + 2 + size + 2);
            if size == 0 {
                return true;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.buffer.extend(&chunk[..read]);
                true
            }
        }
    }

    /// Waits until the other side has closed.
    pub async fn closed(mut self) -> bool {
        tokio::time::timeout(PATIENCE, async { while self.fill().await {} })
            .await
            .is_ok()
    }
}

/// One request on a connection of its own.
pub async fn get(address: SocketAddr, path: &str) -> Answer {
    Client::connect(address).await.get(path, &[]).await
}

pub async fn get_with(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Answer {
    Client::connect(address).await.get(path, fields).await
}

/// One request to an administration port, under this host name.
pub async fn get_admin(address: SocketAddr, host: &str, path: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client
        .send(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"))
        .await;
    client.answer(false).await
}

/// A gateway and the clock that it lives by.
pub struct Bench {
    pub gateway: Gateway,
    pub clock: Option<ManualClock>,
}

impl Bench {
    /// Starts a gateway by the system's clock.
    pub async fn start(contract: &str) -> Self {
        Self::start_with(contract, Engine::system(), None, Limits::default()).await
    }

    /// Starts a gateway whose clock stands still until it is moved.
    pub async fn with_manual_clock(contract: &str) -> Self {
        let clock = ManualClock::new();
        let engine = Engine::new(clock.clone(), 7);
        Self::start_with(contract, engine, Some(clock), Limits::default()).await
    }

    pub async fn start_with(
        contract: &str,
        engine: Engine,
        clock: Option<ManualClock>,
        limits: Limits,
    ) -> Self {
        let loaded = match config::parse("contract.toml", contract) {
            Ok(loaded) => loaded,
            Err(problems) => panic!("{problems}"),
        };
        let gateway = match Gateway::start(&loaded.contract, &engine, limits).await {
            Ok(gateway) => gateway,
            Err(error) => panic!("{error}"),
        };
        Self { gateway, clock }
    }

    pub fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    pub fn advance(&self, span: Duration) {
        self.clock.as_ref().expect("a manual clock").advance(span);
    }

    pub async fn get(&self, path: &str) -> Answer {
        get(self.address(), path).await
    }

    pub async fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        get_with(self.address(), path, fields).await
    }

    pub async fn metrics(&self) -> String {
        get_admin(self.gateway.admin_address(), "localhost", "/metrics")
            .await
            .text()
    }

    /// Returns the value of one series, written as in the export.
    pub async fn metric(&self, series: &str) -> Option<u64> {
        let text = self.metrics().await;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    }
}

/// A contract with one route `/r/{id}` named `r` and one dependency `d` at `origin`.
pub fn contract(origin: SocketAddr, dependency: &str, route: &str) -> String {
    contract_with(origin, "", dependency, route)
}

pub fn contract_with(origin: SocketAddr, top: &str, dependency: &str, route: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{top}\n\
         [dependencies.d]\nurls = [\"http://{origin}\"]\n{dependency}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n{route}\n"
    )
}

/// The ladder most tests use.
pub const STALE: &str = "ladder = [ { stale = \"60s\" } ]";
pub const NO_BREAKER: &str = "breaker = \"off\"";
/// For tests in which more come at once than a gateway that knows nothing yet lets in.
pub const NO_LIMITS: &str = "breaker = \"off\"\nlearned_limit = \"off\"";

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Takes replies in turn; the last one stays.
pub fn in_turn(replies: Vec<Reply>) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let replies = Mutex::new(VecDeque::from(replies));
    move |_| {
        let mut replies = replies.lock();
        if replies.len() > 1 {
            replies.pop_front().unwrap()
        } else {
            replies.front().unwrap().clone()
        }
    }
}
