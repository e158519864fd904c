//! What answers of a route that caches say of themselves, read by an independent parser; what is counted; the example.

use std::{fs, path::Path, time::Duration};

use evenkeel::{Engine, ManualClock};
use evenkeel_gateway::proxy::Limits;
use sfv::{BareItem, ListEntry, Parser};

use crate::{
    cache_reuse::bench,
    kit::{Answer, Bench, Client, Origin, Reply, in_turn, until},
};

/// The parameters of this gateway's member of `Cache-Status`, or nothing if there is no such field.
fn label(answer: &Answer) -> Vec<(String, String)> {
    let lines: Vec<&str> = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "cache-status")
        .map(|(_, value)| value.as_str())
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let members: sfv::List = Parser::new(&lines.join(", "))
        .parse()
        .expect("a list by RFC 9651");
    let Some(ListEntry::Item(own)) = members.last() else {
        panic!("the last member is an item: {lines:?}");
    };
    assert!(matches!(&own.bare_item, BareItem::Token(name) if name.as_str() == "evenkeel"));
    own.params
        .iter()
        .map(|(key, value)| {
            let value = match value {
                BareItem::Boolean(truth) => truth.to_string(),
                BareItem::Integer(number) => i64::from(*number).to_string(),
                BareItem::Token(token) => token.as_str().to_owned(),
                BareItem::String(text) => text.as_str().to_owned(),
                other @ (BareItem::Decimal(_)
                | BareItem::ByteSequence(_)
                | BareItem::Date(_)
                | BareItem::DisplayString(_)) => panic!("{other:?}"),
            };
            (key.as_str().to_owned(), value)
        })
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn cs1_to_cs6_every_ending_has_its_own_member_and_those_of_others_stay() {
    let reply = || {
        Reply::ok("x")
            .header(
                "cache-control",
                "max-age=10, stale-while-revalidate=5, stale-if-error=60",
            )
            .header("etag", "\"a\"")
            .header("cache-status", "inner; hit; ttl=99")
    };
    let origin = Origin::start(in_turn(vec![
        reply(),
        reply(),
        Reply::status(304).header("etag", "\"a\""),
        Reply::status(503).body("bad"),
    ]))
    .await;
    let bench = bench(&origin, "").await;
    let at = async |span: u64, fields: &[(&str, &str)]| {
        bench.advance(Duration::from_secs(span));
        let answer = bench.get_with("/r/1", fields).await;
        (label(&answer), answer)
    };
    let (fetched, answer) = at(0, &[]).await;
    assert_eq!(fetched, pairs(&[("fwd", "uri-miss"), ("stored", "true")]));
    assert_eq!(
        answer.header("cache-status"),
        Some("inner; hit; ttl=99"),
        "it comes first"
    );
    let (hit, answer) = at(4, &[]).await;
    assert_eq!(hit, pairs(&[("hit", "true"), ("ttl", "6")]));
    assert_eq!((answer.freshness(), answer.header("degraded")), ("fresh", None));
    assert_eq!(answer.header("proxy-status"), None);
    let (reloaded, _) = at(0, &[("cache-control", "no-cache")]).await;
    assert_eq!(reloaded, pairs(&[("fwd", "request"), ("stored", "true")]));
    let (refreshing, answer) = at(12, &[]).await;
    let expected = [("hit", "true"), ("ttl", "-2"), ("detail", "revalidating")];
    assert_eq!(refreshing, pairs(&expected));
    assert_eq!(answer.freshness(), "stale");
    until("the refresh has ended", || {
        origin.hits() == 3 && bench.gateway.app().flights("r") == Some((0, 0))
    })
    .await;
    let (validated, _) = at(0, &[]).await;
    assert_eq!(validated, pairs(&[("hit", "true"), ("ttl", "10")]));
    let (stale, answer) = at(20, &[]).await;
    let expected = [
        ("fwd", "stale"),
        ("fwd-status", "503"),
        ("ttl", "-10"),
        ("detail", "error-answer"),
    ];
    assert_eq!(stale, pairs(&expected));
    assert_eq!(
        answer.header("proxy-status"),
        Some("evenkeel; received-status=503")
    );
    assert!(
        answer
            .header("degraded")
            .unwrap()
            .starts_with("r;rung=stale;age=20;")
    );
    let (passed_on, answer) = at(60, &[]).await;
    assert_eq!(passed_on, pairs(&[("fwd", "stale")]));
    assert_eq!(
        (answer.status, answer.freshness(), answer.header("age")),
        (503, "-", None)
    );
    let (own, answer) = at(0, &[("cache-control", "only-if-cached")]).await;
    assert_eq!((own, answer.status), (Vec::new(), 504));
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    origin.stop().await;
    let (refused, answer) = at(0, &[]).await;
    assert_eq!((refused, answer.status), (Vec::new(), 502));
}

#[tokio::test]
async fn the_counters_of_a_route_that_caches_tell_hits_validations_refreshes_and_failures_apart() {
    let origin = Origin::start(in_turn(vec![
        Reply::ok("x")
            .header("cache-control", "max-age=10, stale-if-error=60")
            .header("etag", "\"a\""),
        Reply::status(304).header("etag", "\"a\""),
        Reply::ok("y").header("cache-control", "max-age=10, stale-if-error=60"),
        Reply::status(500),
    ]))
    .await;
    let bench = bench(&origin, "").await;
    for span in [0, 1, 11, 11, 11] {
        bench.advance(Duration::from_secs(span));
        bench.get("/r/1").await;
    }
    bench
        .get_with("/r/2", &[("cache-control", "only-if-cached")])
        .await;
    let counted = async |series: &str| bench.metric(series).await;
    let calls = |rung: &str, reason: &str| {
        format!("evenkeel_calls_total{{route=\"r\",ending=\"answered\",rung=\"{rung}\",reason=\"{reason}\"}}")
    };
    assert_eq!(counted(&calls("live", "none")).await, Some(3));
    assert_eq!(counted(&calls("fresh", "none")).await, Some(1));
    assert_eq!(counted(&calls("stale", "error-answer")).await, Some(1));
    assert_eq!(counted(&calls("stale", "revalidating")).await, Some(0));
    for (result, count) in [("not-modified", 1), ("replaced", 1)] {
        let series = format!("evenkeel_validations_total{{route=\"r\",result=\"{result}\"}}");
        assert_eq!(counted(&series).await, Some(count), "{result}");
    }
    assert_eq!(counted("evenkeel_shelf_uris").await, Some(1));
    assert!(counted("evenkeel_shelf_bytes").await.unwrap() > 100);
    assert_eq!(counted("evenkeel_shelf_evictions_total").await, Some(0));
    let misdirected = "evenkeel_requests_misdirected_total{problem=\"nothing-kept\"}";
    assert_eq!(counted(misdirected).await, Some(1));
}

/// The contract of `examples/shared-cache.toml`, with ports of the system's choice and a clock of the test's.
async fn example(origin: &Origin) -> Bench {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shared-cache.toml");
    let text = fs::read_to_string(path)
        .unwrap()
        .replace("127.0.0.1:8100", &origin.address.to_string())
        .replace(
            "listen = \"127.0.0.1:8099\"",
            "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"",
        );
    let clock = ManualClock::new();
    Bench::start_with(
        &text,
        Engine::new(clock.clone(), 7),
        Some(clock),
        Limits::default(),
    )
    .await
}

#[tokio::test]
async fn the_example_is_a_shared_cache_for_every_path_and_method() {
    let origin = Origin::always(Reply::ok("x").header("cache-control", "max-age=60")).await;
    let bench = example(&origin).await;
    let mut client = Client::connect(bench.address()).await;
    for path in ["/", "/a", "/a/b?c"] {
        client.get(path, &[]).await;
        let hit = client.get(path, &[("cookie", "id=1")]).await;
        assert_eq!(label(&hit), pairs(&[("hit", "true"), ("ttl", "60")]), "{path}");
        let written = client.request("PURGE-IT", path, &[("content-length", "0")]).await;
        assert_eq!(label(&written), pairs(&[("fwd", "method")]));
        bench.advance(Duration::from_millis(1));
        let again = client.get(path, &[]).await;
        assert_eq!(
            label(&again),
            pairs(&[("fwd", "uri-miss"), ("stored", "true")]),
            "{path}"
        );
    }
    origin.now(
        Reply::ok("guessed")
            .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")
            .header("set-cookie", "id=2"),
    );
    client.get("/old", &[]).await;
    bench.advance(Duration::from_secs(3600));
    let guessed = client.get("/old", &[]).await;
    assert_eq!(
        (guessed.text().as_str(), guessed.header("set-cookie")),
        ("guessed", Some("id=2"))
    );
    assert_eq!(guessed.header("age"), Some("3600"));
}

/// Every setting in the example is one that its own comments give a reason for.
#[test]
fn each_deviation_of_the_example_is_argued_above_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shared-cache.toml");
    let text = fs::read_to_string(path).unwrap();
    let mut argued = false;
    for line in text.lines() {
        if line.starts_with('#') {
            argued = true;
        } else if line.is_empty() || line.starts_with('[') {
            argued = false;
        } else {
            let key = line.split(' ').next().unwrap();
            let says_where = ["listen", "urls", "name", "match", "class", "from"].contains(&key);
            let follows = key == "ignore_cookies";
            assert!(argued || says_where || follows, "{line}");
            argued = follows || (argued && key == "keep_set_cookie");
        }
    }
}
