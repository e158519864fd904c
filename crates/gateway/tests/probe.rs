//! `evenkeel check --probe`, as a person runs it, against a scripted origin.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "e2e/kit.rs"]
mod kit;

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use kit::{Origin, Reply, STALE, contract};

/// Runs a probe of `/r/1` with these arguments, on a contract of this name.
async fn probed(name: &str, contract: &str, arguments: &[&str]) -> Output {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("probe-{name}.toml"));
    std::fs::write(&path, contract).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .arg("check")
        .arg(path)
        .args(["--probe", "http://shop.example/r/1"]);
    command.args(arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a probe for programs, and returns its status and what it said.
async fn json(name: &str, contract: &str, arguments: &[&str]) -> (i32, serde_json::Value) {
    let output = probed(name, contract, &[&["--json"], arguments].concat()).await;
    let said = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (output.status.code().unwrap(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_kept_says_for_how_long_and_by_which_limit() {
    let origin = Origin::always(Reply::ok("hello").header("age", "10")).await;
    let contract = contract(origin.address, "rewrite = { add_prefix = \"/v1\" }", STALE);
    let output = probed("kept", &contract, &[]).await;
    let shown = text(&output.stdout);
    assert_eq!(
        shown,
        "GET http://shop.example/r/1\n\
         route       r, from d as /v1/r/1\n\
         answer      200, 5 bytes, 10s old\n\
         kept        yes\n\
         on failure  for 50s from now, by the stale rung of the contract\n\
         note        the dependency is asked every time (freshness = \"none\"); what is kept is for failures\n"
    );
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(0), "")
    );
    let seen = origin.seen();
    assert_eq!(seen.len(), 1, "asked once");
    assert!(seen[0].line.starts_with("GET /v1/r/1 "), "{}", seen[0].line);
    assert_eq!(seen[0].header("host"), Some("shop.example"));
    origin.now(Reply::ok("hello").header("cache-control", "max-age=20, stale-if-error=5"));
    let (code, said) = json("kept", &contract, &[]).await;
    assert_eq!((code, &said["kept"]), (0, &true.into()));
    assert_eq!(
        (&said["stands_in_for_seconds"], &said["limited_by"]),
        (&25.into(), &"the answer's own lifetime and stale-if-error".into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_stands_against_keeping_is_named_with_its_field_and_without_its_secrets() {
    let reply = Reply::ok("x")
        .header("set-cookie", "sid=secret1; Path=/")
        .header("cache-control", "private, max-age=3");
    let origin = Origin::always(reply).await;
    let contract = contract(origin.address, "", STALE);
    let fields = [
        "--header",
        "cookie: session=secret2; theme=dark",
        "--header",
        "authorization: Bearer secret3",
    ];
    let output = probed("against", &contract, &fields).await;
    let shown = text(&output.stdout);
    for part in [
        "kept        no: set-cookie\n",
        "private  <- cache-control: private, max-age=3\n",
        "authorization  <- authorization: Bearer\n",
        "cookie  <- cookie: session, theme\n",
        "ignore_cookies = [\"session\", \"theme\"]\n",
        "set-cookie  <- set-cookie: sid\n",
        "on failure  no: an outage now would not be answered by it\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing from\n{shown}");
    }
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(output.status.code(), Some(1));
    // The words are those of the gateway's own counters.
    let (_, said) = json("against", &contract, &fields).await;
    let words: Vec<&str> = said["against"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["why"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["set-cookie", "private", "authorization", "cookie"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prohibition_is_shown_with_the_line_that_sets_it_aside_and_gone_with_it() {
    let origin = Origin::always(Reply::ok("x").header("cache-control", "max-age=30, must-revalidate")).await;
    let route = "freshness = \"origin\"\nladder = [ { stale = \"100s\" } ]";
    let plain = contract(origin.address, "", route);
    let (code, said) = json("forbidden", &plain, &[]).await;
    assert_eq!(
        (code, &said["kept"], &said["stands_in_for_seconds"]),
        (1, &true.into(), &serde_json::Value::Null)
    );
    assert_eq!(said["fresh_for_seconds"], 30);
    assert_eq!(
        said["forbidden"][0]["field"],
        "cache-control: max-age=30, must-revalidate"
    );
    let line = said["forbidden"][0]["mend"].as_str().unwrap();
    assert_eq!(line, "override = [\"must-revalidate\"]");
    let mended = format!("{plain}{line}\n");
    let (code, said) = json("mended", &mended, &[]).await;
    assert_eq!((code, &said["forbidden"][0]["set_aside"]), (0, &true.into()));
    assert_eq!(
        (&said["stands_in_for_seconds"], &said["limited_by"]),
        (&100.into(), &"the stale rung of the contract".into())
    );
    // On a route that does not cache the same answer is kept, and not given.
    let (code, said) = json("forbidden-none", &contract(origin.address, "", STALE), &[]).await;
    assert_eq!((code, &said["kept"]), (1, &true.into()));
    assert!(
        said["forbidden"][0]["mend"]
            .as_str()
            .unwrap()
            .contains("freshness = \"origin\"")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_keeps_out_is_told_by_its_key() {
    let origin = Origin::always(Reply::ok("[]")).await;
    for (name, route, reply, why, part) in [
        (
            "empty",
            "keep_if = { not_empty = true }",
            Reply::ok("[]"),
            "empty-body",
            "keep_if = { not_empty = true }",
        ),
        (
            "large",
            "max_body = \"1KiB\"",
            Reply::ok(vec![b'x'; 2000]),
            "too-large",
            "content-length: 2000",
        ),
        ("error", "", Reply::status(404), "status", "status 404 Not Found"),
        (
            "vary",
            "",
            Reply::ok("x").header("vary", "*"),
            "vary-star",
            "vary: *",
        ),
    ] {
        origin.now(reply);
        let text = contract(origin.address, "", &format!("{STALE}\n{route}"));
        let (code, said) = json(name, &text, &[]).await;
        assert_eq!(
            (code, &said["against"][0]["why"]),
            (1, &why.into()),
            "{name}: {said:#}"
        );
        assert_eq!(said["against"][0]["field"], part, "{name}");
    }
    let (code, said) = json("nothing", &contract(origin.address, "", ""), &[]).await;
    assert_eq!((code, &said["kept"]), (1, &false.into()));
    assert!(
        said["notes"][0]
            .as_str()
            .unwrap()
            .starts_with("this route keeps nothing")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_asked_says_why() {
    let origin = Origin::always(Reply::ok("x")).await;
    let contract = contract(origin.address, "", STALE);
    let wrong = async |name: &str, arguments: &[&str]| {
        let output = probed(name, &contract, arguments).await;
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    let said = wrong("other", &["--route", "other"]).await;
    assert_eq!(
        said,
        "could not ask: the contract gives this request to the route r, not to other\n"
    );
    let said = wrong("field", &["--header", "no-colon"]).await;
    assert_eq!(
        said,
        "--header \"no-colon\": no field; write --header \"name: value\"\n"
    );
    origin.stop().await;
    let said = wrong("down", &[]).await;
    assert!(said.starts_with("could not ask: d gave no answer ("), "{said}");
    assert!(said.contains("connection_refused"), "{said}");
    let elsewhere = contract.replace("/r/{id}", "/s/{id}");
    let output = probed("elsewhere", &elsewhere, &[]).await;
    assert_eq!(
        text(&output.stderr),
        "could not ask: the contract gives this request to no route that reads: it is answered 404 Not Found\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_door_that_stays_shut_is_told_apart_from_an_address_that_nobody_serves() {
    let origin = Origin::start(|seen| {
        if seen.line.starts_with("GET /verify") && seen.header("authorization") != Some("Bearer right") {
            Reply::status(401)
        } else {
            Reply::ok("x")
                .header("x-user", "7")
                .header("cache-control", "private")
        }
    })
    .await;
    let authority = format!(
        "[dependencies.door]\nurls = [\"http://{}\"]\n[authorities.sso]\nfrom = \"door\"\npath = \"/verify\"\n\
         headers = [\"authorization\"]\ncopy = [\"x-user\"]\nidentity = {{ subject = \"x-user\" }}\n[[routes]]",
        origin.address
    );
    let route = format!("{STALE}\nauthorize = \"sso\"\nscope = [\"subject\"]");
    let contract = contract(origin.address, "", &route).replacen("[[routes]]", &authority, 1);
    let output = probed("door", &contract, &[]).await;
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    assert!(
        text(&output.stderr).ends_with(
            "could not ask: the authority sso of the route r said deny: it is answered 401 Unauthorized; give what it asks for with --header\n"
        ),
        "{}",
        text(&output.stderr)
    );
    let (_, said) = json("door", &contract, &["--header", "authorization: Bearer right"]).await;
    assert_eq!((&said["route"], &said["status"]), (&"r".into(), &200.into()));
    assert_eq!(
        said["kept"], true,
        "a private answer is kept for its own subject: {said:#}"
    );
}
