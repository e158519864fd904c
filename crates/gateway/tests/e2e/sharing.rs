//! Attacks on sharing: nobody ever sees another user's bytes, on any rung.

use std::time::Duration;

use crate::kit::{Bench, NO_BREAKER, NO_LIMITS, Origin, Reply, STALE, contract, contract_with};

/// An origin that tells everybody who they are.
async fn mirror(cache_control: &'static str) -> Origin {
    Origin::start(move |seen| {
        let who = seen
            .header("authorization")
            .or_else(|| seen.header("cookie"))
            .unwrap_or("nobody");
        Reply::ok(format!("for {who}")).header("cache-control", cache_control)
    })
    .await
}

async fn assert_never_given_to_others(field: &str, cache_control: &'static str) {
    let origin = mirror(cache_control).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    assert_eq!(
        bench.get_with("/r/1", &[(field, "alice")]).await.text(),
        "for alice"
    );
    origin.stop().await;
    for fields in [&[(field, "bob")][..], &[(field, "alice")], &[]] {
        let answer = bench.get_with("/r/1", fields).await;
        assert_eq!(answer.status, 502, "{field} {fields:?}: {}", answer.text());
        assert!(!answer.text().contains("for alice"));
    }
}

/// Rule C12 and G18, also on the stale path; cookies count like credentials.
#[tokio::test]
async fn c12_answers_to_authorized_and_cookie_requests_are_never_given_from_a_shared_copy() {
    for cache_control in ["max-age=60", "no-transform"] {
        assert_never_given_to_others("authorization", cache_control).await;
        assert_never_given_to_others("cookie", cache_control).await;
    }
    // Only within the lifetime, which a stand-in is not about.
    assert_never_given_to_others("authorization", "s-maxage=60, stale-if-error=60").await;
    assert_never_given_to_others("authorization", "must-revalidate, max-age=60").await;
    assert_never_given_to_others("cookie", "public, max-age=60").await;
}

#[tokio::test]
async fn c12_a_public_answer_to_an_authorized_request_may_be_shared() {
    let origin = Origin::always(Reply::ok("all").header("cache-control", "public, max-age=60")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    bench.get_with("/r/1", &[("authorization", "alice")]).await;
    origin.stop().await;
    assert_eq!(
        bench.get_with("/r/1", &[("authorization", "bob")]).await.text(),
        "all"
    );
    assert_eq!(bench.get("/r/1").await.text(), "all");
}

#[tokio::test]
async fn a_user_with_a_cookie_is_not_given_the_copy_of_an_anonymous_one_and_does_not_remove_it() {
    let origin = mirror("max-age=60").await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    bench.get("/r/1").await;
    bench.get_with("/r/1", &[("cookie", "alice")]).await;
    origin.stop().await;
    let answer = bench.get_with("/r/1", &[("cookie", "alice")]).await;
    assert_eq!(answer.status, 502);
    assert!(
        answer.text().contains("\"why\":\"forbidden\""),
        "{}",
        answer.text()
    );
    assert_eq!(bench.get("/r/1").await.text(), "for nobody");
}

/// An answer that is too large to be kept supersedes what was, unless the reason lies in who asked.
#[tokio::test]
async fn a_large_answer_to_one_user_does_not_remove_the_copy_of_everybody() {
    let origin = Origin::start(|seen| match seen.header("cookie") {
        None => Reply::ok("for everybody"),
        Some(_) => Reply::ok(vec![b'x'; 65_537]),
    })
    .await;
    let route = format!("{STALE}\nmax_body = \"64KiB\"");
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
    bench.get("/r/1").await;
    let own = bench.get_with("/r/1", &[("cookie", "alice")]).await;
    assert_eq!((own.status, own.body.len()), (200, 65_537));
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!(
        (answer.text().as_str(), answer.freshness()),
        ("for everybody", "stale")
    );
}

/// Rules C03, C33 and private: such an answer is not kept, and what was kept before is superseded.
#[tokio::test]
async fn answers_that_must_not_be_kept_are_not_and_remove_what_was() {
    let forbidding = [
        ("cache-control", "no-store"),
        ("cache-control", "private"),
        ("set-cookie", "id=7"),
        ("vary", "*"),
        ("cache-control", "max-age=\"broken"),
    ];
    for (name, value) in forbidding {
        let origin = Origin::always(Reply::ok("old")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
        bench.get("/r/1").await;
        origin.now(Reply::ok("secret").header(name, value));
        assert_eq!(
            bench.get("/r/1").await.header("cache-status"),
            Some("evenkeel; fwd=bypass")
        );
        origin.stop().await;
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 502, "{name}: {value} gave {}", answer.text());
    }
}

/// Rules C15-C17 and X1: kept, but never given in place of a live answer.
#[tokio::test]
async fn c16_prohibitions_on_stale_win_over_the_contract() {
    for said in ["no-cache", "must-revalidate", "proxy-revalidate", "s-maxage=60"] {
        let origin = Origin::always(Reply::ok("old").header("cache-control", said)).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
        bench.get("/r/1").await;
        origin.stop().await;
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 502, "{said}");
        assert!(
            answer.text().contains("\"why\":\"forbidden\""),
            "{said}: {}",
            answer.text()
        );
    }
}

/// Rule C13: a copy is for requests whose nominated fields are equal; absent equals only absent.
#[tokio::test]
async fn c13_a_copy_is_given_only_where_vary_fits() {
    let origin = Origin::always(Reply::ok("deutsch").header("vary", "accept-language")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    bench.get_with("/r/1", &[("accept-language", "de")]).await;
    origin.stop().await;
    assert_eq!(
        bench.get_with("/r/1", &[("accept-language", "de")]).await.text(),
        "deutsch"
    );
    assert_eq!(
        bench.get_with("/r/1", &[("accept-language", "en")]).await.status,
        502
    );
    assert_eq!(bench.get("/r/1").await.status, 502);
}

/// Rule C32: everything that can change the answer is in the key.
#[tokio::test]
async fn c32_target_query_authority_and_scope_are_in_the_key() {
    let origin =
        Origin::start(|seen| Reply::ok(format!("{} {}", seen.line, seen.header("host").unwrap()))).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    bench.get("/r/1?a=1").await;
    origin.stop().await;
    assert_eq!(bench.get("/r/1?a=1").await.status, 200);
    for path in ["/r/1", "/r/1?a=2", "/r/2?a=1", "/r/1?a=1&b", "/r/%31?a=1"] {
        assert_eq!(bench.get(path).await.status, 502, "{path}");
    }
    let mut client = crate::kit::Client::connect(bench.address()).await;
    client
        .send("GET /r/1?a=1 HTTP/1.1\r\nhost: other.example\r\n\r\n")
        .await;
    assert_eq!(client.answer(false).await.status, 502);
    client
        .send("GET /r/1?a=1 HTTP/1.1\r\nhost: SHOP.example:80\r\n\r\n")
        .await;
    assert_eq!(
        client.answer(false).await.status,
        200,
        "the same host in another spelling"
    );
}

/// G07 and C30: who joins a flight is given its result only if it may be.
#[tokio::test]
async fn joined_calls_never_carry_one_users_answer_to_another() {
    let origin = Origin::start(|seen| {
        let who = seen
            .header("cookie")
            .or_else(|| seen.header("accept-language"))
            .unwrap_or("nobody");
        Reply::ok(format!("for {who}"))
            .header("vary", "accept-language")
            .wait(Duration::from_millis(150))
    })
    .await;
    let bench = Bench::start(&contract(
        origin.address,
        NO_LIMITS,
        &format!("{STALE}\ncoalesce = true"),
    ))
    .await;
    let ask = |field: &'static str, value: &'static str| {
        let address = bench.address();
        tokio::spawn(async move {
            (
                value,
                crate::kit::get_with(address, "/r/1", &[(field, value)]).await,
            )
        })
    };
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(ask("accept-language", "de"));
        calls.push(ask("accept-language", "en"));
        calls.push(ask("cookie", "alice"));
        calls.push(ask("cookie", "bob"));
    }
    for call in calls {
        let (value, answer) = call.await.unwrap();
        assert_eq!(answer.text(), format!("for {value}"));
    }
}

/// Rules G03 and G07: requests whose answers are their own do not take sharing away from everybody else.
#[tokio::test]
async fn requests_of_one_user_neither_wait_for_others_nor_end_their_sharing() {
    let origin = Origin::always(Reply::ok("one").wait(Duration::from_millis(300))).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "coalesce = true")).await;
    let address = bench.address();
    let own = [
        ("cookie", "a=1"),
        ("authorization", "x"),
        ("cache-control", "no-store"),
        ("range", "bytes=0-1"),
        ("if-match", "\"a\""),
    ];
    let mut head = crate::kit::Client::connect(address).await;
    assert_eq!(head.request("HEAD", "/r/1", &[]).await.status, 200);
    let mut calls: Vec<_> = own
        .into_iter()
        .map(|field| tokio::spawn(async move { crate::kit::get_with(address, "/r/1", &[field]).await }))
        .collect();
    crate::kit::until("they have arrived", || origin.hits() == own.len() + 1).await;
    calls.extend((0..10).map(|_| tokio::spawn(async move { crate::kit::get(address, "/r/1").await })));
    for call in calls {
        assert_eq!(call.await.unwrap().status, 200);
    }
    assert_eq!(origin.hits(), own.len() + 2);
    let joined = bench.gateway.app().counts("r").unwrap().joined();
    assert_eq!(joined, 9);
}

#[tokio::test]
async fn equal_calls_at_the_same_time_share_one_attempt_where_the_contract_says_so() {
    let origin = Origin::always(Reply::ok("one").wait(Duration::from_millis(300))).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "coalesce = true")).await;
    let address = bench.address();
    let calls: Vec<_> = (0..10)
        .map(|_| tokio::spawn(async move { crate::kit::get(address, "/r/1").await }))
        .collect();
    let mut labels = Vec::new();
    for call in calls {
        let answer = call.await.unwrap();
        assert_eq!(answer.text(), "one");
        labels.push(answer.header("cache-status").unwrap().to_owned());
    }
    labels.sort();
    labels.dedup();
    assert_eq!(
        labels,
        ["evenkeel; fwd=bypass", "evenkeel; fwd=bypass; collapsed"],
        "rfc 9211 2.6: who joined says so"
    );
    assert_eq!(origin.hits(), 1);
    assert_eq!(
        bench.metric("evenkeel_calls_joined_total{route=\"r\"}").await,
        Some(9)
    );
}

/// Rule CS5: `stored` is said of what the store has, not of what it was given.
#[tokio::test]
async fn an_answer_that_the_store_cannot_take_is_not_called_stored() {
    for (size, label) in [
        (1 << 20, "evenkeel; fwd=bypass"),
        (1 << 19, "evenkeel; fwd=bypass; stored"),
    ] {
        let origin = Origin::always(Reply::ok(vec![b'x'; size])).await;
        let text = contract_with(origin.address, "memory = \"1MiB\"", NO_BREAKER, STALE);
        let bench = Bench::start(&text).await;
        assert_eq!(
            bench.get("/r/1").await.header("cache-status"),
            Some(label),
            "{size}"
        );
    }
}
