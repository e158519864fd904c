//! The examples, line by line: what is shown is what is tested.

#[path = "../examples/axum.rs"]
mod in_axum;
#[path = "../examples/reqwest.rs"]
mod in_reqwest;
#[path = "../examples/tonic.rs"]
mod in_tonic;

#[tokio::test]
async fn a_router_in_axum_serves_old_data_and_says_so() {
    in_axum::run().await.unwrap();
}

#[tokio::test]
async fn a_client_of_reqwest_gets_old_data_for_outages_and_the_truth_for_refusals() {
    in_reqwest::run().await.unwrap();
}

#[tokio::test]
async fn a_client_of_tonic_hands_its_deadline_on_and_gets_old_data_when_it_passes() {
    in_tonic::run().await.unwrap();
}
