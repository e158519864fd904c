//! Proves on the wire that the contract of `examples/shared-cache.toml` is a shared cache by the RFCs.
//! Scripts beside this file say what a client asks, what an origin answers, and what each of them must see.
//! It knows nothing of the gateway's insides: the same scripts can be played against any proxy.
//!
//! `docs/reference/shared-cache-suite.md` explains the scripts, and how to play them against another proxy.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a script that cannot be played is a failed test, and its place is in the panic"
)]

mod check;
mod client;
mod dates;
mod judge;
mod model;
mod naive;
mod origin;
mod report;
mod run;
mod script;
mod wire;

use std::{collections::HashSet, fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use evenkeel::Engine;
use evenkeel_gateway::{Gateway, config, proxy::Limits};
use naive::Keeps;
use origin::{Origin, Parts};
use run::Failure;
use script::{Kind, Script};

/// The fewest scripts this suite may shrink to.
const SCRIPTS_MIN: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shared_cache_of_the_examples_keeps_every_rule() {
    let parts = Parts::default();
    let origin = Origin::start("127.0.0.1:0", Arc::clone(&parts)).await;
    let gateway = gateway(&origin).await;
    let scripts = scripts();
    let failures = run::play(scripts.clone(), gateway.address(), origin, &parts).await;
    let (expected, surprising): (Vec<Failure>, Vec<Failure>) = failures
        .into_iter()
        .partition(|failure| failure.script.differs.is_some());
    assert!(
        surprising.is_empty(),
        "\n{}",
        report::table(&scripts, &surprising)
    );
    let differing = scripts.iter().filter(|script| script.differs.is_some());
    let kept: Vec<_> = differing
        .filter(|script| !expected.iter().any(|failure| failure.script.name == script.name))
        .map(|script| &script.name)
        .collect();
    assert!(kept.is_empty(), "said to differ, and do not: {kept:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_at_random_are_reused_as_a_plain_model_says() {
    let seed = seed();
    let scripts = model::answers::scripts(seed);
    let reused = scripts
        .iter()
        .filter(|script| script.steps[1].from.is_some())
        .count();
    assert!(
        reused > model::answers::CASES / 10,
        "only {reused} of the copies are used"
    );
    play_made(seed, scripts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stories_at_random_go_as_a_plain_model_says() {
    let seed = seed();
    play_made(seed, model::stories::scripts(seed)).await;
}

/// The seed is told when a model fails; this sets one.
fn seed() -> u64 {
    std::env::var("EVENKEEL_SUITE_SEED").map_or(1, |seed| seed.parse().unwrap())
}

async fn play_made(seed: u64, scripts: Vec<Script>) {
    let parts = Parts::default();
    let origin = Origin::start("127.0.0.1:0", Arc::clone(&parts)).await;
    let gateway = gateway(&origin).await;
    let failures = run::play(scripts.clone(), gateway.address(), origin, &parts).await;
    assert!(
        failures.is_empty(),
        "seed {seed}\n{}",
        report::table(&scripts, &failures)
    );
}

/// Plays the scripts against the proxy at `EVENKEEL_SUITE_PROXY`, whose origin is `EVENKEEL_SUITE_ORIGIN`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "asks a proxy that somebody else started"]
async fn a_proxy_elsewhere_keeps_every_rule() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let proxy: SocketAddr = variable("EVENKEEL_SUITE_PROXY")
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let only = std::env::var("EVENKEEL_SUITE_ONLY").unwrap_or_default();
    let parts = Parts::default();
    let origin = Origin::start(&variable("EVENKEEL_SUITE_ORIGIN"), Arc::clone(&parts)).await;
    let mut scripts = scripts();
    let own = std::env::var("EVENKEEL_SUITE_OWN").is_ok();
    scripts.retain(|script| own || script.kind != Kind::Own);
    scripts.retain(|script| script.file.contains(&only) || script.name.contains(&only));
    let failures = run::play(scripts.clone(), proxy, origin, &parts).await;
    println!("{}", report::table(&scripts, &failures));
    assert!(
        !failures.iter().any(|failure| failure.script.kind == Kind::Must),
        "see the table"
    );
}

/// A script of one step is about forwarding; every other one must tell a cache from no cache, or a right one from
/// one that keeps whatever it sees.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_script_fails_without_a_cache_or_with_one_that_keeps_everything() {
    let mut scripts = scripts();
    for step in scripts.iter_mut().flat_map(|script| &mut script.steps) {
        // Neither of the two proxies knows of time.
        step.pause = Duration::ZERO;
    }
    let (one, other) = tokio::join!(
        failures_of(Keeps::Nothing, &scripts),
        failures_of(Keeps::Everything, &scripts)
    );
    let caught: HashSet<&str> = one
        .iter()
        .chain(&other)
        .map(|failure| failure.script.name.as_str())
        .collect();
    let missed = scripts
        .iter()
        .filter(|script| script.steps.len() > 1 && !caught.contains(script.name.as_str()));
    let missed: Vec<_> = missed.map(|script| &script.name).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

async fn failures_of(keeps: Keeps, scripts: &[Script]) -> Vec<Failure> {
    let parts = Parts::default();
    let origin = Origin::start("127.0.0.1:0", Arc::clone(&parts)).await;
    let proxy = naive::start(keeps, origin.address).await;
    run::play(scripts.to_vec(), proxy, origin, &parts).await
}

#[test]
fn there_are_enough_scripts_each_with_a_name_of_its_own() {
    let all = scripts();
    assert!(all.len() >= SCRIPTS_MIN, "{} scripts", all.len());
    let mut names: Vec<_> = all.iter().map(|script| &script.name).collect();
    names.sort_unstable();
    let repeated: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
}

#[test]
fn a_script_with_an_unknown_key_or_without_an_expectation_is_refused() {
    let refused = |text: &str| script::parse("f", text).map(|scripts| scripts.len());
    let script = |rest: &str| format!("[[script]]\nname = 'n'\nrule = 'C01'\n{rest}");
    assert_eq!(refused(&script("reused = ['200']")), Ok(1));
    assert_eq!(
        refused(&script("each = { v = ['1', '2'] }\nreused = ['200']")),
        Ok(2)
    );
    assert!(
        refused(&script("reused = ['200']\nkid = 'must'"))
            .unwrap_err()
            .contains("unknown key \"kid\"")
    );
    assert!(
        refused(&script("steps = [ {} ]"))
            .unwrap_err()
            .contains("expects nothing")
    );
    assert!(
        refused(&script("steps = [ { from = 2 } ]"))
            .unwrap_err()
            .contains("looks back")
    );
}

fn scripts() -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shared_cache/scripts");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_unstable();
    let read = |file: &std::path::PathBuf| {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        script::parse(stem, &fs::read_to_string(file).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    };
    files.iter().flat_map(read).collect()
}

/// A gateway with the contract of the example, on ports of the system's choice.
async fn gateway(origin: &Origin) -> Gateway {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shared-cache.toml");
    let mut text = fs::read_to_string(example)
        .unwrap()
        .replace("127.0.0.1:8099", "127.0.0.1:0")
        .replace("127.0.0.1:8100", &origin.address.to_string());
    if !text.contains("\nadmin") {
        text = text.replacen("[gateway]", "[gateway]\nadmin = \"127.0.0.1:0\"", 1);
    }
    let loaded = config::parse("shared-cache.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
    Gateway::start(&loaded.contract, &Engine::system(), Limits::default())
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}
