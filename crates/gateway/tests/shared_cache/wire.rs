//! Reads and writes HTTP/1.1 messages as bytes, for the client and the origin of the suite alike.
//! No HTTP library stands between a script and the wire, so that odd heads arrive and broken ends are seen.
//! It judges nothing: it says what came, and whether it ended as its framing says.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The most bytes of a head or a body; nothing in the scripts comes near.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// One connection and what was read ahead of it.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The head of a request or an answer. Every byte of a value is one character, so that nothing is lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
}

impl Head {
    /// The lines of a field, in order.
    pub(crate) fn lines<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h str> {
        let of_name = move |(known, _): &&(String, String)| known == name;
        self.fields
            .iter()
            .filter(of_name)
            .map(|(_, value)| value.as_str())
    }

    /// All lines of a field as one list; `None` when there is none.
    pub(crate) fn combined(&self, name: &str) -> Option<String> {
        let lines: Vec<&str> = self.lines(name).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }

    fn is_chunked(&self) -> bool {
        self.combined("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }

    fn length(&self) -> Option<usize> {
        self.lines("content-length").next()?.trim().parse().ok()
    }
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Ends the sending side, in order.
    pub(crate) async fn finish(&mut self) {
        drop(self.stream.shutdown().await);
    }

    /// Reads up to a blank line; `None` when the peer has left or sends no head.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if !self.fill().await {
                return None;
            }
        };
        let text = latin(&self.buffer.drain(..end + 4).collect::<Vec<u8>>());
        let mut lines = text.split("\r\n");
        let line = lines.next()?.to_owned();
        let fields = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| {
                (
                    name.to_ascii_lowercase(),
                    value.trim_matches([' ', '\t']).to_owned(),
                )
            })
            .collect();
        Some(Head { line, fields })
    }

    /// Reads the body of a request.
    pub(crate) async fn request_body(&mut self, head: &Head) -> Vec<u8> {
        if head.is_chunked() {
            self.chunks().await.0
        } else {
            self.exactly(head.length().unwrap_or(0)).await.0
        }
    }

    /// Reads the body of an answer, and says whether it ended as its framing says.
    pub(crate) async fn answer_body(&mut self, head: &Head, bodiless: bool) -> (Vec<u8>, bool) {
        if bodiless {
            (Vec::new(), true)
        } else if head.is_chunked() {
            self.chunks().await
        } else if let Some(length) = head.length() {
            self.exactly(length).await
        } else {
            while self.fill().await {}
            (std::mem::take(&mut self.buffer), true)
        }
    }

    async fn exactly(&mut self, length: usize) -> (Vec<u8>, bool) {
        while self.buffer.len() < length && self.fill().await {}
        let there = length.min(self.buffer.len());
        (self.buffer.drain(..there).collect(), there == length)
    }

    async fn chunks(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            let Some(line) = self.line().await else {
                return (body, false);
            };
            let digits = line.split(';').next().unwrap_or_default().trim().to_owned();
            let Ok(size) = usize::from_str_radix(&digits, 16) else {
                return (body, false);
            };
            if size == 0 {
                return (body, self.trailers().await);
            }
            let (chunk, whole) = self.exactly(size).await;
            body.extend(chunk);
            if !whole || self.line().await.is_none() {
                return (body, false);
            }
        }
    }

    async fn trailers(&mut self) -> bool {
        loop {
            match self.line().await {
                None => return false,
                Some(line) if line.is_empty() => return true,
                Some(_) => {}
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).take(end).collect();
                return Some(latin(&line));
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let mut piece = [0; 8 << 10];
        match self.stream.read(&mut piece).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.buffer.extend(&piece[..read]);
                self.buffer.len() <= MESSAGE_BYTES_MAX
            }
        }
    }
}

/// Every byte as the character of that number.
pub(crate) fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
