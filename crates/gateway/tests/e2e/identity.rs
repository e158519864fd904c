//! Whose data it is: private copies, what voids them, and fields that only an authority or a listed peer may say.

use std::time::Duration;

use crate::{
    kit::{self, Answer, Bench, Client, Origin, Reply, Seen, until},
    protect::{COPY, PRIVATE, authority, contract, contract_with},
};

const CACHED: &str =
    "scope = [\"tenant\", \"subject\"]\nfreshness = \"origin\"\nladder = [ { stale = \"60s\" } ]";

/// Answers with the name of whoever it is told asks.
fn owner(seen: &Seen) -> Reply {
    let said = |name| seen.header(name).unwrap_or("nobody").to_owned();
    Reply::ok(format!("{}/{}", said("x-tenant"), said("x-user")))
}

async fn as_user(bench: &Bench, path: &str, who: &str, more: &[(&str, &str)]) -> Answer {
    let token = format!("Bearer {who}");
    let mut fields = vec![("authorization", token.as_str())];
    fields.extend_from_slice(more);
    bench.get_with(path, &fields).await
}

async fn bench(origin: &Origin, sso: &Origin, route: &str) -> Bench {
    Bench::with_manual_clock(&contract(origin, sso, COPY, route)).await
}

#[tokio::test]
async fn a_private_copy_is_kept_despite_private_authorization_and_cookies_and_given_to_its_owner_alone() {
    for (route, fresh) in [(PRIVATE, "stale"), (CACHED, "fresh")] {
        let origin = Origin::start(|seen| owner(seen).header("cache-control", "private, max-age=30")).await;
        let sso = Origin::start(authority).await;
        let bench = bench(&origin, &sso, route).await;
        let cookies: &[(&str, &str)] = &[("cookie", "session=1")];
        assert_eq!(as_user(&bench, "/r/1", "t/ana", cookies).await.text(), "t/ana");
        origin.stop().await;
        let again = as_user(&bench, "/r/1", "t/ana", cookies).await;
        assert_eq!(
            (again.status, again.text().as_str(), again.freshness()),
            (200, "t/ana", fresh)
        );
        for other in ["t/ben", "u/ana", "t/an"] {
            assert_eq!(
                as_user(&bench, "/r/1", other, cookies).await.status,
                502,
                "{other}"
            );
        }
        assert_eq!(bench.get("/r/1").await.status, 401);
        let head = Client::connect(bench.address())
            .await
            .request("HEAD", "/r/1", &[("authorization", "Bearer t/ben")])
            .await;
        assert_eq!(head.status, 502);
    }
}

#[tokio::test]
async fn no_store_and_cookies_that_are_set_are_kept_for_nobody() {
    for (name, value) in [("cache-control", "no-store"), ("set-cookie", "id=7")] {
        for route in [PRIVATE, CACHED] {
            let origin = Origin::start(move |seen| owner(seen).header(name, value)).await;
            let sso = Origin::start(authority).await;
            let bench = bench(&origin, &sso, route).await;
            assert_eq!(as_user(&bench, "/r/1", "t/ana", &[]).await.status, 200);
            origin.stop().await;
            assert_eq!(
                as_user(&bench, "/r/1", "t/ana", &[]).await.status,
                502,
                "{name} {route}"
            );
        }
    }
}

/// Case 009: without a principal in the scope a personal answer is nobody else's, on any rung.
#[tokio::test]
async fn case_009_an_answer_to_authorization_is_reused_only_where_it_says_so() {
    for (route, said, shared) in [
        ("freshness = \"origin\"", "max-age=60", false),
        ("freshness = \"origin\"", "max-age=60, public", true),
        ("freshness = \"origin\"", "s-maxage=60", true),
        ("freshness = \"origin\"", "max-age=60, must-revalidate", true),
        ("ladder = [ { stale = \"60s\" } ]", "max-age=60", false),
        ("ladder = [ { stale = \"60s\" } ]", "max-age=60, public", true),
    ] {
        let origin = Origin::start(move |seen| {
            Reply::ok(seen.header("authorization").unwrap_or("none")).header("cache-control", said)
        })
        .await;
        let text = kit::contract(origin.address, kit::NO_LIMITS, route);
        let bench = Bench::start(&text).await;
        let get = |token: Option<&'static str>| {
            let fields: Vec<_> = token.into_iter().map(|token| ("authorization", token)).collect();
            let bench = &bench;
            async move { bench.get_with("/r/me", &fields).await }
        };
        assert_eq!(get(Some("a")).await.text(), "a");
        let before = origin.hits();
        let (b, c) = (get(None).await, get(Some("c")).await);
        if route.contains("freshness") {
            let expected = if shared { ["a", "a"] } else { ["none", "c"] };
            assert_eq!([b.text(), c.text()], expected, "{said}");
            assert_eq!(origin.hits() - before, if shared { 0 } else { 2 }, "{said}");
        }
        // The same when the origin is down, for those who have never got an answer.
        let bench = Bench::start(&text).await;
        let fields: &[(&str, &str)] = &[("authorization", "a")];
        assert_eq!(bench.get_with("/r/me", fields).await.text(), "a");
        origin.stop().await;
        for fields in [&[][..], &[("authorization", "c")]] {
            let answer = bench.get_with("/r/me", fields).await;
            let expected = if shared { "a" } else { "" };
            assert_eq!(answer.status, if shared { 200 } else { 502 }, "{route} {said}");
            assert!(answer.text().contains(expected) && (shared || !answer.text().ends_with('a')));
        }
    }
}

/// Case 010: a real answer is never hidden by old data, on shared and on private copies.
#[tokio::test]
async fn case_010_revoked_moved_gone_and_busy_reach_the_caller_whatever_is_kept() {
    let said = "max-age=1, stale-if-error=86400";
    for route in [
        "freshness = \"origin\"\nladder = [ { stale = \"1d\" } ]",
        "ladder = [ { stale = \"1d\" } ]",
        CACHED,
        PRIVATE,
    ] {
        let origin = Origin::always(Reply::ok("old").header("cache-control", said)).await;
        let sso = Origin::start(authority).await;
        let bench = if route.contains("scope") {
            bench(&origin, &sso, route).await
        } else {
            Bench::with_manual_clock(&kit::contract(origin.address, kit::NO_LIMITS, route)).await
        };
        for status in [401, 403, 404, 410, 301, 429] {
            let path = format!("/r/{status}");
            origin.now(Reply::ok("old").header("cache-control", said));
            assert_eq!(as_user(&bench, &path, "t/ana", &[]).await.text(), "old");
            bench.advance(Duration::from_secs(5));
            origin.now(Reply::status(status).header("location", "/elsewhere"));
            assert_eq!(
                as_user(&bench, &path, "t/ana", &[]).await.status,
                status,
                "{route}"
            );
        }
        // Only what counts as no answer is stood in for.
        origin.now(Reply::ok("old").header("cache-control", said));
        let who = if route.contains("scope") {
            &[("authorization", "Bearer t/ana")][..]
        } else {
            &[]
        };
        bench.advance(Duration::from_secs(1));
        assert_eq!(bench.get_with("/r/1", who).await.text(), "old");
        bench.advance(Duration::from_secs(5));
        for status in [500, 502, 503, 504] {
            origin.now(Reply::status(status));
            assert_eq!(
                bench.get_with("/r/1", who).await.text(),
                "old",
                "{route} {status}"
            );
        }
    }
}

/// Case 011, over sockets: in private mode `Authorization` prevents nothing, and the copy is bound to its principal.
#[tokio::test]
async fn case_011_a_signed_in_principal_has_hits_of_its_own_and_no_other_has_them() {
    let origin = Origin::start(|seen| owner(seen).header("cache-control", "max-age=60")).await;
    let sso = Origin::start(authority).await;
    let bench = bench(&origin, &sso, CACHED).await;
    let hit = |answer: &Answer| answer.header("cache-status").unwrap().contains("; hit");
    let first = as_user(&bench, "/r/1", "t/ana", &[]).await;
    let second = as_user(&bench, "/r/1", "t/ana", &[]).await;
    let third = as_user(&bench, "/r/1", "t/ben", &[]).await;
    assert_eq!([hit(&first), hit(&second), hit(&third)], [false, true, false]);
    assert_eq!([second.text(), third.text()], ["t/ana", "t/ben"]);
    assert_eq!((origin.hits(), sso.hits()), (2, 3), "a hit is decided about too");
}

#[tokio::test]
async fn a_refusal_of_the_dependency_voids_all_that_its_principal_has_and_nothing_of_others() {
    for route in [PRIVATE, CACHED] {
        for status in [401, 403] {
            let origin = Origin::start(|seen| owner(seen).header("cache-control", "max-age=60")).await;
            let sso = Origin::start(authority).await;
            let bench = bench(&origin, &sso, route).await;
            for (path, who) in [
                ("/r/1", "t/ana"),
                ("/r/2", "t/ana"),
                ("/r/1", "t/ben"),
                ("/r/1", "u/ana"),
            ] {
                assert_eq!(as_user(&bench, path, who, &[]).await.text(), who);
            }
            bench.advance(Duration::from_secs(1));
            origin.now(Reply::status(status));
            assert_eq!(as_user(&bench, "/r/3", "t/ana", &[]).await.status, status);
            origin.stop().await;
            for path in ["/r/1", "/r/2"] {
                let answer = as_user(&bench, path, "t/ana", &[]).await;
                assert_eq!(answer.status, 502, "{route} {status} {path}: {}", answer.text());
            }
            for who in ["t/ben", "u/ana"] {
                assert_eq!(
                    as_user(&bench, "/r/1", who, &[]).await.text(),
                    who,
                    "{route} {status}"
                );
            }
            // What is loaded afterwards is kept again.
            origin.heal().await;
            origin.script(|seen| owner(seen).header("cache-control", "max-age=60"));
            bench.advance(Duration::from_secs(1));
            assert_eq!(as_user(&bench, "/r/1", "t/ana", &[]).await.text(), "t/ana");
            origin.stop().await;
            assert_eq!(as_user(&bench, "/r/1", "t/ana", &[]).await.text(), "t/ana");
        }
    }
}

#[tokio::test]
async fn what_is_gone_is_gone_for_the_one_who_was_told_and_no_other() {
    for route in [PRIVATE, CACHED] {
        for status in [404, 410] {
            let origin = Origin::start(|seen| owner(seen).header("cache-control", "max-age=1")).await;
            let sso = Origin::start(authority).await;
            let bench = bench(&origin, &sso, route).await;
            for (path, who) in [("/r/1", "t/ana"), ("/r/2", "t/ana"), ("/r/1", "t/ben")] {
                assert_eq!(as_user(&bench, path, who, &[]).await.text(), who);
            }
            bench.advance(Duration::from_secs(5));
            origin.now(Reply::status(status).header("cache-control", "max-age=0"));
            assert_eq!(as_user(&bench, "/r/1", "t/ana", &[]).await.status, status);
            origin.stop().await;
            assert_eq!(
                as_user(&bench, "/r/1", "t/ana", &[]).await.status,
                502,
                "{route} {status}"
            );
            assert_eq!(
                as_user(&bench, "/r/2", "t/ana", &[]).await.text(),
                "t/ana",
                "{route}"
            );
            assert_eq!(
                as_user(&bench, "/r/1", "t/ben", &[]).await.text(),
                "t/ben",
                "{route}"
            );
        }
    }
}

/// C27: a write that worked takes away the copies of its target, whosever they are, and of no other.
#[tokio::test]
async fn c27_a_write_voids_the_copies_that_everybody_has_of_its_target() {
    for route in [PRIVATE, CACHED] {
        let origin = Origin::start(|seen| owner(seen).header("cache-control", "max-age=60")).await;
        let sso = Origin::start(authority).await;
        let bench = bench(&origin, &sso, &format!("other_methods = \"pass\"\n{route}")).await;
        for (path, who) in [("/r/1", "t/ana"), ("/r/1", "t/ben"), ("/r/2", "t/ana")] {
            assert_eq!(as_user(&bench, path, who, &[]).await.text(), who);
        }
        bench.advance(Duration::from_secs(1));
        let write = |path: &'static str| {
            let address = bench.address();
            async move {
                let fields = [("authorization", "Bearer t/ben"), ("content-length", "0")];
                Client::connect(address)
                    .await
                    .request("PUT", path, &fields)
                    .await
                    .status
            }
        };
        origin.now(Reply::status(500));
        assert_eq!(write("/r/2").await, 500, "an error changes nothing");
        origin.now(Reply::status(204));
        assert_eq!(write("/r/1").await, 204);
        origin.stop().await;
        for who in ["t/ana", "t/ben"] {
            assert_eq!(
                as_user(&bench, "/r/1", who, &[]).await.status,
                502,
                "{route} {who}"
            );
        }
        assert_eq!(
            as_user(&bench, "/r/2", "t/ana", &[]).await.text(),
            "t/ana",
            "{route}"
        );
    }
}

/// An attempt that began before a refusal brings nothing back.
#[tokio::test]
async fn e46_what_was_loading_when_its_owner_was_refused_is_void_too() {
    for route in [PRIVATE, CACHED] {
        let origin = Origin::start(|seen| {
            let reply = owner(seen).header("cache-control", "max-age=60");
            if seen.line.contains("/r/1 ") {
                reply.wait(Duration::from_millis(300))
            } else {
                Reply::status(403)
            }
        })
        .await;
        let sso = Origin::start(authority).await;
        let bench = std::sync::Arc::new(Bench::start(&contract(&origin, &sso, COPY, route)).await);
        let slow = tokio::spawn({
            let bench = std::sync::Arc::clone(&bench);
            async move { as_user(&bench, "/r/1", "t/ana", &[]).await }
        });
        until("the load is under way", || origin.hits() == 1).await;
        assert_eq!(as_user(&bench, "/r/2", "t/ana", &[]).await.status, 403);
        assert_eq!(
            slow.await.unwrap().text(),
            "t/ana",
            "the one who asked is answered"
        );
        origin.stop().await;
        assert_eq!(as_user(&bench, "/r/1", "t/ana", &[]).await.status, 502, "{route}");
    }
}

/// E53: where answers depend on what somebody may do, other roles are another key.
#[tokio::test]
async fn e53_a_change_of_roles_is_not_answered_from_before_it() {
    let copy =
        "copy = [\"x-roles\"]\nconsume = [\"authorization\"]\nidentity = { entitlements = \"x-roles\" }";
    let origin = Origin::start(|seen| Reply::ok(seen.header("x-roles").unwrap_or("none"))).await;
    let roles = |roles: &'static str| move |_: &Seen| Reply::ok("").header("x-roles", roles);
    let sso = Origin::start(roles("admin")).await;
    let route = "scope = [\"entitlements\"]\nladder = [ { stale = \"60s\" } ]";
    let bench = Bench::start(&contract(&origin, &sso, copy, route)).await;
    assert_eq!(as_user(&bench, "/r/1", "ana", &[]).await.text(), "admin");
    origin.stop().await;
    assert_eq!(as_user(&bench, "/r/1", "ana", &[]).await.text(), "admin");
    sso.script(roles("reader"));
    assert_eq!(as_user(&bench, "/r/1", "ana", &[]).await.status, 502);
}

/// What the dependency knows of the one who asks is in its answers, whether they vary by it or not.
#[tokio::test]
async fn a_copy_within_a_tenant_is_kept_only_where_the_dependency_does_not_know_the_person() {
    let tenant = "copy = [\"x-tenant\"]\nconsume = [\"authorization\"]\nidentity = { tenant = \"x-tenant\" }";
    let alone = COPY.to_owned() + "\nconsume = [\"authorization\"]";
    for route in [
        "scope = [\"tenant\"]\nladder = [ { stale = \"60s\" } ]",
        "scope = [\"tenant\"]\nfreshness = \"origin\"\nladder = [ { stale = \"60s\" } ]",
    ] {
        for (copies, said, shared) in [
            (tenant, "max-age=60", true),
            (tenant, "max-age=60, private", false),
            (&alone, "max-age=60", false),
            (&alone, "max-age=60, public", true),
        ] {
            let origin = Origin::start(move |seen| owner(seen).header("cache-control", said)).await;
            let sso = Origin::start(authority).await;
            let bench = Bench::with_manual_clock(&contract(&origin, &sso, copies, route)).await;
            let first = as_user(&bench, "/r/1", "t/ana", &[]).await.text();
            origin.stop().await;
            let second = as_user(&bench, "/r/1", "t/ben", &[]).await;
            assert_eq!(
                second.status,
                if shared { 200 } else { 502 },
                "{route} {said} {copies}"
            );
            if shared {
                assert_eq!(second.text(), first);
            }
            assert_eq!(
                as_user(&bench, "/r/1", "u/ana", &[]).await.status,
                502,
                "another tenant"
            );
        }
    }
}

/// C13 and C30: what the origin says to vary by an identity is told apart by what the authority said.
#[tokio::test]
async fn c13_a_public_answer_that_varies_by_user_is_given_to_that_user_alone() {
    let route = "scope = [\"tenant\"]\nfreshness = \"origin\"";
    let origin = Origin::start(|seen| {
        owner(seen)
            .header("cache-control", "public, max-age=60")
            .header("vary", "x-user")
    })
    .await;
    let sso = Origin::start(authority).await;
    let bench = bench(&origin, &sso, route).await;
    for who in ["t/ana", "t/ben", "t/ana", "t/ben"] {
        let answer = as_user(&bench, "/r/1", who, &[("x-user", "ben")]).await;
        assert_eq!(answer.text(), who);
    }
    assert_eq!(origin.hits(), 2, "each of them once");
}

/// S02: a refresh of somebody's copy is made as that somebody, and one of a shared copy as nobody.
#[tokio::test]
async fn s02_a_refresh_is_made_as_the_one_whose_copy_it_is_and_never_as_another() {
    let said = "max-age=1, stale-while-revalidate=60";
    let origin = Origin::start(move |seen| owner(seen).header("cache-control", said)).await;
    let sso = Origin::start(authority).await;
    let bench = bench(&origin, &sso, CACHED).await;
    for who in ["t/ana", "t/ben"] {
        assert_eq!(as_user(&bench, "/r/1", who, &[]).await.text(), who);
    }
    bench.advance(Duration::from_secs(5));
    let old = as_user(&bench, "/r/1", "t/ben", &[]).await;
    assert_eq!((old.text().as_str(), old.freshness()), ("t/ben", "stale"));
    until("it is refreshed", || origin.hits() == 3).await;
    let refresh = origin.seen().pop().unwrap();
    assert_eq!(
        (refresh.header("x-user"), refresh.header("x-tenant")),
        (Some("ben"), Some("t"))
    );
    let fresh = || async { as_user(&bench, "/r/1", "t/ben", &[]).await };
    let end = tokio::time::Instant::now() + kit::PATIENCE;
    while fresh().await.freshness() != "fresh" {
        assert!(tokio::time::Instant::now() < end, "its result is kept");
    }
    let other = as_user(&bench, "/r/1", "t/ana", &[]).await;
    assert_eq!((other.text().as_str(), other.freshness()), ("t/ana", "stale"));

    // Shared within a tenant, and the dependency knows the person: nobody refreshes it in the background.
    let said = "public, max-age=1, stale-while-revalidate=60";
    let origin = Origin::start(move |seen| owner(seen).header("cache-control", said)).await;
    let bench = self::bench(&origin, &sso, "scope = [\"tenant\"]\nfreshness = \"origin\"").await;
    assert_eq!(as_user(&bench, "/r/1", "t/ana", &[]).await.text(), "t/ana");
    bench.advance(Duration::from_secs(5));
    let asked = as_user(&bench, "/r/1", "t/ben", &[]).await;
    assert_eq!(origin.hits(), 2, "it asks by itself and waits: {}", asked.text());
    assert_eq!(asked.text(), "t/ben");
}

/// Whatever a client sends under a name that says who asks, on a route that is protected and on one that is not.
#[tokio::test]
async fn h11_no_client_says_who_asks_however_it_spells_it() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    let bench = bench(&origin, &sso, "").await;
    let long = "e".repeat(8000);
    let spoofs: &[&[(&str, &str)]] = &[
        &[("x-user", "evil")],
        &[("X-USER", "evil")],
        &[("x_user", "evil")],
        &[("X_User", "evil"), ("x-tenant", "evil")],
        &[("x-user", "ana"), ("x-user", "evil")],
        &[("x-user", "")],
        &[("x-user", &long)],
        &[("x-user", "evil"), ("connection", "x-user")],
        &[("connection", "x-user, x-tenant")],
        &[("connection", "close, X-User"), ("x-tenant", "evil")],
        &[("x-user", "evil"), ("x-forwarded-user", "evil")],
    ];
    for spoof in spoofs {
        for method in ["GET", "HEAD", "POST"] {
            let path = if method == "POST" { "/w/1" } else { "/r/1" };
            let mut fields = vec![("authorization", "Bearer t/ana"), ("content-length", "0")];
            fields.extend_from_slice(spoof);
            let mut client = Client::connect(bench.address()).await;
            let answer = client.request(method, path, &fields).await;
            assert_eq!(answer.status, 200, "{method} {spoof:?}");
            let sent = origin.seen().pop().unwrap();
            for (name, value) in [("x-user", "ana"), ("x-tenant", "t")] {
                let lines: Vec<&str> = sent
                    .headers
                    .iter()
                    .filter(|(known, _)| known.replace('_', "-") == name)
                    .map(|(_, value)| value.as_str())
                    .collect();
                assert_eq!(lines, [value], "{method} {spoof:?}");
            }
            let asked = sso.seen().pop().unwrap();
            assert_eq!(asked.header("x-user"), None);
        }
        // A route that nobody protects, and one whose authority names nobody.
        let mut fields = spoof.to_vec();
        fields.push(("authorization", "Bearer nobody"));
        for path in ["/o/1", "/r/1"] {
            assert_eq!(
                bench.get_with(path, &fields).await.status,
                200,
                "{path} {spoof:?}"
            );
            let sent = origin.seen().pop().unwrap();
            let said = sent.headers.iter().any(|(name, _)| {
                matches!(
                    name.replace('_', "-").as_str(),
                    "x-user" | "x-tenant" | "x-forwarded-user"
                )
            });
            assert!(!said, "{path} {spoof:?}: {:?}", sent.headers);
        }
    }
}

#[tokio::test]
async fn no_client_says_who_asks_in_trailers() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    let bench = bench(&origin, &sso, "").await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send(
            "POST /w/1 HTTP/1.1\r\nhost: shop.example\r\nauthorization: Bearer t/ana\r\ntransfer-encoding: chunked\r\n\
             trailer: x-user, x-sum\r\n\r\n4\r\ndata\r\n0\r\nx-user: evil\r\nx_tenant: evil\r\nx-sum: 1\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer(false).await.status, 200);
    // The origin of the kit reads a body as the next head, so what it gets of the trailers is in what it takes for one.
    let seen = || -> String { origin.seen().iter().map(|seen| format!("{seen:?}")).collect() };
    until("the trailers have come", || seen().contains("x-sum")).await;
    assert!(!seen().contains("evil"), "{}", seen());
}

/// Identity by listed peers: believed from them, once and whole, and from nobody else.
#[tokio::test]
async fn a_listed_peer_says_who_asks_and_what_it_leaves_out_is_an_error() {
    let origin = Origin::start(|seen| owner(seen).header("cache-control", "private, max-age=60")).await;
    let top = "trusted_peers = [\"127.0.0.1\"]\nidentity_from_peers = { tenant = \"x-tenant\", subject = \"x-user\" }";
    let text = kit::contract_with(origin.address, top, kit::NO_LIMITS, CACHED);
    let bench = Bench::start(&text).await;
    let ana: &[(&str, &str)] = &[("x-tenant", "t"), ("x-user", "ana")];
    assert_eq!(bench.get_with("/r/1", ana).await.text(), "t/ana");
    let again = bench.get_with("/r/1", ana).await;
    assert!(again.header("cache-status").unwrap().contains("; hit"));
    let ben: &[(&str, &str)] = &[("x-tenant", "t"), ("x-user", "ben")];
    assert_eq!(bench.get_with("/r/1", ben).await.text(), "t/ben");
    let long = "e".repeat(257);
    let asked = origin.hits();
    for fields in [
        &[("x-tenant", "t")][..],
        &[],
        &[("x-tenant", "t"), ("x-user", "")],
        &[("x-tenant", "t"), ("x-user", "ana"), ("x-user", "ben")],
        &[("x-tenant", "t"), ("x-user", &long)],
        &[("x-tenant", "t"), ("x_user", "ana")],
        &[("x-tenant", "t"), ("x-user", "ana"), ("connection", "x-user")],
    ] {
        let answer = bench.get_with("/r/1", fields).await;
        assert_eq!(answer.status, 400, "{fields:?}: {}", answer.text());
        assert!(answer.text().contains("bad-request"));
    }
    assert_eq!(origin.hits(), asked, "nothing is asked for nobody");
}

/// A shared route of a gateway whose peers say who asks keeps nothing of those who are named.
#[tokio::test]
async fn what_a_peer_says_of_a_person_makes_an_answer_that_persons_where_the_scope_does_not() {
    let origin = Origin::start(|seen| owner(seen).header("cache-control", "max-age=60")).await;
    let top = "trusted_peers = [\"127.0.0.1\"]\nidentity_from_peers = { subject = \"x-user\" }";
    for route in ["freshness = \"origin\"", "ladder = [ { stale = \"60s\" } ]"] {
        let bench = Bench::start(&kit::contract_with(origin.address, top, kit::NO_LIMITS, route)).await;
        assert_eq!(
            bench.get_with("/r/1", &[("x-user", "ana")]).await.text(),
            "nobody/ana"
        );
        assert_eq!(bench.get("/r/1").await.text(), "nobody/nobody", "{route}");
        assert_eq!(
            bench.get_with("/r/1", &[("x-user", "ben")]).await.text(),
            "nobody/ben",
            "{route}"
        );
    }
}

/// The memory of one principal is bounded like that of any scope.
#[tokio::test]
async fn one_principal_does_not_push_out_the_copies_of_another() {
    let origin = Origin::start(|seen| {
        let mut reply = owner(seen).header("cache-control", "private, max-age=60");
        reply.body.resize(20 << 10, b'.');
        reply
    })
    .await;
    let sso = Origin::start(authority).await;
    let top = "memory = \"1MiB\"\nscope_share = \"10%\"";
    let bench = Bench::start(&contract_with(top, &origin, &sso, COPY, CACHED)).await;
    as_user(&bench, "/r/0", "t/ben", &[]).await;
    for n in 0..60 {
        as_user(&bench, &format!("/r/{n}"), "t/ana", &[]).await;
    }
    let asked = origin.hits();
    assert!(
        as_user(&bench, "/r/0", "t/ben", &[])
            .await
            .text()
            .starts_with("t/ben")
    );
    assert_eq!(origin.hits(), asked, "it is still there");
    as_user(&bench, "/r/0", "t/ana", &[]).await;
    assert_eq!(
        origin.hits(),
        asked + 1,
        "the oldest of the one who had too many is not"
    );
}
