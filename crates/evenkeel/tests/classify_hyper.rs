//! The classifiers of hyper and reqwest, row by row, by the errors that the clients really return.
#![cfg(all(feature = "hyper", feature = "reqwest"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "these tests play a server, whose answers are short"
)]

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use evenkeel::{Class, Outage, classify};
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpListener,
};

const CUT: Class = Class::Outage(Outage::Cut);
const TIMED_OUT: Class = Class::Outage(Outage::TimedOut);

/// A connection whose other side, once asked, says `says` and then breaks by `breaks`, or ends.
struct Says {
    says: &'static [u8],
    breaks: Option<io::ErrorKind>,
    asked: bool,
    reader: Option<Waker>,
}

fn says(says: &'static [u8], breaks: Option<io::ErrorKind>) -> Says {
    Says {
        says,
        breaks,
        asked: false,
        reader: None,
    }
}

impl AsyncRead for Says {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.asked {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        if self.says.is_empty() {
            return Poll::Ready(self.breaks.map_or(Ok(()), |kind| Err(kind.into())));
        }
        buffer.put_slice(self.says);
        self.says = &[];
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Says {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        sent: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.asked = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(sent.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Asks such a connection, and reads the answer to its end.
async fn ask(connection: Says) -> Result<Bytes, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
    let driver = tokio::spawn(connection);
    let answer = sender.send_request(Request::new(Empty::<Bytes>::new())).await?;
    let body = answer.into_body().collect().await?.to_bytes();
    driver.abort();
    Ok(body)
}

const HALF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";

#[tokio::test]
async fn each_error_of_hyper_has_the_class_of_its_row() {
    for (connection, class) in [
        (says(b"", None), CUT),
        (says(HALF, None), CUT),
        (says(b"", Some(io::ErrorKind::ConnectionReset)), Class::OUTAGE),
        (says(HALF, Some(io::ErrorKind::ConnectionReset)), Class::OUTAGE),
        (says(HALF, Some(io::ErrorKind::TimedOut)), TIMED_OUT),
        (says(HALF, Some(io::ErrorKind::InvalidData)), Class::OUTAGE), // what TLS says of nonsense
        (says(b"SSH-2.0-OpenSSH_9.9\r\n\r\n", None), Class::OUTAGE),
    ] {
        let error = ask(connection).await.unwrap_err();
        assert_eq!(classify::hyper(&error), class, "{error:?}");
        let wrapped = io::Error::other(error);
        assert_eq!(classify::hyper_within(&wrapped), Some(class), "{wrapped:?}");
    }
}

#[tokio::test]
async fn a_connection_that_goes_before_it_was_asked_is_an_outage() {
    let (mut sender, connection) = http1::handshake(TokioIo::new(says(b"", None))).await.unwrap();
    drop(connection);
    let error = sender
        .send_request(Request::new(Empty::<Bytes>::new()))
        .await
        .unwrap_err();
    assert!(error.is_canceled(), "{error:?}");
    assert_eq!(classify::hyper(&error), Class::OUTAGE);
}

#[tokio::test]
async fn what_the_program_does_wrong_is_a_fault() {
    let never_upgraded = hyper::Response::new(());
    let error = hyper::upgrade::on(never_upgraded).await.unwrap_err();
    assert!(error.is_user(), "{error:?}");
    assert_eq!(classify::hyper(&error), Class::Fault);
}

#[test]
fn an_error_that_is_not_about_the_connection_has_no_class_here() {
    assert_eq!(classify::hyper_within(&std::fmt::Error), None);
    assert_eq!(
        classify::hyper_within(&io::Error::from(io::ErrorKind::PermissionDenied)),
        None
    );
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    assert_eq!(classify::hyper_within(&reset), Some(Class::OUTAGE));
}

/// Serves one connection by these bytes, and returns its URL. `None` never answers.
async fn serve(says: Option<&'static [u8]>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        assert_ne!(socket.read(&mut request).await.unwrap(), 0);
        match says {
            Some(says) => socket.write_all(says).await.unwrap(),
            None => std::future::pending().await,
        }
    });
    format!("http://{address}/")
}

/// Asks by reqwest, and reads the answer as text.
async fn text(url: &str) -> Result<String, reqwest::Error> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let request = client.get(url).timeout(Duration::from_millis(200));
    request.send().await?.error_for_status()?.text().await
}

#[tokio::test]
async fn each_error_of_reqwest_has_the_class_of_its_row() {
    for (row, says, class) in [
        (
            "503",
            &b"HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n"[..],
            Class::Outage(Outage::ErrorAnswer),
        ),
        ("404", b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n", Class::Gone),
        ("429", b"HTTP/1.1 429 x\r\ncontent-length: 0\r\n\r\n", Class::Busy),
        (
            "400",
            b"HTTP/1.1 400 x\r\ncontent-length: 0\r\n\r\n",
            Class::Refusal,
        ),
        ("nothing", b"", CUT),
        ("half a body", HALF, CUT),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.9\r\n\r\n", Class::OUTAGE),
        (
            "a redirect to nowhere",
            b"HTTP/1.1 302 x\r\nlocation: ftp://127.0.0.1/\r\ncontent-length: 0\r\n\r\n",
            Class::Fault,
        ),
    ] {
        let error = text(&serve(Some(says)).await).await.unwrap_err();
        assert_eq!(classify::reqwest(&error), class, "{row}: {error:?}");
    }
    let error = text(&serve(None).await).await.unwrap_err();
    assert_eq!(classify::reqwest(&error), TIMED_OUT, "{error:?}");
}

#[tokio::test]
async fn a_connection_that_reqwest_could_not_make_is_an_outage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    for url in [gone.as_str(), "http://no-such-name.invalid/"] {
        let error = text(url).await.unwrap_err();
        assert_eq!(classify::reqwest(&error), Class::OUTAGE, "{error:?}");
    }
}

#[tokio::test]
async fn a_request_that_was_never_made_is_a_fault() {
    let error = text("not a url").await.unwrap_err();
    assert!(error.is_builder(), "{error:?}");
    assert_eq!(classify::reqwest(&error), Class::Fault);
}
