//! What is kept: listed, shown, put in.

use std::time::Duration;

use serde_json::Value;

use crate::{
    kit::{Origin, Reply, STALE, contract, get, get_with},
    process::{Running, directory, told},
};

const CACHES: &str = "freshness = \"origin\"\nladder = [ { stale = \"60s\" } ]";

fn copies(list: &Value) -> &Vec<Value> {
    list["copies"].as_array().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_is_listed_in_pages_without_bodies_and_shown_in_full_when_it_is_named() {
    for (name, route, kind) in [("ls-plain", STALE, "snapshot"), ("ls-cached", CACHES, "copy")] {
        let scoped = format!("{route}\nscope = [\"path:id\"]");
        let origin = Origin::always(
            Reply::ok("secret")
                .header("cache-control", "max-age=60")
                .header("content-type", "text/plain"),
        )
        .await;
        let running = Running::start(&directory(name), &contract(origin.address, "", &scoped)).await;
        for path in ["/r/acme", "/r/beta", "/r/corp"] {
            assert_eq!(get(running.address, path).await.status, 200);
        }
        let first = running.json(&["snapshot", "ls", "--limit", "2"]).await;
        assert_eq!(copies(&first).len(), 2, "{first}");
        let rest = running
            .json(&[
                "snapshot",
                "ls",
                "--limit",
                "2",
                "--after",
                first["next"].as_str().unwrap(),
            ])
            .await;
        assert_eq!((copies(&rest).len(), &rest["next"]), (1, &Value::Null), "{rest}");
        let acme = &copies(&first)[0];
        assert_eq!(
            (acme["kind"].as_str(), acme["uri"].as_str()),
            (Some(kind), Some("http://shop.example/r/acme"))
        );
        assert_eq!(acme["scope"][0], "ac…");
        assert_eq!(
            (&acme["not_servable"], &acme["limit_seconds"]),
            (&Value::Null, &60.into())
        );
        assert!(!first.to_string().contains("secret"));
        assert_eq!(
            copies(&running.json(&["snapshot", "ls", "--scope", "beta"]).await).len(),
            1
        );
        assert_eq!(
            copies(&running.json(&["snapshot", "ls", "--prefix", "/r/c"]).await).len(),
            1
        );
        let nobody = running.refused(&["snapshot", "ls", "nobody"]).await;
        assert!(
            nobody.contains("there is no route \"nobody\"; there is: r"),
            "{nobody}"
        );
        let page = running.text(&["snapshot", "ls", "--limit", "2"]).await;
        let more = page.lines().last().unwrap().strip_prefix("more: ").unwrap();
        // It is typed into a shell, which takes blanks, quotes and backslashes for itself.
        let words: Vec<&str> = more.split(' ').collect();
        assert!(
            words.iter().all(|word| word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~/:%".contains(&byte))),
            "{more}"
        );
        let rest = running
            .text(&[&["snapshot", "ls"], words.as_slice()].concat())
            .await;
        assert!(rest.contains("/r/corp") && !rest.contains("/r/beta"), "{rest}");
        let shown = running.json(&["snapshot", "show", "/r/acme"]).await;
        assert_eq!(
            (&copies(&shown)[0]["scope"][0], &copies(&shown)[0]["body_bytes"]),
            (&"acme".into(), &6.into())
        );
        assert!(shown.to_string().contains("text/plain"), "{shown}");
        assert_eq!(
            running.text(&["snapshot", "show", "/r/acme", "--body"]).await,
            "secret"
        );
        let text = running.text(&["snapshot", "ls"]).await;
        assert!(text.contains("stands in") && text.contains(" of 60 s"), "{text}");
        let said = running.refused(&["snapshot", "show", "/r/nobody"]).await;
        assert!(said.contains("nothing is kept"), "{said}");
        running.text(&["purge", "/r/acme"]).await;
        let shown = running.json(&["snapshot", "show", "/r/acme"]).await;
        assert_eq!(copies(&shown)[0]["expired"], true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_copy_of_one_uri_is_listed_however_small_the_pages_are() {
    let reply = Reply::ok("x").header("cache-control", "max-age=60");
    let origin = Origin::always(reply.header("vary", "accept-language")).await;
    let running = Running::start(&directory("ls-variants"), &contract(origin.address, "", CACHES)).await;
    for language in ["de", "en", "fr"] {
        let answer = get_with(running.address, "/r/1", &[("accept-language", language)]).await;
        assert_eq!(answer.status, 200);
    }
    let (mut seen, mut after) = (0, String::new());
    for _ in 0..10 {
        let mut asked = vec!["snapshot", "ls", "--limit", "1"];
        if !after.is_empty() {
            asked.extend(["--after", &after]);
        }
        let page = running.json(&asked).await;
        seen += copies(&page).len();
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_would_not_keep_cannot_be_put_in_either() {
    let origin = Origin::always(Reply::ok("live")).await;
    for (name, freshness) in [
        ("seed-worth-plain", ""),
        ("seed-worth-cached", "freshness = \"origin\""),
    ] {
        let route = format!("{freshness}\n{STALE}\nkeep_if = {{ not_empty = true }}");
        let directory = directory(name);
        let running = Running::start(&directory, &contract(origin.address, "", &route)).await;
        let file = directory.join("page.json");
        std::fs::write(&file, "[]").unwrap();
        let file = file.display().to_string();
        let uri = "http://shop.example/r/1";
        let more = [
            "--content-type",
            "application/json",
            "--cache-control",
            "max-age=60",
        ];
        let mut asked = vec![
            "snapshot",
            "seed",
            uri,
            "--from",
            &file,
            "--observed",
            "@1795921327",
        ];
        asked.extend(more);
        let refused = running.run(&asked).await;
        assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
        assert!(told(&refused).contains("empty-body"), "{}", told(&refused));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_not_stand_in_says_why() {
    let origin = Origin::always(Reply::ok("x").header("cache-control", "must-revalidate, max-age=60")).await;
    let running = Running::start(&directory("ls-why"), &contract(origin.address, "", STALE)).await;
    get(running.address, "/r/1").await;
    let list = running.json(&["snapshot", "ls"]).await;
    assert_eq!(copies(&list)[0]["not_servable"], "forbidden", "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_seeded_stands_in_with_the_age_that_was_stated_and_without_one_never() {
    let origin = Origin::always(Reply::ok("live")).await;
    origin.stop().await;
    for (name, route, cache_control) in [
        ("seed-plain", "ladder = [ { stale = \"1h\" } ]", "max-age=1"),
        (
            "seed-cached",
            "freshness = \"origin\"\nladder = [ { stale = \"1h\" } ]",
            "max-age=1",
        ),
    ] {
        let directory = directory(name);
        let running = Running::start(&directory, &contract(origin.address, "", route)).await;
        let file = directory.join("page.json");
        std::fs::write(&file, "{\"rescued\":true}").unwrap();
        let file = file.display().to_string();
        let now = std::process::Command::new("date")
            .arg("+%s")
            .output()
            .unwrap()
            .stdout;
        let now: u64 = String::from_utf8(now).unwrap().trim().parse().unwrap();
        let seed = async |uri: &str, more: &[&str]| {
            let mut arguments = vec![
                "snapshot",
                "seed",
                uri,
                "--from",
                &file,
                "--content-type",
                "application/json",
            ];
            arguments.extend(["--cache-control", cache_control]);
            arguments.extend(more);
            running.run(&arguments).await
        };
        let ago = |seconds: u64| format!("@{}", now - seconds);
        let done = seed("http://shop.example/r/1", &["--observed", &ago(600)]).await;
        assert!(done.status.success(), "{name}: {}", told(&done));
        let answer = get(running.address, "/r/1").await;
        assert_eq!(
            (answer.status, answer.text().as_str(), answer.freshness()),
            (200, "{\"rescued\":true}", "stale"),
            "{name}"
        );
        let age: u64 = answer.header("age").unwrap().parse().unwrap();
        assert!((600..660).contains(&age), "{age}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        // Older than the contract allows, from the future, and of an unknown time.
        drop(seed("http://shop.example/r/2", &["--observed", &ago(7200)]).await);
        drop(
            seed(
                "http://shop.example/r/3",
                &["--observed", &format!("@{}", now + 7200)],
            )
            .await,
        );
        let unknown = seed("http://shop.example/r/4", &[]).await;
        assert_eq!(
            unknown.status.success(),
            name == "seed-plain",
            "{}",
            told(&unknown)
        );
        for path in ["/r/2", "/r/3", "/r/4"] {
            assert_ne!(get(running.address, path).await.status, 200, "{name} {path}");
        }
        for (uri, part) in [
            ("/r/5", "a whole URI is needed"),
            (
                "http://shop.example/nowhere",
                "no route of the contract covers it",
            ),
        ] {
            let refused = seed(uri, &["--observed", &ago(1)]).await;
            assert_eq!(refused.status.code(), Some(1));
            assert!(told(&refused).contains(part), "{}", told(&refused));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_urls_is_fetched_by_the_running_gateway_and_stands_in_afterwards() {
    let origin = Origin::start(|seen| {
        if seen.line.contains("/r/bad") {
            Reply::status(500)
        } else {
            Reply::ok(seen.line.clone())
        }
    })
    .await;
    let directory = directory("seed-urls");
    let running = Running::start(&directory, &contract(origin.address, "breaker = \"off\"", STALE)).await;
    let list = directory.join("urls.txt");
    std::fs::write(&list, "# most visited\nhttp://shop.example/r/1\n\nhttp://shop.example/r/2?a=b\nhttp://shop.example/r/bad\nnonsense\n").unwrap();
    let file = list.display().to_string();
    let begun = tokio::time::Instant::now();
    let output = running
        .run(&["snapshot", "seed", "--urls", &file, "--rate", "20", "--json"])
        .await;
    assert!(
        begun.elapsed() >= Duration::from_millis(150),
        "no faster than it was told"
    );
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (done["urls"].as_u64(), done["fetched"].as_u64()),
        (Some(4), Some(2)),
        "{done}"
    );
    origin.stop().await;
    let mut client = crate::kit::Client::connect(running.address).await;
    assert_eq!(client.get("/r/2?a=b", &[]).await.freshness(), "stale");
}
