//! Decides how the command line speaks to a gateway that runs: where it is, with which token, and what its answers mean.
//! It exists so that every verb that looks or steers finds the gateway in the same way and fails with the same words.
//! It refuses to guess: when nobody answers it says which address was asked and how to name another.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use bytes::Bytes;
use clap::Args;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{FAILED, UNUSABLE, complain, print};
use crate::{
    admin::{places, read_token},
    config::Gateway,
};

/// The longest for one answer: a purge of much takes seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The most bytes of one answer.
const ANSWER_MAX: usize = 64 << 20;

/// Which gateway is meant.
#[derive(Clone, Debug, Args)]
pub(super) struct Reach {
    /// Its administration port, `gateway.admin` of its contract [default: $EVENKEEL_ADMIN, else 127.0.0.1:9181]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// The file with its token [default: $EVENKEEL_TOKEN_FILE, else the one that it wrote for this user]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Why there is no answer that helps.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nobody could be asked.
    Unasked(String),
    /// The gateway did not do it, and says why.
    Refused(Value),
}

impl Failure {
    /// Says it, and returns the exit status.
    pub(super) fn tell(&self, json: bool) -> ExitCode {
        match self {
            Self::Unasked(why) => {
                complain(why);
                ExitCode::from(UNUSABLE)
            }
            Self::Refused(problem) => {
                if json {
                    print(&problem.to_string());
                } else {
                    let text = |key: &str| problem[key].as_str().unwrap_or_default();
                    let detail = text("detail");
                    let detail = if detail.is_empty() {
                        String::new()
                    } else {
                        format!(": {detail}")
                    };
                    complain(&format!("refused: {}{detail}", text("title")));
                }
                ExitCode::from(FAILED)
            }
        }
    }
}

impl Reach {
    /// Returns the address that is asked.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        if let Some(address) = self.admin {
            return Ok(address);
        }
        let named = std::env::var("EVENKEEL_ADMIN").unwrap_or_else(|_| Gateway::ADMIN.to_owned());
        named.parse().map_err(|_| {
            Failure::Unasked(format!(
                "EVENKEEL_ADMIN is {named:?}; write an IP address and a port"
            ))
        })
    }

    fn token(&self, address: SocketAddr) -> Result<String, Failure> {
        let named = self
            .token_file
            .clone()
            .or_else(|| std::env::var_os("EVENKEEL_TOKEN_FILE").map(PathBuf::from));
        let places = named.map_or_else(|| places(address), |one| vec![one]);
        let mut why = Vec::new();
        for place in &places {
            match read_token(place) {
                Ok(token) => return Ok(token),
                Err(error) => why.push(format!("{}: {error}", place.display())),
            }
        }
        Err(Failure::Unasked(format!(
            "no token for the gateway at {address}: {}; run this as the user of the gateway, or name its file with \
             --token-file",
            why.join("; ")
        )))
    }

    /// Reads something.
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        object(&self.ask(Method::GET, path, None, Bytes::new())?)
    }

    /// Reads something that needs the token.
    pub(super) fn get_with_token(&self, path: &str) -> Result<Value, Failure> {
        object(&self.get_bytes(path)?)
    }

    /// Reads something that needs the token, as it is.
    pub(super) fn get_bytes(&self, path: &str) -> Result<Bytes, Failure> {
        let token = self.token(self.address()?)?;
        self.ask(Method::GET, path, Some(token), Bytes::new())
    }

    /// Changes something.
    pub(super) fn change(&self, path: &str, what: &Value) -> Result<Value, Failure> {
        self.send(path, Bytes::from(what.to_string()))
    }

    /// Changes something by a body that is no command.
    pub(super) fn send(&self, path: &str, body: Bytes) -> Result<Value, Failure> {
        let token = self.token(self.address()?)?;
        object(&self.ask(Method::POST, path, Some(token), body)?)
    }

    fn ask(&self, method: Method, path: &str, token: Option<String>, body: Bytes) -> Result<Bytes, Failure> {
        let address = self.address()?;
        let unasked = |why: String| Failure::Unasked(why);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unasked(format!("cannot start: {error}")))?;
        let asked = async {
            let stream = TcpStream::connect(address).await.map_err(|error| {
                format!(
                    "no gateway answers at {address}: {error}; start one with `evenkeel serve contract.toml`, or name \
                     its `gateway.admin` with --admin"
                )
            })?;
            exchange(stream, &address.to_string(), method, path, token, body)
                .await
                .map_err(|error| format!("the gateway at {address} did not answer: {error}"))
        };
        let answered = runtime.block_on(async { tokio::time::timeout(ANSWER_WITHIN, asked).await });
        let (status, body) = answered
            .map_err(|_| {
                unasked(format!(
                    "the gateway at {address} did not answer within {} s",
                    ANSWER_WITHIN.as_secs()
                ))
            })?
            .map_err(unasked)?;
        if status.is_success() {
            return Ok(body);
        }
        match serde_json::from_slice(&body) {
            Ok(problem @ Value::Object(_)) => Err(Failure::Refused(problem)),
            Ok(_) | Err(_) => Err(unasked(format!(
                "what answers at {address} is no gateway of this version: status {status} for {path}"
            ))),
        }
    }
}

fn object(body: &Bytes) -> Result<Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Unasked(format!("what answered is no gateway of this version: {error}")))
}

async fn exchange(
    stream: TcpStream,
    host: &str,
    method: Method,
    path: &str,
    token: Option<String>,
    body: Bytes,
) -> Result<(http::StatusCode, Bytes), String> {
    let said = |error: &dyn std::error::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| said(&error))?;
    let connection = tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, host);
    if let Some(token) = token {
        request = request
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Full::new(body)).map_err(|error| said(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| said(&error))?;
    let status = answer.status();
    let mut body = answer.into_body();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| said(&error))?;
        if let Ok(piece) = frame.into_data() {
            if read.len() + piece.len() > ANSWER_MAX {
                return Err(format!("more than {ANSWER_MAX} bytes came"));
            }
            read.extend_from_slice(&piece);
        }
    }
    connection.abort();
    Ok((status, Bytes::from(read)))
}

/// Asks for a URL at this address as a client would, reads the whole answer and returns its status.
pub(super) fn fetch(address: SocketAddr, url: &str) -> Result<u16, Failure> {
    let unasked = |why: String| Failure::Unasked(why);
    let uri: http::Uri = url.parse().map_err(|error| unasked(format!("no URL: {error}")))?;
    let host = uri
        .authority()
        .ok_or_else(|| unasked("no host in it".to_owned()))?
        .as_str()
        .to_owned();
    let target = uri
        .path_and_query()
        .map_or_else(|| "/".to_owned(), ToString::to_string);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| unasked(format!("cannot start: {error}")))?;
    let asked = async {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| error.to_string())?;
        exchange(stream, &host, Method::GET, &target, None, Bytes::new()).await
    };
    let answered = runtime.block_on(async { tokio::time::timeout(ANSWER_WITHIN, asked).await });
    let (status, _) = answered
        .map_err(|_| unasked("no answer in time".to_owned()))?
        .map_err(unasked)?;
    Ok(status.as_u16())
}

/// Returns who runs this, as it is written into holds and the audit file.
pub(super) fn author() -> String {
    let user = ["SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{user}@{host}")
}
