//! The layer for HTTP: what is guarded and kept, and what each response says about itself.
#![cfg(all(feature = "tower", feature = "http"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    collections::VecDeque,
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use evenkeel::{
    Class, ManualClock, Read, State, default, stale,
    tower::http::{Given, HttpReadLayer, Trouble, Whole, guard},
};
use http::{HeaderMap, Method, Request, Response, request::Parts};
use http_body::{Body, Frame};
use parking_lot::Mutex;
use support::{Fail, SECOND, engine};
use tower_layer::Layer as _;
use tower_service::Service;

/// A body in pieces, one of which may be its end.
#[derive(Clone, Debug)]
struct Pieces(VecDeque<Result<&'static str, Fail>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.pop_front().map(|piece| match piece {
            Ok(text) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
            Err(_) => Err(std::io::ErrorKind::ConnectionReset.into()),
        }))
    }
}

/// What the service says next, or how it fails; and what it was asked.
#[derive(Clone, Debug)]
struct Origin(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    says: Result<Response<Pieces>, Fail>,
    asked: Vec<HeaderMap>,
}

impl Service<Request<()>> for Origin {
    type Response = Response<Pieces>;
    type Error = Fail;
    type Future = Ready<Result<Response<Pieces>, Fail>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Fail>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut inside = self.0.lock();
        inside.asked.push(request.headers().clone());
        ready(inside.says.clone())
    }
}

type Guard = Read<Whole, Trouble<Fail>, (String,)>;

struct Stage {
    clock: ManualClock,
    guard: Guard,
    origin: Origin,
    body_max: usize,
}

/// The tenant of a request: a part of the key.
fn tenant(parts: &Parts) -> (String,) {
    let named = parts
        .headers
        .get("x-tenant")
        .map_or("acme", |name| name.to_str().unwrap());
    (named.to_owned(),)
}

fn response(
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: &[Result<&'static str, Fail>],
) -> Response<Pieces> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Pieces(body.iter().copied().collect())).unwrap()
}

impl Stage {
    fn new(with_default: bool) -> Self {
        let (clock, engine) = engine();
        let mut contract = engine
            .read::<Whole>("products")
            .scope::<(String,)>()
            .breaker(|b| b.consecutive(100))
            .ladder([stale(60 * SECOND)]);
        if with_default {
            contract = contract.ladder([default(|| {
                Whole::new(Response::new(Bytes::from_static(b"simple")))
            })]);
        }
        Self {
            clock,
            guard: guard(contract, Fail::class).unwrap(),
            origin: Origin(Arc::new(Mutex::new(Inside {
                says: Err(Fail::Down),
                asked: Vec::new(),
            }))),
            body_max: 100,
        }
    }

    fn says(&self, status: u16, headers: &[(&'static str, &'static str)], body: &'static str) {
        self.origin.0.lock().says = Ok(response(status, headers, &[Ok(body)]));
    }

    fn fails(&self, by: Fail) {
        self.origin.0.lock().says = Err(by);
    }

    async fn send(&self, request: Request<()>) -> Result<Response<Given<Pieces>>, Fail> {
        let layer =
            HttpReadLayer::new(&self.guard, tenant as fn(&Parts) -> (String,)).body_max(self.body_max);
        layer.layer(self.origin.clone()).call(request).await
    }

    async fn get(&self, headers: &[(&'static str, &'static str)]) -> Told {
        Told::of(self.send(request("GET", headers)).await.unwrap()).await
    }
}

fn request(method: &str, headers: &[(&'static str, &'static str)]) -> Request<()> {
    let mut request = Request::builder()
        .method(method)
        .uri("/42")
        .header("host", "shop");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// A response, read to its end.
#[derive(Debug)]
struct Told {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Told {
    async fn of(response: Response<Given<Pieces>>) -> Self {
        let (parts, mut body) = response.into_parts();
        let mut text = String::new();
        while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
        }
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: text,
        }
    }

    fn field(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("-", |value| value.to_str().unwrap())
    }

    /// Status, freshness, age and body.
    fn short(&self) -> (u16, &str, &str, &str) {
        (
            self.status,
            self.field("x-data-freshness"),
            self.field("age"),
            &self.body,
        )
    }
}

#[tokio::test]
async fn a_live_answer_is_labelled_fresh_and_a_stale_one_says_since_when_and_why() {
    let stage = Stage::new(false);
    stage.says(200, &[("etag", "\"1\"")], "chair");
    assert_eq!(stage.get(&[]).await.short(), (200, "fresh", "-", "chair"));
    stage.clock.advance(34 * SECOND);
    stage.fails(Fail::Down);
    let old = stage.get(&[]).await;
    assert_eq!(old.short(), (200, "stale", "34", "chair"));
    let degraded = old.field("degraded");
    assert!(
        degraded.starts_with("products;rung=stale;age=34;observed=@"),
        "{degraded}"
    );
    assert!(degraded.ends_with(";reason=dependency-failed"), "{degraded}");
}

#[tokio::test]
async fn an_outage_by_status_leads_to_the_ladder_and_else_is_given_as_it_came() {
    let stage = Stage::new(false);
    stage.says(503, &[("retry-after", "7")], "down");
    assert_eq!(stage.get(&[]).await.short(), (503, "-", "-", "down"));
    stage.says(200, &[], "chair");
    stage.get(&[]).await;
    stage.says(503, &[("retry-after", "7")], "down");
    let old = stage.get(&[]).await;
    assert_eq!(old.short(), (200, "stale", "0", "chair"));
    assert!(old.field("degraded").ends_with(";reason=error-answer"));
    assert_eq!(stage.guard.dependency().attempts(Class::OUTAGE), 2);
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_gone_retires_the_snapshot() {
    let stage = Stage::new(false);
    stage.says(200, &[], "chair");
    stage.get(&[]).await;
    stage.says(403, &[("x-data-freshness", "fresh")], "no");
    assert_eq!(
        stage.get(&[]).await.short(),
        (403, "-", "-", "no"),
        "a real answer is not hidden"
    );
    stage.says(404, &[], "gone");
    assert_eq!(stage.get(&[]).await.short(), (404, "-", "-", "gone"));
    stage.fails(Fail::Down);
    assert_eq!(
        stage.send(request("GET", &[])).await.unwrap_err(),
        Fail::Down,
        "nothing is left to serve"
    );
}

#[tokio::test]
async fn a_429_is_given_as_it_came_and_blames_nobody() {
    let stage = Stage::new(false);
    stage.says(200, &[], "chair");
    stage.get(&[]).await;
    stage.says(429, &[("retry-after", "7")], "later");
    let told = stage.get(&[]).await;
    assert_eq!(told.short(), (429, "-", "-", "later"));
    assert_eq!(told.field("retry-after"), "7");
    let dependency = stage.guard.dependency();
    assert_eq!(
        (
            dependency.attempts(Class::Busy),
            dependency.attempts(Class::OUTAGE)
        ),
        (1, 0)
    );
}

#[tokio::test]
async fn a_default_is_labelled_and_asks_not_to_be_kept() {
    let stage = Stage::new(true);
    stage.fails(Fail::Down);
    let simple = stage.get(&[]).await;
    assert_eq!(simple.short(), (200, "default", "-", "simple"));
    assert_eq!(simple.field("cache-control"), "no-store");
    assert_eq!(
        simple.field("degraded"),
        "products;rung=default;reason=dependency-failed"
    );
}

#[tokio::test]
async fn a_refused_call_is_told_as_a_problem_with_a_time_to_come_back() {
    let (clock, engine) = engine();
    let contract = engine
        .read::<Whole>("products")
        .scope::<(String,)>()
        .breaker(|b| b.consecutive(1).open_for(8 * SECOND, 8 * SECOND).jitter(0));
    let stage = Stage {
        clock,
        guard: guard(contract, Fail::class).unwrap(),
        ..Stage::new(false)
    };
    stage.fails(Fail::Down);
    assert_eq!(stage.send(request("GET", &[])).await.unwrap_err(), Fail::Down);
    assert_eq!(stage.guard.dependency().status().state, Some(State::Open));
    let told = stage.get(&[]).await;
    assert_eq!(
        (
            told.status,
            told.field("retry-after"),
            told.field("x-data-freshness")
        ),
        (503, "8", "-")
    );
    assert_eq!(told.field("content-type"), "application/problem+json");
    assert!(told.body.contains(r#""reason":"breaker-open""#), "{}", told.body);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_outage_and_never_a_short_answer() {
    let stage = Stage::new(false);
    stage.says(200, &[], "chair");
    stage.get(&[]).await;
    let broken = response(200, &[], &[Ok("cha"), Err(Fail::Down)]);
    stage.origin.0.lock().says = Ok(broken);
    let old = stage.get(&[]).await;
    assert_eq!(old.short(), (200, "stale", "0", "chair"));
    assert!(old.field("degraded").ends_with(";reason=cut"));
    let told = stage.get(&[("x-tenant", "other")]).await;
    assert_eq!(
        (told.status, told.body.contains("\"cut\"")),
        (502, true),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit_and_one_byte_more_is_a_fault() {
    let mut stage = Stage::new(false);
    let pieces = response(200, &[], &[Ok("cha"), Ok("i"), Ok("r")]);
    stage.origin.0.lock().says = Ok(pieces);
    stage.body_max = 5;
    assert_eq!(stage.get(&[]).await.short(), (200, "fresh", "-", "chair"));
    stage.body_max = 4;
    let told = stage.get(&[]).await;
    assert_eq!(told.status, 500, "a fault is shown although a snapshot exists");
    assert_eq!(stage.guard.dependency().attempts(Class::Fault), 1);
}

#[tokio::test]
async fn what_may_not_be_kept_is_not_and_takes_the_old_copy_with_it() {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("cache-control", "private"),
        ("set-cookie", "id=7"),
        ("vary", "*"),
    ] {
        let stage = Stage::new(false);
        stage.says(200, &[], "chair");
        stage.get(&[]).await;
        stage.says(200, &[(name, value)], "mine");
        assert_eq!(stage.get(&[]).await.body, "mine");
        assert_eq!(stage.guard.memory().count(), 0, "{name}: {value}");
    }
}

#[tokio::test]
async fn c12_what_somebody_is_told_about_themselves_takes_no_copy_of_others_away() {
    for with in [("authorization", "Basic x"), ("cookie", "id=7")] {
        for said in ["no-store", "private"] {
            let stage = Stage::new(false);
            stage.says(200, &[], "chair");
            stage.get(&[]).await;
            stage.says(200, &[("cache-control", said)], "mine");
            assert_eq!(stage.get(&[with]).await.body, "mine");
            assert_eq!(stage.guard.memory().count(), 1, "{with:?} {said}");
        }
    }
}

#[tokio::test]
async fn a_degraded_answer_of_another_is_not_taken_for_live_data() {
    let stage = Stage::new(false);
    stage.says(
        200,
        &[
            ("x-data-freshness", "stale"),
            ("degraded", "x;rung=stale;reason=cut"),
        ],
        "old",
    );
    let told = stage.get(&[]).await;
    assert_eq!(
        (told.short(), told.field("degraded")),
        ((200, "stale", "-", "old"), "x;rung=stale;reason=cut")
    );
    assert_eq!(stage.guard.memory().count(), 0);
}

#[tokio::test]
async fn a_copy_goes_only_to_whom_it_may_be_given() {
    let stage = Stage::new(true);
    stage.says(200, &[("vary", "accept-language")], "Stuhl");
    stage.get(&[("accept-language", "de")]).await;
    stage.fails(Fail::Down);
    for (name, value, body) in [
        ("accept-language", "de", "Stuhl"),
        ("accept-language", "en", "simple"),
        ("x-tenant", "other", "simple"),
    ] {
        assert_eq!(stage.get(&[(name, value)]).await.body, body, "{name}: {value}");
    }
    for with in [("authorization", "Basic x"), ("cookie", "id=7")] {
        assert_eq!(
            stage.get(&[("accept-language", "de"), with]).await.body,
            "simple",
            "{with:?}"
        );
    }
    // And what was answered to somebody's credentials is kept for nobody.
    let stage = Stage::new(true);
    stage.says(200, &[], "mine");
    stage.get(&[("authorization", "Basic x")]).await;
    assert_eq!(stage.guard.memory().count(), 0);
}

#[tokio::test]
async fn conditions_are_taken_off_the_request_and_evaluated_on_the_answer() {
    let stage = Stage::new(false);
    stage.says(200, &[("etag", "\"1\"")], "chair");
    let told = stage
        .get(&[("if-none-match", "\"1\""), ("range", "bytes=0-1")])
        .await;
    assert_eq!(
        (told.status, told.body.as_str(), told.field("etag")),
        (304, "", "\"1\"")
    );
    let asked = stage.origin.0.lock().asked.pop().unwrap();
    assert!(!asked.contains_key("if-none-match") && !asked.contains_key("range"));
    stage.fails(Fail::Down);
    assert_eq!(stage.get(&[]).await.body, "chair", "a whole answer was kept");
    let told = stage.get(&[("if-none-match", "\"1\"")]).await;
    assert_eq!((told.status, told.field("x-data-freshness")), (304, "stale"));
}

#[tokio::test]
async fn what_is_no_plain_get_goes_past_the_guard() {
    let stage = Stage::new(true);
    for (method, headers) in [
        (Method::POST, &[][..]),
        (Method::HEAD, &[]),
        (Method::DELETE, &[]),
        (Method::GET, &[("upgrade", "websocket")]),
    ] {
        stage.says(200, &[], "passed");
        let told = Told::of(stage.send(request(method.as_str(), headers)).await.unwrap()).await;
        assert_eq!(told.short(), (200, "-", "-", "passed"), "{method}");
        stage.fails(Fail::Down);
        let failed = stage.send(request(method.as_str(), headers)).await;
        assert_eq!(
            failed.unwrap_err(),
            Fail::Down,
            "{method}: never answered by a rung"
        );
    }
    assert_eq!(stage.guard.counts().calls(), 0);
}

#[tokio::test]
async fn a_copy_is_given_no_longer_than_it_permits_itself() {
    let stage = Stage::new(true);
    stage.says(200, &[("cache-control", "max-age=1, must-revalidate")], "chair");
    stage.get(&[]).await;
    stage.clock.advance(2 * SECOND);
    stage.fails(Fail::Down);
    assert_eq!(stage.get(&[]).await.body, "simple");
}
