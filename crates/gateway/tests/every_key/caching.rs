//! The keys of a route that caches: each is flipped, and something else happens; and what a bad value is told.

use std::time::Duration;

use evenkeel_gateway::config;

use crate::kit::{Bench, NO_LIMITS, Origin, Reply, Then, contract, contract_with, in_turn, until};

async fn bench(origin: &Origin, route: &str) -> Bench {
    Bench::with_manual_clock(&contract(origin.address, NO_LIMITS, route)).await
}

fn caching(more: &str) -> String {
    format!("freshness = \"origin\"\n{more}")
}

/// How often the origin is asked when this is asked for twice, so long apart.
async fn asked(reply: Reply, route: &str, fields: &[(&str, &str)], apart: u64) -> usize {
    let origin = Origin::always(reply).await;
    let bench = bench(&origin, route).await;
    bench.get_with("/r/1", fields).await;
    bench.advance(Duration::from_secs(apart));
    bench.get_with("/r/1", fields).await;
    origin.hits()
}

fn lasting(value: &str) -> Reply {
    Reply::ok("x").header("cache-control", value)
}

pub(crate) async fn freshness() {
    for (route, hits) in [
        ("", 2),
        ("freshness = \"none\"", 2),
        ("freshness = \"origin\"", 1),
    ] {
        assert_eq!(asked(lasting("max-age=60"), route, &[], 1).await, hits, "{route}");
    }
}

pub(crate) async fn scope_share() {
    let route = caching("scope = [\"query:tenant\"]");
    for (share, kept) in [("100%", true), ("10%", false)] {
        let origin =
            Origin::always(Reply::ok(vec![b'x'; 20 << 10]).header("cache-control", "max-age=60")).await;
        let top = format!("memory = \"1MiB\"\nscope_share = \"{share}\"");
        let bench = Bench::start(&contract_with(origin.address, &top, NO_LIMITS, &route)).await;
        bench.get("/r/0?tenant=small").await;
        for n in 0..10 {
            bench.get(&format!("/r/{n}?tenant=large")).await;
        }
        let first = bench.get("/r/0?tenant=large").await;
        let is_hit = |answer: &crate::kit::Answer| answer.header("cache-status").unwrap().contains("hit");
        assert_eq!(is_hit(&first), kept, "{share}");
        assert!(is_hit(&bench.get("/r/0?tenant=small").await), "{share}");
    }
    let zero = "scope_share = \"0%\"";
    let text = contract_with("127.0.0.1:1".parse().unwrap(), zero, "", "");
    let problems = config::parse("c", &text).unwrap_err().to_string();
    assert!(problems.contains("gateway.scope_share: nothing"), "{problems}");
}

pub(crate) async fn heuristic() {
    let old = || Reply::ok("x").header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    for (more, hits) in [("", 2), ("heuristic = \"1d\"", 1), ("heuristic = \"5s\"", 2)] {
        assert_eq!(asked(old(), &caching(more), &[], 10).await, hits, "{more}");
    }
}

pub(crate) async fn stale_while_revalidate() {
    for (more, given) in [("", "two"), ("stale_while_revalidate = \"10s\"", "one")] {
        let origin = Origin::start(in_turn(vec![
            Reply::ok("one").header("cache-control", "max-age=1"),
            Reply::ok("two"),
        ]))
        .await;
        let bench = bench(&origin, &caching(more)).await;
        bench.get("/r/1").await;
        bench.advance(Duration::from_secs(2));
        assert_eq!(bench.get("/r/1").await.text(), given, "{more}");
    }
}

pub(crate) async fn ignore_cookies() {
    for (more, hits) in [
        ("", 2),
        ("ignore_cookies = [\"theme\"]", 1),
        ("ignore_cookies = [\"other\"]", 2),
        ("ignore_cookies = [\"*\"]", 1),
    ] {
        let cookie = [("cookie", "theme=dark")];
        assert_eq!(
            asked(lasting("max-age=60"), &caching(more), &cookie, 1).await,
            hits,
            "{more}"
        );
    }
    refused("ignore_cookies = [\"a b\"]", "ignore_cookies", "names of cookies");
    refused(
        "ignore_cookies = [\"theme\", \"*\"]",
        "ignore_cookies",
        "alone for all of them",
    );
}

pub(crate) async fn keep_set_cookie() {
    let reply = || lasting("max-age=60").header("set-cookie", "id=1");
    for (more, hits) in [("", 2), ("keep_set_cookie = true", 1)] {
        assert_eq!(asked(reply(), &caching(more), &[], 1).await, hits, "{more}");
    }
}

pub(crate) async fn set_aside() {
    for (more, status) in [("", 502), ("override = [\"must-revalidate\"]", 200)] {
        let origin = Origin::always(lasting("max-age=1, must-revalidate")).await;
        let route = caching(&format!("ladder = [ {{ stale = \"60s\" }} ]\n{more}"));
        let bench = bench(&origin, &route).await;
        bench.get("/r/1").await;
        bench.advance(Duration::from_secs(2));
        origin.stop().await;
        assert_eq!(bench.get("/r/1").await.status, status, "{more}");
    }
    refused(
        &caching("override = [\"no-store\"]"),
        "override",
        "must-revalidate",
    );
}

pub(crate) async fn request_directives() {
    let reload = [("cache-control", "no-cache")];
    for (more, hits) in [("", 2), ("request_directives = \"ignored\"", 1)] {
        assert_eq!(
            asked(lasting("max-age=60"), &caching(more), &reload, 1).await,
            hits,
            "{more}"
        );
    }
    for (word, status) in [("before-asking", 200), ("always", 502)] {
        let origin = Origin::always(lasting("max-age=60")).await;
        let bench = bench(&origin, &caching(&format!("request_directives = \"{word}\""))).await;
        bench.get("/r/1").await;
        origin.stop().await;
        assert_eq!(bench.get_with("/r/1", &reload).await.status, status, "{word}");
    }
    for (more, waits) in [("", true), ("request_directives = \"ignored\"", false)] {
        let origin = Origin::always(lasting("max-age=0, stale-while-revalidate=60")).await;
        let bench = bench(&origin, &caching(more)).await;
        bench.get("/r/1").await;
        let answer = bench.get_with("/r/1", &reload).await;
        let label = answer.header("cache-status").unwrap();
        assert_eq!(!label.contains("revalidating"), waits, "{more}: {label}");
    }
    refused(
        &caching("request_directives = \"never\""),
        "request_directives",
        "before-asking",
    );
}

pub(crate) async fn normalise() {
    for (more, hits) in [
        ("", 2),
        ("normalise = [\"accept-encoding\"]", 1),
        ("normalise = [\"accept-language\"]", 2),
    ] {
        let origin = Origin::always(lasting("max-age=60").header("vary", "accept-encoding")).await;
        let bench = bench(&origin, &caching(more)).await;
        for spelling in ["gzip, br", "br;q=1.0,x-gzip"] {
            bench.get_with("/r/1", &[("accept-encoding", spelling)]).await;
        }
        assert_eq!(origin.hits(), hits, "{more}");
    }
    refused(
        &caching("normalise = [\"accept\"]"),
        "normalise",
        "accept-language",
    );
}

pub(crate) async fn resend() {
    for (resend, status) in [("true", 200), ("false", 502)] {
        // The look at what is idle, every few seconds, may have the connection in hand just when it is wanted.
        let mut tries = 0;
        while !reused(resend, status).await {
            tries += 1;
            assert!(tries < 20, "no connection was ever used again");
        }
    }
}

/// Has the second request find its connection closed, and looks what comes of it; `false` if it went on another one.
async fn reused(resend: &str, status: u16) -> bool {
    let origin = Origin::start(in_turn(vec![
        Reply::ok("one"),
        Reply::raw("", Then::Close),
        Reply::ok("two"),
    ]))
    .await;
    let dependency = format!("{NO_LIMITS}\nresend = {resend}\ntimeout = \"15s\"");
    // One list of idle connections, so that the second request finds the first one's, whatever thread it is on.
    let text = contract_with(origin.address, "workers = 1", &dependency, "deadline = \"16s\"");
    let bench = Bench::start(&text).await;
    bench.get("/r/1").await;
    let idle = || bench.gateway.app().idle_connections("d") == 1;
    until("the connection can be used again", idle).await;
    let answer = bench.get("/r/1").await;
    let is_reused = origin.seen()[1].connection == 0;
    assert!(
        !is_reused || answer.status == status,
        "{resend}: {}",
        answer.status
    );
    is_reused
}

fn refused(route: &str, key: &str, allowed: &str) {
    let text = contract("127.0.0.1:1".parse().unwrap(), "", route);
    let problems = config::parse("c", &text).unwrap_err().to_string();
    assert!(
        problems.contains(&format!("\"r\".{key}: ")) && problems.contains(allowed.trim_matches('\\')),
        "{problems}"
    );
}

#[test]
fn what_has_no_effect_on_a_route_is_refused_there() {
    for key in [
        "heuristic = \"1d\"",
        "keep_set_cookie = true",
        "stale_while_revalidate = \"1s\"",
        "override = [\"no-cache\"]",
        "request_directives = \"always\"",
        "normalise = [\"accept-encoding\"]",
    ] {
        let name = key.split(' ').next().unwrap();
        refused(key, name, "add `freshness = \"origin\"`");
    }
    refused("ignore_cookies = [\"theme\"]", "ignore_cookies", "a stale rung");
    for key in ["coalesce = true", "exact = true"] {
        let name = key.split(' ').next().unwrap();
        refused(&caching(key), name, "only on a route that always asks");
    }
    refused("freshness = \"always\"", "freshness", "origin");
}
