//! Several users of several tenants ask at the same time for the same things, on every rung and in any order. Each answer says
//! whose it is, and every one is checked: nobody is ever given somebody else's.
//!
//! Each run draws fresh seeds and prints them; `EVENKEEL_SEED=7` repeats one, `EVENKEEL_PRIVACY=1000` draws more.

use std::{
    hash::BuildHasher as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel_core::Rng;
use parking_lot::Mutex;

use crate::{
    kit::{Answer, Bench, Client, Origin, Reply, Seen},
    protect::{COPY, authority},
};

/// Names that are each other's when they are put together carelessly, and the mark that stands in all of their data.
const USERS: [(&str, &str, u8); 6] = [
    ("t", "ana", b'a'),
    ("t", "ben", b'b'),
    ("u", "ana", b'c'),
    ("t1", "ana", b'd'),
    ("t", "1ana", b'e'),
    ("u", "ben", b'f'),
];
const PATHS: [&str; 2] = ["/r/1", "/r/1?x=2"];
const LENGTH: usize = 48;

/// Every way in which a protected route may keep, share and replace what is somebody's.
const ROUTES: [&str; 6] = [
    "scope = [\"tenant\", \"subject\"]\ncoalesce = true\nladder = [ { stale = \"30s\" }, { default = { content_type = \"text/plain\", body = \"default\" } } ]",
    "scope = [\"subject\", \"tenant\"]\nsoft_timeout = \"5ms\"\nladder = [ { stale = \"30s\" } ]",
    "scope = [\"tenant\", \"subject\"]\nfreshness = \"origin\"\nstale_while_revalidate = \"10s\"\nladder = [ { stale = \"30s\" } ]",
    "scope = [\"tenant\", \"subject\"]\nfreshness = \"origin\"\nignore_cookies = [\"*\"]\nladder = [ { alternate = \"spare\" }, { default = { content_type = \"text/plain\", body = \"default\" } } ]",
    // Within a tenant, where the dependency knows the person all the same.
    "scope = [\"tenant\"]\nfreshness = \"origin\"\nladder = [ { stale = \"30s\" } ]",
    "scope = [\"tenant\"]\ncoalesce = true\nladder = [ { stale = \"30s\" }, { alternate = \"spare\" } ]",
];

struct Draws(Mutex<Rng>);

impl Draws {
    fn below(&self, of: usize) -> usize {
        usize::try_from((self.0.lock().next_u64() >> 33) % of as u64).unwrap()
    }

    fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// How the dependency is at the moment.
#[derive(Clone, Copy)]
enum Mood {
    Well,
    Failing,
    Slow,
    Refusing,
    Broken,
}

/// Answers with the mark of whoever it is told asks, and with what makes caches think.
fn owned(seen: &Seen, mood: Mood, draw: u64) -> Reply {
    let said = |name| seen.header(name).unwrap_or_default();
    let user = USERS
        .iter()
        .find(|(tenant, user, _)| (*tenant, *user) == (said("x-tenant"), said("x-user")));
    let mark = user.map_or(b'?', |(_, _, mark)| *mark);
    match mood {
        Mood::Failing => return Reply::status(503).body([mark; LENGTH]),
        Mood::Refusing => {
            return Reply::status(if draw.is_multiple_of(2) { 403 } else { 404 }).body([mark; LENGTH]);
        }
        Mood::Broken => {
            return Reply::raw(
                "HTTP/1.1 200 OK\r\ncontent-length: 48\r\n\r\n",
                crate::kit::Then::Close,
            );
        }
        Mood::Well | Mood::Slow => {}
    }
    // One and the same for everybody: a validator of one user fits the data of another.
    let etag = "\"same\"";
    if draw.is_multiple_of(3) && seen.header("if-none-match").is_some() {
        return Reply::status(304).header("etag", etag);
    }
    let control = [
        "private, max-age=2",
        "max-age=2",
        "max-age=0",
        "no-cache",
        "max-age=1, stale-while-revalidate=20",
        "private",
    ];
    let control = control[usize::try_from(draw % control.len() as u64).unwrap()];
    let mut reply = Reply::ok([mark; LENGTH])
        .header("cache-control", control)
        .header("x-mark", std::str::from_utf8(&[mark]).unwrap());
    if draw % 4 < 2 {
        reply = reply.header("etag", etag);
    }
    if draw.is_multiple_of(5) {
        reply = reply.header("vary", "accept-language, x-user");
    }
    if draw.is_multiple_of(7) {
        reply = reply.header("set-cookie", "id=7");
    }
    if matches!(mood, Mood::Slow) {
        reply = reply.wait(Duration::from_millis(draw % 12));
    }
    reply
}

/// Says what is wrong with an answer for the one with this mark.
fn wrong(answer: &Answer, mark: u8) -> Option<String> {
    let others = |bytes: &[u8]| {
        bytes
            .iter()
            .any(|byte| USERS.iter().any(|(_, _, other)| other == byte && *byte != mark))
    };
    let is_marked =
        matches!(answer.status, 200 | 206) && answer.freshness() != "default" && !answer.body.is_empty();
    let named = answer
        .header("x-mark")
        .is_some_and(|said| said.as_bytes() != [mark]);
    // Answers of the dependency are marks and nothing else; the gateway's own are problems and the default.
    let foreign = is_marked && answer.body.iter().any(|byte| *byte != mark);
    let error = answer.header("content-type").is_none() && others(&answer.body);
    (foreign || named || error).then(|| format!("{answer:?}"))
}

/// Plays the history of a seed, and returns how many answers were copies.
async fn history(seed: u64) -> u64 {
    let draws = Arc::new(Draws(Mutex::new(Rng::new(seed))));
    let route = draws.of(&ROUTES);
    let mood = Arc::new(Mutex::new(Mood::Well));
    let count = Arc::new(AtomicU64::new(seed));
    let copies = Arc::new(AtomicU64::new(0));
    let script = {
        let (mood, count) = (Arc::clone(&mood), Arc::clone(&count));
        move |seen: &Seen| owned(seen, *mood.lock(), count.fetch_add(7, Ordering::Relaxed) / 3)
    };
    let origin = Origin::start(script.clone()).await;
    let spare = Origin::start(|seen| owned(seen, Mood::Well, 1)).await;
    let sso = Origin::start(authority).await;
    // Where the credentials end with the authority, only what it says tells the dependency who asks.
    let copy = [COPY.to_owned(), format!("consume = [\"authorization\"]\n{COPY}")];
    let route_and_writes = format!("other_methods = \"pass\"\n{route}");
    let mut text = crate::protect::contract(&origin, &sso, &copy[draws.below(2)], &route_and_writes);
    if route.contains("spare") {
        text.push_str(&format!(
            "\n[dependencies.spare]\nurls = [\"http://{}\"]\nbreaker = \"off\"\nlearned_limit = \"off\"\n",
            spare.address
        ));
    }
    let bench = Arc::new(Bench::start(&text).await);
    let mut clients = Vec::new();
    for (tenant, user, mark) in USERS {
        let (bench, draws, copies) = (Arc::clone(&bench), Arc::clone(&draws), Arc::clone(&copies));
        clients.push(tokio::spawn(async move {
            let token = format!("Bearer {tenant}/{user}");
            let mut client = Client::connect(bench.address()).await;
            for _ in 0..16 {
                let mut fields = vec![("authorization", token.as_str())];
                for (more, chance) in [
                    (("if-none-match", "\"same\""), 4),
                    (("range", "bytes=3-9"), 5),
                    (("cookie", "a=b"), 8),
                    (("cache-control", "no-cache"), 12),
                    (("cache-control", "max-stale=60"), 6),
                    (("x-user", "ben"), 3),
                    (("x_tenant", "u"), 3),
                    (("accept-language", "de"), 3),
                    (("connection", "x-user"), 5),
                ] {
                    if draws.below(chance) == 0 {
                        fields.push(more);
                    }
                }
                let method = if draws.below(20) == 0 {
                    "PUT"
                } else {
                    draws.of(&["GET", "GET", "GET", "HEAD"])
                };
                if method == "PUT" {
                    fields.push(("content-length", "0"));
                }
                let path = draws.of(&PATHS);
                let answer = client.request(method, path, &fields).await;
                if let Some(wrong) = wrong(&answer, mark) {
                    return Err(format!("{tenant}/{user} {method} {path} {fields:?}\n{wrong}"));
                }
                let is_hit = answer
                    .header("cache-status")
                    .is_some_and(|said| said.contains("; hit"));
                copies.fetch_add(
                    u64::from(is_hit || answer.freshness() == "stale"),
                    Ordering::Relaxed,
                );
                // What was cut ended its connection.
                if !answer.complete || answer.header("connection") == Some("close") {
                    client = Client::connect(bench.address()).await;
                }
                if draws.below(3) == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        }));
    }
    let stirring = tokio::spawn({
        let (draws, mood) = (Arc::clone(&draws), Arc::clone(&mood));
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(3)).await;
                *mood.lock() = match draws.below(12) {
                    0 => Mood::Refusing,
                    1 => Mood::Broken,
                    2 | 3 => Mood::Slow,
                    4..7 => Mood::Failing,
                    _ => Mood::Well,
                };
            }
        }
    });
    for client in clients {
        if let Err(wrong) = client.await.unwrap() {
            panic!("EVENKEEL_SEED={seed} {route}\n{wrong}");
        }
    }
    stirring.abort();
    // What is kept by now is each one's own too.
    *mood.lock() = Mood::Failing;
    for (tenant, user, mark) in USERS {
        let token = format!("Bearer {tenant}/{user}");
        for path in PATHS {
            let answer = bench.get_with(path, &[("authorization", &token)]).await;
            if let Some(wrong) = wrong(&answer, mark) {
                panic!("EVENKEEL_SEED={seed} {route}\nat the end {tenant}/{user} {path}\n{wrong}");
            }
        }
    }
    let app = bench.gateway.app();
    assert_eq!(app.buffered(), 0, "EVENKEEL_SEED={seed}");
    for name in ["d", "sso"] {
        let dependency = app.dependency(name).unwrap();
        let end = tokio::time::Instant::now() + crate::kit::PATIENCE;
        while dependency.status().in_use > 0 {
            assert!(
                tokio::time::Instant::now() < end,
                "EVENKEEL_SEED={seed}: a permit of {name} is not back"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    copies.load(Ordering::Relaxed)
}

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|word| word.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e52_no_user_is_ever_given_what_is_anothers_on_any_rung() {
    if let Some(seed) = given("EVENKEEL_SEED") {
        history(seed).await;
        return;
    }
    let mut rng = Rng::new(std::hash::RandomState::new().hash_one(0));
    let mut copies = 0;
    let count = given("EVENKEEL_PRIVACY").unwrap_or(18);
    for _ in 0..count {
        let seed = rng.next_u64();
        println!("EVENKEEL_SEED={seed}");
        copies += history(seed).await;
    }
    assert!(
        copies > count,
        "{copies} copies in {count} histories: they test nothing"
    );
}
