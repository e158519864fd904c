//! Decides what the congested origin's control port understands: `/hang`, `/heal` and `/record`.
//!
//! It exists so that a script steers the origin with nothing but HTTP. It refuses anything else.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use super::{Congested, now_written};
use crate::control::serve;

/// Serves the control port until binding or accepting fails.
///
/// # Errors
/// What binding `address` or accepting fails with.
pub async fn serve_control(origin: Rc<Congested>, address: SocketAddr) -> io::Result<()> {
    serve(address, "/hang, /heal or /record", |path| {
        ready(answer(&origin, &path))
    })
    .await
}

fn answer(origin: &Congested, path: &str) -> Option<String> {
    match path {
        "/hang" => origin.hang(true),
        "/heal" => origin.hang(false),
        "/record" => {}
        _ => return None,
    }
    let (_, now) = now_written();
    let record = origin.record.borrow();
    Some(format!(
        "{{\"now_ms\":{now},\"in_flight\":{},\"arrived\":{:?},\"peak\":{:?}}}",
        origin.in_flight(),
        record.arrived,
        record.peak
    ))
}
