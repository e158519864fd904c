//! The keys about what listed peers say are flipped, and something else happens.

use crate::kit::{Bench, NO_LIMITS, Origin, Reply, contract_with};

const LISTED: &str = "trusted_peers = [\"127.0.0.0/8\"]";

/// Returns the status of a request with this field, and the field of this name that the dependency was told.
async fn told(top: &str, dependency: &str, field: (&str, &str), name: &str) -> (u16, Option<String>) {
    let origin = Origin::always(Reply::ok("x")).await;
    let dependency = format!("{NO_LIMITS}\n{dependency}");
    let bench = Bench::start(&contract_with(
        origin.address,
        &format!("{LISTED}\n{top}"),
        &dependency,
        "",
    ))
    .await;
    let status = bench.get_with("/r/1", &[field]).await.status;
    let seen = origin.seen();
    (
        status,
        seen.first().and_then(|seen| seen.header(name)).map(str::to_owned),
    )
}

pub(crate) async fn deadline_from() {
    let over = ("x-ms", "0");
    assert_eq!(told("", "", over, "x-ms").await, (200, Some("0".to_owned())));
    assert_eq!(
        told("deadline_from = [\"x-ms\"]", "", over, "x-ms").await,
        (504, None)
    );
}

pub(crate) async fn criticality_from() {
    let word = ("x-how", "nonsense");
    assert_eq!(told("", "", word, "x-how").await.1.as_deref(), Some("nonsense"));
    assert_eq!(
        told("criticality_from = \"x-how\"", "", word, "x-how").await.1,
        None
    );
}

pub(crate) async fn trace() {
    let none = ("x-a", "1");
    assert_eq!(told("trace = \"off\"", "", none, "traceparent").await.1, None);
    assert!(told("trace = \"on\"", "", none, "traceparent").await.1.is_some());
}

pub(crate) async fn deadline_to() {
    let none = ("x-a", "1");
    assert_eq!(told("", "", none, "x-left").await.1, None);
    assert!(
        told("", "deadline_to = [\"x-left\"]", none, "x-left")
            .await
            .1
            .is_some()
    );
}
