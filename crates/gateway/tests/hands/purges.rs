//! Purges: soft and hard, by URI, prefix, tag and route, in both stores, and against loads that are under way.

use std::time::Duration;

use serde_json::Value;

use crate::{
    kit::{Origin, Reply, STALE, contract, contract_with, get, get_with, until},
    process::{Running, directory},
};

const CACHES: &str = "freshness = \"origin\"\nladder = [ { stale = \"60s\" } ]";

async fn started(name: &str, origin: &Origin, route: &str) -> Running {
    Running::start(&directory(name), &contract(origin.address, "", route)).await
}

fn counts(done: &Value) -> (u64, u64) {
    (
        done["snapshots"].as_u64().unwrap(),
        done["uris"].as_u64().unwrap(),
    )
}

/// Case 074: hard purge removes the safety net.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_074_a_soft_purge_leaves_the_copy_for_failures_and_a_hard_one_does_not() {
    for (name, route, reply) in [
        ("purge-plain", STALE, Reply::ok("old")),
        (
            "purge-cached",
            CACHES,
            Reply::ok("old").header("cache-control", "max-age=60, stale-if-error=60"),
        ),
    ] {
        let origin = Origin::always(reply).await;
        let running = started(name, &origin, route).await;
        for path in ["/r/1", "/r/2", "/r/3"] {
            assert_eq!(get(running.address, path).await.status, 200);
        }
        let soft = running.json(&["purge", "/r/1"]).await;
        let hard = running.json(&["purge", "/r/2", "--hard"]).await;
        assert_eq!(
            [counts(&soft), counts(&hard)].map(|(one, other)| one + other),
            [1, 1],
            "{soft} {hard}"
        );
        if route == CACHES {
            let hits = origin.hits();
            get(running.address, "/r/3").await;
            assert_eq!(origin.hits(), hits, "what was not named is fresh");
        }
        origin.stop().await;
        let kept = get(running.address, "/r/1").await;
        assert_eq!((kept.status, kept.freshness()), (200, "stale"), "{name}");
        assert_ne!(get(running.address, "/r/2").await.status, 200, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_soft_purge_has_the_next_request_ask_and_what_comes_is_fresh_again() {
    let origin = Origin::always(Reply::ok("one").header("cache-control", "max-age=60")).await;
    let running = started("purge-asks", &origin, CACHES).await;
    get(running.address, "/r/1").await;
    running.text(&["purge", "/r/1"]).await;
    origin.now(Reply::ok("two").header("cache-control", "max-age=60"));
    assert_eq!(get(running.address, "/r/1").await.text(), "two");
    let hits = origin.hits();
    assert_eq!(get(running.address, "/r/1").await.text(), "two");
    assert_eq!(origin.hits(), hits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prefix_a_route_and_a_tag_take_every_variant_of_what_they_name_and_nothing_else() {
    let origin = Origin::start(|seen| {
        let path = seen.line.split(' ').nth(1).unwrap().to_owned();
        let tags = format!(
            "all {}",
            if path.contains('a') {
                "letter-a"
            } else {
                "letter-b"
            }
        );
        Reply::ok(path)
            .header("cache-control", "max-age=60")
            .header("vary", "accept-language")
            .header("surrogate-key", &tags)
    })
    .await;
    let tagged = format!("{CACHES}\ntags = \"surrogate-key\"");
    let running = started("purge-many", &origin, &tagged).await;
    let fill = async || {
        for path in ["/r/a1", "/r/a2", "/r/b1"] {
            for language in ["de", "en"] {
                get_with(running.address, path, &[("accept-language", language)]).await;
            }
        }
    };
    for (arguments, uris) in [
        (&["purge", "--prefix", "/r/a"][..], 2),
        (&["purge", "--prefix", "/nothing"], 0),
        (&["purge", "--tag", "letter-b"], 1),
        (&["purge", "--tag", "all"], 3),
        (&["purge", "--tag", "letter"], 0),
        (&["purge", "--route", "r"], 3),
        (&["purge", "http://shop.example/r/a1"], 1),
        (&["purge", "http://other.example/r/a1"], 0),
    ] {
        fill().await;
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--hard"]).collect();
        let done = running.json(&arguments).await;
        assert_eq!(counts(&done), (0, uris), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_route_is_purged_by_tags_that_its_clients_do_not_see() {
    let origin = Origin::always(Reply::ok("x").header("surrogate-key", "one two")).await;
    let route = format!("{STALE}\ntags = \"surrogate-key\"");
    let dependency = "rewrite = { remove_response = [\"surrogate-key\"] }";
    let running = Running::start(
        &directory("purge-plain-tags"),
        &contract(origin.address, dependency, &route),
    )
    .await;
    assert_eq!(get(running.address, "/r/1").await.header("surrogate-key"), None);
    assert_eq!(
        counts(&running.json(&["purge", "--tag", "three", "--hard"]).await),
        (0, 0)
    );
    assert_eq!(
        counts(&running.json(&["purge", "--tag", "two", "--hard"]).await),
        (1, 0)
    );
    origin.stop().await;
    assert_ne!(get(running.address, "/r/1").await.status, 200);
}

/// What was asked for before a purge is older than the purge, whenever it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_load_brings_that_began_before_the_purge_is_given_and_not_kept() {
    for (name, route) in [("purge-flight-plain", STALE), ("purge-flight-cached", CACHES)] {
        for arguments in [&["purge", "/r/1"][..], &["purge", "--prefix", "/r/", "--hard"]] {
            let slow = Reply::ok("before").header("cache-control", "max-age=60, stale-if-error=60");
            let origin = Origin::always(slow.wait(Duration::from_millis(500))).await;
            let running = started(name, &origin, route).await;
            let address = running.address;
            let asking = tokio::spawn(async move { get(address, "/r/1").await });
            until("it is asked for", || origin.hits() == 1).await;
            running.text(arguments).await;
            assert_eq!(asking.await.unwrap().text(), "before", "whoever waits gets it");
            origin.stop().await;
            assert_ne!(get(address, "/r/1").await.status, 200, "{name} {arguments:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_names_one_thing_and_the_public_side_knows_no_such_method() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = started("purge-says", &origin, STALE).await;
    for (arguments, part) in [
        (&["purge", "--route", "nobody"][..], "there is: r"),
        (&["purge", "--tag", "x"], "no route of the contract has tags"),
        (&["purge", "shop"], "is no URI"),
        (&["purge", "--prefix", ""], "would mean everything"),
    ] {
        let said = running.refused(arguments).await;
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert_eq!(running.run(&["purge"]).await.status.code(), Some(2));
    assert_eq!(
        running.run(&["purge", "/a", "--tag", "b"]).await.status.code(),
        Some(2)
    );
    get(running.address, "/r/1").await;
    let mut client = crate::kit::Client::connect(running.address).await;
    assert_eq!(client.request("PURGE", "/r/1", &[]).await.status, 405);
    origin.stop().await;
    assert_eq!(
        get(running.address, "/r/1").await.status,
        200,
        "it is still there"
    );
}

/// A purge reaches the store on disk: what it took away is not there after a kill, however it was named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hard_purge_is_durable_when_it_is_answered_and_a_soft_one_leaves_what_stands_in() {
    let purges: [&[&str]; 5] = [
        &["purge", "/r/a1"],
        &["purge", "http://shop.example/r/a1"],
        &["purge", "--prefix", "/r/a"],
        &["purge", "--tag", "one"],
        &["purge", "--route", "r"],
    ];
    for (round, purge) in purges.iter().enumerate() {
        for (route, how) in [(STALE, "--hard"), (CACHES, "--hard"), (CACHES, "--soft")] {
            let origin = Origin::always(
                Reply::ok("x")
                    .header("surrogate-key", "one two")
                    .header("cache-control", "max-age=60, stale-if-error=60"),
            )
            .await;
            let place = directory(&format!("purge-stored-{round}"));
            drop(std::fs::remove_dir_all(place.join("store")));
            let store = format!("[store]\npath = {:?}\ntimeout = \"5s\"\n", place.join("store"));
            let tagged = format!("{route}\ntags = \"surrogate-key\"");
            let text = contract_with(origin.address, &store, "", &tagged);
            let running = Running::start(&place, &text).await;
            assert_eq!(get(running.address, "/r/a1").await.status, 200);
            let arguments: Vec<&str> = purge
                .iter()
                .copied()
                .chain((how == "--hard").then_some(how))
                .collect();
            let done = running.json(&arguments).await;
            assert_eq!(done["stored"].as_u64(), Some(1), "{arguments:?} {done}");
            drop(running);
            origin.stop().await;
            let running = Running::start(&place, &text).await;
            let answer = get(running.address, "/r/a1").await;
            let expected = if how == "--hard" {
                (502, "-")
            } else {
                (200, "stale")
            };
            assert_eq!(
                (answer.status, answer.freshness()),
                expected,
                "{arguments:?} {route}"
            );
        }
    }
}
