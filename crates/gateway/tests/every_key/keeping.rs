//! The keys of `keep_if` are flipped, and something else happens.

use crate::kit::{Bench, NO_BREAKER, Origin, Reply, STALE, contract};

/// Tells whether such an answer is kept by this rule, and by none.
async fn is_kept(keep_if: &str, reply: Reply) -> [bool; 2] {
    let mut kept = [false; 2];
    for (rule, kept) in [format!("keep_if = {{ {keep_if} }}"), String::new()]
        .iter()
        .zip(&mut kept)
    {
        let origin = Origin::always(reply.clone()).await;
        let route = format!("{STALE}\n{rule}");
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
        bench.get("/r/1").await;
        origin.now(Reply::status(503));
        *kept = bench.get("/r/1").await.status == 200;
    }
    kept
}

fn json(body: &str) -> Reply {
    Reply::ok(body).header("content-type", "application/json")
}

pub(crate) async fn content_type() {
    assert_eq!(
        is_kept("content_type = [\"text/html\"]", json("1")).await,
        [false, true]
    );
    assert_eq!(
        is_kept("content_type = [\"application/*\"]", json("1")).await,
        [true, true]
    );
}

pub(crate) async fn min_size() {
    assert_eq!(is_kept("min_size = \"2B\"", json("1")).await, [false, true]);
    assert_eq!(is_kept("min_size = \"1B\"", json("1")).await, [true, true]);
}

pub(crate) async fn max_size() {
    assert_eq!(is_kept("max_size = \"1B\"", json("12")).await, [false, true]);
    assert_eq!(is_kept("max_size = \"2B\"", json("12")).await, [true, true]);
}

pub(crate) async fn json_there() {
    assert_eq!(is_kept("json = [\"/b\"]", json("{\"a\":1}")).await, [false, true]);
    assert_eq!(
        is_kept("json = [\"/a\"]", json("{\"a\":null}")).await,
        [true, true]
    );
}

pub(crate) async fn json_not_empty() {
    assert_eq!(
        is_kept("json_not_empty = [\"/a\"]", json("{\"a\":[]}")).await,
        [false, true]
    );
    assert_eq!(
        is_kept("json_not_empty = [\"/a\"]", json("{\"a\":[0]}")).await,
        [true, true]
    );
}

pub(crate) async fn grpc() {
    assert_eq!(
        is_kept("grpc = true", json("1").header("grpc-status", "5")).await,
        [false, true]
    );
    assert_eq!(
        is_kept("grpc = true", json("1").header("grpc-status", "0")).await,
        [true, true]
    );
}

pub(crate) async fn graphql() {
    assert_eq!(
        is_kept("graphql = true", json("{\"errors\":[1]}")).await,
        [false, true]
    );
    assert_eq!(
        is_kept("graphql = true", json("{\"errors\":[]}")).await,
        [true, true]
    );
}

pub(crate) async fn otherwise() {
    for (word, status) in [("leave", 200), ("fault", 500)] {
        let origin = Origin::always(json("1")).await;
        let route = format!("{STALE}\nkeep_if = {{ min_size = \"2B\", else = \"{word}\" }}");
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
        assert_eq!(bench.get("/r/1").await.status, status, "{word}");
    }
}
