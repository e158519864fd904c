//! The keys of ramp and learned limit are flipped, and something else happens.

use std::time::Duration;

use evenkeel::Stage;

use crate::kit::{Bench, Origin, Reply, contract};

/// An origin whose breaker has just closed again, behind a gateway whose clock stands still.
struct Back {
    origin: Origin,
    bench: Bench,
}

impl Back {
    /// `ramp` is what stands in the contract beside the breaker, which opens at the third failure.
    async fn with(ramp: &str) -> Self {
        let origin = Origin::always(Reply::status(500)).await;
        let breaker =
            "breaker = { consecutive = 3, open_for = \"1s\", open_for_max = \"1s\", jitter = \"0%\" }";
        let text = contract(origin.address, &format!("{breaker}\n{ramp}"), "");
        let bench = Bench::with_manual_clock(&text).await;
        for _ in 0..3 {
            bench.get("/r/1").await;
        }
        origin.now(Reply::ok("x"));
        bench.advance(Duration::from_secs(1));
        assert_eq!(bench.get("/r/1").await.status, 200, "the probe");
        Self { origin, bench }
    }

    fn stage(&self) -> Option<Stage> {
        self.bench.gateway.app().dependency("d").unwrap().status().ramp
    }

    /// Makes `calls` calls at once and returns how many got through.
    async fn let_in(&self, calls: usize) -> usize {
        let mut through = 0;
        for _ in 0..calls {
            let answer = self.bench.get("/r/1").await;
            if answer.status == 200 {
                through += 1;
            } else {
                assert!(
                    answer.text().contains("\"reason\":\"ramping\""),
                    "{}",
                    answer.text()
                );
            }
        }
        through
    }

    /// Lets time pass, then one call look; returns the stage, from zero.
    async fn after(&self, millis: u64) -> u32 {
        self.bench.advance(Duration::from_millis(millis));
        self.bench.get("/r/1").await;
        self.stage().unwrap().index
    }
}

/// A breaker that has opened closes although no request comes, by the path that the contract names.
pub(crate) async fn probe() {
    for (probe, path) in [
        (
            "probe = { path = \"/health?full\" }",
            Some("GET /health?full HTTP/1.1"),
        ),
        ("", None),
    ] {
        let origin = Origin::always(Reply::status(500)).await;
        let breaker =
            "breaker = { consecutive = 1, open_for = \"1s\", open_for_max = \"1s\", jitter = \"0%\" }";
        let text = contract(origin.address, &format!("{breaker}\n{probe}"), "");
        let bench = Bench::with_manual_clock(&text).await;
        bench.get("/r/1").await;
        origin.now(Reply::ok("x"));
        let dependency = bench.gateway.app().dependency("d").unwrap();
        assert_eq!(dependency.is_probed_by_itself(), path.is_some());
        let state = || dependency.status().state;
        assert_eq!(state(), Some(evenkeel::State::Open));
        bench.advance(Duration::from_secs(1));
        if let Some(path) = path {
            crate::kit::until("it has closed", || state() == Some(evenkeel::State::Closed)).await;
            let seen = origin.seen();
            let last = seen.last().unwrap();
            assert_eq!((seen.len(), last.line.as_str()), (2, path));
            assert_eq!(last.header("host"), Some(origin.address.to_string().as_str()));
        } else {
            assert_eq!(bench.get("/r/1").await.status, 200, "a request has to");
            assert_eq!(origin.hits(), 2);
        }
    }
}

pub(crate) async fn ramp() {
    assert_eq!(Back::with("").await.let_in(20).await, 1);
    assert_eq!(Back::with("ramp = \"off\"").await.let_in(20).await, 20);
    assert_eq!(Back::with("ramp = {}").await.let_in(20).await, 1);
}

pub(crate) async fn stages() {
    let back = Back::with("ramp = { stages = [50, 100] }").await;
    assert_eq!(back.let_in(20).await, 10);
}

pub(crate) async fn hold() {
    for (rules, index) in [("calls = 1", 1), ("calls = 1, hold = \"200ms\"", 0)] {
        let back = Back::with(&format!("ramp = {{ {rules} }}")).await;
        back.let_in(1).await;
        assert_eq!(back.after(150).await, index, "{rules}");
    }
}

pub(crate) async fn hold_max() {
    for (rules, index) in [("", 1), ("hold_max = \"2s\"", 0)] {
        let back = Back::with(&format!("ramp = {{ {rules} }}")).await;
        assert_eq!(back.after(750).await, index, "{rules}");
    }
}

pub(crate) async fn calls() {
    for (rules, index) in [("", 0), ("calls = 1", 1)] {
        let back = Back::with(&format!("ramp = {{ {rules} }}")).await;
        back.let_in(1).await;
        assert_eq!(back.after(150).await, index, "{rules}");
    }
}

pub(crate) async fn failure_ratio() {
    for (rules, status) in [("", 503), ("failure_ratio = \"100%\"", 500)] {
        let back = Back::with(&format!("ramp = {{ stages = [100], {rules} }}").replace(", }", " }")).await;
        back.origin.now(Reply::status(500));
        for _ in 0..2 {
            back.bench.get("/r/1").await;
        }
        back.bench.advance(Duration::from_millis(50));
        let answer = back.bench.get("/r/1").await;
        assert_eq!(answer.status, status, "{rules}");
    }
}

/// Sends so many requests at once to an origin that hangs, and returns how many were refused.
async fn refused(calls: usize, dependency: &str) -> usize {
    let origin = Origin::always(Reply::hang()).await;
    let text = contract(
        origin.address,
        &format!("breaker = \"off\"\ntimeout = \"300ms\"\n{dependency}"),
        "",
    );
    let bench = Bench::start(&text).await;
    let address = bench.address();
    let calls: Vec<_> = (0..calls)
        .map(|_| tokio::spawn(async move { crate::kit::get(address, "/r/1").await.status }))
        .collect();
    let mut refused = 0;
    for call in calls {
        refused += usize::from(call.await.unwrap() == 503);
    }
    refused
}

pub(crate) async fn learned_limit() {
    assert_eq!(refused(12, "").await, 2);
    assert_eq!(refused(12, "learned_limit = {}").await, 2);
    assert_eq!(refused(12, "learned_limit = \"off\"").await, 0);
}

pub(crate) async fn cold() {
    assert_eq!(refused(3, "learned_limit = { cold = 1 }").await, 2);
    assert_eq!(refused(3, "learned_limit = { cold = 2 }").await, 1);
}

/// A 429 takes a place away, but never the last ones.
pub(crate) async fn floor() {
    for (floor, limit) in [(1, 1), (2, 2)] {
        let origin = Origin::always(Reply::status(429)).await;
        let rules = format!("learned_limit = {{ cold = 2, floor = {floor} }}");
        let bench = Bench::start(&contract(origin.address, &rules, "")).await;
        bench.get("/r/1").await;
        let dependency = bench.gateway.app().dependency("d").unwrap();
        assert_eq!(dependency.status().learned_limit, Some(limit), "{floor}");
    }
}

/// What ran into its timeout keeps its place for as long as it lingers.
pub(crate) async fn linger() {
    let origin = Origin::always(Reply::hang()).await;
    let lingering = async |linger: &str| {
        let rules = format!("timeout = \"50ms\"\nlearned_limit = {{ cold = 1, linger = \"{linger}\" }}");
        let bench = Bench::start(&contract(origin.address, &rules, "")).await;
        assert_eq!(bench.get("/r/1").await.status, 504);
        bench
    };
    assert_eq!(lingering("1h").await.get("/r/1").await.status, 503);
    let short = lingering("1ms").await;
    let dependency = short.gateway.app().dependency("d").unwrap();
    crate::kit::until("it lingers no more", || dependency.status().lingering == 0).await;
    assert_eq!(short.get("/r/1").await.status, 504);
}
