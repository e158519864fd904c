//! What takes copies away, and what does not: writes, their outcomes, what they point to, and answers to one user.

use std::time::Duration;

use crate::kit::{Answer, Bench, Client, NO_LIMITS, Origin, Reply, STALE, Seen, contract};

fn fresh(body: &str) -> Reply {
    Reply::ok(body).header("cache-control", "max-age=60")
}

fn is_hit(answer: &Answer) -> bool {
    answer
        .header("cache-status")
        .unwrap_or_default()
        .contains("; hit")
}

async fn write(bench: &Bench, path: &str) -> Answer {
    let mut client = Client::connect(bench.address()).await;
    client.request("POST", path, &[("content-length", "0")]).await
}

/// A write that may have been made changes what is fresh, and what stands in stays: nobody knows that it is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c27_a_write_of_unknown_outcome_ends_the_freshness_of_its_target() {
    let script = |seen: &Seen| match seen.line.split(' ').next() {
        Some("POST") => Reply::raw("", crate::kit::Then::Close),
        _ => fresh("x"),
    };
    let origin = Origin::start(script).await;
    let route = format!("{STALE}\nfreshness = \"origin\"\nother_methods = \"pass\"");
    let bench = Bench::start(&contract(origin.address, NO_LIMITS, &route)).await;
    for path in ["/r/1", "/r/2"] {
        bench.get(path).await;
        assert!(is_hit(&bench.get(path).await));
    }
    assert_eq!(
        write(&bench, "/r/1").await.status,
        502,
        "sent, and no answer came"
    );
    let asked = origin.hits();
    assert!(!is_hit(&bench.get("/r/1").await), "it may have changed");
    assert_eq!(origin.hits(), asked + 1);
    assert!(
        is_hit(&bench.get("/r/2").await),
        "another target is another matter"
    );
    write(&bench, "/r/1").await;
    origin.stop().await;
    let stands_in = bench.get("/r/1").await;
    assert_eq!((stands_in.text().as_str(), stands_in.freshness()), ("x", "stale"));
    // What was never sent changed nothing.
    assert_eq!(write(&bench, "/r/2").await.status, 502);
    assert!(is_hit(&bench.get("/r/2").await));
}

/// Rule C28: what the answer to a write points to may lie on another route.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c28_location_and_content_location_retire_copies_on_every_route_of_the_same_origin() {
    for field in ["location", "content-location"] {
        for (value, goes) in [
            ("/s/2", true),
            ("http://shop.example/s/2", true),
            ("http://other.example/s/2", false),
            ("/s/3", false),
        ] {
            let origin = Origin::start(move |seen| {
                if seen.line.starts_with("POST") {
                    Reply::status(201).header(field, value)
                } else {
                    fresh("x")
                }
            })
            .await;
            let mut text = contract(origin.address, NO_LIMITS, "other_methods = \"pass\"");
            for (name, rest) in [("s", "freshness = \"origin\""), ("t", STALE)] {
                text.push_str(&format!(
                    "[[routes]]\nname = \"{name}\"\nmatch = {{ path = \"/{name}/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n{rest}\n"
                ));
            }
            let bench = Bench::start(&text).await;
            bench.get("/s/2").await;
            assert!(is_hit(&bench.get("/s/2").await));
            assert_eq!(write(&bench, "/r/1").await.status, 201);
            assert_eq!(is_hit(&bench.get("/s/2").await), !goes, "{field}: {value}");
        }
        let origin = Origin::start(move |seen| {
            if seen.line.starts_with("POST") {
                Reply::ok("").header(field, "/t/2")
            } else {
                Reply::ok("x")
            }
        })
        .await;
        let mut text = contract(origin.address, NO_LIMITS, "other_methods = \"pass\"");
        text.push_str(&format!(
            "[[routes]]\nname = \"t\"\nmatch = {{ path = \"/t/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n{STALE}\n"
        ));
        let bench = Bench::start(&text).await;
        bench.get("/t/2").await;
        write(&bench, "/r/1").await;
        origin.stop().await;
        assert_eq!(bench.get("/t/2").await.status, 502, "a plain copy goes as well");
    }
}

/// What one user is refused says nothing about what everybody is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c12_a_404_to_one_user_leaves_the_copy_for_everybody() {
    for status in [404, 410] {
        for (field, goes) in [
            (Some("authorization"), false),
            (Some("cookie"), false),
            (None, true),
        ] {
            let origin = Origin::always(Reply::ok("for all")).await;
            let bench = Bench::start(&contract(origin.address, NO_LIMITS, STALE)).await;
            bench.get("/r/1").await;
            origin.now(Reply::status(status));
            let fields: Vec<(&str, &str)> = field.map(|name| (name, "alice")).into_iter().collect();
            assert_eq!(bench.get_with("/r/1", &fields).await.status, status);
            origin.stop().await;
            let stands_in = bench.get("/r/1").await;
            assert_eq!(
                stands_in.status,
                if goes { 502 } else { 200 },
                "{status} {field:?}"
            );
        }
    }
}

/// A dependency that comes back with refusals alone is back: it is not kept away from those who would be refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breaker_closes_when_the_dependency_refuses_by_itself() {
    let origin = Origin::always(Reply::status(503)).await;
    let dependency = "breaker = { consecutive = 1, open_for = \"100ms\", jitter = \"0%\" }\nlearned_limit = \"off\"\nramp = \"off\"";
    let bench = Bench::with_manual_clock(&contract(origin.address, dependency, "")).await;
    bench.get("/r/1").await;
    let state = || bench.gateway.app().dependency("d").unwrap().status().state;
    assert_eq!(state(), Some(evenkeel::State::Open));
    origin.now(Reply::status(404));
    bench.advance(Duration::from_secs(1));
    assert_eq!(bench.get("/r/1").await.status, 404);
    assert_eq!(state(), Some(evenkeel::State::Closed));
}
