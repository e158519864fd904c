//! What an operator sees of the store on disk: that it is down, since when, why and what to do; and what a purge removed there.

use crate::{
    kit::{Origin, Reply, STALE, contract_with, get},
    process::{Running, directory},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_down_is_on_the_screen_and_one_that_is_well_is_not() {
    let origin = Origin::always(Reply::ok("x")).await;
    let folder = directory("store-down");
    let path = folder.join("store");
    let text = contract_with(origin.address, &format!("[store]\npath = {path:?}"), "", STALE);
    // A file stands where the directory has to be.
    std::fs::write(&path, "in the way").unwrap();
    let running = Running::start(&folder, &text).await;
    let status = running
        .until(&["status"], |status| status["store"]["reason"] == "unreachable")
        .await;
    let store = &status["store"];
    assert_eq!(store["up"], false, "{store}");
    assert!(
        store["since"].is_string() && store["for_seconds"].is_u64(),
        "{store}"
    );
    let shown = running.text(&["status"]).await;
    let line = shown.lines().find(|line| line.starts_with(" STORE ")).unwrap();
    for part in [
        "down: unreachable (",
        "memory alone",
        "since ",
        "see that the directory is there",
    ] {
        assert!(line.contains(part), "{part} is missing from\n{shown}");
    }
    std::fs::remove_file(&path).unwrap();
    let status = running
        .until(&["status"], |status| status["store"]["up"] == true)
        .await;
    assert!(status["store"]["since"].is_null(), "{status}");
    assert!(!running.text(&["status"]).await.contains(" STORE "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_says_what_the_store_removed() {
    let origin = Origin::always(Reply::ok("x")).await;
    let folder = directory("store-purge");
    let keys = format!("[store]\npath = {:?}", folder.join("store"));
    let running = Running::start(&folder, &contract_with(origin.address, &keys, "", STALE)).await;
    for number in 0..3 {
        assert_eq!(get(running.address, &format!("/r/{number}")).await.status, 200);
    }
    running
        .until(&["status"], |status| {
            status["store"]["entries"] == 3 && status["store"]["backlog_entries"] == 0
        })
        .await;
    let told = running.text(&["purge", "--route", "r", "--hard"]).await;
    assert!(told.contains(", 3 on disk"), "{told}");
    let status = running
        .until(&["status"], |status| status["store"]["entries"] == 0)
        .await;
    assert_eq!(status["store"]["behind"], false, "{status}");
}
