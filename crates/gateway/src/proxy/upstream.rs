//! Decides how a request is sent to an upstream: to which of its addresses, on which connection, and whether again.
//! It exists so that an address that cannot be reached costs a request nothing while another can.
//! It refuses to send once more what may have arrived and may have had an effect.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
use std::time::Duration;

use evenkeel::{Class, Engine, Outage};
use evenkeel_core::Rng;
use evenkeel_http::{
    proxy_status::ProxyError,
    trace::{TRACEPARENT, TRACESTATE},
};
use http::{HeaderName, HeaderValue, Response, header::HOST};
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::{
    hints,
    link::{Broken, Link, Lost, Outgoing},
    place::Place,
    seat::{CameTo, Seat, Spreading, Tried},
    trouble::Trouble,
};
use crate::{
    config::{self, RewriteHost},
    telemetry::Blame,
};

/// The most addresses of a dependency that one attempt goes through before it has found one that can be reached.
pub const UNREACHED_MAX: u32 = 8;

/// An upstream: its addresses and their idle connections.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// One at least. Shared with those that asked, or will ask, the same addresses by other rules.
    places: Arc<[Place]>,
    /// How the addresses share the attempts; `None` where there is nothing to share.
    spreading: Option<Arc<Spreading>>,
    /// What is changed of its messages.
    pub(super) rewrite: config::Rewrite,
    /// What its answers mean.
    pub(super) classify: config::Classify,
    /// The fields in which it is told how long it may take, and how long that is at most.
    deadline_to: Vec<HeaderName>,
    timeout: Duration,
    engine: Engine,
    /// What the ids of spans are drawn by.
    spans: AtomicU64,
    /// A read whose idle connection ends before any answer is sent once more.
    resend: bool,
    /// What the log tells of the latest failure.
    last: Mutex<Last>,
    /// The address that was chosen last.
    asked: AtomicUsize,
    /// What is asked in its place from now on.
    newer: OnceLock<Arc<Self>>,
}

/// The latest failure of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    error: Option<ProxyError>,
    status: Option<u16>,
}

/// The head of an answer, and the connection on which its body arrives.
pub(crate) struct Head {
    pub(super) response: Response<Incoming>,
    pub(super) link: Box<Link>,
}

/// Why there is no answer, and whether anything was sent.
enum Unanswered {
    /// The address cannot be reached; not one byte has left.
    Unreached(Trouble),
    /// Something may have arrived.
    Sent(Trouble),
}

impl Upstream {
    /// Prepares the lists for so many workers. Nothing is connected yet.
    pub(crate) fn new(dependency: &config::Dependency, engine: &Engine, workers: usize) -> Arc<Self> {
        Arc::new(Self {
            places: dependency
                .upstreams
                .iter()
                .map(|upstream| Place::new(upstream, workers))
                .collect(),
            spreading: Spreading::new(dependency, engine),
            rewrite: dependency.rewrite.clone(),
            classify: dependency.classify.clone(),
            deadline_to: dependency.deadline_to.clone(),
            timeout: dependency.timeout,
            engine: engine.clone(),
            spans: AtomicU64::new(engine.draw_seed()),
            resend: dependency.resend,
            last: Mutex::default(),
            asked: AtomicUsize::new(0),
            newer: OnceLock::new(),
        })
    }

    /// Makes one that asks other addresses in the place of this one. Addresses that both have go on being counted.
    pub(super) fn replaced_by(
        &self,
        dependency: &config::Dependency,
        engine: &Engine,
        workers: usize,
    ) -> Arc<Self> {
        let mut new = Self::new(dependency, engine, workers);
        let spreading = self.spread_on(&new.places, dependency, engine);
        if let Some(own) = Arc::get_mut(&mut new) {
            own.spreading = spreading;
        }
        new
    }

    /// Prepares how attempts are shared by other rules, or among other places, with what is counted so far.
    fn spread_on(
        &self,
        places: &[Place],
        dependency: &config::Dependency,
        engine: &Engine,
    ) -> Option<Arc<Spreading>> {
        let new = Spreading::new(dependency, engine)?;
        let Some(known) = &self.spreading else {
            return Some(new);
        };
        let names = places.iter().map(Place::label);
        Some(new.counts_on(names, known, &self.labels().collect::<Vec<_>>()))
    }

    /// Makes one that asks the same addresses as `known` says, by other rules, on the same connections.
    pub(super) fn succeeded_by(
        &self,
        known: &config::Dependency,
        dependency: &config::Dependency,
        engine: &Engine,
    ) -> Arc<Self> {
        let spreads_alike = known.spread == dependency.spread && known.timeout == dependency.timeout;
        Arc::new(Self {
            places: Arc::clone(&self.places),
            spreading: if spreads_alike {
                self.spreading.clone()
            } else {
                self.spread_on(&self.places, dependency, engine)
            },
            rewrite: dependency.rewrite.clone(),
            classify: dependency.classify.clone(),
            deadline_to: dependency.deadline_to.clone(),
            timeout: dependency.timeout,
            engine: engine.clone(),
            spans: AtomicU64::new(engine.draw_seed()),
            resend: dependency.resend,
            last: Mutex::new(*self.last.lock()),
            asked: AtomicUsize::new(self.asked.load(Ordering::Relaxed)),
            newer: OnceLock::new(),
        })
    }

    /// Has attempts that begin from now on go to `newer`. An upstream is taken over once.
    pub(super) fn hand_over(this: &Arc<Self>, newer: &Arc<Self>) {
        if !Arc::ptr_eq(this, newer) {
            drop(this.newer.set(Arc::clone(newer)));
            newer.counts_on_from(this);
        }
    }

    /// Goes on with what is counted of all addresses together, as `before` chooses no more from now on.
    fn counts_on_from(&self, before: &Self) {
        if let (Some(new), Some(old)) = (&self.spreading, &before.spreading)
            && !Arc::ptr_eq(new, old)
        {
            new.takes_over(old);
        }
    }

    /// Returns what is asked by an attempt that begins now: itself, as long as nothing has taken over.
    pub(super) fn newest(this: &Arc<Self>) -> &Arc<Self> {
        let mut newest = this;
        while let Some(newer) = newest.newer.get() {
            newest = newer;
        }
        newest
    }

    /// Sends a request that has no effect and waits for the head of the answer.
    ///
    /// An idle connection may turn out to have been closed by the upstream; if not one byte of an answer had
    /// come, the request is sent once more, on a new connection (RFC 9112 §9.3.1, rule M10). `request` is called
    /// for each sending. Where a contract says that nothing is sent again, an idle connection is looked at first.
    pub(super) async fn send(&self, tried: &Tried, request: impl Fn() -> Outgoing) -> Result<Head, Trouble> {
        let mut unreached = 0;
        let mut seat = self.seat(tried, unreached);
        loop {
            let place = self.place(seat.as_ref());
            match self.send_to(place, tried, &request).await {
                Ok(head) => return Ok(seated(head, seat)),
                Err(unanswered) => match self.next(tried, &mut unreached, seat, unanswered) {
                    Ok(another) => seat = Some(another),
                    Err(trouble) => return Err(trouble),
                },
            }
        }
    }

    async fn send_to(
        &self,
        place: &Place,
        tried: &Tried,
        request: impl Fn() -> Outgoing,
    ) -> Result<Head, Unanswered> {
        let idle = place.take().and_then(|mut link| {
            let may_fail = self.resend || link.is_usable();
            may_fail.then_some(link)
        });
        if let Some(link) = idle {
            match link.exchange(self.addressed(place, tried, request())).await {
                Ok((response, link)) => return Ok(Head { response, link }),
                Err(Broken { unanswered: true, .. }) if self.resend => {}
                Err(broken) => {
                    return Err(Unanswered::Sent(Trouble::of_exchange(broken.error.as_ref())));
                }
            }
        }
        let link = Box::new(place.connect().await.map_err(Unanswered::Unreached)?);
        match link.exchange(self.addressed(place, tried, request())).await {
            Ok((response, link)) => Ok(Head { response, link }),
            Err(broken) => Err(Unanswered::Sent(Trouble::of_exchange(broken.error.as_ref()))),
        }
    }

    /// Sends a request that must not arrive twice, and waits for the head of the answer.
    ///
    /// An idle connection that turns out to be closed before anything was written to it is replaced by a new one; once
    /// a byte may have left, the request is never sent again (rules H07, H09). `left` is told when that begins, and when
    /// it turns out that nothing has left.
    pub(super) async fn send_once(
        &self,
        tried: &Tried,
        mut request: Outgoing,
        left: &AtomicBool,
    ) -> Result<Head, Trouble> {
        let mut unreached = 0;
        let mut seat = self.seat(tried, unreached);
        loop {
            let place = self.place(seat.as_ref());
            if let Some(link) = place.take() {
                left.store(true, Ordering::Relaxed);
                match link.exchange_once(self.addressed(place, tried, request)).await {
                    Ok((response, link)) => return Ok(seated(Head { response, link }, seat)),
                    Err(Lost::Sent(error)) => {
                        failed(seat);
                        return Err(Trouble::of_exchange(error.as_ref()));
                    }
                    Err(Lost::Unsent(unsent)) => request = *unsent,
                }
                left.store(false, Ordering::Relaxed);
            }
            let link = match place.connect().await {
                Ok(link) => Box::new(link),
                Err(trouble) => {
                    let unanswered = Unanswered::Unreached(trouble);
                    seat = Some(self.next(tried, &mut unreached, seat, unanswered)?);
                    continue;
                }
            };
            left.store(true, Ordering::Relaxed);
            return match link.exchange_once(self.addressed(place, tried, request)).await {
                Ok((response, link)) => Ok(seated(Head { response, link }, seat)),
                Err(Lost::Sent(error)) => {
                    failed(seat);
                    Err(Trouble::of_exchange(error.as_ref()))
                }
                Err(Lost::Unsent(_)) => {
                    left.store(false, Ordering::Relaxed);
                    failed(seat);
                    Err(Trouble::Terminated)
                }
            };
        }
    }

    /// Takes a place at an address; `None` where there is but one.
    fn seat(&self, tried: &Tried, unreached: u64) -> Option<Seat> {
        let seat = self.spreading.as_ref()?.seat(tried, unreached)?;
        self.asked.store(seat.index(), Ordering::Relaxed);
        Some(seat)
    }

    /// Takes a place at another address when nothing was sent to this one.
    fn next(
        &self,
        tried: &Tried,
        unreached: &mut u64,
        seat: Option<Seat>,
        unanswered: Unanswered,
    ) -> Result<Seat, Trouble> {
        let trouble = match unanswered {
            Unanswered::Sent(trouble) => {
                failed(seat);
                return Err(trouble);
            }
            // What this machine lacks no address can give.
            Unanswered::Unreached(Trouble::NothingLeft) => return Err(Trouble::NothingLeft),
            Unanswered::Unreached(trouble) => trouble,
        };
        let Some(seat) = seat else {
            return Err(trouble);
        };
        *unreached |= 1 << seat.index();
        failed(Some(seat));
        if unreached.count_ones() >= UNREACHED_MAX {
            return Err(trouble);
        }
        self.seat(tried, *unreached).ok_or(trouble)
    }

    fn place(&self, seat: Option<&Seat>) -> &Place {
        // The contract names one address at least, and seats are for addresses of the list.
        &self.places[seat.map_or(0, Seat::index)]
    }

    /// Tells a request what is true as it leaves: how long its answer is waited for, and its place in its trace.
    ///
    /// Names the address too, where the contract says that each is told its own, or nobody named a host.
    fn addressed(&self, place: &Place, tried: &Tried, mut request: Outgoing) -> Outgoing {
        let is_own = matches!(self.rewrite.host, RewriteHost::Upstream);
        if (is_own || !request.headers().contains_key(HOST))
            && let Some(authority) = place.authority()
        {
            request.headers_mut().insert(HOST, authority.clone());
        }
        if !self.deadline_to.is_empty() {
            let now = self.engine.now().mono;
            let left = tried
                .until()
                .map_or(self.timeout, |until| until.since(now).min(self.timeout));
            for name in &self.deadline_to {
                request
                    .headers_mut()
                    .insert(name.clone(), hints::left_as(name, left));
            }
        }
        if let Some((trace, notes)) = tried.said().and_then(|said| said.trace.as_ref()) {
            // Each sending is a span of its own (rule TR2).
            let span = Rng::new(self.spans.fetch_add(Rng::STEP, Ordering::Relaxed)).next_u64();
            if let Ok(parent) = HeaderValue::try_from(trace.parent(span)) {
                request.headers_mut().insert(TRACEPARENT, parent);
            }
            if let Some(notes) = notes {
                request.headers_mut().insert(TRACESTATE, notes.clone());
            }
        }
        request
    }

    /// Takes back a connection whose exchange has ended cleanly.
    pub(super) fn put(&self, mut link: Box<Link>) {
        let index = link.seat.take().map_or(0, |seat| seat.index());
        if let Some(place) = self.places.get(index) {
            place.put(link);
        }
    }

    /// Closes what has been idle for too long or was closed by the upstream.
    pub(crate) fn sweep(&self) {
        self.places.iter().for_each(Place::sweep);
    }

    /// Remembers a failure for the log.
    pub(super) fn note(&self, trouble: &Trouble) {
        let mut last = self.last.lock();
        match trouble.status() {
            Some(status) => last.status = Some(status.as_u16()),
            None => last.error = trouble.proxy_error(),
        }
    }

    /// Says what is known of the latest failure of this class.
    pub(super) fn blame(&self, class: Option<Class>) -> Blame {
        let last = *self.last.lock();
        let place = self.places.get(self.asked.load(Ordering::Relaxed));
        let (error, status) = match class {
            Some(Class::Outage(Outage::TimedOut)) if place.is_some_and(Place::is_connecting) => {
                (Some(ProxyError::ConnectionTimeout), None)
            }
            Some(Class::Outage(Outage::TimedOut)) => (Some(ProxyError::HttpResponseTimeout), None),
            Some(Class::Outage(Outage::Failed)) => (last.error, None),
            Some(Class::Outage(Outage::Cut)) => (Some(ProxyError::HttpResponseIncomplete), None),
            Some(Class::Outage(Outage::ErrorAnswer)) => (None, last.status),
            Some(Class::Fault) => (Some(ProxyError::ProxyInternalError), None),
            Some(
                Class::Answer | Class::Refusal | Class::Gone | Class::Busy | Class::Local | Class::Cancelled,
            )
            | None => (None, None),
        };
        Blame {
            error: error.map(ProxyError::as_str),
            status,
            upstream: place.map(|place| place.label().to_owned()),
        }
    }

    /// Tells whether it wants to know how long an attempt may take.
    pub(super) fn is_told_the_time(&self) -> bool {
        !self.deadline_to.is_empty()
    }

    /// Returns how many connections are idle.
    pub(crate) fn idle(&self) -> usize {
        self.places.iter().map(Place::idle).sum()
    }

    /// Returns how its addresses share the attempts, where they do.
    pub(crate) fn spreading(&self) -> Option<&Spreading> {
        self.spreading.as_deref()
    }

    /// Returns its addresses as they stand in the log and in metrics, in the order of the contract.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(Place::label)
    }
}

/// Lets the connection of an answer carry the place at its address, until its body has ended.
fn seated(mut head: Head, seat: Option<Seat>) -> Head {
    if let Some(mut seat) = seat {
        seat.answers(head.response.status());
        head.link.seat = Some(seat);
    }
    head
}

fn failed(seat: Option<Seat>) {
    if let Some(mut seat) = seat {
        seat.came_to(CameTo::Failed);
    }
}
