//! The client of a script: it keeps its connection from step to step, as clients do, and says what it got.
//! A byte too many after one answer is then the beginning of the next, and does not go unseen.
//! It judges nothing.

use std::{net::SocketAddr, time::Duration};

use tokio::{net::TcpStream, time::timeout};

use crate::wire::{Head, Wire, latin};

/// Nothing here takes longer, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a client got.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: Head,
    pub(crate) body: String,
    /// It ended as its framing says.
    pub(crate) complete: bool,
}

/// Sends one request, on the connection given or a new one, and reads the answer; `None` when no head came. The
/// connection comes back if it can bear another request.
pub(crate) async fn ask(
    proxy: SocketAddr,
    kept: Option<Wire>,
    request: Vec<u8>,
    head_only: bool,
) -> (Option<Got>, Option<Wire>) {
    match timeout(PATIENCE, exchange(proxy, kept, &request, head_only)).await {
        Ok(Some((got, wire))) => {
            let ends = got
                .head
                .combined("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close"));
            let kept = (got.complete && !ends).then_some(wire);
            (Some(got), kept)
        }
        Ok(None) | Err(_) => (None, None),
    }
}

async fn exchange(
    proxy: SocketAddr,
    kept: Option<Wire>,
    request: &[u8],
    head_only: bool,
) -> Option<(Got, Wire)> {
    let mut wire = match kept {
        Some(wire) => wire,
        None => Wire::new(TcpStream::connect(proxy).await.ok()?),
    };
    wire.send(request).await;
    loop {
        let head = wire.head().await?;
        let status: u16 = head.line.split(' ').nth(1)?.parse().ok()?;
        if status >= 200 {
            let bodiless = head_only || matches!(status, 204 | 304);
            let (body, complete) = wire.answer_body(&head, bodiless).await;
            let body = latin(&body);
            let got = Got {
                status,
                head,
                body,
                complete,
            };
            return Some((got, wire));
        }
    }
}
