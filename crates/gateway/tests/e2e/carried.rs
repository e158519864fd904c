//! What is counted goes on when the contract is loaded anew, and every series that can be reached is there from the start.

use crate::{
    kit::{Bench, NO_LIMITS, Origin, Reply, contract_with, get_with},
    reload::Followed,
};

const LISTED: &str = "trusted_peers = [\"127.0.0.0/8\"]";

fn spread(origins: &[&Origin], dependency: &str) -> String {
    let urls: Vec<String> = origins
        .iter()
        .map(|origin| format!("\"http://{}\"", origin.address))
        .collect();
    let text = contract_with(origins[0].address, "", dependency, "");
    let one = format!("urls = [\"http://{}\"]", origins[0].address);
    assert!(text.contains(&one), "{text}");
    text.replace(&one, &format!("urls = [{}]", urls.join(", ")))
}

async fn answered(bench: &Bench, origin: &Origin) -> Option<u64> {
    let series = format!(
        "evenkeel_address_attempts_total{{dependency=\"d\",address=\"{}\",result=\"answered\"}}",
        origin.address
    );
    bench.metric(&series).await
}

/// Case 069: what is known of an address stays known where it is still asked, by whatever rules and beside whomever.
#[tokio::test]
async fn attempts_at_an_address_go_on_being_counted_where_it_is_still_asked() {
    let (a, b) = (
        Origin::always(Reply::ok("a")).await,
        Origin::always(Reply::ok("b")).await,
    );
    let c = Origin::always(Reply::ok("c")).await;
    let in_turn = "balance = \"round-robin\"";
    let followed = Followed::start(&spread(&[&a, &b], in_turn)).await;
    for _ in 0..6 {
        followed.bench.get("/r/1").await;
    }
    assert_eq!(answered(&followed.bench, &a).await, Some(3));
    // Other rules at the same addresses.
    followed.changed(&spread(&[&a, &b], "timeout = \"700ms\"")).await;
    assert_eq!(answered(&followed.bench, &a).await, Some(3));
    for _ in 0..4 {
        followed.bench.get("/r/1").await;
    }
    let before = answered(&followed.bench, &b).await.unwrap();
    assert_eq!(answered(&followed.bench, &a).await.unwrap() + before, 10);
    // Another address beside one of them.
    followed.changed(&spread(&[&c, &b], in_turn)).await;
    assert_eq!(answered(&followed.bench, &b).await, Some(before));
    assert_eq!(answered(&followed.bench, &c).await, Some(0));
    assert_eq!(
        answered(&followed.bench, &a).await,
        None,
        "nobody asks it any more"
    );
    for _ in 0..2 {
        followed.bench.get("/r/1").await;
    }
    assert_eq!(answered(&followed.bench, &b).await, Some(before + 1));
}

/// One address of two is left out, and may not be: every attempt at it overrides the rule, whichever rules those are.
#[tokio::test]
async fn overridden_ejections_go_on_being_counted() {
    let (a, b) = (
        Origin::always(Reply::ok("a")).await,
        Origin::always(Reply::ok("b")).await,
    );
    let rules = |base: &str| {
        let eject = format!("eject = {{ consecutive = 1, for = \"{base}\", max_share = \"50%\" }}");
        spread(
            &[&a, &b],
            &format!("{NO_LIMITS}\nbalance = \"round-robin\"\n{eject}"),
        )
    };
    let followed = Followed::start(&rules("60s")).await;
    a.stop().await;
    b.stop().await;
    for _ in 0..8 {
        followed.bench.get("/r/1").await;
    }
    let counted = async || {
        followed
            .bench
            .metric("evenkeel_attempts_overridden_total{dependency=\"d\"}")
            .await
    };
    let before = counted().await.unwrap();
    assert!(before > 0, "{}", followed.bench.metrics().await);
    followed.changed(&rules("61s")).await;
    assert_eq!(counted().await, Some(before));
}

#[tokio::test]
async fn words_of_peers_that_could_not_be_read_go_on_being_counted() {
    let origin = Origin::always(Reply::ok("x")).await;
    let text = |timeout: &str| {
        let top =
            format!("{LISTED}\ndeadline_from = [\"x-timeout-ms\"]\ncriticality_from = \"x-criticality\"");
        contract_with(origin.address, &top, &format!("timeout = \"{timeout}\""), "")
    };
    let followed = Followed::start(&text("700ms")).await;
    let unread = async |what: &str| {
        followed
            .bench
            .metric(&format!("evenkeel_peer_words_unread_total{{what=\"{what}\"}}"))
            .await
    };
    let wrong = [("x-timeout-ms", "soon"), ("x-criticality", "very")];
    get_with(followed.bench.address(), "/r/1", &wrong).await;
    followed.changed(&text("800ms")).await;
    for what in ["deadline", "criticality"] {
        assert_eq!(unread(what).await, Some(1), "{what}");
    }
    get_with(followed.bench.address(), "/r/1", &wrong).await;
    assert_eq!(unread("deadline").await, Some(2));
}

/// Where peers say how much a request matters, calls of one route can be shed: an alert on that needs its zero.
#[tokio::test]
async fn what_is_shed_has_its_zero_where_peers_say_what_matters() {
    let origin = Origin::always(Reply::ok("x")).await;
    for (said, zero) in [("", None), ("criticality_from = \"x-criticality\"", Some(0))] {
        let dependency = format!("{NO_LIMITS}\nconcurrency = 4");
        let top = format!("{LISTED}\n{said}");
        let text = contract_with(origin.address, &top, &dependency, "other_methods = \"pass\"");
        let bench = Bench::start(&text).await;
        for series in [
            "evenkeel_calls_total{route=\"r\",ending=\"refused\",rung=\"none\",reason=\"shed\"}",
            "evenkeel_passes_total{route=\"r\",ending=\"refused\",reason=\"shed\"}",
        ] {
            assert_eq!(bench.metric(series).await, zero, "{said} {series}");
        }
    }
}
