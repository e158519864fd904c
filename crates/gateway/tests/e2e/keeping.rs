//! What a route asks of an answer before it is kept, and what becomes of one that does not pass.

use std::time::Duration;

use evenkeel::Class;

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, Then, contract, get_with};

fn json(body: &str) -> Reply {
    Reply::ok(body).header("content-type", "application/json")
}

async fn not_kept(bench: &Bench, why: &str) -> Option<u64> {
    let series = format!("evenkeel_answers_not_kept_total{{route=\"r\",why=\"{why}\"}}");
    bench.metric(&series).await
}

/// What does not pass is given to the one who asked, and the old copy stays; on both kinds of routes that keep.
#[tokio::test]
async fn an_answer_that_does_not_pass_is_given_and_leaves_the_copy_and_says_why() {
    let good = json("{\"items\":[1],\"data\":{}}").header("grpc-status", "0");
    let chunked = |status: &str| {
        Reply::raw(
            format!(
                "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\n\
                 17\r\n{{\"items\":[1],\"data\":{{}}}}\r\n0\r\ngrpc-status: {status}\r\n\r\n"
            ),
            Then::KeepAlive,
        )
    };
    for (keep_if, other, why) in [
        ("status = [200]", Reply::status(203).body("x"), "unwanted-status"),
        ("not_empty = true", json("[]"), "empty-body"),
        (
            "content_type = [\"application/json\"]",
            Reply::ok("<login>").header("content-type", "text/html"),
            "unwanted-type",
        ),
        ("min_size = \"9B\"", json("{\"a\":1}"), "unwanted-size"),
        ("max_size = \"99B\"", json(&"1".repeat(100)), "unwanted-size"),
        ("json = [\"/items\"]", json("{\"item\":[1]}"), "json-missing"),
        ("json = [\"/items\"]", json("{\"items\":[1]"), "not-json"),
        ("json = [\"/items\"]", Reply::ok("{\"items\":[1]}"), "not-json"),
        (
            "json_not_empty = [\"/items\"]",
            json("{\"items\":[]}"),
            "json-empty",
        ),
        (
            "grpc = true",
            json("{\"items\":[2]}").header("grpc-status", "14"),
            "grpc-error",
        ),
        ("grpc = true", chunked("13"), "grpc-error"),
        (
            "graphql = true",
            json("{\"data\":null,\"errors\":[{\"message\":\"x\"}]}"),
            "graphql-errors",
        ),
    ] {
        for kind in [STALE, "freshness = \"origin\"\nladder = [ { stale = \"60s\" } ]"] {
            let origin = Origin::always(good.clone().header("cache-control", "max-age=0")).await;
            let route = format!("{kind}\nkeep_if = {{ {keep_if} }}");
            let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
            assert_eq!(not_kept(&bench, why).await, Some(0), "{keep_if}");
            let kept = bench.get("/r/1").await;
            origin.now(other.clone());
            let given = bench.get("/r/1").await;
            assert!(given.status < 300, "{keep_if}");
            assert_eq!(not_kept(&bench, why).await, Some(1), "{keep_if} {kind}");
            origin.now(Reply::status(503));
            let stale = bench.get("/r/1").await;
            assert_eq!(
                (stale.status, stale.freshness()),
                (200, "stale"),
                "{keep_if} {kind}"
            );
            assert_eq!(stale.body, kept.body, "{keep_if} {kind}");
        }
    }
}

#[tokio::test]
async fn a_call_of_grpc_that_ended_well_behind_its_body_is_kept() {
    let raw = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\ngrpc-status: 0\r\n\r\n";
    let origin = Origin::always(Reply::raw(raw, Then::KeepAlive)).await;
    let route = format!("{STALE}\nkeep_if = {{ grpc = true }}");
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
    assert_eq!(bench.get("/r/1").await.text(), "x");
    origin.now(Reply::status(503));
    assert_eq!(bench.get("/r/1").await.freshness(), "stale");
}

/// Design §2: an answer that is rejected is given to those waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_together_are_given_what_does_not_pass() {
    let origin = Origin::always(json("[]").wait(Duration::from_millis(300))).await;
    let route = format!("{STALE}\ncoalesce = true\nkeep_if = {{ not_empty = true }}");
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
    let address = bench.address();
    let calls: Vec<_> = (0..4)
        .map(|_| tokio::spawn(async move { get_with(address, "/r/1", &[]).await }))
        .collect();
    for call in calls {
        let answer = call.await.unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "[]"));
    }
    assert_eq!(origin.hits(), 1);
    origin.now(Reply::status(503).body("no"));
    assert_eq!(bench.get("/r/1").await.status, 503, "nothing was kept");
}

/// Design §2: what breaks the declared shape is a defect, and a defect is shown and not papered over.
#[tokio::test]
async fn an_answer_that_does_not_pass_is_a_fault_where_the_contract_says_so() {
    for kind in [STALE, "", "freshness = \"origin\""] {
        let origin = Origin::always(json("{\"items\":[1]}")).await;
        let route = format!("{kind}\nkeep_if = {{ json = [\"/items\"], else = \"fault\" }}");
        let bench = Bench::start(&contract(origin.address, "", &route)).await;
        assert_eq!(bench.get("/r/1").await.status, 200, "{kind}");
        origin.now(json("{\"secret\":1}"));
        for _ in 0..10 {
            let answer = bench.get("/r/1").await;
            assert_eq!(answer.status, 500, "{kind}");
            assert!(
                answer.text().contains("\"reason\":\"fault\""),
                "{kind} {}",
                answer.text()
            );
            assert!(!answer.text().contains("secret"), "{kind}");
        }
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        assert_eq!(dependency.attempts(Class::Fault), 10, "{kind}");
        let failed = "evenkeel_calls_total{route=\"r\",ending=\"failed\",rung=\"none\",reason=\"fault\"}";
        assert_eq!(
            bench.metric(failed).await,
            Some(10),
            "{kind}: each is counted, and the breaker stays closed"
        );
        // What is no good answer is not asked: the refusal is the dependency's own.
        origin.now(Reply::status(404).body("gone"));
        assert_eq!(bench.get("/r/1").await.status, 404, "{kind}");
        origin.now(Reply::ok("").header("content-type", "application/json"));
        let mut client = Client::connect(bench.address()).await;
        assert_eq!(
            client.request("HEAD", "/r/1", &[]).await.status,
            200,
            "{kind}: a HEAD has no body to ask"
        );
    }
}
