//! Decides how one address is asked for what would be kept of its answer.
//! It exists because coverage says that nothing is kept, and this says why: of one answer, by the fields it came with.
//! It refuses rules of its own: a gateway of the same contract answers the one request, and says what its judge said.

mod against;
mod judged;
mod shown;

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::Engine;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header::HOST};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::{
    config::Contract,
    proxy::{App, Connections, Current, Limits, Stop, serve},
};

pub(crate) use judged::Report;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    url: Uri,
    headers: HeaderMap,
    /// The route that is meant to answer.
    route: Option<String>,
}

impl Asked {
    /// Reads a URL and fields as they are typed.
    ///
    /// # Errors
    /// What is wrong with them, and how they are written.
    pub(crate) fn read(url: &str, fields: &[String], route: Option<String>) -> Result<Self, String> {
        let parsed: Uri = url.parse().map_err(|error| {
            format!("--probe {url}: {error}; write http://host/path, as clients ask the gateway")
        })?;
        if parsed.authority().is_none() || !matches!(parsed.scheme_str(), Some("http" | "https")) {
            return Err(format!(
                "--probe {url}: no http:// with a host; write http://host/path, as clients ask the gateway"
            ));
        }
        let mut headers = HeaderMap::new();
        for field in fields {
            let wrong = || format!("--header \"{field}\": no field; write --header \"name: value\"");
            let (name, value) = field.split_once(':').ok_or_else(wrong)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
            let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
            if name == HOST {
                return Err(format!(
                    "--header \"{field}\": the host stands in the URL; write it there"
                ));
            }
            headers.append(name, value);
        }
        Ok(Self {
            url: parsed,
            headers,
            route,
        })
    }

    fn request(&self) -> Option<Request<Empty<Bytes>>> {
        let target = self.url.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::get(target).body(Empty::new()).ok()?;
        let host = HeaderValue::from_str(self.url.authority()?.as_str()).ok()?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(HOST, host);
        Some(request)
    }
}

/// What the gateway may take beyond the deadline of the route.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks once, through a gateway of this contract that nobody else can reach for as long as it takes.
///
/// # Errors
/// Why it could not be asked.
pub(crate) async fn ask(contract: &Contract, asked: &Asked) -> Result<Report, String> {
    let engine = Engine::system();
    let app = App::build(contract, &engine, Limits::default(), 1).map_err(|problems| problems.to_string())?;
    for route in &app.routes {
        route.tap.turn_on();
    }
    let current = Arc::new(Current::new(app));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(|error| format!("cannot listen on a port of loopback: {error}"))?;
    let address = listener
        .local_addr()
        .map_err(|error| format!("cannot listen on a port of loopback: {error}"))?;
    let stop = Arc::new(Stop::default());
    let serving = tokio::spawn(serve(
        listener,
        Arc::clone(&current),
        Connections::new(1),
        Arc::clone(&stop),
    ));
    let longest = contract.routes.iter().map(|route| route.deadline).max();
    let patience = longest.unwrap_or_default() + PATIENCE;
    let fetched = tokio::time::timeout(patience, fetch(address, asked)).await;
    stop.tell();
    serving.abort();
    let answer = fetched
        .map_err(|_| format!("no answer within {} s", patience.as_secs()))?
        .map_err(|error| format!("the answer broke off: {error}"))?;
    judged::report(contract, &current.app(), asked, &answer)
}

async fn fetch(address: std::net::SocketAddr, asked: &Asked) -> Result<Response<()>, String> {
    let failed = |error: &dyn std::error::Error| error.to_string();
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| failed(&error))?;
    let (mut sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    let connection = tokio::spawn(async move { drop(connection.await) });
    let request = asked.request().ok_or("the URL makes no request")?;
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| failed(&error))?;
    let (head, mut body) = response.into_parts();
    // What becomes of a copy may be decided at the end of the body.
    while let Some(frame) = body.frame().await {
        drop(frame.map_err(|error| failed(&error))?);
    }
    connection.abort();
    Ok(Response::from_parts(head, ()))
}
