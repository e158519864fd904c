//! Attacks on what is kept: no request makes a copy that answers another one wrongly, or takes away what is not its own.

use std::{net::SocketAddr, time::Duration};

use crate::{
    cache_reuse::ORIGIN,
    kit::{
        Answer, Bench, Client, NO_BREAKER, NO_LIMITS, Origin, Reply, STALE, contract, contract_with, get,
        until,
    },
};

/// One request with this head behind the request line.
async fn asked(address: SocketAddr, line: &str, fields: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(&format!("{line} HTTP/1.1\r\n{fields}\r\n")).await;
    client.answer(line.starts_with("HEAD")).await
}

/// Gateways that keep copies in both ways: for reuse, and for failures alone.
async fn both(origin: &Origin) -> [Bench; 2] {
    let reuse = format!("{ORIGIN}\n{STALE}");
    [
        Bench::start(&contract(origin.address, NO_LIMITS, &reuse)).await,
        Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await,
    ]
}

/// What a field holds that the origin was sent.
fn echo(seen: &crate::kit::Seen, field: &str) -> Reply {
    Reply::ok(seen.header(field).unwrap_or("none")).header("cache-control", "max-age=60")
}

#[tokio::test]
async fn h10_a_nominated_field_selects_no_copy_because_the_origin_never_got_it() {
    for bench in 0..2 {
        let origin =
            Origin::start(|seen| echo(seen, "accept-language").header("vary", "accept-language")).await;
        let bench = &both(&origin).await[bench];
        let german = "host: a\r\naccept-language: de\r\n";
        let nominated = format!("{german}connection: accept-language\r\n");
        assert_eq!(
            asked(bench.address(), "GET /r/1", &nominated).await.text(),
            "none"
        );
        let answer = asked(bench.address(), "GET /r/1", german).await;
        assert_eq!(answer.text(), "de", "{:?}", answer.headers);
        origin.stop().await;
        let answer = asked(bench.address(), "GET /r/1", german).await;
        assert_eq!(answer.text(), "de", "{:?}", answer.headers);
    }
}

#[tokio::test]
async fn h10_the_host_goes_on_whatever_connection_names() {
    let origin = Origin::start(|seen| echo(seen, "host")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "other_methods = \"pass\"")).await;
    for line in ["GET /r/1", "DELETE /r/1"] {
        let answer = asked(
            bench.address(),
            line,
            "host: a.example\r\nconnection: close, Host\r\n",
        )
        .await;
        assert_eq!(answer.text(), "a.example", "{line}");
    }
}

#[tokio::test]
async fn c32_an_answer_that_varies_by_what_the_gateway_writes_itself_is_nobody_elses() {
    for field in ["x-forwarded-for", "forwarded"] {
        for bench in 0..2 {
            let origin = Origin::start(move |seen| echo(seen, field).header("vary", field)).await;
            let bench = &both(&origin).await[bench];
            bench.get("/r/1").await;
            bench.get("/r/1").await;
            assert_eq!(origin.hits(), 2, "{field}");
            origin.stop().await;
            assert_eq!(bench.get("/r/1").await.status, 502, "{field}");
            let counted = bench
                .metric("evenkeel_answers_not_kept_total{route=\"r\",why=\"vary-unusable\"}")
                .await;
            assert_eq!(counted, Some(2), "{field}");
        }
    }
}

/// An origin behind another gateway, which cannot ask it and says so.
fn second_hand(reply: Reply) -> Reply {
    reply
        .header("etag", "\"a\"")
        .header("age", "500")
        .header("x-data-freshness", "stale")
        .header("degraded", "inner;rung=stale;age=500;reason=timed-out")
}

#[tokio::test]
async fn a_degraded_304_vouches_for_no_copy_and_the_whole_answer_says_what_it_is() {
    let origin = Origin::always(
        Reply::ok("one")
            .header("etag", "\"a\"")
            .header("cache-control", "max-age=0"),
    )
    .await;
    let bench = &both(&origin).await[0];
    bench.get("/r/1").await;
    origin.script(|seen| {
        second_hand(if seen.header("if-none-match").is_some() {
            Reply::status(304)
        } else {
            Reply::ok("old")
        })
    });
    for _ in 0..2 {
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.text().as_str(), answer.freshness()), ("old", "stale"));
        assert!(answer.header("degraded").is_some());
    }
    // What was kept is what it was.
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.text(), "one");
    assert!(answer.header("degraded").unwrap().starts_with("r;"), "{answer:?}");
}

#[tokio::test]
async fn a_degraded_answer_to_head_freshens_nothing() {
    let origin = Origin::always(
        Reply::ok("one")
            .header("etag", "\"a\"")
            .header("cache-control", "max-age=60"),
    )
    .await;
    let bench = &both(&origin).await[0];
    bench.get("/r/1").await;
    origin.now(second_hand(Reply::ok("one")).header("cache-control", "max-age=600"));
    asked(
        bench.address(),
        "HEAD /r/1",
        "host: shop.example\r\ncache-control: no-cache\r\n",
    )
    .await;
    assert_eq!(origin.hits(), 2);
    let answer = bench.get("/r/1").await;
    assert_eq!(origin.hits(), 2);
    assert_eq!(answer.header("degraded"), None);
    assert_eq!(answer.header("cache-control"), Some("max-age=60"));
}

const COOKIE: &str = "cookie: session=1\r\n";
const TOKEN: &str = "authorization: Bearer t\r\n";
const NAMED: &str = "host: shop.example\r\n";

/// An origin that has a page for all, and something else for whoever says who they are.
async fn personal(own: Reply) -> Origin {
    Origin::start(move |seen| {
        if seen
            .header("cookie")
            .or_else(|| seen.header("authorization"))
            .is_some()
        {
            own.clone()
        } else {
            Reply::ok("all").header("cache-control", "max-age=60")
        }
    })
    .await
}

#[tokio::test]
async fn c12_what_somebody_is_told_about_themselves_takes_no_shared_copy_away() {
    let own = [
        Reply::ok("own").header("cache-control", "private"),
        Reply::ok("own").header("cache-control", "no-store"),
        Reply::ok("own").header("set-cookie", "a=b"),
        Reply::ok("own").header("vary", "*"),
        Reply::status(401),
        Reply::status(403),
    ];
    for own in own {
        for who in [COOKIE, TOKEN] {
            for bench in 0..2 {
                let origin = personal(own.clone()).await;
                let bench = &both(&origin).await[bench];
                bench.get("/r/1").await;
                asked(bench.address(), "GET /r/1", &format!("{NAMED}{who}")).await;
                assert_eq!(origin.hits(), 2);
                origin.stop().await;
                let answer = bench.get("/r/1").await;
                assert_eq!(answer.text(), "all", "{:?} {who}", own.headers);
                assert!(!answer.header("cache-status").unwrap().contains("miss"));
            }
        }
    }
}

#[tokio::test]
async fn c25_the_answer_to_a_head_of_somebodys_own_leaves_the_shared_copy_as_it_is() {
    let tagged = |text: &str, tag: &str| Reply::ok(text).header("etag", tag);
    let public = tagged("all", "\"a\"").header("cache-control", "max-age=60");
    for who in [COOKIE, TOKEN, "cache-control: no-store, no-cache\r\n"] {
        let origin = Origin::always(public.clone()).await;
        let bench = &both(&origin).await[0];
        bench.get("/r/1").await;
        origin.now(tagged("own", "\"a\"").header("cache-control", "max-age=60"));
        asked(bench.address(), "HEAD /r/1", &format!("{NAMED}{who}")).await;
        origin.now(tagged("mine", "\"b\"").header("x-own", "1"));
        if who == COOKIE || who == TOKEN {
            asked(bench.address(), "HEAD /r/1", &format!("{NAMED}{who}")).await;
        }
        let hits = origin.hits();
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.text().as_str(), origin.hits()), ("all", hits), "{who}");
        assert_eq!(answer.header("x-own"), None);
    }
}

#[tokio::test]
async fn c02_a_clients_no_store_does_not_take_a_validated_copy_away() {
    let stored = Reply::ok("one")
        .header("etag", "\"a\"")
        .header("cache-control", "max-age=0");
    let origin = Origin::always(stored).await;
    let bench = &both(&origin).await[0];
    bench.get("/r/1").await;
    origin.now(Reply::status(304).header("etag", "\"a\""));
    let own = format!("{NAMED}cache-control: no-store\r\n");
    let answer = asked(bench.address(), "GET /r/1", &own).await;
    assert_eq!(
        answer.header("cache-status"),
        Some("evenkeel; fwd=stale; fwd-status=304")
    );
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.text(), "one");
}

#[tokio::test]
async fn c30_those_who_wait_share_a_failure_and_not_somebodys_page_about_it() {
    let own = [
        ("set-cookie", "sid=1"),
        ("cache-control", "private"),
        ("vary", "*"),
    ];
    for (name, value) in own.into_iter().chain([("cache-control", "max-age=0")]) {
        for bench in 0..2 {
            let failed = Reply::status(503).body("page").header(name, value);
            let origin = Origin::always(failed.wait(Duration::from_millis(300))).await;
            let more = ["freshness = \"origin\"", "coalesce = true"][bench];
            let bench = Bench::start(&contract(origin.address, NO_LIMITS, more)).await;
            let address = bench.address();
            let calls: Vec<_> = (0..4)
                .map(|_| tokio::spawn(async move { get(address, "/r/1").await }))
                .collect();
            let mut pages = 0;
            for call in calls {
                let answer = call.await.unwrap();
                if answer.text() == "page" {
                    pages += 1;
                } else {
                    assert_eq!((answer.status, answer.header("set-cookie")), (502, None));
                }
            }
            let is_for_all = value == "max-age=0";
            assert!(
                is_for_all == (pages > origin.hits()),
                "{name}: {pages} {}",
                origin.hits()
            );
        }
    }
}

#[tokio::test]
async fn c32_the_port_that_is_left_out_of_a_key_is_that_of_the_scheme() {
    let origin = Origin::start(|seen| {
        let to = format!("https://{}/login", seen.header("host").unwrap());
        Reply::status(302)
            .header("location", &to)
            .header("cache-control", "max-age=60")
    })
    .await;
    let top = "trusted_peers = [ \"127.0.0.1\" ]";
    let bench = Bench::start(&contract_with(origin.address, top, NO_BREAKER, ORIGIN)).await;
    for (host, hits) in [("a:80", 1), ("a", 2), ("A:443", 2), ("a:80", 2)] {
        let fields = format!("host: {host}\r\nx-forwarded-proto: https\r\n");
        let answer = asked(bench.address(), "GET /r/1", &fields).await;
        let port = if host == "a:80" { ":80" } else { "" };
        let expected = format!("https://a{port}/login");
        assert_eq!(answer.header("location"), Some(expected.as_str()));
        assert_eq!(origin.hits(), hits, "{host}");
    }
}

#[tokio::test]
async fn cs4_who_asks_alone_inside_the_window_went_forward_because_the_copy_was_stale() {
    let stored = Reply::ok("one")
        .header("etag", "\"a\"")
        .header("cache-control", "max-age=0, stale-while-revalidate=60");
    let origin = Origin::always(stored).await;
    let bench = &both(&origin).await[0];
    bench.get("/r/1").await;
    origin.now(Reply::status(304).header("etag", "\"a\""));
    let own = format!("{NAMED}cache-control: no-store\r\n");
    let answer = asked(bench.address(), "GET /r/1", &own).await;
    assert_eq!(
        answer.header("cache-status"),
        Some("evenkeel; fwd=stale; fwd-status=304")
    );
}

#[tokio::test]
async fn c27_who_comes_after_a_write_does_not_join_an_attempt_that_began_before_it() {
    for bench in 0..2 {
        let origin = Origin::start(|seen| {
            if seen.line.starts_with("GET") {
                Reply::ok("old")
                    .header("cache-control", "max-age=60")
                    .wait(Duration::from_millis(500))
            } else {
                Reply::ok("done")
            }
        })
        .await;
        let more = ["freshness = \"origin\"", "coalesce = true"][bench];
        let more = format!("{more}\nother_methods = \"pass\"");
        let bench = Bench::start(&contract(origin.address, NO_LIMITS, &more)).await;
        let address = bench.address();
        let before = tokio::spawn(async move { get(address, "/r/1").await });
        until("the attempt is under way", || origin.hits() == 1).await;
        asked(
            address,
            "POST /r/1",
            "host: shop.example\r\ncontent-length: 0\r\n",
        )
        .await;
        origin.now(Reply::ok("new").header("cache-control", "max-age=60"));
        assert_eq!(get(address, "/r/1").await.text(), "new", "{more}");
        assert_eq!(before.await.unwrap().text(), "old");
    }
}

/// What the dependency says decides about a copy, however often it is validated; what clients are told is the contract's.
#[tokio::test]
async fn c13_a_changed_answer_is_told_apart_by_what_the_dependency_said_after_a_validation_too() {
    let origin = Origin::start(|seen| {
        let language = seen.header("accept-language").unwrap().to_owned();
        let tag = format!("\"{language}\"");
        let reply = if seen.header("if-none-match") == Some(&tag) {
            Reply::status(304)
        } else {
            Reply::ok(language)
        };
        reply
            .header("etag", &tag)
            .header("vary", "accept-language")
            .header("cache-control", "max-age=0")
    })
    .await;
    let rewrite =
        "rewrite = { remove_response = [\"vary\"], set_response = { Cache-Control = \"max-age=99\" } }";
    let dependency = format!("{NO_LIMITS}\n{rewrite}");
    let bench = Bench::start(&contract(origin.address, &dependency, ORIGIN)).await;
    for (hits, language) in ["de", "de", "de", "en"].into_iter().enumerate() {
        let answer = bench.get_with("/r/1", &[("accept-language", language)]).await;
        assert_eq!((answer.text().as_str(), origin.hits()), (language, hits + 1));
        assert_eq!(answer.header("vary"), None);
        assert_eq!(answer.header("cache-control"), Some("max-age=99"));
    }
}

#[tokio::test]
async fn c32_the_origin_is_told_the_host_in_the_spelling_of_the_key() {
    for bench in 0..2 {
        let origin = Origin::start(|seen| echo(seen, "host")).await;
        let bench = &both(&origin).await[bench];
        for (line, host) in [
            ("GET /r/1", "A.Example:80"),
            ("GET /r/1", "a.example"),
            ("GET http://a.EXAMPLE:/r/1", "other"),
        ] {
            let answer = asked(bench.address(), line, &format!("host: {host}\r\n")).await;
            assert_eq!(answer.text(), "a.example", "{line} {host}");
        }
    }
}
