//! A reload and whose data it is: who is believed, who decides, and that nothing of the old contract lives on for long.

use std::{sync::Arc, time::Duration};

use crate::{
    kit::{Client, Origin, Reply, STALE, contract, contract_with, until},
    protect::{self, COPY, PRIVATE, authority},
    reload::Followed,
};

#[tokio::test]
async fn whose_word_counts_holds_at_once_for_connections_that_are_there() {
    let origin = Origin::always(Reply::ok("x")).await;
    let with = |top: &str| contract_with(origin.address, top, "", "");
    let followed = Followed::start(&with("")).await;
    let mut client = Client::connect(followed.bench.address()).await;
    let said = [("x-forwarded-for", "203.0.113.9")];
    let heard = || {
        origin
            .seen()
            .last()
            .unwrap()
            .header("x-forwarded-for")
            .unwrap()
            .to_owned()
    };
    client.get("/r/1", &said).await;
    assert_eq!(heard(), "127.0.0.1");
    followed
        .changed(&with("trusted_peers = [\"127.0.0.1/32\"]"))
        .await;
    client.get("/r/1", &said).await;
    assert_eq!(heard(), "203.0.113.9, 127.0.0.1");
    followed.changed(&with("")).await;
    client.get("/r/1", &said).await;
    assert_eq!(heard(), "127.0.0.1");
}

/// Another field, or another authority, may name somebody else: what was kept for one is not the other's.
#[tokio::test]
async fn private_copies_are_not_found_once_it_is_known_in_another_way_whose_they_are() {
    let origin = Origin::always(Reply::ok("ana's").header("cache-control", "private")).await;
    let sso = Origin::start(authority).await;
    let with = |authority: &str| protect::contract(&origin, &sso, authority, PRIVATE);
    let followed = Followed::start(&with(COPY)).await;
    let ask = || async {
        let mut client = Client::connect(followed.bench.address()).await;
        client.get("/r/1", &[("authorization", "Bearer ana")]).await
    };
    assert_eq!(ask().await.text(), "ana's");
    origin.now(Reply::status(500));
    assert_eq!(ask().await.freshness(), "stale");
    // What has nothing to do with it leaves them alone.
    followed
        .changed(&with(&format!("{COPY}\ndeadline = \"2s\"")))
        .await;
    assert_eq!(ask().await.freshness(), "stale");
    let other = COPY.replace(
        "identity = { tenant = \"x-tenant\", subject = \"x-user\" }",
        "identity = { tenant = \"x-user\", subject = \"x-tenant\" }",
    );
    followed.changed(&with(&other)).await;
    assert_eq!(ask().await.status, 500);
    followed.changed(&with(COPY)).await;
    assert_eq!(ask().await.freshness(), "stale", "it is known as before again");
}

#[tokio::test]
async fn an_authority_that_moves_is_asked_where_it_is_and_its_decisions_are_counted_on() {
    let origin = Origin::always(Reply::ok("x")).await;
    let (old, new) = (Origin::start(authority).await, Origin::start(authority).await);
    let followed = Followed::start(&protect::contract(&origin, &old, COPY, "")).await;
    let ask = || async {
        let mut client = Client::connect(followed.bench.address()).await;
        client
            .get("/r/1", &[("authorization", "Bearer ana")])
            .await
            .status
    };
    assert_eq!(ask().await, 200);
    let changes = followed
        .changed(&protect::contract(&origin, &new, COPY, ""))
        .await;
    assert_eq!(changes.dependencies_reset, ["sso"]);
    assert_eq!(changes.routes_changed, ["r", "w"]);
    assert_eq!(ask().await, 200);
    assert_eq!((old.hits(), new.hits()), (1, 1));
    let counts = followed.bench.gateway.app().protect_counts("r").unwrap();
    assert_eq!(counts.total(evenkeel::Protection::Allowed), 2);
}

#[tokio::test]
async fn an_app_is_gone_when_the_last_request_that_began_by_it_has_ended() {
    let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(500))).await;
    let with = |deadline: u32| {
        contract(
            origin.address,
            "",
            &format!("{STALE}\ndeadline = \"{deadline}s\""),
        )
    };
    let followed = Followed::start(&with(3)).await;
    let first = Arc::downgrade(&followed.bench.gateway.app());
    let mut idle = Client::connect(followed.bench.address()).await;
    idle.get("/r/1", &[]).await;
    let address = followed.bench.address();
    let asking = tokio::spawn(async move { crate::kit::get(address, "/r/2").await });
    until("it is at the origin", || origin.hits() == 2).await;
    for deadline in 4..10 {
        followed.changed(&with(deadline)).await;
    }
    assert!(first.strong_count() > 0, "a request holds it");
    assert_eq!(asking.await.unwrap().status, 200);
    until("nothing holds it", || first.strong_count() == 0).await;
    assert_eq!(idle.get("/r/3", &[]).await.status, 200, "connections go on");
}
