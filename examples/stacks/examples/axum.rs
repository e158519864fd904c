//! axum: a whole router behind the layer, and one handler that calls a guard itself.
//!
//! Run it: `cargo run --example axum`, in `examples/stacks`

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, request::Parts},
    routing::{get, post},
};
use evenkeel::{
    Engine, Read, classify, default, stale,
    tower::http::{HttpReadLayer, Whole, guard},
};

/// What stands for the database behind the handlers.
#[derive(Clone, Default)]
struct Shop {
    down: Arc<AtomicBool>,
}

impl Shop {
    fn read(&self, what: &str) -> io::Result<String> {
        if self.down.load(Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(format!("live {what}"))
    }
}

/// Fails as handlers do: by a status. The layer reads it.
async fn product(State(shop): State<Shop>, Path(id): Path<u32>) -> Result<String, StatusCode> {
    shop.read(&format!("product {id}"))
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

/// A write: the layer lets it through, and nothing ever stands in for it.
async fn order(State(shop): State<Shop>) -> Result<String, StatusCode> {
    shop.read("order").map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

/// Calls a guard itself, so that one page can use a part that is optional.
async fn home(State((shop, picks)): State<(Shop, Read<String, io::Error>)>) -> String {
    let answer = picks.call((), "home", |_| async { shop.read("picks") }).await;
    match answer {
        Ok(answer) => format!("home with {} ({})", *answer, answer.rung.as_str()),
        Err(_) => "home".to_owned(),
    }
}

/// Whose product it is: a part of the key, so that no tenant gets another's.
fn tenant(parts: &Parts) -> (String,) {
    let named = parts.headers.get("x-tenant").and_then(|name| name.to_str().ok());
    (named.unwrap_or("public").to_owned(),)
}

fn router(engine: &Engine, shop: &Shop) -> Result<Router, evenkeel::Problems> {
    // One line of a stack. The breaker and the copies are the guard's, however often axum applies the layer.
    let products = engine
        .read::<Whole>("products")
        .scope()
        .timeout(Duration::from_millis(250))
        .concurrency(100)
        .breaker(|b| b.consecutive(3))
        .ladder([stale(Duration::from_secs(60))]);
    let products = guard(products, |never: &std::convert::Infallible| match *never {})?;
    let guarded = Router::new()
        .route("/products/{id}", get(product))
        .route("/orders", post(order))
        .with_state(shop.clone())
        .layer(HttpReadLayer::new(&products, tenant as fn(&Parts) -> (String,)));

    let picks = engine
        .read::<String>("picks")
        .timeout(Duration::from_millis(100))
        .classify(classify::io)
        .ladder([default(|| "bestsellers".to_owned())])
        .build()?;
    let pages = Router::new()
        .route("/", get(home))
        .with_state((shop.clone(), picks));
    Ok(guarded.merge(pages))
}

async fn ask(method: reqwest::Method, url: String) -> Result<(u16, HeaderMap, String), reqwest::Error> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let response = client.request(method, url).send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok((status, headers, response.text().await?))
}

/// Serves, asks while the shop is up and when it is down, and asserts what comes.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let shop = Shop::default();
    let router = router(&Engine::system(), &shop)?;
    let (listener, address) = evenkeel_stacks::listen().await?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let get = |path: &str| ask(reqwest::Method::GET, format!("http://{address}{path}"));

    let (status, headers, body) = get("/products/42").await?;
    assert_eq!((status, &*body), (200, "live product 42"));
    assert_eq!(headers["x-data-freshness"], "fresh");
    assert_eq!(get("/").await?.2, "home with live picks (live)");

    shop.down.store(true, Relaxed);
    let (status, headers, body) = get("/products/42").await?;
    println!("{status} {body}: {headers:?}");
    assert_eq!((status, &*body), (200, "live product 42"));
    assert_eq!(
        (&headers["x-data-freshness"], &headers["age"]),
        (&"stale".parse()?, &"0".parse()?)
    );
    let said = headers["degraded"].to_str()?;
    assert!(said.starts_with("products;rung=stale;age=0;") && said.ends_with(";reason=error-answer"));
    assert_eq!(get("/").await?.2, "home with bestsellers (default)");

    // Nothing is kept of this one: the error as it came, and once the breaker is open, a refusal with a time.
    assert_eq!(get("/products/7").await?.0, 503);
    assert_eq!(get("/products/7").await?.0, 503);
    let (status, headers, body) = get("/products/7").await?;
    println!("{status} {body}");
    assert_eq!((status, headers.contains_key("retry-after")), (503, true));
    assert!(body.contains(r#""reason":"breaker-open""#));

    let (status, headers, _) = ask(reqwest::Method::POST, format!("http://{address}/orders")).await?;
    assert_eq!((status, headers.contains_key("x-data-freshness")), (503, false));
    server.abort();
    Ok(())
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
