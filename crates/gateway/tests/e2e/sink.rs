//! An origin that takes requests whole, bodies and trailers included, and remembers what came.
#![allow(unreachable_pub, reason = "one of the kits of this test binary")]

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// A request as it was taken.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    /// The body ended as its framing says.
    pub complete: bool,
    pub connection: usize,
}

impl Taken {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An origin that answers 200 with the length of what it has taken.
pub struct Sink {
    pub address: SocketAddr,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Sink {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&taken);
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let all = Arc::clone(&all);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(taken) = take(&mut stream, connection).await {
                        let answer = answer(&taken);
                        let complete = taken.complete;
                        all.lock().push(taken);
                        if !complete || stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, taken }
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().clone()
    }
}

fn answer(taken: &Taken) -> String {
    let text = taken.body.len().to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

/// Takes one request; `None` when the peer has left before one began.
pub async fn take(stream: &mut BufReader<TcpStream>, connection: usize) -> Option<Taken> {
    let mut taken = Taken {
        line: line(stream).await?,
        headers: fields(stream).await?,
        connection,
        ..Taken::default()
    };
    if taken.header("transfer-encoding") == Some("chunked") {
        while let Some(size) = line(stream).await {
            let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
            if size == 0 {
                if let Some(trailers) = fields(stream).await {
                    taken.trailers = trailers;
                    taken.complete = true;
                }
                break;
            }
            let from = taken.body.len();
            taken.body.resize(from + size, 0);
            if stream.read_exact(&mut taken.body[from..]).await.is_err() || line(stream).await.is_none() {
                break;
            }
        }
    } else {
        let length = taken
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        let read = (&mut *stream).take(length).read_to_end(&mut taken.body).await;
        taken.complete = read.is_ok() && taken.body.len() as u64 == length;
    }
    Some(taken)
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    match stream.read_line(&mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) => line.strip_suffix("\r\n").map(str::to_owned),
    }
}

async fn fields(stream: &mut BufReader<TcpStream>) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            return Some(fields);
        }
        let (name, value) = line.split_once(':').unwrap();
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}
