//! tonic: a gRPC client behind a guard; UNAVAILABLE and a deadline lead to old data, NOT_FOUND does not.
//!
//! Run it: `cargo run --example tonic`, in `examples/stacks`

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router, body::Body, extract::Request as HttpRequest, response::Response as HttpResponse, routing::post,
};
use evenkeel::{Answer, Class, Ending, Engine, Read, Reason, Rung, Unanswered, classify, stale};
use evenkeel_stacks::text::Text;
use http::uri::PathAndQuery;
use tonic::{Code, Request, Response, Status, client::Grpc, server::UnaryService, transport::Channel};

const COUNT: &str = "/stock.Stock/Count";

/// The server: says what it is told to, or hangs; and notes how long it was told that somebody waits.
#[derive(Clone, Default)]
struct Stock {
    says: Arc<Mutex<Option<Result<&'static str, Code>>>>,
    told: Arc<Mutex<Option<String>>>,
}

impl UnaryService<String> for Stock {
    type Response = String;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Status>> + Send>>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let told = request.metadata().get("grpc-timeout");
        *self.told.lock().unwrap() = told.and_then(|told| told.to_str().ok()).map(str::to_owned);
        let says = *self.says.lock().unwrap();
        Box::pin(async move {
            match says {
                Some(Ok(text)) => Ok(Response::new(text.to_owned())),
                Some(Err(code)) => Err(Status::new(code, "as told")),
                None => std::future::pending().await,
            }
        })
    }
}

/// The call that stands in a program: what remains for the attempt goes on as `grpc-timeout`.
async fn count(
    guard: &Read<String, Status>,
    channel: &Channel,
) -> Result<Answer<String, Status>, Unanswered<Status>> {
    let work = |call: evenkeel::Call<'_>| {
        let mut client = Grpc::new(channel.clone());
        let mut request = Request::new("42".to_owned());
        request.set_timeout(call.remaining());
        async move {
            client
                .ready()
                .await
                .map_err(|error| Status::from_error(error.into()))?;
            let answer = client
                .unary(request, PathAndQuery::from_static(COUNT), Text)
                .await?;
            Ok(answer.into_inner())
        }
    };
    guard.call((), "42", work).await
}

/// Asks the server in each of its states, and asserts what comes.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let stock = Stock::default();
    let served = stock.clone();
    let handler = async move |request: HttpRequest| -> HttpResponse {
        tonic::server::Grpc::new(Text)
            .unary(served, request)
            .await
            .map(Body::new)
    };
    let (listener, address) = evenkeel_stacks::listen().await?;
    let server =
        tokio::spawn(async { axum::serve(listener, Router::new().route(COUNT, post(handler))).await });
    let channel = Channel::from_shared(format!("http://{address}"))?.connect_lazy();
    let guard = Engine::system()
        .read("stock")
        .timeout(Duration::from_millis(250))
        .breaker(|b| b.consecutive(10))
        .classify(classify::tonic)
        .ladder([stale(Duration::from_secs(60))])
        .build()?;
    let now = |says| *stock.says.lock().unwrap() = says;

    now(Some(Ok("3")));
    let live = count(&guard, &channel).await?;
    assert_eq!((live.rung, &**live), (Rung::Live, "3"));
    let told = stock
        .told
        .lock()
        .unwrap()
        .clone()
        .ok_or("the time was not handed on")?;
    println!("the server was told: grpc-timeout {told}");
    let micros: u64 = told.strip_suffix('u').ok_or("no microseconds")?.parse()?;
    assert!((1..=250_000).contains(&micros));

    for (says, reason) in [
        (Some(Err(Code::Unavailable)), Reason::DependencyFailed),
        (None, Reason::TimedOut),
    ] {
        now(says);
        let old = count(&guard, &channel).await?;
        println!("{says:?}: {} from {} ({reason})", *old, old.rung.as_str());
        assert_eq!((old.rung, old.reason, &**old), (Rung::Stale, Some(reason), "3"));
    }
    assert_eq!(guard.dependency().attempts(Class::OUTAGE), 2);

    now(Some(Err(Code::NotFound)));
    let gone = count(&guard, &channel)
        .await
        .err()
        .ok_or("what is gone was served")?;
    assert_eq!(
        (gone.ending, gone.cause.map(|status| status.code())),
        (Ending::Failed, Some(Code::NotFound))
    );
    assert_eq!(guard.memory().count(), 0);
    server.abort();
    Ok(())
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
