//! The contracts that people start from pass the check, and keep over sockets what their comments promise.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "e2e/kit.rs"]
mod kit;

use std::{collections::BTreeMap, path::Path, pin::pin, process::Command, time::Duration};

use evenkeel::{Engine, Rung};
use evenkeel_gateway::{
    config,
    explain::{self, OfRoute},
    proxy::{App, Limits},
};
use kit::{Answer, Bench, Client, Origin, Reply};

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// An example that runs on loopback, each of its dependencies by its name.
struct Running {
    bench: Bench,
    origins: BTreeMap<String, Origin>,
    told: Vec<OfRoute>,
}

/// Starts an example with its addresses replaced by those of origins that answer with their names.
async fn start(name: &str) -> Running {
    let mut contract = text(name);
    let loaded = config::parse(name, &contract).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.diagnostics.warnings(), 0, "{}", loaded.diagnostics);
    let app = App::build(&loaded.contract, &Engine::system(), Limits::default(), 1).unwrap();
    let told = explain::explain(&loaded, &app).unwrap();
    let mut origins = BTreeMap::new();
    for dependency in &loaded.contract.dependencies {
        let upstream = &dependency.upstreams[0];
        let answer = Reply::ok(format!("from {}", dependency.name)).header("cache-control", "max-age=1");
        let origin = Origin::always(answer).await;
        let old = format!("http://{}:{}\"", upstream.host, upstream.port);
        assert!(contract.contains(&old), "{old}");
        contract = contract.replace(&old, &format!("http://{}\"", origin.address));
        origins.insert(dependency.name.clone(), origin);
    }
    let listen = format!("listen = \"{}\"", loaded.contract.gateway.listen);
    assert!(contract.contains(&listen));
    let contract = contract.replace(&listen, "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"");
    let contract = contract.replace("access_log = \"stdout\"\n", "");
    let bench = Bench::with_manual_clock(&contract).await;
    Running { bench, origins, told }
}

impl Running {
    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[]).await
    }

    async fn get_as(&self, token: &str, path: &str) -> Answer {
        self.ask("GET", path, &[("authorization", &format!("Bearer {token}"))])
            .await
    }

    async fn post(&self, path: &str) -> Answer {
        self.ask("POST", path, &[("content-length", "0")]).await
    }

    /// Asks; while there is no answer the clock goes on, as pauses before retries end by it.
    async fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut client = Client::connect(self.bench.address()).await;
        let mut answer = pin!(client.request(method, path, fields));
        loop {
            match tokio::time::timeout(Duration::from_millis(20), &mut answer).await {
                Ok(answer) => return answer,
                Err(_) => self.bench.advance(Duration::from_millis(20)),
            }
        }
    }

    async fn kill(&self, dependency: &str) {
        self.origins[dependency].stop().await;
    }

    /// Returns the rung that `check --explain` foretells for a route whose first dependencies are gone, with a copy or
    /// without.
    fn foretold(&self, route: &str, gone: usize, has_copy: bool) -> (Option<Rung>, Option<u16>) {
        let route = self.told.iter().find(|told| told.name == route).unwrap();
        let outlook = &route.outlooks[gone - 1];
        let outcome = outlook.outcomes.iter().find(|outcome| {
            !outcome.breaker_open
                && has_copy == outcome.with.starts_with("a copy")
                && outcome.with != "a copy inside its lifetime"
        });
        let outcome = outcome.unwrap_or(&outlook.outcomes[0]);
        (outcome.rung, outcome.status)
    }

    /// Asks, and compares with what was foretold.
    #[track_caller]
    fn assert_as_foretold(&self, answer: &Answer, route: &str, gone: usize, has_copy: bool) {
        match self.foretold(route, gone, has_copy) {
            (Some(rung), status) => {
                assert_eq!(answer.freshness(), rung.as_str(), "{route}: {answer:?}");
                assert_eq!(answer.status, status.unwrap_or(200), "{route}");
            }
            (None, status) => {
                assert_eq!(Some(answer.status), status, "{route}: {answer:?}");
                assert_eq!(answer.freshness(), "-", "{route}");
            }
        }
    }
}

#[tokio::test]
async fn a_sidecar_serves_products_for_ten_minutes_and_finds_nothing_rather_than_failing() {
    let running = start("sidecar.toml").await;
    assert_eq!(running.get("/products/1").await.text(), "from api");
    assert_eq!(running.get("/search?q=a").await.text(), "from api");
    assert_eq!(running.post("/baskets").await.status, 200);
    running.kill("api").await;
    let product = running.get("/products/1").await;
    assert_eq!((product.status, product.freshness()), (200, "stale"));
    running.assert_as_foretold(&product, "product", 1, true);
    let never_seen = running.get("/products/2").await;
    running.assert_as_foretold(&never_seen, "product", 1, false);
    let search = running.get("/search?q=a").await;
    assert_eq!(search.text(), "{\"results\":[]}");
    running.assert_as_foretold(&search, "search", 1, false);
    let written = running.post("/baskets").await;
    assert!(matches!(written.status, 502 | 503), "{written:?}");
    running.bench.advance(Duration::from_secs(540));
    assert_eq!(running.get("/products/1").await.status, 200, "nine minutes");
    running.bench.advance(Duration::from_secs(61));
    assert!(running.get("/products/1").await.status >= 502);
}

#[tokio::test]
async fn a_product_page_is_old_for_an_hour_and_its_price_is_never() {
    let running = start("product-page.toml").await;
    for path in ["/products/1", "/prices/1", "/recommendations/1", "/assets/a.css"] {
        assert_eq!(running.get(path).await.status, 200, "{path}");
    }
    running.kill("shop").await;
    let page = running.get("/products/1").await;
    assert_eq!(page.freshness(), "stale");
    running.assert_as_foretold(&page, "product-page", 1, true);
    let price = running.get("/prices/1").await;
    running.assert_as_foretold(&price, "price", 1, false);
    running.kill("recommender").await;
    let small = running.get("/recommendations/1").await;
    assert_eq!(
        (small.text().as_str(), small.freshness()),
        ("from recommender-small", "alternate")
    );
    running.assert_as_foretold(&small, "recommendations", 1, false);
    running.kill("recommender-small").await;
    let none = running.get("/recommendations/1").await;
    assert_eq!((none.text().as_str(), none.freshness()), ("[]", "default"));
    running.assert_as_foretold(&none, "recommendations", 2, false);
    running.kill("assets").await;
    assert_eq!(running.get("/assets/a.css").await.freshness(), "fresh");
    running.bench.advance(Duration::from_secs(2));
    let asset = running.get("/assets/a.css").await;
    assert_eq!(asset.freshness(), "stale");
    running.assert_as_foretold(&asset, "assets", 1, true);
    assert_eq!(running.post("/basket").await.status, 502, "the shop is gone");
}

#[tokio::test]
async fn tenants_see_their_own_invoices_and_nothing_without_the_login() {
    let running = start("tenants.toml").await;
    running.origins["sso"].script(|seen| match seen.header("authorization") {
        Some("Bearer ann") => Reply::ok("").header("x-tenant", "a").header("x-user", "ann"),
        Some("Bearer bob") => Reply::ok("").header("x-tenant", "b").header("x-user", "bob"),
        _ => Reply::status(401),
    });
    running.origins["api"].script(|seen| {
        assert_eq!(
            seen.header("authorization"),
            None,
            "the token ends with the login"
        );
        let user = seen.header("x-user").unwrap_or("anybody");
        Reply::ok(format!("of {user}")).header("cache-control", "private, max-age=60")
    });
    assert_eq!(running.get_as("ann", "/invoices/1").await.text(), "of ann");
    assert_eq!(running.get_as("eve", "/invoices/1").await.status, 401);
    running.origins["api"].script(|_| Reply::ok("the plans"));
    assert_eq!(running.get("/plans").await.status, 200);
    running.kill("api").await;
    let own = running.get_as("ann", "/invoices/1").await;
    assert_eq!((own.text().as_str(), own.freshness()), ("of ann", "stale"));
    running.assert_as_foretold(&own, "invoices", 1, true);
    let other = running.get_as("bob", "/invoices/1").await;
    running.assert_as_foretold(&other, "invoices", 1, false);
    assert_eq!(
        running.get_as("eve", "/invoices/1").await.status,
        401,
        "no copy opens the door"
    );
    let balance = running.get_as("ann", "/balance").await;
    running.assert_as_foretold(&balance, "balance", 1, false);
    running.kill("sso").await;
    let shut = running.get_as("ann", "/invoices/1").await;
    assert!(shut.text().contains("protection-unavailable"), "{shut:?}");
    running.assert_as_foretold(&shut, "invoices", 2, true);
    assert_eq!(running.get("/plans").await.freshness(), "stale", "needs no login");
}

#[tokio::test]
async fn of_five_services_each_fails_alone() {
    let running = start("five-services.toml").await;
    let paths = [
        "/catalog/a",
        "/reviews/1",
        "/stock/1",
        "/orders/1",
        "/accounts/me",
    ];
    for path in paths {
        assert_eq!(running.get(path).await.status, 200, "{path}");
    }
    running.kill("orders").await;
    let order = running.get("/orders/1").await;
    running.assert_as_foretold(&order, "order", 1, false);
    assert!(matches!(running.post("/orders/1/cancel").await.status, 502 | 503));
    for path in ["/catalog/a", "/reviews/1", "/stock/1", "/accounts/me"] {
        assert_eq!(
            running.get(path).await.freshness(),
            if path == "/accounts/me" { "-" } else { "fresh" },
            "{path}"
        );
    }
    running.kill("reviews").await;
    let kept = running.get("/reviews/1").await;
    running.assert_as_foretold(&kept, "reviews", 1, true);
    let none = running.get("/reviews/2").await;
    assert_eq!(none.text(), "{\"reviews\":[]}");
    running.assert_as_foretold(&none, "reviews", 1, false);
    running.kill("stock").await;
    running.assert_as_foretold(&running.get("/stock/1").await, "stock", 1, true);
    running.bench.advance(Duration::from_secs(11));
    assert!(
        running.get("/stock/1").await.status >= 502,
        "stock of eleven seconds is refused"
    );
    running.kill("catalog").await;
    running.assert_as_foretold(&running.get("/catalog/a").await, "catalog", 1, true);
    assert_eq!(running.get("/accounts/me").await.status, 200);
}

#[tokio::test]
async fn a_shared_cache_answers_from_its_copies() {
    let running = start("shared-cache.toml").await;
    assert_eq!(running.get("/a").await.text(), "from origin");
    running.kill("origin").await;
    let hit = running.get("/a").await;
    assert_eq!((hit.text().as_str(), hit.freshness()), ("from origin", "fresh"));
    running.bench.advance(Duration::from_secs(2));
    let gone = running.get("/a").await;
    running.assert_as_foretold(&gone, "all", 1, false);
}

#[test]
fn every_example_passes_the_check_without_a_warning_and_is_run_here() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let own = include_str!("examples.rs");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            own.contains(&format!("start(\"{name}\")")),
            "{name} is run by a test"
        );
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["check", "--strict", "--explain"])
            .arg(&path)
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(shown.contains(" is gone\n"), "{shown}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
}
