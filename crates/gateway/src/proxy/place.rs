//! Decides which connection to one address of an upstream a request gets: an idle one of this worker, or a new one.
//! It exists so that the usual request finds a warm connection without meeting another worker.
//! It refuses more idle connections than a stated number, and to keep one for longer than a stated time.

use std::{
    cell::Cell,
    collections::VecDeque,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    time::Duration,
};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::{link::Link, trouble::Trouble};
use crate::config;

/// The most idle connections per worker and address; one more closes the oldest.
pub const IDLE_MAX: usize = 128;
/// How often idle connections are looked after.
pub const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Idle connections are closed after this many sweeps: between 55 and 60 seconds, below what servers commonly
/// allow, so that the race between their closing and our sending is rare.
const IDLE_SWEEPS: u32 = 12;
/// The most addresses of one name that are tried in one attempt.
const ADDRESSES_MAX: usize = 8;

/// One address of an upstream and its idle connections.
#[derive(Debug)]
pub(super) struct Place {
    address: Address,
    /// How the address stands in the log and in metrics.
    label: String,
    /// How `Host` names it.
    authority: Option<HeaderValue>,
    /// One list per worker, so that workers do not meet; a thread from outside shares one of them.
    idle: Box<[Mutex<VecDeque<Idle>>]>,
    sweeps: AtomicU32,
    /// The connection that was begun last is not there yet, or was not in time.
    connecting: AtomicBool,
}

#[derive(Debug)]
enum Address {
    Known(SocketAddr),
    Named(String, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(address) => address.fmt(f),
            Self::Named(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

struct Idle {
    link: Box<Link>,
    since: u32,
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// Prepares the lists for so many workers. Nothing is connected yet.
    pub(super) fn new(upstream: &config::Upstream, workers: usize) -> Self {
        let address = match upstream.host.parse::<IpAddr>() {
            Ok(ip) => Address::Known(SocketAddr::new(ip, upstream.port)),
            Err(_) => Address::Named(upstream.host.clone(), upstream.port),
        };
        Self {
            label: address.to_string(),
            address,
            authority: HeaderValue::from_str(&upstream.authority()).ok(),
            idle: (0..workers.max(1)).map(|_| Mutex::default()).collect(),
            sweeps: AtomicU32::new(0),
            connecting: AtomicBool::new(false),
        }
    }

    /// Returns how the address stands in the log and in metrics.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Returns how `Host` names it.
    pub(super) const fn authority(&self) -> Option<&HeaderValue> {
        self.authority.as_ref()
    }

    /// Tells whether a connection is being waited for, or was in vain.
    pub(super) fn is_connecting(&self) -> bool {
        self.connecting.load(Ordering::Relaxed)
    }

    /// Takes the newest idle connection of this worker. Whether it is still usable shows when it is used.
    pub(super) fn take(&self) -> Option<Box<Link>> {
        self.list().lock().pop_back().map(|idle| idle.link)
    }

    /// Takes back a connection whose exchange has ended cleanly.
    pub(super) fn put(&self, link: Box<Link>) {
        let since = self.sweeps.load(Ordering::Relaxed);
        let mut list = self.list().lock();
        let oldest = if list.len() >= IDLE_MAX {
            list.pop_front()
        } else {
            None
        };
        list.push_back(Idle { link, since });
        drop(list); // close the oldest outside the lock
        drop(oldest);
    }

    /// Closes what has been idle for too long or was closed by the upstream. Called every [`SWEEP_EVERY`].
    pub(super) fn sweep(&self) {
        let now = self.sweeps.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        for list in &self.idle {
            sweep_list(list, IDLE_MAX, |idle| {
                now.wrapping_sub(idle.since) < IDLE_SWEEPS && idle.link.is_usable()
            });
        }
    }

    /// Returns how many connections are idle.
    pub(super) fn idle(&self) -> usize {
        self.idle.iter().map(|list| list.lock().len()).sum()
    }

    fn list(&self) -> &Mutex<VecDeque<Idle>> {
        let count = self.idle.len();
        // The constructor makes at least one list, and the remainder is in range.
        &self.idle[worker() % count]
    }

    /// Makes a new connection.
    pub(super) async fn connect(&self) -> Result<Link, Trouble> {
        // Whoever runs out of time here is dropped and leaves the mark as it is.
        self.connecting.store(true, Ordering::Relaxed);
        let connected = match &self.address {
            Address::Known(address) => Ok(TcpStream::connect(address).await),
            Address::Named(host, port) => connect_by_name(host, *port).await,
        };
        self.connecting.store(false, Ordering::Relaxed);
        let connected = connected?;
        let stream = connected.map_err(|error| Trouble::of_connecting(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| Trouble::of_connecting(&error))?;
        Link::over(stream)
            .await
            .map_err(|error| Trouble::of_exchange(Some(&error)))
    }
}

/// Resolves the name and tries its addresses in order; the last error is the one told.
async fn connect_by_name(host: &str, port: u16) -> Result<io::Result<TcpStream>, Trouble> {
    let addresses = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| Trouble::NameNotFound)?;
    let mut last = None;
    for address in addresses.take(ADDRESSES_MAX) {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(Ok(stream)),
            Err(error) => last = Some(error),
        }
    }
    last.map_or(Err(Trouble::NameNotFound), |error| Ok(Err(error)))
}

/// Looks at each of a list once, the oldest first, and leaves out what is not to be kept.
///
/// One at a time is taken out while it is looked at, without the lock: requests meanwhile find all the others, and
/// no more than `most` are ever in the list. Where others take and put at the same time, one may be passed over until
/// the next sweep.
fn sweep_list<T>(list: &Mutex<VecDeque<T>>, most: usize, mut keep: impl FnMut(&mut T) -> bool) {
    let (mut place, count) = (0, list.lock().len());
    for _ in 0..count {
        let Some(mut one) = list.lock().remove(place) else {
            return;
        };
        if !keep(&mut one) {
            continue;
        }
        let mut list = list.lock();
        if list.len() < most {
            place = place.min(list.len());
            list.insert(place, one);
            place += 1;
        }
    }
}

/// Numbers the threads that use upstreams, in the order in which they first do.
fn worker() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static OWN: Cell<usize> = const { Cell::new(usize::MAX) }; }
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        own.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_leaves_every_connection_but_the_one_it_looks_at_where_requests_find_it() {
        let list = Mutex::new(VecDeque::from([1, 2, 3, 4]));
        let mut order = Vec::new();
        sweep_list(&list, 4, |one| {
            assert_eq!(
                list.lock().len(),
                4 - order.iter().filter(|seen| **seen == 2).count() - 1
            );
            order.push(*one);
            *one != 2
        });
        assert_eq!(order, [1, 2, 3, 4], "the oldest first, each once");
        assert_eq!(*list.lock(), [1, 3, 4], "in the order of before");
    }

    #[test]
    fn a_list_that_fills_up_during_a_sweep_stays_within_its_bound() {
        let list = Mutex::new(VecDeque::from([1, 2]));
        sweep_list(&list, 2, |_| {
            let mut list = list.lock();
            if list.len() < 2 {
                list.push_back(9);
            }
            true
        });
        assert!(list.lock().len() <= 2);
        // And one that is emptied meanwhile stays empty.
        let list = Mutex::new(VecDeque::from([1, 2]));
        sweep_list(&list, 2, |_| {
            list.lock().clear();
            false
        });
        assert!(list.lock().is_empty());
    }
}
