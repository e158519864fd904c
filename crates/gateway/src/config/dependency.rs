//! Decides what a contract says about the things that are called: addresses, capacities, when to stop asking.
//! It exists so that every default of a dependency stands here, next to the design's table of starting values.
//! It refuses addresses that it could not call, rather than finding out in an incident.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use evenkeel_core::{
    BreakerRules, DependencyDraft, LimitRules, OpenFor, Over, QueueRules, RampRules, Ratio, RetryRules,
    SlowRatio, codes,
};
use http::{HeaderName, Uri};

use super::{
    across::Asker,
    classify::{self, Classify},
    hints, keys, lints,
    probe::{self, HealthProbe},
    ramp,
    reader::{Fields, listed},
    retry,
    rewrite::{self, Rewrite},
    room,
    spread::{self, Spread},
    units::show_duration,
};

/// A named capacity that several dependencies draw on.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// The most attempts in flight over everything that uses it.
    pub concurrency: u32,
}

/// Something that is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Where it is: one address at least.
    pub upstreams: Vec<Upstream>,
    /// How its addresses share the attempts.
    pub spread: Spread,
    /// The resources that each attempt draws on.
    pub uses: Vec<String>,
    /// The longest span of one attempt.
    pub timeout: Duration,
    /// The most attempts in flight.
    pub concurrency: Option<u32>,
    /// When to stop asking.
    pub breaker: Breaker,
    /// How it is probed while nobody asks it; `None` where only requests do.
    pub probe: Option<HealthProbe>,
    /// How traffic comes back after the breaker has closed; `None` for all at once.
    pub ramp: Option<RampRules>,
    /// How to learn what it bears; `None` where only `concurrency` limits it.
    pub learned_limit: Option<LimitRules>,
    /// Whether a GET or HEAD is sent once more after a failure; `None` for never.
    pub retry: Option<RetryRules>,
    /// How many requests may wait for a permit, and how long; `None` for none.
    pub queue: Option<QueueRules>,
    /// The most attempts that ran into their limit and may still be worked on.
    pub abandoned: Option<u32>,
    /// Whether a read is sent once more whose idle connection ends before any answer.
    pub resend: bool,
    /// What its answers mean, where that differs from the usual.
    pub classify: Classify,
    /// The fields in which it is told how long it may take.
    pub deadline_to: Vec<HeaderName>,
    /// What is changed of its messages.
    pub rewrite: Rewrite,
}

/// The address of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// A name or an IP address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Upstream {
    /// Returns how `Host` names it: without the default port.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == 80 {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// Tells whether calling it would reach a listener at `listen` on this machine, as far as addresses tell.
    pub(super) fn is_at(&self, listen: SocketAddr) -> bool {
        let own = listen.ip();
        let reaches = |ip: IpAddr| {
            ip == own
                || (ip.is_unspecified() || ip.is_loopback()) && (own.is_unspecified() || ip.is_unspecified())
        };
        listen.port() != 0
            && self.port == listen.port()
            && self.host.parse().map_or_else(
                |_| self.host == "localhost" && (own.is_loopback() || own.is_unspecified()),
                reaches,
            )
    }
}

/// Whether a dependency has a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// It is always asked.
    Off,
    /// It is not asked while these rules say so.
    On(BreakerRules),
}

impl Dependency {
    /// Long enough for a slow page of a database, short enough to leave time for the ladder.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// The most addresses: what one word holds a bit for each of.
    pub const ADDRESSES_MAX: usize = 64;
    /// Trips after this many failures in a row.
    pub const CONSECUTIVE: u32 = 5;
    /// Trips at this share of failures,
    pub const FAILURE_RATIO_PPM: u32 = 500_000;
    /// within this time,
    pub const WINDOW: Duration = Duration::from_secs(10);
    /// of at least this many calls.
    pub const MIN_CALLS: u32 = 20;
    /// Trips at this share of slow calls, where it is said what is slow.
    pub const SLOW_RATIO_PPM: u32 = 500_000;
}

pub(super) fn read_resource(name: String, mut fields: Fields<'_, '_>) -> Option<Resource> {
    fields.require("concurrency", "100");
    let concurrency = fields.integer("concurrency", 1, 1_000_000, "100")?;
    Some(Resource { name, concurrency })
}

/// Reads a dependency; `pressed` is the route with the shortest deadline of those that ask it.
pub(super) fn read(
    name: String,
    resources: &[String],
    pressed: Option<&Asker>,
    mut fields: Fields<'_, '_>,
) -> Option<Dependency> {
    let upstreams = upstreams(&mut fields);
    let spread = spread::read(&mut fields, upstreams.as_ref().map_or(0, Vec::len));
    let rewrite = rewrite::read(&mut fields);
    let uses = fields.texts("uses", "[\"catalog-db\"]").unwrap_or_default();
    for (index, used) in uses.iter().enumerate() {
        if !resources.contains(used) {
            let known: Vec<&str> = resources.iter().map(String::as_str).collect();
            let allowed = if known.is_empty() {
                "names of resources; the contract has none".to_owned()
            } else {
                listed(&known)
            };
            fields.lint(
                lints::UNKNOWN_NAME,
                "uses",
                &format!("\"{used}\""),
                &allowed,
                &format!("add `[resources.{used}]`, or correct the name"),
            );
        }
        if uses.iter().take(index).any(|earlier| earlier == used) {
            fields.lint(
                lints::LISTED_TWICE,
                "uses",
                &format!("\"{used}\" twice"),
                "each resource once",
                "remove one",
            );
        }
    }
    let said = fields.duration("timeout", "\"1s\"");
    // A hang is blamed on the dependency only where its timeout ends the wait, not the caller's deadline.
    let timeout = said.unwrap_or_else(|| {
        pressed.map_or(Dependency::TIMEOUT, |route| {
            Dependency::TIMEOUT.min(route.deadline)
        })
    });
    let concurrency = fields.integer("concurrency", 1, 1_000_000, "64");
    let breaker = breaker(&mut fields);
    if let (Some(said), Some(route), Breaker::On(_)) = (said, pressed, &breaker)
        && said > route.deadline
    {
        let shown = show_duration(route.deadline);
        fields.lint(
lints::TIMEOUT_PAST_DEADLINE,
            "timeout",
            &format!(
                "\"{}\", longer than the deadline of {} ({shown})",
                show_duration(said),
                route.label()
            ),
            "at most the shortest deadline of its routes: a hang that a deadline ends is never blamed, so it opens no breaker",
            &format!("write `timeout = \"{shown}\"`, or raise that `deadline`"),
        );
    }
    let is_broken_off = matches!(breaker, Breaker::Off);
    let probe = probe::read(&mut fields, is_broken_off);
    let ramp = ramp::read_ramp(&mut fields, is_broken_off);
    let learned_limit = ramp::read_learned_limit(&mut fields);
    let retry = retry::read(&mut fields, pressed, timeout);
    let abandoned = fields.integer("abandoned", 1, 1_000_000, "50");
    let is_limited = concurrency.is_some() || learned_limit.is_some() || !uses.is_empty();
    let queue = room::read_queue(&mut fields, pressed, is_limited);
    let classify = classify::read(&mut fields);
    let deadline_to = hints::names(&mut fields, "deadline_to");
    let resend = fields.boolean("resend").unwrap_or(true);
    let draft = DependencyDraft {
        name: name.clone(),
        timeout: Some(timeout),
        concurrency,
        breaker: match &breaker {
            Breaker::Off => None,
            Breaker::On(rules) => Some(*rules),
        },
        ramp: ramp.clone(),
        learn: learned_limit,
        retry,
        queue,
        abandoned,
        rows: classify.rows.clone(),
    };
    if let Err(found) = draft.check() {
        fields.absorb(found);
    }
    Some(Dependency {
        name,
        upstreams: upstreams?,
        spread,
        uses,
        timeout,
        concurrency,
        breaker,
        probe,
        ramp,
        learned_limit,
        retry,
        queue,
        abandoned,
        resend,
        classify,
        deadline_to,
        rewrite,
    })
}

/// Reads the addresses, each once; `None` where one of them cannot be read.
fn upstreams(fields: &mut Fields<'_, '_>) -> Option<Vec<Upstream>> {
    const EXAMPLE: &str = "[\"http://127.0.0.1:8000\"]";
    fields.require("urls", EXAMPLE);
    let urls = fields.texts("urls", EXAMPLE)?;
    if urls.is_empty() || urls.len() > Dependency::ADDRESSES_MAX {
        fields.problem(
            "urls",
            &format!("{} addresses", urls.len()),
            &format!("1 to {} addresses", Dependency::ADDRESSES_MAX),
            "name one, or that of a load balancer in front of more",
        );
        return None;
    }
    let mut read = Vec::new();
    for url in &urls {
        match address(url) {
            Ok(upstream) if read.contains(&upstream) => {
                fields.lint(
                    lints::LISTED_TWICE,
                    "urls",
                    &format!("\"{url}\" twice"),
                    "each address once",
                    "remove one",
                );
            }
            Ok(upstream) => read.push(upstream),
            Err(why) => fields.problem(
                "urls",
                &format!("\"{url}\": {why}"),
                "http://host:port, without a path",
                &format!("write `urls = {EXAMPLE}`, say"),
            ),
        }
    }
    (read.len() == urls.len()).then_some(read)
}

fn address(url: &str) -> Result<Upstream, &'static str> {
    let uri: Uri = url.parse().map_err(|_| "it is not a URL")?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err("TLS to dependencies is not built yet"),
        Some(_) | None => return Err("it does not start with http://"),
    }
    let authority = uri.authority().ok_or("it has no host")?;
    if authority.as_str().contains('@') {
        return Err("it holds a user name");
    }
    if uri.path() != "/" || uri.query().is_some() || url.contains('#') {
        return Err("it has a path, query or fragment");
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = match (
        authority.port_u16(),
        authority.as_str().len() > authority.host().len(),
    ) {
        (Some(0), _) | (None, true) => return Err("its port is not one of 1 to 65535"),
        (Some(port), _) => port,
        (None, false) => 80,
    };
    Ok(Upstream {
        host: host.to_owned(),
        port,
    })
}

fn breaker(fields: &mut Fields<'_, '_>) -> Breaker {
    let default = BreakerRules {
        consecutive: Some(Dependency::CONSECUTIVE),
        ratio: Some(Ratio {
            failures_ppm: Dependency::FAILURE_RATIO_PPM,
            window: Over::Time(Dependency::WINDOW),
            min_calls: Dependency::MIN_CALLS,
        }),
        ..BreakerRules::NONE
    };
    let Some(value) = fields.value("breaker") else {
        return Breaker::On(default);
    };
    if value.get_ref().as_str() == Some("off") {
        return Breaker::Off;
    }
    if value.get_ref().as_table().is_none() {
        fields.lint(
            lints::WRONG_TYPE,
            "breaker",
            &super::reader::shown(value),
            "\"off\", or a table of rules",
            "write `breaker = { consecutive = 5 }`, say, or `breaker = \"off\"`",
        );
        return Breaker::On(default);
    }
    let place = fields.place_of("breaker");
    let mut reader = fields.reader();
    let Some(rules) = reader.open(place, value, keys::BREAKER) else {
        return Breaker::On(default);
    };
    Breaker::On(rules_of(rules))
}

/// Reads the rules; ranges are the engine's to check.
fn rules_of(mut fields: Fields<'_, '_>) -> BreakerRules {
    const MAX: u32 = 1_000_000;
    let consecutive = fields
        .integer("consecutive", 1, MAX, "5")
        .unwrap_or(Dependency::CONSECUTIVE);
    let ratio = Ratio {
        failures_ppm: fields
            .share_ppm("failure_ratio", "\"50%\"")
            .unwrap_or(Dependency::FAILURE_RATIO_PPM),
        window: window(&mut fields),
        min_calls: fields
            .integer("min_calls", 1, MAX, "20")
            .unwrap_or(Dependency::MIN_CALLS),
    };
    let slow = slow(&mut fields, ratio);
    let first = fields
        .duration("open_for", "\"500ms\"")
        .unwrap_or(BreakerRules::OPEN_FOR_FIRST);
    let longest = fields
        .duration("open_for_max", "\"2s\"")
        .unwrap_or(BreakerRules::OPEN_FOR_LONGEST);
    let jitter_ppm = fields
        .share_ppm("jitter", "\"20%\"")
        .unwrap_or(BreakerRules::JITTER_PPM);
    BreakerRules {
        consecutive: Some(consecutive),
        ratio: Some(ratio),
        slow,
        open_for: OpenFor::Timed {
            first,
            longest,
            jitter_ppm,
        },
        probes: fields
            .integer("probes", 1, 1000, "1")
            .unwrap_or(BreakerRules::NONE.probes),
        close_after: fields
            .integer("close_after", 1, 1000, "1")
            .unwrap_or(BreakerRules::NONE.close_after),
        lease: fields.duration("lease", "\"1s\""),
    }
}

/// Reads the calls of which both shares are taken: those of some time, or the last so many.
fn window(fields: &mut Fields<'_, '_>) -> Over {
    let span = fields.duration("window", "\"10s\"");
    let calls = fields.integer("window_calls", 1, 100_000, "100");
    if let (Some(span), Some(_)) = (span, calls) {
        fields.lint(
            codes::NO_EFFECT,
            "window_calls",
            &format!("set beside `window` ({})", show_duration(span)),
            "a window of time or one of calls",
            "remove one of them",
        );
    }
    calls.map_or_else(|| Over::Time(span.unwrap_or(Dependency::WINDOW)), Over::Calls)
}

/// Reads what is slow, and how much of it is too much. Calls are counted like failures.
fn slow(fields: &mut Fields<'_, '_>, ratio: Ratio) -> Option<SlowRatio> {
    let after = fields.duration("slow_after", "\"500ms\"");
    let share = fields.share_ppm("slow_ratio", "\"50%\"");
    if fields.has("slow_ratio") && !fields.has("slow_after") {
        fields.lint(
            codes::NO_EFFECT,
            "slow_ratio",
            "set without `slow_after`",
            "a share of calls that take longer than `slow_after`",
            "add `slow_after = \"500ms\"`, say, or remove it",
        );
    }
    Some(SlowRatio {
        after: after?,
        slow_ppm: share.unwrap_or(Dependency::SLOW_RATIO_PPM),
        window: ratio.window,
        min_calls: ratio.min_calls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_seen_to_be_its_own_upstream_by_whatever_address() {
        let is_at = |host: &str, listen: &str| {
            let host = host.to_owned();
            Upstream { host, port: 80 }.is_at(listen.parse().unwrap())
        };
        for (host, listen) in [
            ("127.0.0.1", "127.0.0.1:80"),
            ("127.0.0.1", "0.0.0.0:80"),
            ("127.0.0.2", "0.0.0.0:80"),
            ("0.0.0.0", "127.0.0.1:80"),
            ("::1", "[::]:80"),
            ("localhost", "127.0.0.1:80"),
            ("10.0.0.5", "10.0.0.5:80"),
        ] {
            assert!(is_at(host, listen), "{host} {listen}");
        }
        for (host, listen) in [
            ("127.0.0.1", "127.0.0.1:81"),
            ("127.0.0.1", "10.0.0.5:80"),
            ("10.0.0.6", "0.0.0.0:80"),
            ("db.internal", "0.0.0.0:80"),
            ("127.0.0.1", "127.0.0.1:0"),
        ] {
            assert!(!is_at(host, listen), "{host} {listen}");
        }
    }

    #[test]
    fn an_address_is_scheme_host_and_port_and_nothing_else() {
        let upstream = |host: &str, port| {
            Ok(Upstream {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(address("http://10.0.0.5:8000"), upstream("10.0.0.5", 8000));
        assert_eq!(address("http://db.internal"), upstream("db.internal", 80));
        assert_eq!(address("http://[::1]:81/"), upstream("::1", 81));
        for url in [
            "",
            "db:80",
            "https://db",
            "ftp://db",
            "http://db/path",
            "http://db/?q",
            "http://user@db",
            "http://db:0",
            "http://db:70000",
            "http://db:",
        ] {
            assert!(address(url).is_err(), "{url}");
        }
    }
}
