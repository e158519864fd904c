//! A contract that is loaded anew while requests are under way: whole or not at all, and nothing that is known is lost.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use evenkeel::{Class, Engine, Hold, HoldMode, ManualClock, State};
use evenkeel_gateway::{
    Gateway, config,
    proxy::{Changes, Limits},
    reload::{LastGood, Outcome, Refused, Reload, Reloader, Trigger},
};

use crate::kit::{Answer, Bench, Client, Origin, Reply, STALE, contract, get, get_admin, until};

/// A gateway and the file that it follows.
pub(crate) struct Followed {
    pub(crate) bench: Bench,
    reloader: Arc<Reloader>,
    pub(crate) file: PathBuf,
}

/// A directory of a test's own.
pub(crate) fn directory(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("evenkeel-{name}-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

impl Followed {
    pub(crate) async fn start(text: &str) -> Self {
        Self::start_by(text, Engine::system(), None).await
    }

    async fn with_manual_clock(text: &str) -> Self {
        let clock = ManualClock::new();
        Self::start_by(text, Engine::new(clock.clone(), 7), Some(clock)).await
    }

    async fn start_by(text: &str, engine: Engine, clock: Option<ManualClock>) -> Self {
        let file = directory("reload").join("contract.toml");
        std::fs::write(&file, text).unwrap();
        let loaded = config::load(&file).unwrap();
        let mut gateway = Gateway::start(&loaded.contract, &engine, Limits::default())
            .await
            .unwrap();
        let reloader = gateway.follow(&file, &loaded, None);
        Self {
            bench: Bench { gateway, clock },
            reloader,
            file,
        }
    }

    async fn reload(&self, text: &str) -> Arc<Outcome> {
        std::fs::write(&self.file, text).unwrap();
        self.reloader.reload(Trigger::Signal).await.unwrap()
    }

    pub(crate) async fn changed(&self, text: &str) -> Changes {
        match &*self.reload(text).await {
            Outcome::Reloaded(changes) => changes.clone(),
            other @ (Outcome::Unchanged | Outcome::Refused(_)) => panic!("{other:?}"),
        }
    }

    async fn refused(&self, text: &str) -> Refused {
        match &*self.reload(text).await {
            Outcome::Refused(refused) => refused.clone(),
            other @ (Outcome::Unchanged | Outcome::Reloaded(_)) => panic!("{other:?}"),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.bench.get(path).await
    }

    fn in_use(&self) -> u32 {
        self.bench.gateway.app().dependency("d").unwrap().status().in_use
    }
}

const NAMES: fn(&[&str]) -> Vec<String> = |names| names.iter().map(|name| (*name).to_owned()).collect();

#[tokio::test]
async fn case_068_a_contract_with_a_problem_changes_nothing_and_names_it() {
    let (old, new) = (
        Origin::always(Reply::ok("old")).await,
        Origin::always(Reply::ok("new")).await,
    );
    let text = contract(old.address, "", "");
    let followed = Followed::start(&text).await;
    let bad = contract(new.address, "concurrency = 5", "deadline = \"0s\"");
    let refused = followed.refused(&bad).await;
    assert!(
        refused.at.starts_with(&format!("{}:", followed.file.display())),
        "{refused:?}"
    );
    assert!(refused.first.contains("deadline"), "{refused:?}");
    assert_eq!(followed.get("/r/1").await.text(), "old");
    assert_eq!(new.hits(), 0);
    assert_eq!(
        followed
            .bench
            .gateway
            .app()
            .dependency("d")
            .unwrap()
            .status()
            .limit,
        None
    );
    let series = "evenkeel_contract_reloads_total{result=\"refused\"}";
    assert_eq!(followed.bench.metric(series).await, Some(1));
    // Mended, it is taken whole.
    let changes = followed
        .changed(&contract(new.address, "concurrency = 5", ""))
        .await;
    assert_eq!(changes.dependencies_reset, NAMES(&["d"]));
    assert_eq!(followed.get("/r/1").await.text(), "new");
    assert_eq!(
        followed
            .bench
            .metric("evenkeel_contract_reloads_total{result=\"reloaded\"}")
            .await,
        Some(1)
    );
    assert!(matches!(
        *followed.reloader.reload(Trigger::Signal).await.unwrap(),
        Outcome::Unchanged
    ));
    assert_eq!(followed.bench.gateway.reloads().counted(Reload::Unchanged), 1);
}

#[tokio::test]
async fn case_071_no_contract_however_bad_ends_the_gateway_or_changes_what_it_does() {
    let origin = Origin::always(Reply::ok("x")).await;
    let text = contract(origin.address, "", STALE);
    let followed = Followed::start(&text).await;
    let huge = format!("{text}\nx = \"{}\"", "y".repeat(5 << 20));
    let nested = format!("{text}\nx = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    let twice = format!("{text}\n{text}");
    let listen = "[gateway]\nlisten = \"127.0.0.1:0\"\n";
    let bad = [
        "",
        " \n",
        "\0",
        "null",
        "= 1",
        "[gateway]",
        "[[routes]]\n",
        listen,
        "gateway = 1\nroutes = \"\"\ndependencies = []",
        "[gateway]\nlisten = 99999999999999999999999999\n",
        "\u{feff}\u{feff}",
        &huge,
        &nested,
        &twice,
        &text.replace("\"r\"", "\"\""),
        &text.replace("\"r\"", "1e400"),
        &text.replace("class = \"read\"", "class = nan"),
    ];
    for text in bad {
        let refused = followed.refused(text).await;
        assert!(refused.problems > 0 && !refused.first.is_empty(), "{text:.60}");
        assert_eq!(followed.get("/r/1").await.text(), "x");
    }
    std::fs::write(&followed.file, [0xff, 0xfe, 0x00]).unwrap();
    assert!(matches!(
        *followed.reloader.reload(Trigger::File).await.unwrap(),
        Outcome::Refused(_)
    ));
    std::fs::remove_file(&followed.file).unwrap();
    assert!(matches!(
        *followed.reloader.reload(Trigger::File).await.unwrap(),
        Outcome::Refused(_)
    ));
    assert_eq!(followed.get("/r/1").await.text(), "x");
    assert_eq!(
        followed.bench.gateway.reloads().counted(Reload::Refused),
        bad.len() as u64 + 2
    );
}

#[tokio::test]
async fn what_was_bound_at_the_start_needs_a_restart_and_says_so() {
    let origin = Origin::always(Reply::ok("x")).await;
    let text = contract(origin.address, "", "");
    let followed = Followed::start(&text).await;
    for (from, to, key) in [
        (
            "listen = \"127.0.0.1:0\"",
            "listen = \"127.0.0.1:1\"",
            "gateway.listen",
        ),
        (
            "listen = \"127.0.0.1:0\"",
            "listen = \"127.0.0.1:0\"\nworkers = 3",
            "gateway.workers",
        ),
        (
            "[dependencies.d]",
            "[store]\npath = \"/nowhere/store\"\n[dependencies.d]",
            "store",
        ),
    ] {
        let refused = followed.refused(&text.replace(from, to)).await;
        assert!(refused.first.starts_with(key), "{refused:?}");
        assert!(refused.first.contains("restart"), "{refused:?}");
        assert_eq!(refused.problems, 1);
    }
}

#[tokio::test]
async fn case_069_a_request_that_waits_for_a_permit_gets_its_answer_from_the_new_address() {
    let (dead, healthy) = (
        Origin::always(Reply::hang()).await,
        Origin::always(Reply::ok("b")).await,
    );
    let rules = "timeout = \"20s\"\nconcurrency = 1\nqueue = { length = 10, wait = \"15s\" }";
    let deadline = "deadline = \"20s\"";
    let followed = Followed::start(&contract(dead.address, rules, deadline)).await;
    let address = followed.bench.address();
    let hung = tokio::spawn(async move { get(address, "/r/hung").await });
    until("one hangs", || dead.hits() == 1).await;
    let waiting = tokio::spawn(async move { get(address, "/r/waits").await });
    let waits = || {
        followed
            .bench
            .gateway
            .app()
            .dependency("d")
            .unwrap()
            .status()
            .waiting
    };
    until("one waits", || waits() == 1).await;
    let changes = followed
        .changed(&contract(healthy.address, rules, deadline))
        .await;
    assert_eq!(changes.dependencies_reset, NAMES(&["d"]));
    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "b"));
    assert_eq!(
        (dead.hits(), healthy.hits()),
        (1, 1),
        "the one under way ends where it began"
    );
    hung.abort();
    until("all permits are back", || followed.in_use() == 0).await;
}

#[tokio::test]
async fn case_069_a_retry_asks_the_new_address() {
    let (dead, healthy) = (
        Origin::always(Reply::status(503)).await,
        Origin::always(Reply::ok("b")).await,
    );
    let rules = "retry = { attempts = 3, pause = \"1s\", pause_max = \"1s\" }\nbreaker = \"off\"";
    let deadline = "deadline = \"10s\"";
    let followed = Followed::start(&contract(dead.address, rules, deadline)).await;
    let address = followed.bench.address();
    let asking = tokio::spawn(async move { get(address, "/r/1").await });
    until("the first attempt has failed", || {
        followed
            .bench
            .gateway
            .app()
            .dependency("d")
            .unwrap()
            .attempts_total()
            == 1
    })
    .await;
    followed
        .changed(&contract(healthy.address, rules, deadline))
        .await;
    let answer = asking.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "b"));
    assert_eq!((dead.hits(), healthy.hits()), (1, 1));
}

#[tokio::test]
async fn a_lower_concurrency_holds_at_once_for_old_and_new_calls_together() {
    let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(700))).await;
    let with = |permits: u32| {
        contract(
            origin.address,
            &format!("timeout = \"10s\"\nconcurrency = {permits}"),
            "deadline = \"10s\"",
        )
    };
    let followed = Followed::start(&with(3)).await;
    let address = followed.bench.address();
    let old: Vec<_> = (0..3)
        .map(|_| tokio::spawn(async move { get(address, "/r/1").await }))
        .collect();
    until("three are in flight", || followed.in_use() == 3).await;
    let changes = followed.changed(&with(1)).await;
    assert_eq!(changes.dependencies_carried, NAMES(&["d"]));
    assert_eq!(followed.in_use(), 3, "they are counted on");
    assert_eq!(followed.get("/r/1").await.status, 503, "no more are let in");
    assert_eq!(origin.hits(), 3);
    for call in old {
        assert_eq!(call.await.unwrap().status, 200);
    }
    until("all permits are back", || followed.in_use() == 0).await;
    let first = tokio::spawn(async move { get(address, "/r/1").await });
    until("one is in flight", || followed.in_use() == 1).await;
    assert_eq!(followed.get("/r/1").await.status, 503, "one is the limit");
    assert_eq!(first.await.unwrap().status, 200);
}

const TRIPS: &str =
    "breaker = { consecutive = 2, open_for = \"10s\", open_for_max = \"10s\", jitter = \"0%\" }";

#[tokio::test]
async fn an_open_breaker_stays_open_until_the_probe_that_was_due_and_a_renamed_one_begins_anew() {
    let origin = Origin::always(Reply::status(500)).await;
    let rules = format!("{TRIPS}\nramp = \"off\"");
    let followed = Followed::with_manual_clock(&contract(origin.address, &rules, "")).await;
    for _ in 0..2 {
        followed.get("/r/1").await;
    }
    let status = || followed.bench.gateway.app().dependency("d").unwrap().status();
    let due = status().next_probe;
    assert_eq!(status().state, Some(State::Open));
    let other = format!("{rules}\nconcurrency = 7");
    followed
        .changed(&contract(origin.address, &other, "deadline = \"2s\""))
        .await;
    assert_eq!((status().state, status().next_probe), (Some(State::Open), due));
    followed.bench.advance(Duration::from_millis(9_999));
    assert_eq!(followed.get("/r/1").await.status, 503);
    assert_eq!(origin.hits(), 2, "nobody asks before");
    origin.now(Reply::ok("well"));
    followed.bench.advance(Duration::from_millis(1));
    assert_eq!(followed.get("/r/1").await.text(), "well");
    assert_eq!(status().state, Some(State::Closed));
    assert_eq!(
        followed
            .bench
            .gateway
            .app()
            .dependency("d")
            .unwrap()
            .attempts_total(),
        3,
        "counted on"
    );

    origin.now(Reply::status(500));
    for _ in 0..2 {
        followed.get("/r/1").await;
    }
    assert_eq!(status().state, Some(State::Open));
    let renamed = contract(origin.address, TRIPS, "")
        .replace("dependencies.d", "dependencies.e")
        .replace("from = \"d\"", "from = \"e\"");
    let changes = followed.changed(&renamed).await;
    assert_eq!(
        (changes.dependencies_added, changes.dependencies_removed),
        (NAMES(&["e"]), NAMES(&["d"]))
    );
    let fresh = followed.bench.gateway.app().dependency("e").unwrap();
    assert_eq!(
        (fresh.status().state, fresh.attempts_total()),
        (Some(State::Closed), 0)
    );
}

#[tokio::test]
async fn a_new_rule_holds_at_once_for_what_was_counted_before() {
    let origin = Origin::always(Reply::status(500)).await;
    let five = TRIPS.replace("consecutive = 2", "consecutive = 5");
    let followed = Followed::with_manual_clock(&contract(origin.address, &five, "")).await;
    followed.get("/r/1").await;
    followed.changed(&contract(origin.address, TRIPS, "")).await;
    followed.get("/r/1").await;
    let status = followed.bench.gateway.app().dependency("d").unwrap().status();
    assert_eq!(
        status.state,
        Some(State::Open),
        "one before and one after are two"
    );
}

#[tokio::test]
async fn a_ramp_goes_on_where_it_was() {
    let origin = Origin::always(Reply::status(500)).await;
    let rules = |calls: u32| {
        format!(
            "{TRIPS}\nramp = {{ stages = [20, 50, 100], hold = \"1s\", hold_max = \"60s\", calls = {calls} }}"
        )
    };
    let followed = Followed::with_manual_clock(&contract(origin.address, &rules(1), "")).await;
    for _ in 0..2 {
        followed.get("/r/1").await;
    }
    origin.now(Reply::ok("well"));
    followed.bench.advance(Duration::from_secs(10));
    followed.get("/r/1").await;
    let stage = || {
        followed
            .bench
            .gateway
            .app()
            .dependency("d")
            .unwrap()
            .status()
            .ramp
            .map(|stage| stage.index)
    };
    assert_eq!(stage(), Some(0));
    for _ in 0..40 {
        if stage() == Some(1) {
            break;
        }
        followed.bench.advance(Duration::from_millis(300));
        for _ in 0..5 {
            followed.get("/r/1").await;
        }
    }
    assert_eq!(stage(), Some(1));
    followed.changed(&contract(origin.address, &rules(2), "")).await;
    assert_eq!(stage(), Some(1));
    // A change of something else leaves all of it alone.
    followed
        .changed(&contract(origin.address, &rules(2), "deadline = \"2s\""))
        .await;
    assert_eq!(stage(), Some(1));
}

#[tokio::test]
async fn a_narrowed_age_holds_at_once_for_old_snapshots_and_other_data_is_not_found() {
    let origin = Origin::always(Reply::ok("old")).await;
    let with = |ladder: &str| contract(origin.address, "breaker = \"off\"", ladder);
    let sixty = "ladder = [ { stale = \"60s\" } ]";
    let followed = Followed::with_manual_clock(&with(sixty)).await;
    followed.get("/r/1?lang=de").await;
    origin.now(Reply::status(500));
    followed.bench.advance(Duration::from_secs(30));
    assert_eq!(followed.get("/r/1?lang=de").await.freshness(), "stale");
    followed.changed(&with("ladder = [ { stale = \"20s\" } ]")).await;
    assert_eq!(
        followed.get("/r/1?lang=de").await.status,
        500,
        "it is thirty seconds old"
    );
    followed.changed(&with(sixty)).await;
    assert_eq!(
        followed.get("/r/1?lang=de").await.freshness(),
        "stale",
        "it was there all the time"
    );
    for other in ["", "exact = true"] {
        followed.changed(&with(other)).await;
        let answer = followed.get("/r/1?lang=de").await;
        assert_eq!((answer.status, answer.freshness()), (500, "-"), "{other:?}");
    }
    followed
        .changed(&with(&format!("{sixty}\nscope = [ \"query:lang\" ]")))
        .await;
    assert_eq!(
        followed.get("/r/1?lang=de").await.status,
        500,
        "whose it was is not known"
    );
}

#[tokio::test]
async fn a_hold_stays_on_whom_it_is_on_wherever_that_is_now() {
    let (old, new) = (
        Origin::always(Reply::ok("old")).await,
        Origin::always(Reply::ok("new")).await,
    );
    let followed = Followed::start(&contract(old.address, "", STALE)).await;
    followed.get("/r/1").await;
    let app = followed.bench.gateway.app();
    let hold = Hold {
        mode: HoldMode::ForcedOpen,
        by: "ana".into(),
        why: "migration".into(),
        lasts: None,
    };
    app.dependency("d").unwrap().hold(hold).unwrap();
    followed.changed(&contract(new.address, "", STALE)).await;
    assert_eq!(followed.get("/r/1").await.freshness(), "stale");
    assert_eq!(new.hits(), 0);
    followed
        .bench
        .gateway
        .app()
        .dependency("d")
        .unwrap()
        .release("ana")
        .unwrap();
    assert_eq!(followed.get("/r/1").await.text(), "new");
}

/// The share of a check that matters most: nobody notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_reloads_under_load_lose_and_refuse_no_request() {
    let origins = [
        Origin::always(Reply::ok("a")).await,
        Origin::always(Reply::ok("b")).await,
    ];
    let text = |number: usize| {
        let address = origins[(number / 10) % 2].address;
        contract(
            address,
            // Patient, and with no limit that is learned: on a slow machine nothing else than a reload may lose a request.
            &format!(
                "concurrency = {}\ntimeout = \"15s\"\nlearned_limit = \"off\"",
                20 + number % 7
            ),
            &format!("deadline = \"{}s\"", 16 + number % 5),
        )
    };
    let followed = Followed::start(&text(0)).await;
    let address = followed.bench.address();
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (done, answered) = (Arc::clone(&done), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                while !done.load(Ordering::Relaxed) {
                    let answer = client.get("/r/1", &[]).await;
                    assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    until("they ask", || answered.load(Ordering::Relaxed) > 20).await;
    for number in 1..=100 {
        followed.changed(&text(number)).await;
    }
    let before = answered.load(Ordering::Relaxed);
    until("they still ask", || {
        answered.load(Ordering::Relaxed) > before + 20
    })
    .await;
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let app = followed.bench.gateway.app();
    until("all permits are back", || followed.in_use() == 0).await;
    let answered = answered.load(Ordering::Relaxed) as u64;
    let counts = app.counts("r").unwrap();
    assert_eq!(
        (
            counts.calls(),
            counts.total(evenkeel::Ending::Answered(evenkeel::Rung::Live))
        ),
        (answered, answered)
    );
    assert_eq!(app.dependency("d").unwrap().attempts(Class::Answer), answered);
    assert_eq!(origins.iter().map(Origin::hits).sum::<usize>() as u64, answered);
    assert_eq!(app.requests_in_flight(), 0);
}

#[tokio::test]
async fn wishes_at_the_same_time_share_a_reload_and_one_who_leaves_stops_none() {
    let origin = Origin::always(Reply::ok("x")).await;
    let followed = Followed::start(&contract(origin.address, "", "")).await;
    std::fs::write(&followed.file, contract(origin.address, "", "deadline = \"2s\"")).unwrap();
    let wishes: Vec<_> = (0..50)
        .map(|_| {
            let reloader = Arc::clone(&followed.reloader);
            tokio::spawn(async move { reloader.reload(Trigger::Admin).await })
        })
        .collect();
    for wish in wishes {
        assert!(wish.await.unwrap().is_some());
    }
    let counted = |reload| followed.bench.gateway.reloads().counted(reload);
    assert_eq!(counted(Reload::Reloaded), 1);
    assert!(counted(Reload::Unchanged) < 49, "they were folded");
    std::fs::write(&followed.file, contract(origin.address, "", "")).unwrap();
    {
        let wish = followed.reloader.reload(Trigger::Admin);
        let mut wish = std::pin::pin!(wish);
        let polled = wish
            .as_mut()
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(polled.is_pending());
    }
    until("it is done all the same", || counted(Reload::Reloaded) == 2).await;
}

#[tokio::test]
async fn the_contract_is_read_from_all_its_files_and_followed_when_they_change() {
    let (old, new) = (
        Origin::always(Reply::ok("old")).await,
        Origin::always(Reply::ok("new")).await,
    );
    let whole = contract(old.address, "", "").replace(
        "listen = \"127.0.0.1:0\"",
        "listen = \"127.0.0.1:0\"\nwatch = true",
    );
    let (gateway, rest) = whole.split_at(whole.find("[dependencies").unwrap());
    let file = directory("watch").join("contract.toml");
    let part = file.with_file_name("part.toml");
    std::fs::write(&part, rest).unwrap();
    std::fs::write(&file, format!("include = [\"part.toml\"]\n{gateway}")).unwrap();
    let loaded = config::load(&file).unwrap();
    let mut gateway = Gateway::start(&loaded.contract, &Engine::system(), Limits::default())
        .await
        .unwrap();
    let reloader = gateway.follow(&file, &loaded, None);
    let counted = |reload| gateway.reloads().counted(reload);
    // Half of it is there for a while, as when an editor is slow; then a whole one is renamed over it.
    let whole = rest.replace(&old.address.to_string(), &new.address.to_string());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    std::fs::write(&part, &whole.as_bytes()[..whole.len() / 2]).unwrap();
    until("the half is refused", || counted(Reload::Refused) == 1).await;
    assert_eq!(get(gateway.address(), "/r/1").await.text(), "old");
    let beside = part.with_extension("new");
    std::fs::write(&beside, &whole).unwrap();
    std::fs::rename(&beside, &part).unwrap();
    until("the whole is taken", || counted(Reload::Reloaded) == 1).await;
    assert_eq!(get(gateway.address(), "/r/1").await.text(), "new");
    // A link that is swapped is another file.
    let elsewhere = file.with_file_name("elsewhere.toml");
    std::fs::write(&elsewhere, rest).unwrap();
    let link = file.with_file_name("link");
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    std::fs::rename(&link, &part).unwrap();
    until("it is followed", || counted(Reload::Reloaded) == 2).await;
    assert_eq!(get(gateway.address(), "/r/1").await.text(), "old");
    drop(reloader);
}

fn kept(path: &Path) -> LastGood {
    LastGood::of(path, None)
}

#[tokio::test]
async fn case_071_the_last_good_contract_is_kept_whole_without_its_secrets() {
    use std::os::unix::fs::PermissionsExt as _;
    let origin = Origin::always(Reply::ok("x")).await;
    let file = directory("kept").join("contract.toml");
    let secret = file.with_file_name("secret");
    std::fs::write(&secret, "hunter2hunter2").unwrap();
    let whole = contract(
        origin.address,
        "rewrite = { set_request = { x-key = { file = \"secret\" } } }",
        "",
    );
    let (gateway, rest) = whole.split_at(whole.find("[dependencies").unwrap());
    std::fs::write(file.with_file_name("part.toml"), rest).unwrap();
    std::fs::write(&file, format!("include = [\"part.toml\"]\n{gateway}")).unwrap();
    let loaded = config::load(&file).unwrap();
    let last_good = kept(&file);
    assert!(last_good.load().unwrap_err().contains("cannot read"));
    last_good.keep(&loaded).unwrap();
    let text = std::fs::read_to_string(last_good.path()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let mode = std::fs::metadata(last_good.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // It is whole without the files that it was made of, but for the secret, which it only names.
    std::fs::remove_file(file.with_file_name("part.toml")).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(last_good.load().unwrap().contract, loaded.contract);
    std::fs::remove_file(&secret).unwrap();
    assert!(last_good.load().unwrap_err().contains("secret"));
    for bad in [
        "",
        "{}",
        "[]",
        "{\"kind\":1}",
        "null",
        "{\"kind\":\"evenkeel last good contract, 1\",\"files\":[{}]}",
    ] {
        std::fs::write(last_good.path(), bad).unwrap();
        assert!(last_good.load().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn the_administration_is_there_while_requests_are_finished_and_says_that_it_stops() {
    let origin = Origin::always(Reply::ok("done").wait(Duration::from_millis(600))).await;
    let followed = Followed::start(&contract(origin.address, "", "")).await;
    let (address, admin): (SocketAddr, SocketAddr) =
        (followed.bench.address(), followed.bench.gateway.admin_address());
    let running = tokio::spawn(async move { get(address, "/r/1").await });
    until("the request is at the origin", || origin.hits() == 1).await;
    let reloader = Arc::clone(&followed.reloader);
    let Followed { bench, .. } = followed;
    let stopping = tokio::spawn(bench.gateway.stop(Duration::from_secs(20)));
    let ready = loop {
        let ready = get_admin(admin, "localhost", "/readyz").await;
        if ready.status != 200 {
            break ready;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!((ready.status, ready.text().as_str()), (503, "stopping\n"));
    assert!(
        reloader.reload(Trigger::Signal).await.is_none(),
        "nothing begins any more"
    );
    let answer = running.await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(stopping.await.unwrap());
}
