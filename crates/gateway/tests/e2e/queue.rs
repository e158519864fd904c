//! Requests that wait for a permit: by their own deadline, in order, and holding nothing.

use std::time::Duration;

use crate::kit::{Bench, NO_LIMITS, Origin, Reply, contract, get, until};

/// One permit, which the first request holds for as long as the origin says.
async fn busy(hold: Reply, deadline: &str) -> (Origin, Bench) {
    let origin = Origin::always(hold).await;
    let dependency =
        format!("{NO_LIMITS}\nconcurrency = 1\ntimeout = \"1h\"\nqueue = {{ length = 30, wait = \"2s\" }}");
    let dependency = if deadline.is_empty() {
        dependency
    } else {
        dependency.replace("2s", "900ms")
    };
    let text = contract(origin.address, &dependency, deadline);
    let bench = Bench::start(&text).await;
    (origin, bench)
}

fn waiting(bench: &Bench) -> u32 {
    bench.gateway.app().dependency("d").unwrap().status().waiting
}

fn in_use(bench: &Bench) -> u32 {
    bench.gateway.app().dependency("d").unwrap().status().in_use
}

/// Cases 023, 026 and 029 at a third of their time: who waits ends at its own deadline, is told 503, and is never sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_026_who_waits_for_a_permit_ends_by_its_deadline_and_is_never_sent() {
    let (origin, bench) = busy(Reply::ok("x").wait(Duration::from_secs(3)), "deadline = \"1s\"").await;
    let address = bench.address();
    let first = tokio::spawn(async move { get(address, "/r/1").await.status });
    until("the first is at the origin", || origin.hits() == 1).await;
    let calls: Vec<_> = (0..20)
        .map(|_| tokio::spawn(async move { get(address, "/r/2").await }))
        .collect();
    for call in calls {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 503);
        assert!(answer.text().contains("queue-expired"), "{}", answer.text());
        assert!(answer.header("retry-after").is_some());
        let proxy_status = answer.header("proxy-status").unwrap();
        assert!(
            proxy_status.contains("connection_limit_reached"),
            "{proxy_status}"
        );
    }
    assert_eq!(
        first.await.unwrap(),
        504,
        "the one in flight ran into the deadline"
    );
    assert_eq!((origin.hits(), waiting(&bench)), (1, 0));
    let expired = bench
        .metric("evenkeel_calls_total{route=\"r\",ending=\"refused\",rung=\"none\",reason=\"queue-expired\"}")
        .await;
    assert_eq!(expired, Some(20));
}

/// Case 023: a client that leaves while it waits leaves the queue at once, and the permit goes past it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_023_a_client_that_leaves_the_queue_gets_no_permit() {
    let (origin, bench) = busy(Reply::ok("x").wait(Duration::from_millis(300)), "").await;
    let address = bench.address();
    let first = tokio::spawn(async move { get(address, "/r/1").await.status });
    until("the first is at the origin", || origin.hits() == 1).await;
    let leaves: Vec<_> = (0..10)
        .map(|_| tokio::spawn(async move { get(address, "/r/leaves").await.status }))
        .collect();
    until("they wait", || waiting(&bench) == 10).await;
    let stays = tokio::spawn(async move { get(address, "/r/stays").await.status });
    until("all wait", || waiting(&bench) == 11).await;
    for call in &leaves {
        call.abort();
    }
    until("one is left", || waiting(&bench) <= 1).await;
    assert_eq!((first.await.unwrap(), stays.await.unwrap()), (200, 200));
    assert_eq!(origin.hits(), 2);
    until("every permit is back", || in_use(&bench) == 0).await;
    assert_eq!(
        bench.metric("evenkeel_queue_waiting{dependency=\"d\"}").await,
        Some(0)
    );
    assert_eq!(
        bench.metric("evenkeel_queue_limit{dependency=\"d\"}").await,
        Some(30)
    );
}
