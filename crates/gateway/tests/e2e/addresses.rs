//! Several addresses of one dependency: who is asked, who is left out, and what the dependency's breaker makes of it.

use std::time::Duration;

use evenkeel::{Class, State};

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, Then, until};

/// A contract with one route `/r/{id}` and one dependency `d` at these addresses.
fn contract(origins: &[&Origin], dependency: &str, route: &str) -> String {
    let urls: Vec<String> = origins
        .iter()
        .map(|origin| format!("\"http://{}\"", origin.address))
        .collect();
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [dependencies.d]\nurls = [{}]\n{dependency}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n{route}\n",
        urls.join(", ")
    )
}

async fn three() -> [Origin; 3] {
    [
        Origin::always(Reply::ok("a")).await,
        Origin::always(Reply::ok("b")).await,
        Origin::always(Reply::ok("c")).await,
    ]
}

const IN_TURN: &str = "balance = \"round-robin\"";

fn ejected(bench: &Bench) -> Vec<bool> {
    let status = bench.gateway.app().addresses("d").unwrap();
    status
        .addresses
        .iter()
        .map(|address| address.ejected_until.is_some())
        .collect()
}

async fn attempts(bench: &Bench, origin: &Origin, result: &str) -> u64 {
    let series = format!(
        "evenkeel_address_attempts_total{{dependency=\"d\",address=\"{}\",result=\"{result}\"}}",
        origin.address
    );
    bench.metric(&series).await.unwrap()
}

#[tokio::test]
async fn addresses_share_the_requests_and_each_has_connections_of_its_own() {
    let [a, b, c] = three().await;
    let bench = Bench::start(&contract(&[&a, &b, &c], IN_TURN, "")).await;
    for _ in 0..30 {
        assert_eq!(bench.get("/r/1").await.status, 200);
    }
    for origin in [&a, &b, &c] {
        assert_eq!((origin.hits(), origin.connections()), (10, 1));
        assert_eq!(attempts(&bench, origin, "answered").await, 10);
    }
    assert_eq!(bench.gateway.app().idle_connections("d"), 3);
    let status = bench.gateway.app().addresses("d").unwrap();
    assert!(status.addresses.iter().all(|one| one.in_flight == 0));
}

#[tokio::test]
async fn an_address_that_refuses_connections_costs_no_request_an_answer() {
    for method in ["GET", "POST"] {
        let [a, b, c] = three().await;
        let route = "other_methods = \"pass\"";
        let bench = Bench::start(&contract(&[&a, &b, &c], "", route)).await;
        b.stop().await;
        for _ in 0..60 {
            let mut client = Client::connect(bench.address()).await;
            let answer = client.request(method, "/r/1", &[("content-length", "0")]).await;
            assert_eq!(answer.status, 200, "{method}");
        }
        assert_eq!(a.hits() + c.hits(), 60, "{method}: nothing was sent twice");
        assert_eq!(attempts(&bench, &b, "failed").await, 5, "{method}");
        assert_eq!(ejected(&bench), [false, true, false], "{method}");
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        assert_eq!(dependency.status().state, Some(State::Closed), "{method}");
        assert_eq!(
            dependency.attempts(Class::Answer),
            60,
            "{method}: none of them failed"
        );
    }
}

/// With three addresses and one dead: before it is left out at most `consecutive` requests fail, after that none does, and
/// the breaker of the dependency stays closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_dead_address_of_three_costs_at_most_as_many_answers_as_it_takes_to_see_it() {
    let deaths = [
        Reply::status(503),
        Reply::hang(),
        Reply::raw("", Then::Reset),
        Reply::raw("nonsense\r\n\r\n", Then::Close),
        Reply::raw("HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\ncut", Then::Close),
    ];
    for (number, death) in deaths.into_iter().enumerate() {
        let [a, b, c] = three().await;
        let dependency = format!("{IN_TURN}\ntimeout = \"150ms\"\nresend = false");
        let bench = Bench::start(&contract(
            &[&a, &b, &c],
            &dependency,
            "ladder = [ { stale = \"1s\" } ]",
        ))
        .await;
        b.now(death);
        let mut live = Vec::new();
        for request in 0..45 {
            let answer = bench.get(&format!("/r/{request}")).await;
            live.push(answer.status == 200);
        }
        let failed = live.iter().filter(|live| !**live).count();
        assert_eq!(failed, 5, "{number}");
        assert!(
            live[15..].iter().all(|live| *live),
            "{number}: after that all is well"
        );
        assert_eq!(b.hits(), 5, "{number}");
        assert_eq!(ejected(&bench), [false, true, false], "{number}");
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        assert_eq!(dependency.status().state, Some(State::Closed), "{number}");
    }
}

#[tokio::test]
async fn with_all_addresses_dead_the_breaker_opens_as_with_one() {
    let [a, b, c] = three().await;
    let bench = Bench::start(&contract(&[&a, &b, &c], IN_TURN, STALE)).await;
    bench.get("/r/1").await;
    for origin in [&a, &b, &c] {
        origin.stop().await;
    }
    let mut reasons = Vec::new();
    for _ in 0..8 {
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.freshness()), (200, "stale"));
        let degraded = answer.header("degraded").unwrap_or_default().to_owned();
        reasons.push(degraded.contains("breaker-open"));
    }
    // The first five found it out. A probe may have come between; nobody else was sent on.
    assert_eq!(reasons, [[false; 5].as_slice(), &[true; 3]].concat());
    let dependency = bench.gateway.app().dependency("d").unwrap().clone();
    assert_ne!(dependency.status().state, Some(State::Closed));
}

/// Case 075: a single target that is marked, two of them, and what is seen of it.
#[tokio::test]
async fn case_075_marked_addresses_that_are_asked_all_the_same_are_seen_and_counted() {
    for count in [1, 2] {
        let dead = Reply::status(503);
        let origins = [Origin::always(dead.clone()).await, Origin::always(dead).await];
        let origins: Vec<&Origin> = origins.iter().take(count).collect();
        let balance = if count > 1 { IN_TURN } else { "" };
        let dependency = format!("{NO_BREAKER}\n{balance}\neject = {{ consecutive = 1 }}");
        let bench = Bench::with_manual_clock(&contract(&origins, &dependency, "")).await;
        let overridden = "evenkeel_attempts_overridden_total{dependency=\"d\"}";
        let in_force = "evenkeel_ejection_overridden{dependency=\"d\"}";
        assert_eq!(bench.metric(overridden).await, Some(0));
        assert_eq!(bench.metric(in_force).await, Some(0));
        for _ in 0..count {
            bench.get("/r/1").await;
        }
        assert_eq!(ejected(&bench), vec![true; count]);
        for _ in 0..10 {
            assert_eq!(bench.get("/r/1").await.status, 503);
        }
        assert_eq!(bench.metric(overridden).await, Some(10), "{count}");
        assert_eq!(bench.metric(in_force).await, Some(1), "{count}");
        assert!(bench.gateway.app().addresses("d").unwrap().overrides);
        let marked = format!(
            "evenkeel_address_ejected{{dependency=\"d\",address=\"{}\"}}",
            origins[0].address
        );
        assert_eq!(bench.metric(&marked).await, Some(1), "{count}");
        // One answers again: it is used, and the other is left out.
        origins[0].now(Reply::ok("well"));
        for _ in 0..count {
            bench.get("/r/1").await;
        }
        assert_eq!(bench.metric(in_force).await, Some(0), "{count}");
        assert_eq!(bench.metric(&marked).await, Some(0), "{count}");
        for _ in 0..5 {
            assert_eq!(bench.get("/r/1").await.status, 200, "{count}");
        }
    }
}

#[tokio::test]
async fn an_address_comes_back_on_trial_when_its_time_is_over() {
    let [a, b, c] = three().await;
    let dependency =
        format!("{NO_BREAKER}\n{IN_TURN}\neject = {{ consecutive = 2, for = \"10s\", jitter = \"0%\" }}");
    let bench = Bench::with_manual_clock(&contract(&[&a, &b, &c], &dependency, "")).await;
    b.now(Reply::status(502));
    let ask = async |times: usize| {
        for _ in 0..times {
            bench.get("/r/1").await;
        }
        b.hits()
    };
    assert_eq!(ask(12).await, 2);
    bench.advance(Duration::from_secs(10));
    assert_eq!(ask(12).await, 3, "one try, and it is left out for twice as long");
    bench.advance(Duration::from_secs(19));
    assert_eq!(ask(12).await, 3);
    bench.advance(Duration::from_secs(1));
    b.now(Reply::ok("b"));
    assert_eq!(ask(12).await, 7, "it has its share again");
}

#[tokio::test]
async fn a_retry_asks_another_address_first() {
    let [a, b, _] = three().await;
    let dependency =
        format!("{NO_BREAKER}\n{IN_TURN}\neject = \"off\"\nretry = {{ budget = \"100%\", pause = \"1ms\" }}");
    let bench = Bench::start(&contract(&[&a, &b], &dependency, STALE)).await;
    a.now(Reply::status(503));
    for request in 0..20 {
        let answer = bench.get(&format!("/r/{request}")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "b"), "{request}");
    }
    assert!(
        a.hits() >= 10,
        "it is not left out, and everybody gets an answer all the same"
    );
}

#[tokio::test]
async fn statuses_that_are_no_failure_of_the_address_leave_it_in() {
    for (statuses, hits) in [("", 10), ("statuses = [500]", 1)] {
        let [a, b, _] = three().await;
        let dependency = format!("{NO_BREAKER}\n{IN_TURN}\neject = {{ consecutive = 1, {statuses} }}");
        let bench = Bench::start(&contract(&[&a, &b], &dependency, "")).await;
        a.now(Reply::status(500));
        for _ in 0..20 {
            bench.get("/r/1").await;
        }
        assert_eq!(a.hits(), hits, "{statuses}");
    }
}

/// Case 017, for an address: a client who leaves says nothing about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_who_leave_mark_no_address() {
    let [a, b, _] = three().await;
    for origin in [&a, &b] {
        origin.now(Reply::ok("late").wait(Duration::from_millis(300)));
    }
    let dependency = "timeout = \"2s\"\neject = { consecutive = 1 }\nlearned_limit = \"off\"";
    let bench = Bench::start(&contract(&[&a, &b], dependency, "")).await;
    for _ in 0..10 {
        let mut client = Client::connect(bench.address()).await;
        let hits = a.hits() + b.hits();
        client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
        until("it is asked", || a.hits() + b.hits() > hits).await;
        drop(client);
    }
    let in_flight = || {
        let status = bench.gateway.app().addresses("d").unwrap();
        status.addresses.iter().map(|one| one.in_flight).sum::<u32>()
    };
    until("nothing is in flight", || in_flight() == 0).await;
    assert_eq!(ejected(&bench), [false, false]);
    assert_eq!(
        attempts(&bench, &a, "left").await + attempts(&bench, &b, "left").await,
        10
    );
}

#[tokio::test]
async fn each_address_is_told_its_own_host_where_the_contract_says_so() {
    for (rewrite, own) in [("", false), ("rewrite = { host = \"upstream\" }", true)] {
        for method in ["GET", "POST"] {
            let [a, b, c] = three().await;
            let route = "other_methods = \"pass\"";
            let dependency = format!("{IN_TURN}\n{rewrite}");
            let bench = Bench::start(&contract(&[&a, &b, &c], &dependency, route)).await;
            for _ in 0..6 {
                let mut client = Client::connect(bench.address()).await;
                let answer = client.request(method, "/r/1", &[("content-length", "0")]).await;
                assert_eq!(answer.status, 200);
            }
            for origin in [&a, &b, &c] {
                let address = origin.address.to_string();
                for seen in origin.seen() {
                    let host = if own { address.as_str() } else { "shop.example" };
                    assert_eq!(seen.header("host"), Some(host), "{method}");
                    assert_eq!(seen.header("x-forwarded-host"), own.then_some("shop.example"));
                }
                assert_eq!(origin.hits(), 2);
            }
        }
    }
}

/// The probe of an open dependency goes to one address after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_finds_the_address_that_is_back() {
    let [a, b, _] = three().await;
    let dependency = format!("{IN_TURN}\nprobe = {{ path = \"/up\" }}");
    let bench = Bench::start(&contract(&[&a, &b], &dependency, STALE)).await;
    a.stop().await;
    b.stop().await;
    for request in 0..6 {
        bench.get(&format!("/r/{request}")).await;
    }
    let state = || bench.gateway.app().dependency("d").unwrap().status().state;
    until("it is open", || state() != Some(State::Closed)).await;
    b.heal().await;
    until("it is closed", || state() == Some(State::Closed)).await;
    let probed = b
        .seen()
        .into_iter()
        .find(|seen| seen.line.starts_with("GET /up"))
        .unwrap();
    assert_eq!(probed.header("host"), Some(b.address.to_string().as_str()));
}
