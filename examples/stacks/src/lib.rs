//! Decides how the examples come by a port: the system chooses one on loopback.
//! It exists so that each example shows its stack and nothing else.
//! It refuses to hold anything that a reader would have to copy.

pub mod text;

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

/// Listens on a free port of loopback.
///
/// # Errors
/// When the system has none.
pub async fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
