//! Decides how the origin behaves: it answers, refuses connections or hangs, as its control port says.
//!
//! It exists because a comparison needs an origin that costs little, counts what reaches
//! it, and dies on demand. It refuses everything but GET without a body.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::answer::{self, Keeping};
use crate::request::{HEAD_LEN_MAX, head_len, target};
use crate::start::without_delay;

mod control;

pub use control::serve_control;

/// Most connections open at once; further ones are closed on arrival.
pub const CONNECTIONS_MAX: usize = 4096;

const DATE_PERIOD: Duration = Duration::from_millis(250);

/// What the data port does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Answers at once.
    Normal,
    /// Has no listener, so that connections are refused; open ones have been closed.
    Refuse,
    /// Accepts and reads, and answers when the mode changes.
    Hang,
}

impl Mode {
    /// Returns the mode's word on the control port.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Refuse => "refuse",
            Self::Hang => "hang",
        }
    }

    /// Returns the mode that a word names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Normal, Self::Refuse, Self::Hang]
            .into_iter()
            .find(|mode| mode.as_str() == word)
    }
}

/// The origin's state, shared by its two ports on one thread.
#[derive(Debug)]
pub struct Origin {
    wanted: watch::Sender<Mode>,
    applied: watch::Sender<Mode>,
    requests: Cell<u64>,
    connections: Cell<u64>,
    date: RefCell<String>,
    body: Vec<u8>,
}

impl Origin {
    /// Makes an origin that will answer as soon as [`serve_data`] runs.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            wanted: watch::Sender::new(Mode::Normal),
            // Nothing listens yet, which is what "refuse" means.
            applied: watch::Sender::new(Mode::Refuse),
            requests: Cell::new(0),
            connections: Cell::new(0),
            date: RefCell::new(http_date_now()),
            body: answer::body(),
        })
    }

    /// Changes the mode, and returns once the data port behaves accordingly.
    pub async fn set_mode(&self, mode: Mode) {
        let mut applied = self.applied.subscribe();
        self.wanted.send_replace(mode);
        applied
            .wait_for(|seen| *seen == mode)
            .await
            .expect("the origin owns the sender");
    }

    /// Returns requests read and connections accepted since the start.
    #[must_use]
    pub fn counters(&self) -> (u64, u64) {
        (self.requests.get(), self.connections.get())
    }

    /// Returns the mode that the data port has taken up.
    #[must_use]
    pub fn mode(&self) -> Mode {
        *self.applied.borrow()
    }
}

fn http_date_now() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

/// Serves the data port until binding or accepting fails.
///
/// # Errors
/// What binding `address` or accepting fails with.
pub async fn serve_data(origin: Rc<Origin>, address: SocketAddr) -> io::Result<()> {
    let mut wanted = origin.wanted.subscribe();
    let mut date = tokio::time::interval(DATE_PERIOD);
    // The ticks of a long outage are not made up for.
    date.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let listener = TcpListener::bind(address).await?;
        let mut open = JoinSet::new();
        while *wanted.borrow_and_update() != Mode::Refuse {
            origin.applied.send_replace(*wanted.borrow());
            tokio::select! {
                changed = wanted.changed() => changed.expect("the origin owns the sender"),
                _ = date.tick() => *origin.date.borrow_mut() = http_date_now(),
                Some(_) = open.join_next() => {}
                accepted = listener.accept() => {
                    let (socket, _) = accepted?;
                    if open.len() < CONNECTIONS_MAX {
                        origin.connections.set(origin.connections.get() + 1);
                        open.spawn_local(serve_connection(Rc::clone(&origin), socket));
                    }
                }
            }
        }
        drop(listener);
        open.shutdown().await;
        origin.applied.send_replace(Mode::Refuse);
        wanted
            .wait_for(|mode| *mode != Mode::Refuse)
            .await
            .expect("the origin owns the sender");
    }
}

/// Answers request after request; an error ends the connection and nothing else.
async fn serve_connection(origin: Rc<Origin>, socket: TcpStream) -> io::Result<()> {
    let mut socket = without_delay(socket)?;
    let mut applied = origin.applied.subscribe();
    let mut input = BytesMut::with_capacity(2048);
    let mut output = Vec::with_capacity(2048);
    loop {
        while let Some(head_len) = head_len(&input) {
            origin.requests.set(origin.requests.get() + 1);
            let target = target(&input).ok_or(io::ErrorKind::InvalidData)?;
            if origin.mode() == Mode::Hang {
                applied
                    .wait_for(|mode| *mode != Mode::Hang)
                    .await
                    .expect("the origin owns the sender");
            }
            answer::write_answer(
                &mut output,
                Keeping::of(target),
                &origin.date.borrow(),
                None,
                &origin.body,
            );
            input.advance(head_len);
        }
        socket.write_all(&output).await?;
        output.clear();
        if input.len() > HEAD_LEN_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if socket.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
