//! The keys of late work and of refreshes ahead of their time are flipped, and something else happens.

use std::time::Duration;

use evenkeel_gateway::config;

use crate::kit::{Bench, Client, NO_BREAKER, NO_LIMITS, Origin, Reply, STALE, contract, in_turn, until};

/// The first answer comes after the timeout, the others never. Returns what a second request is answered with.
async fn after_a_late_answer(route: &str, late: Duration) -> String {
    let origin = Origin::start(in_turn(vec![Reply::ok("late").wait(late), Reply::hang()])).await;
    let dependency = format!("{NO_BREAKER}\ntimeout = \"200ms\"");
    let text = contract(origin.address, &dependency, &format!("{STALE}\n{route}"));
    let bench = Bench::start(&text).await;
    assert_eq!(
        bench.get("/r/1").await.status,
        504,
        "its caller has waited in vain"
    );
    let dependency = bench.gateway.app().dependency("d").unwrap().clone();
    // Either the work has ended by itself, or it was dropped with its attempt.
    until("nothing is in flight", || dependency.status().in_use == 0).await;
    bench.get("/r/1").await.text()
}

pub(crate) async fn on_timeout() {
    let late = Duration::from_millis(400);
    let finish = "on_timeout = \"finish\"\nfinish_within = \"5s\"";
    assert_eq!(after_a_late_answer(finish, late).await, "late");
    for cancel in ["", "on_timeout = \"cancel\""] {
        assert!(after_a_late_answer(cancel, late).await.contains("timed-out"));
    }
}

pub(crate) async fn finish_within() {
    let finish = "on_timeout = \"finish\"\nfinish_within = \"50ms\"";
    let told = after_a_late_answer(finish, Duration::from_millis(900)).await;
    assert!(told.contains("timed-out"), "{told}");
    let refused = |route: &str| {
        let text = contract("127.0.0.1:1".parse().unwrap(), "", route);
        config::parse("c", &text).unwrap_err().to_string()
    };
    let told = refused(&format!("{STALE}\nfinish_within = \"1s\""));
    assert!(told.contains("set without `on_timeout = \"finish\"`"), "{told}");
    let told = refused("on_timeout = \"finish\"");
    assert!(told.contains("a route that keeps nothing"), "{told}");
}

fn hits(origin: &Origin, at_least: usize) -> bool {
    origin.hits() >= at_least
}

/// Twenty copies at 99 of their 100 seconds: with jitter all but few have passed the end drawn for them.
pub(crate) async fn jitter() {
    for (key, is_early) in [("", false), ("jitter = \"50%\"", true)] {
        let origin = Origin::always(Reply::ok("x").header("cache-control", "max-age=100")).await;
        let route = format!("freshness = \"origin\"\n{key}");
        let bench = Bench::with_manual_clock(&contract(origin.address, NO_LIMITS, &route)).await;
        let all = async |expected: &str| {
            for number in 0..20 {
                let answer = bench.get(&format!("/r/{number}")).await;
                let label = answer.header("cache-status").unwrap().to_owned();
                assert!(label.contains(expected), "{key} {label}");
                assert_eq!(answer.freshness(), "fresh");
            }
        };
        all("fwd=uri-miss").await;
        bench.advance(Duration::from_secs(49));
        all("hit").await;
        assert_eq!(origin.hits(), 20, "nobody is early before the spread begins");
        bench.advance(Duration::from_secs(50));
        all("hit").await;
        if is_early {
            until("most are refreshed", || hits(&origin, 35)).await;
        } else {
            assert_eq!(origin.hits(), 20);
        }
    }
    let text = contract("127.0.0.1:1".parse().unwrap(), "", "jitter = \"10%\"");
    let told = config::parse("c", &text).unwrap_err().to_string();
    assert!(told.contains("without `freshness = \"origin\"`"), "{told}");
}

/// A copy that took ten of its twenty seconds to come: each of these hits refreshes it with a chance of a third.
pub(crate) async fn refresh_ahead() {
    for (key, is_early) in [("", false), ("refresh_ahead = true", true)] {
        let slow = Reply::ok("x")
            .header("cache-control", "max-age=20")
            .header("etag", "\"1\"")
            .wait(Duration::from_millis(50));
        let origin = Origin::always(slow).await;
        let dependency = format!("{NO_LIMITS}\ntimeout = \"50s\"");
        let route = format!("freshness = \"origin\"\ndeadline = \"60s\"\n{key}");
        let bench = Bench::with_manual_clock(&contract(origin.address, &dependency, &route)).await;
        let mut first = Client::connect(bench.address()).await;
        first
            .send("GET /r/1 HTTP/1.1\r\nhost: shop.example\r\n\r\n")
            .await;
        until("it is asked", || hits(&origin, 1)).await;
        bench.advance(Duration::from_secs(10));
        assert_eq!(first.answer(false).await.status, 200);
        for _ in 0..60 {
            let answer = bench.get("/r/1").await;
            assert_eq!((answer.status, answer.freshness()), (200, "fresh"));
            assert!(
                answer.header("cache-status").unwrap().contains("; hit"),
                "nobody waits"
            );
        }
        if is_early {
            until("it is refreshed", || hits(&origin, 2)).await;
            let refresh = &origin.seen()[1];
            assert_eq!(
                refresh.header("if-none-match"),
                Some("\"1\""),
                "it asks with what is known"
            );
        } else {
            assert_eq!(origin.hits(), 1);
        }
    }
}
