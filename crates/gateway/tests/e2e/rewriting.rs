//! What is changed on the way to a dependency and back.

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, contract};

async fn bench(rewrite: &str, route: &str) -> (Origin, Bench) {
    let reply = Reply::ok("body")
        .header("x-debug", "secret")
        .header("x-site", "origin")
        .header("x-mine", "1")
        .header("connection", "x-mine");
    let origin = Origin::always(reply).await;
    let dependency = format!("{NO_BREAKER}\nrewrite = {rewrite}");
    let bench = Bench::start(&contract(origin.address, &dependency, route)).await;
    (origin, bench)
}

#[tokio::test]
async fn a_changed_host_tells_the_dependency_the_one_that_was_asked_for() {
    let (origin, bench) = bench("{ host = \"upstream\" }", "").await;
    bench.get_with("/r/1", &[("x-forwarded-host", "evil")]).await;
    let seen = &origin.seen()[0];
    assert_eq!(seen.header("host"), Some(origin.address.to_string().as_str()));
    assert_eq!(seen.header("x-forwarded-host"), Some("shop.example"));
    let (origin, bench) = self::bench("{ host = \"inner.example:8080\" }", "").await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("GET http://real.example/r/1 HTTP/1.1\r\nhost: other\r\n\r\n")
        .await;
    assert_eq!(client.answer(false).await.status, 200);
    let seen = &origin.seen()[0];
    assert_eq!(seen.header("host"), Some("inner.example:8080"));
    assert_eq!(seen.header("x-forwarded-host"), Some("real.example"));
}

#[tokio::test]
async fn a_prefix_is_taken_off_and_another_put_on_and_copies_stay_under_the_address_asked_for() {
    let rewrite = "{ strip_prefix = \"/r\", add_prefix = \"/v1/items\" }";
    let (origin, bench) = bench(rewrite, &format!("{STALE}\nother_methods = \"pass\"")).await;
    bench.get("/r/1?q=/r").await;
    Client::connect(bench.address())
        .await
        .request("DELETE", "/r/2", &[])
        .await;
    let lines: Vec<String> = origin.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(
        lines,
        ["GET /v1/items/1?q=/r HTTP/1.1", "DELETE /v1/items/2 HTTP/1.1"]
    );
    origin.stop().await;
    assert_eq!(bench.get("/r/1?q=/r").await.freshness(), "stale");
}

/// Rule H11: the changes come after the stripping and before the gateway's own fields.
#[tokio::test]
async fn h11_fields_are_changed_in_both_directions_on_every_kind_of_answer() {
    let rewrite = "{ remove_request = [\"x-internal\"], set_request = { x-site = \"shop\", x-hop = \"2\" }, \
                   remove_response = [\"x-debug\"], set_response = { x-site = \"front\", x-mine = \"2\" } }";
    for route in ["", STALE, "other_methods = \"pass\""] {
        let (origin, bench) = bench(rewrite, route).await;
        let method = if route.contains("pass") { "POST" } else { "GET" };
        let fields = [
            ("x-internal", "1"),
            ("x-site", "client"),
            ("x-site", "client again"),
            ("x-hop", "1"),
            ("connection", "x-hop"),
        ];
        let mut client = Client::connect(bench.address()).await;
        let mut answers = vec![client.request(method, "/r/1", &fields).await];
        let seen = &origin.seen()[0];
        assert_eq!(seen.header("x-internal"), None);
        assert_eq!(
            seen.headers.iter().filter(|(name, _)| name == "x-site").count(),
            1
        );
        assert_eq!(
            (seen.header("x-site"), seen.header("x-hop")),
            (Some("shop"), Some("2"))
        );
        if route == STALE {
            origin.stop().await;
            answers.push(client.request(method, "/r/1", &fields).await);
            assert_eq!(answers[1].freshness(), "stale");
        }
        for answer in answers {
            assert_eq!(answer.header("x-debug"), None, "{route}");
            assert_eq!(answer.header("x-site"), Some("front"), "{route}");
            assert_eq!(answer.header("x-mine"), Some("2"), "{route}");
        }
    }
}
