//! The published demonstrations, line by line. They are the examples themselves: what is shown is what is tested.

#[path = "../examples/guard.rs"]
mod guard;
#[path = "../examples/product_description.rs"]
mod product_description;
#[path = "../examples/recommendations.rs"]
mod recommendations;
#[path = "../examples/two_hundred_requests.rs"]
mod two_hundred_requests;

#[tokio::test]
async fn two_hundred_requests_are_all_answered_and_each_says_what_it_is() {
    two_hundred_requests::run().await.unwrap();
}

#[tokio::test]
async fn optional_recommendations_go_through_breaker_probe_and_back() {
    recommendations::run().await.unwrap();
}

#[tokio::test]
async fn a_public_product_description_holds_its_limits() {
    product_description::run().await.unwrap();
}

#[tokio::test]
async fn one_guard_answers_live_then_stale_then_by_default() {
    guard::run().await.unwrap();
}
