//! The key about following the file.

use std::{path::Path, time::Duration};

use evenkeel::Engine;
use evenkeel_gateway::{Gateway, config, proxy::Limits, reload::Reload};

use crate::{
    kit::{contract_with, until},
    ok,
};

/// Starts a gateway that has the file but is told nothing.
async fn followed(file: &Path, text: &str) -> Gateway {
    std::fs::write(file, text).unwrap();
    let loaded = config::load(file).unwrap();
    let mut gateway = Gateway::start(&loaded.contract, &Engine::system(), Limits::default())
        .await
        .unwrap();
    gateway.follow(file, &loaded, None);
    gateway
}

pub(crate) async fn watch() {
    let origin = ok().await;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (watched, unwatched) = (directory.join("watched.toml"), directory.join("unwatched.toml"));
    let text =
        |watch: bool, route: &str| contract_with(origin.address, &format!("watch = {watch}"), "", route);
    let follows = followed(&watched, &text(true, "")).await;
    let waits = followed(&unwatched, &text(false, "")).await;
    // It knows the file as it is once it has looked.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for (file, watch) in [(&unwatched, false), (&watched, true)] {
        std::fs::write(file, text(watch, "deadline = \"2s\"")).unwrap();
    }
    until("the change is followed", || {
        follows.reloads().counted(Reload::Reloaded) == 1
    })
    .await;
    assert_eq!(waits.reloads().counted(Reload::Reloaded), 0, "nobody has said so");
}
