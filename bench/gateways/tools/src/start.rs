//! Decides how a tool starts: the addresses from its command line, and one thread.
//!
//! It exists because the gateway under test is pinned to one core, so a limit beside it
//! needs no more than a current-thread runtime. It refuses options of any kind.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Returns the two addresses of the command line, in the order in which they were given.
///
/// # Errors
/// `InvalidInput`, naming the argument, when there are not exactly two, or one is not an
/// address with a port such as `127.0.0.1:21000`.
pub fn two_addresses(usage: &str) -> io::Result<[SocketAddr; 2]> {
    addresses(std::env::args().skip(1), usage)
}

/// Returns the only address of the command line.
///
/// # Errors
/// As [`two_addresses`].
pub fn one_address(usage: &str) -> io::Result<SocketAddr> {
    let [address] = addresses(std::env::args().skip(1), usage)?;
    Ok(address)
}

/// Returns the error for a command line that is not understood.
#[must_use]
pub fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn addresses<const N: usize>(
    arguments: impl Iterator<Item = String>,
    usage: &str,
) -> io::Result<[SocketAddr; N]> {
    let parsed = arguments
        .map(|seen| {
            seen.parse().map_err(|_| {
                invalid(format!(
                    "argument {seen:?}: want an address such as 127.0.0.1:21000"
                ))
            })
        })
        .collect::<io::Result<Vec<SocketAddr>>>()?;
    parsed.try_into().map_err(|seen: Vec<SocketAddr>| {
        invalid(format!("{} arguments, want {N}; usage: {usage}", seen.len()))
    })
}

/// Runs `work` on one thread, where tasks may share state without locks.
///
/// # Errors
/// What the runtime or `work` fails with.
pub fn on_one_thread(work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, work)
}

/// Turns off Nagle's algorithm, whose waits would be measured otherwise.
///
/// # Errors
/// What the operating system answers, for instance when the peer has already left.
pub fn without_delay(socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given<const N: usize>(arguments: &[&str]) -> io::Result<[SocketAddr; N]> {
        addresses(arguments.iter().map(ToString::to_string), "tool ADDRESS")
    }

    #[test]
    fn addresses_keep_their_order() {
        let [first, second] = given(&["127.0.0.1:1", "127.0.0.1:2"]).unwrap();
        assert_eq!((first.port(), second.port()), (1, 2));
    }

    #[test]
    fn a_wrong_address_is_named() {
        let error = given::<1>(&["localhost"]).unwrap_err();
        assert!(error.to_string().contains("\"localhost\""), "{error}");
    }

    #[test]
    fn a_missing_address_shows_the_usage() {
        let error = given::<2>(&["127.0.0.1:1"]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("1 arguments, want 2; usage: tool ADDRESS"),
            "{error}"
        );
    }
}
