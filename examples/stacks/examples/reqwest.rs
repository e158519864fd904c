//! reqwest: a client behind a guard, asked for what is up, down, slow, gone and cut.
//!
//! Run it: `cargo run --example reqwest`, in `examples/stacks`

use std::{
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use evenkeel::{Answer, Ending, Engine, Read, Reason, Rung, Unanswered, classify, stale};
use reqwest::Client;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

type Guard = Read<String, reqwest::Error>;

/// What the server says to each connection; nothing at all stands for one that hangs.
type Says = Arc<Mutex<Option<&'static str>>>;

async fn serve(listener: TcpListener, says: Says) -> std::io::Result<()> {
    loop {
        let (mut socket, _) = listener.accept().await?;
        let says = *says.lock().map_err(|_| std::io::ErrorKind::Other)?;
        tokio::spawn(async move {
            let mut request = [0; 1024];
            let read = socket.read(&mut request).await?;
            let Some(says) = says.filter(|_| read > 0) else {
                return std::future::pending().await;
            };
            socket.write_all(says.as_bytes()).await
        });
    }
}

/// The call that stands in a program: the client is told how long somebody waits, and errors of HTTP are errors.
async fn stock(
    guard: &Guard,
    client: &Client,
    url: &str,
) -> Result<Answer<String, reqwest::Error>, Unanswered<reqwest::Error>> {
    guard
        .call((), "42", |call| async move {
            let response = client.get(url).timeout(call.remaining()).send().await?;
            response.error_for_status()?.text().await
        })
        .await
}

/// Asks the server in each of its states, and asserts what comes.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let says: Says = Arc::default();
    let (listener, address) = evenkeel_stacks::listen().await?;
    let server = tokio::spawn(serve(listener, Arc::clone(&says)));
    let url = format!("http://{address}/42");
    let client = Client::builder().no_proxy().pool_max_idle_per_host(0).build()?;
    let guard: Guard = Engine::system()
        .read("stock")
        .timeout(Duration::from_millis(250))
        .concurrency(16)
        .breaker(|b| b.consecutive(10))
        .classify(classify::reqwest)
        .ladder([stale(Duration::from_secs(60))])
        .build()?;
    let now = |what| {
        says.lock()
            .map(|mut says| *says = what)
            .map_err(|_| "a handler broke")
    };

    now(Some(
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n3",
    ))?;
    let live = stock(&guard, &client, &url).await?;
    assert_eq!((live.rung, &**live), (Rung::Live, "3"));

    for (what, said, reason) in [
        (
            "down",
            Some("HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n"),
            Reason::ErrorAnswer,
        ),
        (
            "cut",
            Some("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n3"),
            Reason::Cut,
        ),
        ("slow", None, Reason::TimedOut),
    ] {
        now(said)?;
        let old = stock(&guard, &client, &url).await?;
        println!(
            "{what}: {} from {} ({reason}), {:?}",
            *old,
            old.rung.as_str(),
            old.cause
        );
        assert_eq!(
            (old.rung, old.reason, &**old),
            (Rung::Stale, Some(reason), "3"),
            "{what}"
        );
    }

    // A real answer is never hidden by old data, and what is gone takes its snapshot with it.
    now(Some("HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n"))?;
    let Err(gone) = stock(&guard, &client, &url).await else {
        return Err("what is gone was served".into());
    };
    assert_eq!((gone.ending, gone.reason), (Ending::Failed, None));
    assert_eq!(
        gone.cause
            .and_then(|error| error.status())
            .map(|status| status.as_u16()),
        Some(404)
    );
    assert_eq!(guard.memory().count(), 0);

    server.abort();
    let refused = stock(&guard, &client, &url)
        .await
        .err()
        .ok_or("nothing could answer this")?;
    println!("gone, and the server too: {refused}");
    assert_eq!(refused.ending, Ending::Refused);
    Ok(())
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
