//! Decides what the origin's control port understands: `/mode/WORD` and `/counters`.
//!
//! It exists so that a script steers the origin with nothing but HTTP. It refuses to
//! answer a mode change before the data port has taken it up.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use super::{Mode, Origin};
use crate::control::serve;

/// Serves the control port until binding or accepting fails.
///
/// # Errors
/// What binding `address` or accepting fails with.
pub async fn serve_control(origin: Rc<Origin>, address: SocketAddr) -> io::Result<()> {
    serve(address, "/counters or /mode/{normal,refuse,hang}", |path| {
        answer(Rc::clone(&origin), path)
    })
    .await
}

async fn answer(origin: Rc<Origin>, path: String) -> Option<String> {
    if path != "/counters" {
        origin
            .set_mode(path.strip_prefix("/mode/").and_then(Mode::from_word)?)
            .await;
    }
    let (requests, connections) = origin.counters();
    let mode = origin.mode().as_str();
    Some(format!(
        "{{\"mode\":\"{mode}\",\"requests\":{requests},\"connections\":{connections}}}"
    ))
}
