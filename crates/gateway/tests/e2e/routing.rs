//! Which route a request belongs to, where a path alone does not settle it, and who may say where it comes from.

use crate::kit::{Answer, Bench, Client, NO_BREAKER, Origin, Reply, STALE, contract, contract_with};

/// Two routes for the same paths in front of an origin that echoes nothing: the route shows in the counters.
async fn bench(first: &str, second: &str) -> (Origin, Bench) {
    let origin = Origin::always(Reply::ok("done")).await;
    let text = contract(
        origin.address,
        NO_BREAKER,
        &format!(
            "{STALE}\n[[routes]]\nname = \"s\"\nmatch = {{ path = \"/r/{{other}}\"{second} }}\nclass = \"pass\"\nfrom = \"d\""
        ),
    )
    .replace("/r/{id}\"", &format!("/r/{{id}}\"{first}"));
    let bench = Bench::start(&text).await;
    (origin, bench)
}

async fn ask(bench: &Bench, method: &str, host: &str, fields: &str) -> Answer {
    let mut client = Client::connect(bench.address()).await;
    client
        .send(&format!("{method} /r/1 HTTP/1.1\r\nhost: {host}\r\n{fields}\r\n"))
        .await;
    client.answer(method == "HEAD").await
}

/// Returns how many requests either route took.
fn taken(bench: &Bench) -> (u64, u64) {
    let app = bench.gateway.app();
    let (reads, passes) = (app.counts("r").unwrap(), app.pass_counts("s").unwrap());
    (reads.calls(), passes.calls())
}

#[tokio::test]
async fn a_method_decides_between_two_routes_for_one_path_and_the_rest_is_405() {
    let (origin, bench) = bench(", method = [\"GET\"]", ", method = [\"POST\", \"PUT\"]").await;
    for method in ["GET", "HEAD"] {
        assert_eq!(ask(&bench, method, "a", "").await.status, 200);
    }
    for method in ["POST", "PUT"] {
        let answer = ask(&bench, method, "a", "").await;
        assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=method"));
    }
    assert_eq!(taken(&bench), (2, 2));
    for method in ["DELETE", "post", "OPTIONS"] {
        let answer = ask(&bench, method, "a", "").await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, PUT"));
    }
    assert_eq!(origin.hits(), 4);
}

/// Rule C27, where reads and writes have routes of their own.
#[tokio::test]
async fn c27_a_write_on_one_route_retires_the_copy_that_another_keeps_for_the_same_target() {
    let (origin, bench) = bench(", method = [\"GET\"]", ", method = [\"POST\"]").await;
    ask(&bench, "GET", "a", "").await;
    ask(&bench, "GET", "b", "").await;
    ask(&bench, "POST", "A:80", "").await;
    origin.stop().await;
    assert_eq!(ask(&bench, "GET", "a", "").await.status, 502);
    assert_eq!(
        ask(&bench, "GET", "b", "").await.freshness(),
        "stale",
        "another host"
    );
}

#[tokio::test]
async fn a_host_is_narrower_than_a_domain_and_that_than_none() {
    let (_origin, bench) = bench("", ", host = [\"*.shop.example\", \"api.example\"]").await;
    for host in [
        "shop.example",
        "shop.example:80",
        "x.api.example",
        "other",
        "[::1]:8080",
    ] {
        ask(&bench, "GET", host, "").await;
    }
    assert_eq!(taken(&bench), (5, 0));
    for host in [
        "de.shop.example",
        "DE.Shop.Example:8080",
        "a.b.shop.example",
        "api.example:1",
    ] {
        ask(&bench, "GET", host, "").await;
    }
    assert_eq!(taken(&bench), (5, 4));
}

#[tokio::test]
async fn a_field_decides_by_its_only_line() {
    let (_origin, bench) = bench("", ", header = { x-beta = \"1\", x-user = \"*\" }").await;
    for fields in [
        "",
        "x-beta: 1\r\n",
        "x-user: u\r\n",
        "x-beta: 11\r\nx-user: u\r\n",
    ] {
        ask(&bench, "GET", "a", fields).await;
    }
    ask(&bench, "GET", "a", "x-beta: 0\r\nX-Beta: 1\r\nx-user: \r\n").await;
    assert_eq!(taken(&bench), (5, 0));
    ask(&bench, "GET", "a", "X-Beta: 1\r\nx-user: \r\n").await;
    assert_eq!(taken(&bench), (5, 1));
}

#[tokio::test]
async fn an_address_that_no_route_covers_is_unknown_whatever_the_method() {
    let (_origin, bench) = bench(", host = [\"a\"]", ", host = [\"b\"], method = [\"POST\"]").await;
    assert_eq!(ask(&bench, "GET", "c", "").await.status, 404);
    assert_eq!(ask(&bench, "POST", "c", "").await.status, 404);
    let answer = ask(&bench, "POST", "a", "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
    let answer = ask(&bench, "GET", "b", "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

/// An unlisted peer could otherwise fill one scheme's copies with the answers of the other.
#[tokio::test]
async fn the_scheme_that_a_trusted_peer_names_is_in_the_key_and_nobody_elses_is() {
    for (trusted, apart) in [("127.0.0.1", true), ("192.0.2.1", false)] {
        let origin = Origin::start(|seen| Reply::ok(seen.header("x-forwarded-proto").unwrap())).await;
        let top = format!("trusted_peers = [\"{trusted}\"]");
        let bench = Bench::start(&contract_with(origin.address, &top, NO_BREAKER, STALE)).await;
        let https = [("x-forwarded-proto", "https")];
        let live = [
            bench.get("/r/1").await.text(),
            bench.get_with("/r/1", &https).await.text(),
        ];
        let second = if apart { "https" } else { "http" };
        assert_eq!(live, ["http", second]);
        origin.stop().await;
        let stale = [
            bench.get("/r/1").await.text(),
            bench.get_with("/r/1", &https).await.text(),
        ];
        assert_eq!(stale, live);
        assert_eq!(bench.gateway.app().snapshots().0, if apart { 2 } else { 1 });
    }
}

/// A gateway that records no spans of its own has nothing to add.
#[tokio::test]
async fn trace_context_passes_as_it_is() {
    let (origin, bench) = bench("", ", method = [\"POST\"]").await;
    let fields = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=1\r\ntracestate: b=2\r\n";
    for method in ["GET", "POST"] {
        ask(&bench, method, "a", fields).await;
        let seen = origin.seen().pop().unwrap();
        assert_eq!(
            seen.header("traceparent"),
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        );
        let states: Vec<&str> = seen
            .headers
            .iter()
            .filter(|(name, _)| name == "tracestate")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(states, ["a=1", "b=2"]);
    }
}
