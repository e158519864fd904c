//! A route that an authority protects: what it decides comes first, whatever is kept, held or down.

use std::{sync::Arc, time::Duration};

use crate::kit::{Answer, Bench, Client, Origin, Reply, Then, until};

/// Says yes to those who know the word, and names them.
pub(crate) fn authority(seen: &crate::kit::Seen) -> Reply {
    match seen
        .header("authorization")
        .and_then(|value| value.split_once(' '))
    {
        Some(("Bearer", "nobody")) => Reply::ok(""),
        Some(("Bearer", who)) => {
            let (tenant, user) = who.split_once('/').unwrap_or(("t", who));
            Reply::ok("").header("x-tenant", tenant).header("x-user", user)
        }
        _ => Reply::status(401)
            .header("www-authenticate", "Bearer realm=\"shop\"")
            .body("who are you?"),
    }
}

/// A contract with a protected route `/r/{id}` named `r`, one that only forwards, `/w/{id}`, and one that is open, `/o/{id}`.
pub(crate) fn contract(origin: &Origin, sso: &Origin, authority: &str, route: &str) -> String {
    contract_with("", origin, sso, authority, route)
}

pub(crate) fn contract_with(
    top: &str,
    origin: &Origin,
    sso: &Origin,
    authority: &str,
    route: &str,
) -> String {
    let (origin, sso) = (origin.address, sso.address);
    let authority = if authority.contains("headers =") {
        authority.to_owned()
    } else {
        format!("headers = [\"authorization\"]\n{authority}")
    };
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{top}\n\
         [dependencies.d]\nurls = [\"http://{origin}\"]\nbreaker = \"off\"\nlearned_limit = \"off\"\n\
         [dependencies.sso]\nurls = [\"http://{sso}\"]\nbreaker = {{ consecutive = 2 }}\nlearned_limit = \"off\"\n\
         [authorities.sso]\nfrom = \"sso\"\npath = \"/verify?v=1\"\n{authority}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\nauthorize = \"sso\"\n{route}\n\
         [[routes]]\nname = \"w\"\nmatch = {{ path = \"/w/{{id}}\" }}\nclass = \"pass\"\nfrom = \"d\"\nauthorize = \"sso\"\n\
         [[routes]]\nname = \"o\"\nmatch = {{ path = \"/o/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n"
    )
}

pub(crate) const COPY: &str =
    "copy = [\"x-user\", \"x-tenant\"]\nidentity = { tenant = \"x-tenant\", subject = \"x-user\" }";
pub(crate) const PRIVATE: &str = "scope = [\"tenant\", \"subject\"]\nladder = [ { stale = \"60s\" } ]";

async fn as_user(bench: &Bench, path: &str, who: &str) -> Answer {
    bench
        .get_with(path, &[("authorization", &format!("Bearer {who}"))])
        .await
}

fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(
        answer.text().contains("problems/protection-unavailable"),
        "{}",
        answer.text()
    );
    assert!(answer.header("retry-after").is_some());
    assert_eq!(
        answer.header("proxy-status"),
        Some("evenkeel; error=proxy_internal_response")
    );
    assert_eq!(answer.header("x-data-freshness"), None);
    assert_eq!(answer.header("cache-status"), None);
}

#[tokio::test]
async fn an_allowed_request_goes_on_with_what_the_authority_says_of_its_sender() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    // With one list of idle connections each question finds that of the one before.
    let bench = Bench::start(&contract_with("workers = 1", &origin, &sso, COPY, "")).await;
    for path in ["/r/1?a=b", "/w/1"] {
        let answer = bench
            .get_with(
                path,
                &[
                    ("authorization", "Bearer t1/ana"),
                    ("x-user", "evil"),
                    ("x-other", "1"),
                ],
            )
            .await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "data"));
        let asked = sso.seen().pop().unwrap();
        assert_eq!(asked.line, "GET /verify?v=1 HTTP/1.1");
        for (name, value) in [
            ("authorization", Some("Bearer t1/ana")),
            ("x-forwarded-method", Some("GET")),
            ("x-forwarded-uri", Some(path)),
            ("x-forwarded-host", Some("shop.example")),
            ("x-forwarded-for", Some("127.0.0.1")),
            ("x-user", None),
            ("x-other", None),
        ] {
            assert_eq!(asked.header(name), value, "{name}");
        }
        let sent = origin.seen().pop().unwrap();
        assert_eq!(sent.header("x-user"), Some("ana"));
        assert_eq!(sent.header("x-tenant"), Some("t1"));
        assert_eq!(sent.header("authorization"), Some("Bearer t1/ana"));
        assert_eq!(
            sent.headers.iter().filter(|(name, _)| name == "x-user").count(),
            1
        );
    }
    assert_eq!(sso.connections(), 1, "its connection is used again");
}

#[tokio::test]
async fn a_yes_is_one_whatever_its_body_and_status_and_its_connection_is_not_waited_for() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    let bench = Bench::start(&contract(&origin, &sso, "", "")).await;
    for reply in [
        Reply::ok(vec![b'x'; (64 << 10) + 1]),
        Reply::status(204),
        Reply::status(201).body("made"),
        Reply::raw(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            Then::KeepAlive,
        ),
    ] {
        sso.now(reply);
        assert_eq!(bench.get("/r/1").await.text(), "data");
    }
}

#[tokio::test]
async fn a_denial_is_told_as_it_is_and_nothing_is_asked_of_the_dependency() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    let bench = Bench::start(&contract(&origin, &sso, &format!("deny = [302]\n{COPY}"), "")).await;
    for path in ["/r/1", "/w/1"] {
        let denied = bench.get(path).await;
        assert_eq!((denied.status, denied.text().as_str()), (401, "who are you?"));
        assert_eq!(denied.header("www-authenticate"), Some("Bearer realm=\"shop\""));
        assert_eq!(denied.header("cache-control"), Some("no-store"));
        assert_eq!(denied.header("x-data-freshness"), None);
    }
    sso.now(
        Reply::status(403)
            .body("not you")
            .header("x-secret", "1")
            .header("connection", "x-secret"),
    );
    let denied = bench.get("/r/1").await;
    assert_eq!((denied.status, denied.text().as_str()), (403, "not you"));
    assert_eq!(denied.header("x-secret"), None, "what ends at this hop ends here");
    sso.now(Reply::status(302).header("location", "https://login.example/"));
    let denied = bench.get("/r/1").await;
    assert_eq!(
        (denied.status, denied.header("location")),
        (302, Some("https://login.example/"))
    );
    // A body that is too large to be worth it is left out; the denial stands.
    sso.now(Reply::status(403).body(vec![b'x'; (64 << 10) + 1]));
    let denied = bench.get("/r/1").await;
    assert_eq!(
        (denied.status, denied.body.len(), denied.complete),
        (403, 0, true)
    );
    let head = Client::connect(bench.address())
        .await
        .request("HEAD", "/r/1", &[])
        .await;
    assert_eq!(head.status, 403);
    assert_eq!(origin.hits(), 0);
    let counts = bench.gateway.app().protect_counts("r").unwrap();
    assert_eq!(counts.total(evenkeel::Protection::Denied), 5);
    assert_eq!(
        bench
            .metric("evenkeel_protect_total{route=\"r\",authority=\"sso\",decision=\"deny\",reason=\"none\"}")
            .await,
        Some(5)
    );
    assert_eq!(
        bench.gateway.app().counts("r").unwrap().calls(),
        0,
        "a denied request is no call"
    );
}

/// Everything but a whole 2xx, 401, 403 or listed answer.
#[tokio::test]
async fn e63_what_is_no_decision_is_unavailable_and_serves_and_forwards_nothing() {
    let origin = Origin::always(Reply::ok("data").header("cache-control", "max-age=60")).await;
    let sso = Origin::start(authority).await;
    let ladder = "scope = [\"subject\"]\nladder = [ { stale = \"60s\" }, { default = { content_type = \"text/plain\", body = \"default\" } } ]";
    for route in [
        ladder,
        "scope = [\"subject\"]\nfreshness = \"origin\"\nladder = [ { stale = \"60s\" } ]",
    ] {
        sso.script(authority);
        let bench = Bench::start(
            &contract(&origin, &sso, COPY, route)
                .replace("breaker = { consecutive = 2 }", "breaker = \"off\""),
        )
        .await;
        assert_eq!(as_user(&bench, "/r/1", "t/ana").await.text(), "data");
        let before = origin.hits();
        for (what, reply) in [
            ("301", Reply::status(301).header("location", "/")),
            ("304", Reply::status(304)),
            ("400", Reply::status(400)),
            ("404", Reply::status(404)),
            ("407", Reply::status(407)),
            ("429", Reply::status(429)),
            ("500", Reply::status(500)),
            ("501", Reply::status(501)),
            ("503", Reply::status(503)),
            (
                "an answer that is cut",
                Reply::raw(
                    "HTTP/1.1 200 OK\r\nx-user: ana\r\nx-tenant: t\r\ncontent-length: 9\r\n\r\nx",
                    Then::Close,
                ),
            ),
            (
                "a denial that is cut",
                Reply::raw("HTTP/1.1 403 X\r\ncontent-length: 9\r\n\r\nx", Then::Close),
            ),
            ("a reset", Reply::raw("", Then::Reset)),
            ("garbage", Reply::raw("no HTTP\r\n\r\n", Then::Close)),
            (
                "two lengths",
                Reply::raw(
                    "HTTP/1.1 200 OK\r\nx-user: ana\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
                    Then::Close,
                ),
            ),
            ("nobody's name", Reply::ok("")),
            (
                "an empty name",
                Reply::ok("").header("x-user", "").header("x-tenant", "t"),
            ),
            (
                "two names",
                Reply::ok("")
                    .header("x-user", "ana")
                    .header("x-user", "ben")
                    .header("x-tenant", "t"),
            ),
            (
                "a name that is too long",
                Reply::ok("")
                    .header("x-user", &"a".repeat(257))
                    .header("x-tenant", "t"),
            ),
            (
                "a name that ends here",
                Reply::ok("")
                    .header("x-user", "ana")
                    .header("connection", "x-user")
                    .header("x-tenant", "t"),
            ),
        ] {
            sso.now(reply);
            for path in ["/r/1", "/r/2"] {
                let answer = as_user(&bench, path, "t/ana").await;
                assert_eq!(answer.status, 503, "{what} {path}: {}", answer.text());
                is_unavailable(&answer);
            }
        }
        sso.stop().await;
        is_unavailable(&as_user(&bench, "/r/1", "t/ana").await);
        sso.heal().await;
        assert_eq!(origin.hits(), before);
        let counts = bench.gateway.app().counts("r").unwrap();
        let refused = evenkeel::Ending::Refused;
        assert_eq!(
            counts.get(refused, Some(evenkeel::Reason::ProtectionUnavailable)),
            39
        );
        sso.script(authority);
        assert_eq!(as_user(&bench, "/r/1", "t/ana").await.status, 200);
    }
}

#[tokio::test]
async fn a_hung_authority_and_one_left_alone_are_unavailable_within_the_deadline() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::always(Reply::hang()).await;
    let text = contract(&origin, &sso, COPY, &format!("deadline = \"10s\"\n{PRIVATE}")).replace(
        "[dependencies.sso]\n",
        "[dependencies.sso]\ntimeout = \"100ms\"\n",
    );
    let bench = Bench::start(&text).await;
    for _ in 0..3 {
        is_unavailable(&as_user(&bench, "/r/1", "t/ana").await);
    }
    let metric = |reason: &str| {
        format!(
            "evenkeel_protect_total{{route=\"r\",authority=\"sso\",decision=\"unavailable\",reason=\"{reason}\"}}"
        )
    };
    assert_eq!(bench.metric(&metric("timed-out")).await, Some(2));
    assert_eq!(
        bench.metric(&metric("breaker-open")).await,
        Some(1),
        "two in a row open it"
    );
    assert_eq!((origin.hits(), sso.hits()), (0, 2));
    // A route that nobody decides about stands.
    assert_eq!(bench.get("/o/1").await.text(), "data");
}

#[tokio::test]
async fn a_slow_authority_takes_no_permit_of_the_dependency_behind_it() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::always(Reply::hang()).await;
    let text = contract(&origin, &sso, COPY, "")
        .replace("[dependencies.d]\n", "[dependencies.d]\nconcurrency = 1\n")
        .replace(
            "[dependencies.sso]\n",
            "[dependencies.sso]\nconcurrency = 2\ntimeout = \"3s\"\n",
        );
    let bench = Arc::new(Bench::start(&text).await);
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { as_user(&bench, "/r/1", "t/ana").await.status })
        })
        .collect();
    until("two requests wait for the authority", || sso.hits() == 2).await;
    is_unavailable(&as_user(&bench, "/r/1", "t/ana").await); // no permit is left for a third
    assert_eq!(bench.gateway.app().dependency("d").unwrap().status().in_use, 0);
    assert_eq!(bench.get("/o/1").await.text(), "data");
    for one in waiting {
        one.abort();
    }
}

#[tokio::test]
async fn the_deadline_of_the_route_covers_the_decision() {
    let origin = Origin::always(Reply::ok("data").wait(Duration::from_millis(700))).await;
    let sso = Origin::start(|seen| authority(seen).wait(Duration::from_millis(700))).await;
    let bench = Bench::start(&contract(&origin, &sso, COPY, "deadline = \"1s\"")).await;
    let late = as_user(&bench, "/r/1", "t/ana").await;
    assert_eq!(late.status, 504, "{}", late.text());
    let counts = bench.gateway.app().protect_counts("r").unwrap();
    assert_eq!(counts.total(evenkeel::Protection::Allowed), 1);
}

#[tokio::test]
async fn the_body_of_a_request_waits_for_the_decision() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(|seen| authority(seen).wait(Duration::from_millis(100))).await;
    let bench = Bench::start(&contract(&origin, &sso, COPY, "")).await;
    let post = |token: &str| {
        format!(
            "POST /w/1 HTTP/1.1\r\nhost: shop.example\r\nauthorization: Bearer {token}\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n"
        )
    };
    // Denied: it is never told to go on, and its dependency hears nothing.
    let mut client = Client::connect(bench.address()).await;
    client.send(&post("").replace("Bearer ", "Basic ")).await;
    let denied = client.answer(false).await;
    assert_eq!(denied.status, 401, "not 100");
    assert_eq!(origin.hits(), 0);
    // Allowed: it is told to go on, but only then.
    let mut client = Client::connect(bench.address()).await;
    client.send(&post("t/ana")).await;
    let go_on = client.answer(true).await;
    assert_eq!(go_on.status, 100);
    assert_eq!(sso.hits(), 2);
    client.send("data").await;
    assert_eq!(client.answer(false).await.status, 200);
}

#[tokio::test]
async fn retries_of_the_question_are_made_where_the_authority_has_them_and_never_of_a_decision() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::always(Reply::status(503)).await;
    let text = contract(&origin, &sso, COPY, "").replace(
        "breaker = { consecutive = 2 }",
        "breaker = \"off\"\nretry = { pause = \"1ms\" }",
    );
    let bench = Bench::start(&text).await;
    is_unavailable(&as_user(&bench, "/r/1", "t/ana").await);
    assert_eq!(sso.hits(), 2);
    for (reply, status) in [
        (Reply::status(403), 403),
        (Reply::status(404), 503),
        (Reply::ok(""), 200),
    ] {
        sso.now(reply);
        let before = sso.hits();
        assert_eq!(as_user(&bench, "/r/1", "t/ana").await.status, status);
        assert_eq!(sso.hits() - before, 1, "{status}");
    }
    // A question that spends something is asked once.
    let text = text.replace("path = \"/verify?v=1\"", "path = \"/spend\"\nmethod = \"POST\"");
    let bench = Bench::start(&text).await;
    sso.now(Reply::status(503));
    let before = sso.hits();
    is_unavailable(&as_user(&bench, "/r/1", "t/ana").await);
    assert_eq!(sso.hits() - before, 1);
    assert_eq!(sso.seen().pop().unwrap().line, "POST /spend HTTP/1.1");
}

#[tokio::test]
async fn every_joiner_of_an_attempt_has_been_decided_about() {
    let origin = Origin::start(|_| Reply::ok("data").wait(Duration::from_millis(300))).await;
    let sso = Origin::start(authority).await;
    let alone = "copy = [\"x-tenant\"]\nconsume = [\"authorization\"]\nidentity = { tenant = \"x-tenant\" }";
    let bench = Arc::new(
        Bench::start(&contract(
            &origin,
            &sso,
            alone,
            "scope = [\"tenant\"]\ncoalesce = true",
        ))
        .await,
    );
    let mut asked = Vec::new();
    for who in ["t/ana", "t/ben", "t/cem"] {
        let bench = Arc::clone(&bench);
        asked.push(tokio::spawn(
            async move { as_user(&bench, "/r/1", who).await.status },
        ));
    }
    until("somebody asks the origin", || origin.hits() == 1).await;
    let denied = bench.get("/r/1").await;
    assert_eq!(denied.status, 401, "one who would have joined");
    for one in asked {
        assert_eq!(one.await.unwrap(), 200);
    }
    assert_eq!(origin.hits(), 1);
    assert_eq!(sso.hits(), 4, "each was decided about by itself");
    assert_eq!(
        origin.seen()[0].header("authorization"),
        None,
        "it ended with the authority"
    );
}

#[tokio::test]
async fn a_client_who_leaves_during_a_decision_leaves_nothing_behind() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::always(Reply::hang()).await;
    let text = contract(&origin, &sso, COPY, "")
        .replace("[dependencies.sso]\n", "[dependencies.sso]\nconcurrency = 4\n");
    let bench = Bench::start(&text).await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("GET /r/1 HTTP/1.1\r\nhost: shop.example\r\n\r\n")
        .await;
    until("the authority is asked", || sso.hits() == 1).await;
    drop(client);
    let app = bench.gateway.app();
    until("its permit is back", || {
        app.dependency("sso").unwrap().status().in_use == 0
    })
    .await;
    let counts = app.protect_counts("r").unwrap();
    assert_eq!((counts.abandoned(), counts.calls()), (1, 1));
    assert_eq!(app.requests_in_flight(), 0);
}

#[tokio::test]
async fn the_series_stand_at_zero_from_the_start_and_the_access_log_says_what_was_decided() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    let directory = std::env::temp_dir().join(format!("evenkeel-protect-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("access.log");
    let top = format!("access_log = \"{}\"", file.display());
    let bench = Bench::start(&contract_with(&top, &origin, &sso, COPY, "")).await;
    for (decision, reason) in [
        ("allow", "none"),
        ("deny", "none"),
        ("abandoned", "none"),
        ("unavailable", "timed-out"),
        ("unavailable", "error-answer"),
        ("unavailable", "breaker-open"),
        ("unavailable", "fault"),
    ] {
        for route in ["r", "w"] {
            let series = format!(
                "evenkeel_protect_total{{route=\"{route}\",authority=\"sso\",decision=\"{decision}\",reason=\"{reason}\"}}"
            );
            assert_eq!(bench.metric(&series).await, Some(0), "{series}");
        }
    }
    let refused = "evenkeel_calls_total{route=\"r\",ending=\"refused\",rung=\"none\",reason=\"protection-unavailable\"}";
    assert_eq!(bench.metric(refused).await, Some(0));
    assert_eq!(
        bench.metric(&refused.replace("\"r\"", "\"o\"")).await,
        None,
        "nobody protects that one"
    );
    as_user(&bench, "/r/1", "t/ana").await;
    bench.get("/r/1").await;
    sso.now(Reply::status(500));
    as_user(&bench, "/r/1", "t/ana").await;
    bench.get("/o/1").await;
    assert_eq!(bench.metric(refused).await, Some(1));
    let lines = || -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    until("four lines are written", || lines().len() == 4).await;
    let said: Vec<[String; 4]> = lines()
        .iter()
        .map(|line| {
            ["status", "protect", "ending", "reason"].map(|key| line[key].to_string().replace('"', ""))
        })
        .collect();
    let expected = [
        ["200", "allow", "answered", "null"],
        ["401", "deny", "null", "null"],
        ["503", "unavailable", "refused", "protection-unavailable"],
        ["200", "null", "answered", "null"],
    ];
    assert_eq!(said, expected.map(|line| line.map(str::to_owned)));
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What a listed peer says of its time and its trace holds for the decision too, and what that takes is spent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_listed_peer_runs_during_the_decision_and_its_trace_goes_on_there() {
    let origin = Origin::always(Reply::ok("x")).await;
    let sso = Origin::start(|seen| authority(seen).wait(Duration::from_millis(300))).await;
    let top = "trusted_peers = [\"127.0.0.0/8\"]\ndeadline_from = [\"x-timeout-ms\"]\ntrace = \"on\"";
    let told = "timeout = \"20s\"\ndeadline_to = [\"x-timeout-ms\"]";
    let text = contract_with(top, &origin, &sso, "", "deadline = \"20s\"")
        .replace("breaker = \"off\"", &format!("breaker = \"off\"\n{told}"))
        .replace("breaker = { consecutive = 2 }", told)
        .replace("class = \"pass\"", "class = \"pass\"\ndeadline = \"20s\"");
    let bench = Bench::start(&text).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let fields = [
        ("authorization", "Bearer ana"),
        ("x-timeout-ms", "10000"),
        ("traceparent", parent.as_str()),
        ("content-length", "0"),
    ];
    for (method, path) in [("GET", "/r/1"), ("POST", "/w/1")] {
        let mut client = Client::connect(bench.address()).await;
        assert_eq!(client.request(method, path, &fields).await.status, 200, "{path}");
    }
    for (asked, most) in [(&sso, 10_000), (&origin, 9_700)] {
        let all = asked.seen();
        assert_eq!(all.len(), 2);
        for seen in all {
            let left: u64 = seen.header("x-timeout-ms").unwrap().parse().unwrap();
            assert!(left <= most, "{left} of {most}");
            assert!(seen.header("traceparent").unwrap().contains(trace));
        }
    }
}
