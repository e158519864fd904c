//! Every hold, on the route, on its dependency and on the one of its authority, in every outage of the authority, while the
//! contract is loaded anew: nothing that a person may force or change, and nothing that fails, opens a door.

use evenkeel_gateway::admin::{places, read_token};

use crate::{
    kit::{Answer, Bench, Client, Origin, Reply, Seen, Then},
    protect::{COPY, PRIVATE, authority, contract},
    reload::Followed,
};

/// A change over the administration port, as the command line makes it.
async fn change(bench: &Bench, path: &str, body: &str) -> Answer {
    let admin = bench.gateway.admin_address();
    let token = places(admin)
        .iter()
        .find_map(|place| read_token(place).ok())
        .expect("the token of this process");
    let mut client = Client::connect(admin).await;
    client
        .send(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    client.answer(false).await
}

async fn hold(bench: &Bench, name: &str, mode: &str) -> u16 {
    let what = if name == "r" { "route" } else { "dependency" };
    let body = format!("{{\"{what}\":\"{name}\",\"mode\":\"{mode}\",\"reason\":\"drill\",\"by\":\"ana\"}}");
    change(bench, "/hold", &body).await.status
}

const MODES: [&str; 5] = [
    "forced-open",
    "forced-off",
    "stale-only",
    "default-only",
    "forced-closed",
];

/// What the authority does, and what a client is told of it where nothing else is held.
const STATES: [(&str, u16); 6] = [
    ("yes", 200),
    ("no", 401),
    ("error", 503),
    ("no decision", 503),
    ("cut", 503),
    ("down", 503),
];

async fn be(sso: &Origin, state: &str) {
    sso.script(match state {
        "yes" => authority,
        "no" => |_: &Seen| Reply::status(401).body("who are you?"),
        "error" => |_: &Seen| Reply::status(503),
        "cut" => |_: &Seen| {
            Reply::raw(
                "HTTP/1.1 200 OK\r\nx-user: ana\r\nx-tenant: t\r\ncontent-length: 9\r\n\r\nx",
                Then::Close,
            )
        },
        _ => |_: &Seen| Reply::status(404),
    });
    if state == "down" {
        sso.stop().await;
    }
}

/// Asks for what is kept, for what is not, and for a write.
async fn ask(bench: &Bench) -> [Answer; 3] {
    let ana = [("authorization", "Bearer t/ana"), ("content-length", "0")];
    let mut client = Client::connect(bench.address()).await;
    let kept = client.request("GET", "/r/1", &ana[..1]).await;
    let other = client.request("GET", "/r/2", &ana[..1]).await;
    [kept, other, client.request("POST", "/w/1", &ana).await]
}

#[tokio::test]
async fn e63_no_hold_and_no_outage_opens_a_door_whatever_is_kept() {
    let ladder = "ladder = [ { stale = \"1d\" }, { default = { content_type = \"text/plain\", body = \"default\" } } ]";
    for caching in ["", "freshness = \"origin\""] {
        let route = format!("scope = [\"tenant\", \"subject\"]\n{caching}\n{ladder}");
        let origin = Origin::always(Reply::ok("data").header("cache-control", "max-age=3600")).await;
        let sso = Origin::start(authority).await;
        let text = contract(&origin, &sso, COPY, &route)
            .replace("breaker = { consecutive = 2 }", "breaker = \"off\"");
        let followed = Followed::start(&text).await;
        let bench = &followed.bench;
        assert_eq!(ask(bench).await[0].text(), "data");
        let mut reloads = 1;
        for target in ["r", "d", "sso"] {
            for mode in MODES {
                let put = hold(bench, target, mode).await;
                let chooses = mode.ends_with("-only");
                assert_eq!(put == 200, target == "r" || !chooses, "{target} {mode}: {put}");
                for (state, told) in STATES {
                    // Each time another part of the contract changes, and the hold goes on.
                    reloads += 1;
                    let changed = [
                        text.replace(
                            "class = \"pass\"",
                            &format!("class = \"pass\"\ndeadline = \"{reloads}s\""),
                        ),
                        text.replace(
                            "path = \"/verify?v=1\"",
                            &format!("path = \"/verify?v={reloads}\""),
                        ),
                        text.replace(
                            "[dependencies.sso]\n",
                            &format!("[dependencies.sso]\nconcurrency = {reloads}\n"),
                        ),
                    ];
                    followed.changed(&changed[reloads % 3]).await;
                    be(&sso, state).await;
                    let before = origin.hits();
                    let answers = ask(bench).await;
                    if state == "down" {
                        sso.heal().await;
                    }
                    let shut = target == "sso" && mode != "forced-closed" && put == 200;
                    let expected = if shut { 503 } else { told };
                    if expected == 200 {
                        continue; // what the ladder and the hold leave
                    }
                    for answer in answers {
                        let text = answer.text();
                        assert_eq!(
                            answer.status, expected,
                            "{caching} {target} {mode} {state}: {text}"
                        );
                        let is_served = text.contains("data") || text.contains("default");
                        assert!(!is_served, "{caching} {target} {mode} {state}: {text}");
                        if expected == 503 {
                            assert!(
                                text.contains("protection-unavailable"),
                                "{target} {mode} {state}: {text}"
                            );
                        }
                    }
                    assert_eq!(origin.hits(), before, "{caching} {target} {mode} {state}");
                }
                if put == 200 {
                    let what = if target == "r" { "route" } else { "dependency" };
                    let body = format!("{{\"{what}\":\"{target}\",\"by\":\"ana\"}}");
                    assert_eq!(change(bench, "/release", &body).await.status, 200);
                }
            }
        }
    }
}

/// What an authority is told, what it says and who it is: a change holds for the next request.
#[tokio::test]
async fn another_contract_for_an_authority_holds_at_once() {
    let origin = Origin::start(|seen| Reply::ok(seen.header("x-user").unwrap_or("nobody"))).await;
    let (sso, other) = (
        Origin::start(authority).await,
        Origin::always(Reply::status(403)).await,
    );
    let text = contract(&origin, &sso, COPY, "");
    let followed = Followed::start(&text).await;
    let ana = [("authorization", "Bearer t/ana")];
    let get = || async { followed.bench.get_with("/r/1", &ana).await };
    assert_eq!(get().await.text(), "ana");
    // No longer told who asks, it lets nobody in.
    followed
        .changed(&text.replace("headers = [\"authorization\"]", "headers = []"))
        .await;
    assert_eq!(get().await.status, 401);
    // It says nothing any more of who asks.
    followed.changed(&text.replace(COPY, "")).await;
    assert_eq!(get().await.text(), "nobody");
    followed
        .changed(&text.replace(&sso.address.to_string(), &other.address.to_string()))
        .await;
    assert_eq!(get().await.status, 403);
    followed.changed(&text).await;
    assert_eq!(get().await.text(), "ana");
    // A route that nobody protected, and one that is protected no more.
    let moved = text.replace(
        "from = \"d\"\n\n[[routes]]\nname = \"o\"",
        "from = \"d\"\n[[routes]]\nname = \"o\"",
    );
    followed.changed(&format!("{moved}authorize = \"sso\"\n")).await;
    assert_eq!(followed.bench.get("/o/1").await.status, 401);
    let counts = followed.bench.gateway.app().protect_counts("r").unwrap();
    assert_eq!(counts.calls(), 5, "what was counted stays: {counts:?}");
}

/// What is kept for the people of one authority is not found by those of another, and what was void stays so.
#[tokio::test]
async fn private_copies_belong_to_the_people_of_one_authority_and_stay_void_over_a_reload() {
    for caching in ["", "freshness = \"origin\""] {
        let origin = Origin::start(|seen| {
            Reply::ok(seen.header("x-user").unwrap_or("nobody")).header("cache-control", "max-age=60")
        })
        .await;
        let sso = Origin::start(authority).await;
        let text = contract(&origin, &sso, COPY, &format!("{caching}\n{PRIVATE}"));
        let followed = Followed::start(&text).await;
        let ana = [("authorization", "Bearer t/ana")];
        let get = |path: &'static str| {
            let (bench, ana) = (&followed.bench, &ana);
            async move { bench.get_with(path, ana).await }
        };
        assert_eq!(get("/r/1").await.text(), "ana");
        origin.now(Reply::status(403));
        assert_eq!(get("/r/2").await.status, 403);
        let later = format!("{text}deadline = \"2s\"\n");
        followed
            .changed(&later.replace(
                "ladder = [ { stale = \"60s\" } ]",
                "ladder = [ { stale = \"50s\" } ]",
            ))
            .await;
        origin.stop().await;
        assert_eq!(get("/r/1").await.status, 502, "{caching}: it was void before");
        origin.heal().await;
        origin.script(|seen| {
            Reply::ok(seen.header("x-user").unwrap_or("nobody")).header("cache-control", "max-age=60")
        });
        assert_eq!(get("/r/1").await.text(), "ana");
        origin.stop().await;
        assert_eq!(get("/r/1").await.text(), "ana", "{caching}: it is kept again");
        followed
            .changed(&text.replace("/verify?v=1", "/other/realm"))
            .await;
        assert_eq!(
            get("/r/1").await.status,
            502,
            "{caching}: somebody else by that name"
        );
    }
}

/// What only watches forwards every request that is allowed, and none that is not.
#[tokio::test]
async fn a_route_that_only_watches_is_a_door_all_the_same() {
    let origin = Origin::always(Reply::ok("data")).await;
    let sso = Origin::start(authority).await;
    let text =
        contract(&origin, &sso, COPY, PRIVATE).replace("[gateway]\n", "[gateway]\nobserve_only = true\n");
    let bench = Bench::start(&text).await;
    for (state, told) in STATES {
        be(&sso, state).await;
        let before = origin.hits();
        for answer in ask(&bench).await {
            assert_eq!(answer.status, told, "{state}: {}", answer.text());
        }
        assert_eq!(origin.hits() - before, if told == 200 { 3 } else { 0 }, "{state}");
        if state == "down" {
            sso.heal().await;
        }
    }
}
