//! The keys of several addresses are flipped, and something else happens.

use std::time::Duration;

use crate::kit::{Bench, NO_BREAKER, Origin, Reply, contract};

/// A contract whose dependency has both addresses.
fn both(one: &Origin, other: &Origin, dependency: &str) -> String {
    let urls = format!(
        "urls = [\"http://{}\", \"http://{}\"]",
        one.address, other.address
    );
    let text = contract(one.address, &format!("{NO_BREAKER}\n{dependency}"), "");
    text.replacen(&format!("urls = [\"http://{}\"]", one.address), &urls, 1)
}

async fn two(one: Reply) -> [Origin; 2] {
    [Origin::always(one).await, Origin::always(Reply::ok("x")).await]
}

/// Returns how often the first address was asked in so many requests.
async fn asked(dependency: &str, times: usize) -> usize {
    let [one, other] = two(Reply::status(503)).await;
    let bench = Bench::with_manual_clock(&both(&one, &other, dependency)).await;
    for _ in 0..times {
        bench.get("/r/1").await;
    }
    one.hits()
}

pub(crate) async fn urls() {
    let [one, other] = two(Reply::ok("x")).await;
    let bench = Bench::start(&both(&one, &other, "balance = \"round-robin\"")).await;
    for _ in 0..10 {
        bench.get("/r/1").await;
    }
    assert_eq!((one.hits(), other.hits()), (5, 5));
}

/// One address hangs: taken in turn it gets every second request, by load it gets one.
pub(crate) async fn balance() {
    for (balance, hanging) in [("round-robin", 3), ("least-loaded", 1), ("power-of-two", 1)] {
        let [one, other] = two(Reply::hang()).await;
        let dependency =
            format!("balance = \"{balance}\"\neject = \"off\"\nlearned_limit = \"off\"\ntimeout = \"30s\"");
        let text =
            both(&one, &other, &dependency).replace("from = \"d\"", "from = \"d\"\ndeadline = \"30s\"");
        let bench = Bench::start(&text).await;
        let mut waiting = Vec::new();
        let mut sent = 0;
        while one.hits() < hanging && sent < 200 {
            sent += 1;
            let mut client = crate::kit::Client::connect(bench.address()).await;
            let before = one.hits() + other.hits();
            client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
            crate::kit::until("it is asked", || one.hits() + other.hits() > before).await;
            if one.hits() + other.hits() - before == 1 && one.hits() > waiting.len() {
                waiting.push(client);
            } else {
                assert_eq!(client.answer(false).await.status, 200);
            }
        }
        assert_eq!(one.hits(), hanging, "{balance}");
        for _ in 0..20 {
            if hanging == 1 {
                assert_eq!(bench.get("/r/1").await.status, 200, "{balance}");
            }
        }
        assert_eq!(one.hits(), hanging, "{balance}");
    }
}

const IN_TURN: &str = "balance = \"round-robin\"";

pub(crate) async fn eject() {
    assert_eq!(asked(&format!("{IN_TURN}\neject = \"off\""), 40).await, 20);
    assert_eq!(asked(IN_TURN, 40).await, 5);
}

pub(crate) async fn consecutive() {
    for times in [1, 3] {
        let rules = format!("{IN_TURN}\neject = {{ consecutive = {times} }}");
        assert_eq!(asked(&rules, 40).await, times);
    }
}

/// Returns how often the first address was asked after this long, and after as long again.
async fn asked_later(rules: &str, spans: [u64; 2]) -> [usize; 2] {
    let [one, other] = two(Reply::status(503)).await;
    let rules = format!("{IN_TURN}\neject = {{ consecutive = 1, {rules} }}");
    let bench = Bench::with_manual_clock(&both(&one, &other, &rules)).await;
    let mut seen = [0; 2];
    for _ in 0..4 {
        bench.get("/r/1").await;
    }
    for (span, seen) in spans.into_iter().zip(&mut seen) {
        bench.advance(Duration::from_millis(span));
        for _ in 0..4 {
            bench.get("/r/1").await;
        }
        *seen = one.hits();
    }
    seen
}

pub(crate) async fn lasts() {
    assert_eq!(
        asked_later("jitter = \"0%\", for = \"1s\"", [1000, 0]).await,
        [2, 2]
    );
    assert_eq!(
        asked_later("jitter = \"0%\", for = \"2s\"", [1000, 0]).await,
        [1, 1]
    );
}

pub(crate) async fn lasts_at_most() {
    let rules = |longest: &str| format!("jitter = \"0%\", for = \"1s\", for_max = \"{longest}\"");
    assert_eq!(asked_later(&rules("1s"), [1000, 1000]).await, [2, 3]);
    assert_eq!(
        asked_later(&rules("9s"), [1000, 1000]).await,
        [2, 2],
        "twice as long"
    );
}

/// Without a spread the time is exact; with one it is not, for at least one of several draws.
pub(crate) async fn jitter() {
    for (jitter, is_exact) in [("0%", true), ("50%", false)] {
        let mut all_exact = true;
        for seed in 0..8 {
            let [one, other] = two(Reply::status(503)).await;
            let rules =
                format!("{IN_TURN}\neject = {{ consecutive = 1, for = \"100s\", jitter = \"{jitter}\" }}");
            let clock = evenkeel::ManualClock::new();
            let engine = evenkeel::Engine::new(clock.clone(), seed);
            let limits = evenkeel_gateway::proxy::Limits::default();
            let bench = Bench::start_with(&both(&one, &other, &rules), engine, Some(clock), limits).await;
            for _ in 0..2 {
                bench.get("/r/1").await;
            }
            let status = bench.gateway.app().addresses("d").unwrap();
            let until = status.addresses[0].ejected_until.unwrap();
            let lasts = until.since(bench.gateway.app().engine().now().mono);
            all_exact &= lasts == Duration::from_secs(100);
        }
        assert_eq!(all_exact, is_exact, "{jitter}");
    }
}

/// Both fail: with half of them one may be left out and is not, as both are marked; with one percent none may be.
pub(crate) async fn max_share() {
    for (share, overrides) in [("50%", false), ("1%", true)] {
        let [one, other] = two(Reply::status(503)).await;
        let rules = format!("{IN_TURN}\neject = {{ consecutive = 1, max_share = \"{share}\" }}");
        let bench = Bench::with_manual_clock(&both(&one, &other, &rules)).await;
        for _ in 0..3 {
            bench.get("/r/1").await;
        }
        assert_eq!(
            bench.gateway.app().addresses("d").unwrap().overrides,
            overrides,
            "{share}"
        );
    }
}

pub(crate) async fn statuses() {
    let rules = |statuses: &str| format!("{IN_TURN}\neject = {{ consecutive = 1, statuses = {statuses} }}");
    assert_eq!(asked(&rules("[503]"), 20).await, 1);
    assert_eq!(asked(&rules("[502]"), 20).await, 10);
}
