//! Decides how connections are taken, driven and ended: how many at once, how slow, and how they drain.
//! It exists so that traffic and administration share one loop and one way to stop.
//! It refuses to cut a running answer off before the drain time is over.

use std::{
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{HttpService, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
};

use super::{current::Current, handle::handle, limits::Limits, patient::Patient, peer::Peer};
use crate::telemetry::{Level, Log};

/// The wish to stop, told once to everybody who runs.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    wanted: AtomicBool,
    told: Notify,
}

impl Stop {
    /// Tells everybody.
    pub(crate) fn tell(&self) {
        self.wanted.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// Waits until somebody tells.
    pub(crate) async fn wanted(&self) {
        let mut told = pin!(self.told.notified());
        // Registered before looking, so that nothing told in between is missed.
        told.as_mut().enable();
        if !self.is_wanted() {
            told.await;
        }
    }
}

/// The places for connections, each held by one while it lives.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    places: Arc<Semaphore>,
    most: u32,
    /// Not the places that are taken: one is taken while the next connection is waited for.
    live: Arc<AtomicUsize>,
}

/// The place of one connection, given back when it is dropped.
#[derive(Debug)]
struct Place {
    _permit: OwnedSemaphorePermit,
    live: Arc<AtomicUsize>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    pub(crate) fn new(most: usize) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        Self {
            places: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
            most,
            live: Arc::default(),
        }
    }

    /// Returns how many live.
    pub(crate) fn count(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Gives the place to a connection.
    fn occupy(&self, permit: OwnedSemaphorePermit) -> Place {
        self.live.fetch_add(1, Ordering::Relaxed);
        Place {
            _permit: permit,
            live: Arc::clone(&self.live),
        }
    }

    /// Waits until none lives, for as long as `at_most`; `true` if none did in the end.
    pub(crate) async fn drained(&self, at_most: Duration) -> bool {
        let all = self.places.acquire_many(self.most);
        tokio::time::timeout(at_most, all).await.is_ok()
    }
}

/// Takes connections of clients until it is told to stop.
pub(crate) async fn serve(
    listener: TcpListener,
    current: Arc<Current>,
    connections: Connections,
    stop: Arc<Stop>,
) {
    let limits = current.process().limits;
    accept(
        listener,
        current.process().log.clone(),
        connections,
        Arc::clone(&stop),
        move |stream, from, place| {
            let (current, stop) = (Arc::clone(&current), Arc::clone(&stop));
            let address = from.ip();
            let peer = Arc::new(Peer::new(address, current.app().trusts(address)));
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    // Taken once: a request ends by the contract by which it began.
                    let app = current.app();
                    let peer = peer.trusted_or_not(address, app.trusts(address));
                    async move { Ok::<_, std::convert::Infallible>(handle(&app, &peer, request).await) }
                });
                drive(stream, service, &limits, &stop).await;
                drop(place);
            });
        },
    )
    .await;
}

/// Takes connections for a service that is the same for all, until it is told to stop.
pub(crate) async fn serve_with<F, A, B>(
    listener: TcpListener,
    log: Log,
    limits: Limits,
    connections: Connections,
    stop: Arc<Stop>,
    answer: F,
) where
    F: Fn(SocketAddr, Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send,
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    accept(
        listener,
        log,
        connections,
        Arc::clone(&stop),
        move |stream, from, place| {
            let (answer, stop) = (answer.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let answered = answer(from, request);
                    async move { Ok::<_, std::convert::Infallible>(answered.await) }
                });
                drive(stream, service, &limits, &stop).await;
                drop(place);
            });
        },
    )
    .await;
}

/// How long to wait after the system refused a connection, so that a full file table is not polled hot.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

async fn accept(
    listener: TcpListener,
    log: Log,
    connections: Connections,
    stop: Arc<Stop>,
    mut taken: impl FnMut(TcpStream, SocketAddr, Place),
) {
    let mut stopped = pin!(stop.wanted());
    loop {
        let next = async {
            let place = Arc::clone(&connections.places).acquire_owned().await;
            // The semaphore is never closed.
            let place = place.map_err(|_| io::ErrorKind::Other)?;
            let (stream, from) = listener.accept().await?;
            Ok::<_, io::Error>((stream, from, place))
        };
        tokio::select! {
            biased;
            () = &mut stopped => return,
            next = next => match next {
                Ok((stream, from, place)) => {
                    // Without it an answer in two pieces waits for the client's acknowledgement.
                    if stream.set_nodelay(true).is_ok() {
                        taken(stream, from, connections.occupy(place));
                    }
                }
                Err(error) => {
                    log.note(Level::Error, "accept-failed", &[("error", &error.to_string())]);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// Drives one connection to its end; when told to stop, to the end of the answer under way.
async fn drive<S>(stream: TcpStream, service: S, limits: &Limits, stop: &Stop)
where
    S: HttpService<
            Incoming,
            ResBody: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
        >,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_read)
        .max_header_size(limits.head_bytes)
        .serve_connection(TokioIo::new(Patient::new(stream, limits.client_idle)), service);
    let mut connection = pin!(connection);
    let mut stopped = pin!(stop.wanted());
    // The wish to stop wakes this task once it has been looked at; after that a flag is enough.
    let (mut looked, mut told) = (false, false);
    poll_fn(|context| {
        if !told && (!looked || stop.is_wanted()) && stopped.as_mut().poll(context).is_ready() {
            connection.as_mut().graceful_shutdown();
            told = true;
        }
        looked = true;
        // How a client's connection ended is the client's affair: its call has been counted where it ended.
        connection.as_mut().poll(context).map(drop)
    })
    .await;
}
