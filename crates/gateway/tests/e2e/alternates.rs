//! Another dependency is asked when the first cannot answer: within its own limits, labelled, and never kept.

use std::{net::SocketAddr, time::Duration};

use crate::kit::{Answer, Bench, Client, NO_LIMITS, Origin, Reply, STALE, Then, until};

/// A contract whose route `r` asks `d`, and `spare` in its place.
pub(crate) fn with_alternate(
    (first, spare): (SocketAddr, SocketAddr),
    (top, of_first, of_spare): (&str, &str, &str),
    route: &str,
) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{top}\n\
         [dependencies.d]\nurls = [\"http://{first}\"]\n{NO_LIMITS}\n{of_first}\n\
         [dependencies.spare]\nurls = [\"http://{spare}\"]\n{NO_LIMITS}\n{of_spare}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n{route}\n"
    )
}

const LADDER: &str = "ladder = [ { alternate = \"spare\" } ]";

async fn two(first: Reply, spare: Reply) -> (Origin, Origin) {
    (Origin::always(first).await, Origin::always(spare).await)
}

async fn bench(origins: &(Origin, Origin), route: &str) -> Bench {
    let addresses = (origins.0.address, origins.1.address);
    Bench::start(&with_alternate(addresses, ("", "", ""), route)).await
}

fn labels(answer: &Answer) -> [&str; 4] {
    [
        "x-data-freshness",
        "cache-status",
        "proxy-status",
        "cache-control",
    ]
    .map(|name| answer.header(name).unwrap_or("-"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_spare_answers_when_the_first_is_dead_and_the_answer_says_so() {
    let origins = two(
        Reply::ok("first"),
        Reply::ok("spare")
            .header("content-type", "text/plain")
            .header("etag", "\"1\"")
            .header("cache-control", "max-age=600")
            .header("expires", "Sun, 06 Nov 2094 08:49:37 GMT"),
    )
    .await;
    let bench = bench(&origins, LADDER).await;
    assert_eq!(bench.get("/r/1").await.freshness(), "fresh");
    origins.0.stop().await;
    let answer = bench.get("/r/1?x=y").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "spare"));
    assert_eq!(
        labels(&answer),
        [
            "alternate",
            "evenkeel; fwd=bypass; detail=dependency-failed",
            "evenkeel; error=connection_refused",
            "no-store",
        ]
    );
    let degraded = answer.header("degraded").unwrap();
    assert!(
        degraded.starts_with("r;rung=alternate;age=0;observed=@"),
        "{degraded}"
    );
    assert!(degraded.ends_with(";reason=dependency-failed"), "{degraded}");
    for claim in ["etag", "expires"] {
        assert_eq!(answer.header(claim), None, "{claim} is about other data");
    }
    assert_eq!(origins.1.seen()[0].line, "GET /r/1?x=y HTTP/1.1");
    let counted = "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"alternate\",reason=\"dependency-failed\"}";
    assert_eq!(bench.metric(counted).await, Some(1));
    assert_eq!(
        bench.gateway.app().dependency("spare").unwrap().status().in_use,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_answer_of_the_first_is_replaced_and_a_refusal_of_it_is_not() {
    for (first, status, body) in [
        (Reply::status(503).body("down"), 200, "spare"),
        (Reply::raw("", Then::Close), 200, "spare"),
        (Reply::status(404).body("gone"), 404, "gone"),
        (Reply::status(403).body("no"), 403, "no"),
    ] {
        let origins = two(first, Reply::ok("spare")).await;
        let bench = bench(&origins, LADDER).await;
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (status, body));
    }
}

/// Both errors are kept: the first is the answer, the other is told as the reason why the rung was skipped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_both_fail_the_first_failure_is_the_answer_and_the_second_is_counted() {
    for (spare, status) in [
        (Reply::status(500).body("spare's"), 503),
        (Reply::status(404), 503),
    ] {
        let first = Reply::status(503).header("x-first", "yes").body("first's");
        let origins = two(first, spare).await;
        let bench = bench(&origins, LADDER).await;
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (status, "first's"));
        assert_eq!(
            answer.header("x-first"),
            Some("yes"),
            "its own fields, not the spare's"
        );
        let skipped = "evenkeel_rungs_skipped_total{route=\"r\",rung=\"alternate\",why=\"failed\"}";
        assert_eq!(bench.metric(skipped).await, Some(1));
        assert_eq!(origins.1.hits(), 1);
    }
    let origins = two(Reply::hang(), Reply::hang()).await;
    origins.0.stop().await;
    origins.1.stop().await;
    let bench = bench(&origins, LADDER).await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 502);
    assert!(
        answer
            .text()
            .contains("{\"rung\":\"alternate\",\"why\":\"failed\"}"),
        "{}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_spare_has_its_own_rewriting_in_both_directions() {
    let origins = two(Reply::status(500), Reply::ok("spare").header("x-spare", "yes")).await;
    let rewrite = "rewrite = { host = \"spare.internal\", add_prefix = \"/v2\", remove_response = [\"x-spare\"], \
                   set_response = { cache-control = \"max-age=5\" } }";
    let text = with_alternate(
        (origins.0.address, origins.1.address),
        (
            "",
            "rewrite = { add_prefix = \"/v1\", set_response = { x-first = \"1\" } }",
            rewrite,
        ),
        LADDER,
    );
    let bench = Bench::start(&text).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, labels(&answer)[3]), (200, "max-age=5"));
    assert_eq!((answer.header("x-spare"), answer.header("x-first")), (None, None));
    assert_eq!(origins.0.seen()[0].line, "GET /v1/r/1 HTTP/1.1");
    let seen = &origins.1.seen()[0];
    assert_eq!(seen.line, "GET /v2/r/1 HTTP/1.1");
    assert_eq!(seen.header("host"), Some("spare.internal"));
}

/// What the spare says is nobody's copy: neither for the next call nor on a route that caches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_the_spare_is_never_kept() {
    for (route, first_rung) in [
        (
            "ladder = [ { stale = \"60s\" }, { alternate = \"spare\" } ]",
            "stale",
        ),
        (
            "ladder = [ { alternate = \"spare\" }, { stale = \"60s\" } ]",
            "alternate",
        ),
    ] {
        for freshness in ["none", "origin"] {
            let answer = |body| Reply::ok(body).header("cache-control", "max-age=1");
            let origins = two(answer("first"), answer("spare")).await;
            let route = format!("{route}\nfreshness = \"{freshness}\"");
            let addresses = (origins.0.address, origins.1.address);
            let bench = Bench::with_manual_clock(&with_alternate(addresses, ("", "", ""), &route)).await;
            origins.0.stop().await;
            for hits in 1..=2 {
                let given = bench.get("/r/1").await;
                assert_eq!(
                    (given.text().as_str(), given.freshness()),
                    ("spare", "alternate"),
                    "{route}"
                );
                assert_eq!(origins.1.hits(), hits, "it is asked each time: {route}");
            }
            origins.0.heal().await;
            assert_eq!(bench.get("/r/1").await.text(), "first", "{route}");
            origins.0.stop().await;
            bench.advance(Duration::from_secs(5));
            let given = bench.get("/r/1").await;
            assert_eq!(given.freshness(), first_rung, "{route}");
        }
    }
}

/// Design §1: one budget for everything that draws on it, alternates too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_resource_binds_both() {
    let spare = Origin::always(Reply::hang()).await;
    let first = Origin::start(|_| Reply::raw("", Then::Close)).await;
    let text = with_alternate(
        (first.address, spare.address),
        (
            "[resources.db]\nconcurrency = 1",
            "uses = [\"db\"]",
            "uses = [\"db\"]\ntimeout = \"2s\"",
        ),
        LADDER,
    );
    let bench = Bench::start(&text).await;
    let mut hung = Client::connect(bench.address()).await;
    hung.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the spare is asked", || spare.hits() == 1).await;
    let refused = bench.get("/r/2").await;
    assert_eq!((refused.status, spare.hits(), first.hits()), (503, 1, 1));
    let text = refused.text();
    assert!(text.contains("\"reason\":\"at-capacity\""), "{text}");
    assert!(
        text.contains("{\"rung\":\"alternate\",\"why\":\"at-capacity\"}"),
        "{text}"
    );
    let in_use = bench
        .metric("evenkeel_resource_permits_in_use{resource=\"db\"}")
        .await;
    assert_eq!(in_use, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_timeout_is_kept_free_and_a_client_may_leave_at_any_time() {
    let origins = two(Reply::hang(), Reply::ok("spare").wait(Duration::from_millis(50))).await;
    let text = with_alternate(
        (origins.0.address, origins.1.address),
        ("", "timeout = \"2s\"", "timeout = \"1500ms\""),
        "deadline = \"2s\"\nladder = [ { alternate = \"spare\" } ]",
    );
    let bench = Bench::start(&text).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "spare"));
    assert!(answer.header("degraded").unwrap().ends_with("reason=timed-out"));
    origins.0.now(Reply::status(500));
    origins.1.now(Reply::hang());
    let mut leaves = Client::connect(bench.address()).await;
    leaves.send("GET /r/2 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the spare is asked", || origins.1.hits() == 2).await;
    drop(leaves);
    let spare = bench.gateway.app().dependency("spare").unwrap().clone();
    until("its permit is free", || {
        spare.attempts(evenkeel::Class::Cancelled) == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_answer_of_the_spare_flows_and_a_head_has_no_body() {
    let origins = two(Reply::status(500), Reply::ok(vec![b'x'; 300_000])).await;
    let bench = bench(
        &origins,
        "max_body = \"4KiB\"\nladder = [ { alternate = \"spare\" } ]",
    )
    .await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.body.len(), answer.freshness()), (300_000, "alternate"));
    let mut client = Client::connect(bench.address()).await;
    let head = client.request("HEAD", "/r/1", &[]).await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("300000"))
    );
    assert_eq!(head.freshness(), "alternate");
    // Validators and ranges are about the first one's data, so they stay here.
    let part = client
        .get("/r/1", &[("range", "bytes=0-1"), ("if-none-match", "\"1\"")])
        .await;
    assert_eq!((part.status, part.body.len()), (200, 300_000));
    let seen = origins.1.seen();
    let last = seen.last().unwrap();
    assert_eq!((last.header("range"), last.header("if-none-match")), (None, None));
}

/// What the spare itself says about being degraded stays, beside what is said here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spare_that_is_degraded_itself_is_heard() {
    let says = Reply::ok("old")
        .header("x-data-freshness", "stale")
        .header("age", "30")
        .header("degraded", "theirs;rung=stale;age=30;reason=timed-out");
    let origins = two(Reply::status(500), says).await;
    let bench = bench(&origins, &format!("{LADDER}\n{}", "")).await;
    let answer = bench.get("/r/1").await;
    assert_eq!(
        (answer.freshness(), answer.header("age")),
        ("alternate", Some("30"))
    );
    let said: Vec<&str> = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "degraded")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("theirs;") && said[1].starts_with("r;rung=alternate;age=30;"),
        "{said:?}"
    );
}

/// A client with credentials gets the spare's answer for itself; the ladder with a stale rung changes nothing in that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_asks_the_spare_by_itself_also_where_others_share() {
    let origins = two(Reply::status(503), Reply::ok("spare")).await;
    let bench = bench(
        &origins,
        &format!(
            "coalesce = true\n{}",
            STALE.replace("[ ", "[ { alternate = \"spare\" }, ")
        ),
    )
    .await;
    for (number, fields) in [
        (1, &[("authorization", "Bearer a")][..]),
        (2, &[("cookie", "a=b")]),
        (3, &[]),
    ] {
        let answer = bench.get_with("/r/1", fields).await;
        assert_eq!((answer.text().as_str(), origins.1.hits()), ("spare", number));
    }
    let seen = origins.1.seen();
    assert_eq!(seen[0].header("authorization"), Some("Bearer a"));
    assert_eq!(seen[1].header("cookie"), Some("a=b"));
    assert_eq!(seen[2].header("authorization"), None);
}
