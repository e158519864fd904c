//! Permits, deadlines and connections under callers who leave.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use evenkeel_core::Rng;

use crate::kit::{Bench, Client, NO_LIMITS, Origin, Reply, contract, contract_with, get, until};

fn in_use(bench: &Bench) -> u32 {
    bench.gateway.app().dependency("d").unwrap().status().in_use
}

/// Case 022, at a tenth of its size: a cancelled call gives its permit back exactly once, wherever it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_022_cancelled_calls_give_their_permits_back() {
    let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(100))).await;
    let bench = Bench::start(&contract(
        origin.address,
        &format!("{NO_LIMITS}\nconcurrency = 10"),
        "",
    ))
    .await;
    let mut rng = Rng::new(22);
    for _ in 0..10 {
        let mut calls = Vec::new();
        for _ in 0..10 {
            let patience = Duration::from_micros(rng.next_u64() % 110_000);
            let address = bench.address();
            calls.push(tokio::spawn(async move {
                drop(tokio::time::timeout(patience, get(address, "/r/1")).await);
            }));
        }
        for call in calls {
            call.await.unwrap();
        }
        assert!(in_use(&bench) <= 10);
    }
    until("every permit is back", || in_use(&bench) == 0).await;
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let address = bench.address();
            tokio::spawn(async move { get(address, "/r/1").await.status })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200, "all ten are admitted at once");
    }
    assert_eq!(in_use(&bench), 0);
}

/// Case 024: nobody waits for a permit without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_024_when_every_permit_hangs_everybody_is_answered_by_the_deadline() {
    let origin = Origin::always(Reply::hang()).await;
    let dependency = "concurrency = 5\ntimeout = \"1h\"\nbreaker = \"off\"";
    let bench = Bench::start(&contract(origin.address, dependency, "deadline = \"2s\"")).await;
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let address = bench.address();
            tokio::spawn(async move { get(address, "/r/1").await })
        })
        .collect();
    let mut statuses = Vec::new();
    let mut waits = BTreeSet::new();
    for call in calls {
        let answer = call.await.unwrap();
        if answer.status == 503 {
            waits.insert(answer.header("retry-after").unwrap().to_owned());
            assert!(answer.text().contains("\"reason\":\"at-capacity\""));
        }
        statuses.push(answer.status);
    }
    assert_eq!(Vec::from_iter(waits), ["5", "6", "7"], "h04: apart");
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 45);
    assert_eq!(statuses.iter().filter(|status| **status == 504).count(), 5);
    let refused = "evenkeel_calls_total{route=\"r\",ending=\"refused\",rung=\"none\",reason=\"at-capacity\"}";
    assert_eq!(bench.metric(refused).await, Some(45));
    assert_eq!(in_use(&bench), 0);
}

/// Case 025, at a tenth of its size: an exchange that did not end cleanly never hands its answer to another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_025_no_answer_carries_another_requesters_id() {
    for ladder in ["", "ladder = [ { stale = \"60s\" } ]"] {
        let origin = Origin::start(|seen| {
            let id = seen.line.split(['/', ' ']).nth(3).unwrap_or_default().to_owned();
            Reply::ok(id).wait(Duration::from_millis(10))
        })
        .await;
        let bench = Arc::new(Bench::start(&contract(origin.address, NO_LIMITS, ladder)).await);
        let calls: Vec<_> = (0..20)
            .map(|worker: u64| {
                let bench = Arc::clone(&bench);
                tokio::spawn(async move {
                    let mut rng = Rng::new(worker);
                    let mut answered = 0;
                    for number in 0..50 {
                        let id = format!("id-{worker}-{number}");
                        // Three in ten leave before, at about, or after the answer.
                        let leaves = rng.next_u64() % 10 < 3;
                        let patience = if leaves {
                            rng.next_u64() % 12_000
                        } else {
                            20_000_000
                        };
                        let path = format!("/r/{id}");
                        let call = get(bench.address(), &path);
                        if let Ok(answer) = tokio::time::timeout(Duration::from_micros(patience), call).await
                        {
                            assert_eq!((answer.status, answer.text()), (200, id));
                            answered += 1;
                        }
                    }
                    answered
                })
            })
            .collect();
        let mut answered = 0;
        for call in calls {
            answered += call.await.unwrap();
        }
        assert!(answered >= 600, "{answered}");
    }
}

/// A caller who leaves is an ending of its own, and no failure of the dependency.
#[tokio::test]
async fn e18_a_client_who_leaves_counts_as_abandoned_and_trips_nothing() {
    let origin = Origin::always(Reply::hang()).await;
    let bench = Bench::start(&contract(
        origin.address,
        "breaker = { consecutive = 1 }\nconcurrency = 9",
        "",
    ))
    .await;
    for number in 1..=3 {
        let mut client = Client::connect(bench.address()).await;
        client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
        until("the request is at the origin", || origin.hits() == number).await;
        drop(client);
        until("the permit is back", || in_use(&bench) == 0).await;
    }
    let abandoned = "evenkeel_calls_total{route=\"r\",ending=\"abandoned\",rung=\"none\",reason=\"none\"}";
    assert_eq!(bench.metric(abandoned).await, Some(3));
    assert_eq!(
        bench
            .metric("evenkeel_breaker_state{dependency=\"d\",state=\"closed\"}")
            .await,
        Some(1)
    );
}

#[tokio::test]
async fn two_dependencies_share_the_capacity_of_a_resource() {
    let slow = Origin::always(Reply::hang()).await;
    let quick = Origin::always(Reply::ok("x")).await;
    let mut contract = contract_with(
        slow.address,
        "[resources.db]\nconcurrency = 1",
        "uses = [\"db\"]",
        "",
    );
    contract.push_str(&format!(
        "[dependencies.e]\nurls = [\"http://{}\"]\nuses = [\"db\"]\n[[routes]]\nname = \"s\"\n\
         match = {{ path = \"/s\" }}\nclass = \"read\"\nfrom = \"e\"\n",
        quick.address
    ));
    let bench = Bench::start(&contract).await;
    assert_eq!(bench.get("/s").await.status, 200);
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the resource is in use", || slow.hits() == 1).await;
    assert_eq!(bench.get("/s").await.status, 503);
    assert_eq!(
        bench
            .metric("evenkeel_resource_permits_in_use{resource=\"db\"}")
            .await,
        Some(1)
    );
}

/// Rule M10: a reused connection that the origin has closed is no failure.
#[tokio::test]
async fn m10_a_connection_closed_by_the_origin_is_replaced_without_anybody_noticing() {
    let origin = Origin::start(|seen| {
        // Closes each connection in answer to its second request, without a byte.
        Reply::ok(format!("{}", seen.connection))
    })
    .await;
    let bench = Bench::start(&contract(origin.address, "breaker = { consecutive = 1 }", "")).await;
    assert_eq!(bench.get("/r/1").await.text(), "0");
    origin.script(|seen| {
        if seen.connection == 0 {
            Reply::raw("", crate::kit::Then::Close)
        } else {
            Reply::ok("again")
        }
    });
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "again"));
    // Once only, and only on a reused connection: a new one that says nothing is a failure.
    origin.script(|_| Reply::raw("", crate::kit::Then::Close));
    assert_eq!(bench.get("/r/1").await.status, 502);
    assert_eq!(origin.hits(), 5, "1, 2 (sent again), 2 (sent again)");
}
