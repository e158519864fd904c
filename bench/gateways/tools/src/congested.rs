//! Decides how the congested origin behaves: good for so much at once, slower the more it is asked, silent on demand.
//!
//! It exists because most services break down like this: work that nobody waits for any more
//! still takes up room, so that an overload keeps itself alive. It refuses to shed, queue or cancel.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::answer::{self, Keeping};
use crate::request::{HEAD_LEN_MAX, head_len, target};
use crate::start::without_delay;

mod control;
mod record;

pub use control::serve_control;
use record::Record;

/// Most connections and abandoned pieces of work at once; further connections are closed on arrival.
///
/// What 10 s of the heaviest load leave behind, twice: the collapse to be shown must not end here.
pub const TASKS_MAX: usize = 65_536;

/// What the origin can do: `at_once` requests, each in `takes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Most requests in flight that do not slow each other down, 1 or more.
    pub at_once: u32,
    /// How long a request takes up to there.
    pub takes: Duration,
}

impl Capacity {
    /// Returns how long a request takes that makes the number in flight `in_flight`.
    ///
    /// Beyond `at_once` the time grows with the square of the load, for each of them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use gateway_bench_tools::congested::Capacity;
    ///
    /// let capacity = Capacity { at_once: 20, takes: Duration::from_millis(20) };
    /// assert_eq!(capacity.span(20), Duration::from_millis(20));
    /// assert_eq!(capacity.span(40), Duration::from_millis(80));
    /// ```
    #[must_use]
    pub fn span(self, in_flight: u32) -> Duration {
        if in_flight <= self.at_once {
            return self.takes;
        }
        let load = f64::from(in_flight) / f64::from(self.at_once);
        self.takes.mul_f64(load * load)
    }
}

/// The origin's state, shared by its two ports on one thread.
#[derive(Debug)]
pub struct Congested {
    capacity: Capacity,
    hanging: watch::Sender<bool>,
    in_flight: Cell<u32>,
    record: RefCell<Record>,
    body: Vec<u8>,
}

impl Congested {
    /// Makes an origin that works.
    #[must_use]
    pub fn new(capacity: Capacity) -> Rc<Self> {
        Rc::new(Self {
            capacity,
            hanging: watch::Sender::new(false),
            in_flight: Cell::new(0),
            record: RefCell::new(Record::new(Instant::now())),
            body: answer::body(),
        })
    }

    /// Goes silent, or works again, and begins a new record.
    ///
    /// Requests that met the silence are not answered afterwards: their connections are closed,
    /// as by a restart.
    pub fn hang(&self, hanging: bool) {
        self.hanging.send_replace(hanging);
        *self.record.borrow_mut() = Record::new(Instant::now());
    }

    /// Tells whether the origin is silent.
    #[must_use]
    pub fn is_hanging(&self) -> bool {
        *self.hanging.borrow()
    }

    /// Returns how many requests are being worked on, those that nobody waits for included.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }
}

/// Room taken up by one request until its time has passed.
struct Work(Rc<Congested>);

impl Work {
    fn begin(origin: &Rc<Congested>) -> Self {
        origin.in_flight.set(origin.in_flight.get() + 1);
        Self(Rc::clone(origin))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}

/// Serves the data port until binding or accepting fails.
///
/// # Errors
/// What binding `address` or accepting fails with.
pub async fn serve_data(origin: Rc<Congested>, address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = open.join_next() => {}
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                if open.len() < TASKS_MAX {
                    open.spawn_local(serve_connection(Rc::clone(&origin), socket));
                }
            }
        }
    }
}

/// Answers request after request; an error ends the connection, but not the work it asked for.
async fn serve_connection(origin: Rc<Congested>, socket: TcpStream) -> io::Result<()> {
    let mut socket = without_delay(socket)?;
    let mut input = BytesMut::with_capacity(1024);
    let mut output = Vec::with_capacity(2048);
    loop {
        while let Some(head_len) = head_len(&input) {
            let keeping = Keeping::of(target(&input).ok_or(io::ErrorKind::InvalidData)?);
            input.advance(head_len);
            if origin.is_hanging() {
                origin.record.borrow_mut().add(Instant::now(), origin.in_flight());
                let mut hanging = origin.hanging.subscribe();
                let healed = hanging.wait_for(|hanging| !hanging);
                tokio::select! {
                    _ = healed => {}
                    _ = departure(&mut socket, &mut input) => {}
                }
                return Ok(());
            }
            let work = Work::begin(&origin);
            let now = Instant::now();
            origin.record.borrow_mut().add(now, origin.in_flight());
            let done = now + origin.capacity.span(origin.in_flight());
            tokio::select! {
                () = sleep_until(done) => {}
                left = departure(&mut socket, &mut input) => {
                    // The file descriptor goes back, the work does not end.
                    drop(socket);
                    sleep_until(done).await;
                    return Err(left);
                }
            }
            drop(work);
            let (date, millis) = now_written();
            answer::write_answer(&mut output, keeping, &date, Some(millis), &origin.body);
            socket.write_all(&output).await?;
            output.clear();
        }
        if input.len() > HEAD_LEN_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if socket.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

/// Returns once the asker has left, or sends more than a head may have; what it sends until then waits.
async fn departure(socket: &mut TcpStream, input: &mut BytesMut) -> io::Error {
    while input.len() <= HEAD_LEN_MAX {
        match socket.read_buf(input).await {
            Ok(0) => return io::ErrorKind::ConnectionReset.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
    io::ErrorKind::InvalidData.into()
}

/// Returns the present as an HTTP-date and as milliseconds since 1970.
fn now_written() -> (String, u64) {
    let now = SystemTime::now();
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    (httpdate::fmt_http_date(now), millis)
}

#[cfg(test)]
mod tests;
