//! The keys of queue and criticality are flipped, and something else happens.

use crate::kit::{Bench, Client, NO_LIMITS, Origin, Reply, contract, until};

/// One permit; the first request holds it for 200 ms. Returns what the last of `others` further ones is told.
async fn told_last(queue: &str, others: usize) -> (u16, String) {
    let origin = Origin::always(Reply::hang()).await;
    let dependency = format!("{NO_LIMITS}\nconcurrency = 1\ntimeout = \"200ms\"\n{queue}");
    let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
    let mut waiting = Vec::new();
    for number in 0..others {
        let mut client = Client::connect(bench.address()).await;
        client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
        waiting.push(client);
        let dependency = || bench.gateway.app().dependency("d").unwrap().status();
        until("it is in flight, or waits", || {
            (dependency().in_use + dependency().waiting) as usize > number
        })
        .await;
    }
    let last = bench.get("/r/2").await;
    let text = last.text();
    let reason = text.split("\"reason\":\"").nth(1).unwrap_or_default();
    (
        last.status,
        reason.split('"').next().unwrap_or_default().to_owned(),
    )
}

pub(crate) async fn queue() {
    assert_eq!(told_last("", 1).await, (503, "at-capacity".to_owned()));
    let waits = "queue = { wait = \"2s\" }";
    assert_eq!(
        told_last(waits, 1).await,
        (504, "timed-out".to_owned()),
        "it was asked"
    );
}

pub(crate) async fn length() {
    let queue = |length: u32| format!("queue = {{ wait = \"2s\", length = {length} }}");
    assert_eq!(told_last(&queue(1), 2).await, (503, "at-capacity".to_owned()));
    assert_eq!(told_last(&queue(2), 2).await, (504, "timed-out".to_owned()));
}

pub(crate) async fn wait() {
    let queue = |wait: &str| format!("queue = {{ wait = \"{wait}\" }}");
    assert_eq!(
        told_last(&queue("20ms"), 1).await,
        (503, "queue-expired".to_owned())
    );
    assert_eq!(told_last(&queue("2s"), 1).await, (504, "timed-out".to_owned()));
}

/// The first request is given up; its work may go on, and counts for as long again.
pub(crate) async fn abandoned() {
    for (key, second) in [("abandoned = 2", 504), ("abandoned = 1", 503)] {
        let origin = Origin::always(Reply::hang()).await;
        let dependency = format!("{NO_LIMITS}\ntimeout = \"700ms\"\n{key}");
        let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
        assert_eq!(bench.get("/r/1").await.status, 504, "{key}");
        assert_eq!(bench.get("/r/1").await.status, second, "{key}");
    }
}

/// Of four permits one is kept for a route that matters more and has been asked for.
pub(crate) async fn criticality() {
    for (criticality, reason) in [
        ("sheddable", Some("\"reason\":\"shed\"")),
        ("critical_plus", None),
    ] {
        let origin = Origin::start(|seen| {
            if seen.line.starts_with("GET /r/") {
                Reply::hang()
            } else {
                Reply::ok("x")
            }
        })
        .await;
        let dependency = format!("{NO_LIMITS}\nconcurrency = 4\ntimeout = \"500ms\"");
        let mut text = contract(
            origin.address,
            &dependency,
            &format!("criticality = \"{criticality}\""),
        );
        text.push_str(
            "[[routes]]\nname = \"login\"\nmatch = { path = \"/login\" }\nclass = \"read\"\nfrom = \"d\"\ncriticality = \"critical_plus\"\n",
        );
        let bench = Bench::start(&text).await;
        let mut hung = Vec::new();
        for number in 1..=3 {
            let mut client = Client::connect(bench.address()).await;
            client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
            hung.push(client);
            until("it is in flight", || {
                bench.gateway.app().dependency("d").unwrap().status().in_use == number
            })
            .await;
        }
        assert_eq!(bench.get("/login").await.status, 200);
        let last = bench.get("/r/2").await;
        assert_eq!(
            last.status,
            if reason.is_some() { 503 } else { 504 },
            "{criticality}"
        );
        if let Some(reason) = reason {
            assert!(last.text().contains(reason), "{}", last.text());
            assert!(last.header("retry-after").is_some());
        }
    }
}
