//! What the answers of a dependency mean: to its breaker, to retries, to the ladder.

use std::time::Duration;

use evenkeel::{Class, State};
use tokio::time::Instant;

use crate::kit::{Bench, Client, NO_BREAKER, NO_LIMITS, Origin, Reply, STALE, contract, in_turn, until};

const HALF_OF_TEN: &str = "breaker = { failure_ratio = \"50%\", min_calls = 10, consecutive = 1000000 }";

fn state(bench: &Bench) -> Option<State> {
    bench.gateway.app().dependency("d").unwrap().status().state
}

#[tokio::test]
async fn case_015_mistakes_of_clients_never_open_the_breaker() {
    for status in [400, 401, 403, 404, 408, 409, 410, 422, 429] {
        let origin = Origin::always(Reply::status(status)).await;
        let bench = Bench::start(&contract(origin.address, HALF_OF_TEN, STALE)).await;
        let mut client = Client::connect(bench.address()).await;
        for _ in 0..200 {
            assert_eq!(client.get("/r/1", &[]).await.status, status);
        }
        origin.now(Reply::ok("well"));
        assert_eq!(client.get("/r/1", &[]).await.status, 200);
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        assert_eq!(dependency.transitions(State::Open), 0, "{status}");
    }
}

/// Case 015, the other half: where the contract says so, 408 and 429 do.
#[tokio::test]
async fn case_015_a_status_that_the_contract_calls_an_outage_opens_it_and_uses_the_ladder() {
    for status in [408, 429, 501] {
        let origin = Origin::always(Reply::ok("kept")).await;
        let dependency = format!("{HALF_OF_TEN}\nclassify = {{ {status} = \"outage\" }}");
        let bench = Bench::start(&contract(origin.address, &dependency, STALE)).await;
        bench.get("/r/1").await;
        origin.now(Reply::status(status).body("no"));
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.freshness()), (200, "stale"), "{status}");
        // Without a copy it is passed on as it was.
        let answer = bench.get("/r/2").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (status, "no"),
            "{status}"
        );
        for _ in 0..10 {
            bench.get("/r/1").await;
        }
        assert_ne!(state(&bench), Some(State::Closed), "{status}");
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        assert_eq!(
            dependency.attempts(Class::OUTAGE),
            9,
            "{status}: the tenth call opened it"
        );
    }
}

#[tokio::test]
async fn a_server_error_that_the_contract_calls_a_refusal_is_shown_and_counts_as_nothing() {
    let origin = Origin::always(Reply::ok("kept")).await;
    let dependency = format!("{HALF_OF_TEN}\nclassify = {{ 500 = \"refusal\" }}\nretry = {{}}");
    for route in [STALE, "freshness = \"origin\"", "other_methods = \"pass\""] {
        let bench = Bench::start(&contract(origin.address, &dependency, route)).await;
        origin.now(Reply::ok("kept"));
        bench.get("/r/1").await;
        origin.now(Reply::status(500).body("no"));
        let hits = origin.hits();
        for _ in 0..20 {
            let answer = bench.get("/r/1").await;
            assert_eq!((answer.status, answer.text().as_str()), (500, "no"), "{route}");
        }
        assert_eq!(origin.hits() - hits, 20, "{route}: none was asked for twice");
        assert_eq!(state(&bench), Some(State::Closed), "{route}");
    }
}

/// The word for a defect: nothing stands in for it, and nothing of it is shown.
#[tokio::test]
async fn an_answer_that_the_contract_calls_a_fault_is_a_500_of_the_gateways_and_uses_no_rung() {
    let origin = Origin::always(Reply::ok("kept")).await;
    let dependency = format!("{NO_BREAKER}\nclassify = {{ 409 = \"fault\" }}");
    for (route, method) in [
        (STALE, "GET"),
        ("", "GET"),
        ("freshness = \"origin\"", "GET"),
        ("other_methods = \"pass\"", "POST"),
    ] {
        let bench = Bench::start(&contract(origin.address, &dependency, route)).await;
        origin.now(Reply::ok("kept"));
        bench.get("/r/1").await;
        origin.now(Reply::status(409).body("secret"));
        let mut client = Client::connect(bench.address()).await;
        let answer = client.request(method, "/r/1", &[("content-length", "0")]).await;
        assert_eq!(answer.status, 500, "{route} {method}");
        assert!(
            answer.text().contains("\"reason\":\"fault\""),
            "{}",
            answer.text()
        );
        assert!(!answer.text().contains("secret"));
        let proxy_status = answer.header("proxy-status").unwrap_or_default();
        assert!(proxy_status.contains("proxy_internal_error"), "{proxy_status}");
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        assert_eq!(dependency.attempts(Class::Fault), 1, "{route} {method}");
    }
}

/// Design §2: a 429 uses the ladder only if the contract says so.
#[tokio::test]
async fn a_busy_dependency_is_stood_in_for_only_where_the_contract_says_so() {
    for (classes, status, freshness) in [
        ("", 429, "-"),
        ("classes = { busy = { ladder = true } }", 200, "stale"),
    ] {
        let origin = Origin::always(Reply::ok("kept")).await;
        let dependency = format!("{NO_BREAKER}\n{classes}");
        let bench = Bench::start(&contract(origin.address, &dependency, STALE)).await;
        let series = "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"stale\",reason=\"busy\"}";
        assert_eq!(bench.metric(series).await, (status == 200).then_some(0));
        bench.get("/r/1").await;
        origin.now(Reply::status(429).header("retry-after", "9").body("later"));
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, status, "{classes}");
        if status == 200 {
            assert_eq!(answer.freshness(), freshness);
            assert!(answer.header("degraded").unwrap_or_default().contains("busy"));
            assert_eq!(bench.metric(series).await, Some(1));
        }
        // With nothing to stand in it is passed on as it was.
        let answer = bench.get("/r/2").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (429, "later"),
            "{classes}"
        );
        assert_eq!(answer.header("retry-after"), Some("9"));
    }
}

/// A row that says what a class does to the breaker: a probe is answered by what the requests are answered with.
#[tokio::test]
async fn a_dependency_whose_404_is_a_failure_is_closed_by_none() {
    for (classes, closes) in [
        ("", true),
        ("classes = { gone = { breaker = \"success\" } }", true),
        ("classes = { gone = { breaker = \"failure\" } }", false),
    ] {
        let origin = Origin::always(Reply::status(500)).await;
        let dependency =
            format!("breaker = {{ consecutive = 1, open_for = \"5ms\", open_for_max = \"5ms\" }}\n{classes}");
        let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
        bench.get("/r/1").await;
        assert_ne!(state(&bench), Some(State::Closed), "{classes}");
        origin.now(Reply::status(404));
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            bench.get("/r/1").await;
        }
        assert_eq!(state(&bench) == Some(State::Closed), closes, "{classes}");
    }
}

/// Case 016 with its times divided by ten: a quiet dependency that never answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_016_a_quiet_dependency_opens_and_all_its_routes_know_it() {
    let origin = Origin::always(Reply::hang()).await;
    let dependency = "timeout = \"200ms\"\nlearned_limit = \"off\"\nbreaker = { min_calls = 10, window = \"3s\", open_for = \"1m\", open_for_max = \"1m\" }";
    let mut text = contract(origin.address, dependency, "");
    text.push_str(
        "[[routes]]\nname = \"other\"\nmatch = { path = \"/other\" }\nclass = \"read\"\nfrom = \"d\"\n",
    );
    let bench = Bench::start(&text).await;
    for path in ["/r/1", "/other", "/r/2", "/other", "/r/3"] {
        assert_eq!(bench.get(path).await.status, 504, "{path}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let hits = origin.hits();
    for path in ["/r/1", "/other"] {
        let answer = bench.get(path).await;
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.text().contains("breaker-open"), "{path}");
    }
    assert_eq!(origin.hits(), hits, "nobody was sent on");
}

/// Case 017 with a tenth of its clients and times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_017_clients_who_leave_early_open_no_breaker() {
    let origin = Origin::always(Reply::ok("late").wait(Duration::from_millis(400))).await;
    let dependency = format!("{HALF_OF_TEN}\ntimeout = \"2500ms\"\nlearned_limit = \"off\"");
    let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::connect(bench.address()).await;
        client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
        clients.push(client);
    }
    until("all are asked for", || origin.hits() == 20).await;
    drop(clients);
    let dependency = bench.gateway.app().dependency("d").unwrap().clone();
    until("all have ended", || dependency.attempts_total() == 20).await;
    assert_eq!(dependency.attempts(Class::Cancelled), 20);
    assert_eq!(dependency.attempts(Class::OUTAGE), 0);
    assert_eq!(state(&bench), Some(State::Closed));
    let began = Instant::now();
    assert_eq!(bench.get("/r/1").await.status, 200);
    assert!(began.elapsed() >= Duration::from_millis(400), "it was asked");
}

#[tokio::test]
async fn what_a_status_is_decides_whether_it_is_asked_for_again() {
    for (classify, status, hits) in [
        ("", 408, 1),
        ("classify = { 408 = \"outage\" }", 200, 2),
        ("classify = { 408 = \"busy\" }", 200, 2),
    ] {
        let origin = Origin::start(in_turn(vec![Reply::status(408), Reply::ok("x")])).await;
        let dependency = format!("{NO_LIMITS}\nretry = {{ pause = \"1ms\" }}\n{classify}");
        let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
        assert_eq!(
            (bench.get("/r/1").await.status, origin.hits()),
            (status, hits),
            "{classify}"
        );
    }
}
