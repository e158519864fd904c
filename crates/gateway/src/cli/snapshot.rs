//! Decides the verbs `snapshot ls`, `show` and `seed`.
//! It exists so that what an outage would find can be looked at, and filled, before there is one.
//! It refuses to fetch faster than it was told: filling must not be the outage.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use bytes::Bytes;
use clap::Subcommand;
use serde_json::{Value, json};

use super::{
    FAILED, UNUSABLE, complain,
    hold::told,
    print,
    remote::{Failure, Reach, author, fetch},
    screen::span,
};
use crate::admin::encoded;

/// The most bytes of an answer that is put in.
const SEED_MAX: u64 = 16 << 20;
/// The most URLs of one list.
const URLS_MAX: usize = 1_000_000;

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// List what is kept, with age, limit, and why it would not stand in
    Ls {
        /// Only of this route
        route: Option<String>,
        /// Only what begins so
        #[arg(long, value_name = "URI")]
        prefix: Option<String>,
        /// Only of this tenant, subject or whatever the route names in `scope`
        #[arg(long, value_name = "PART")]
        scope: Option<String>,
        /// The most to list, up to 1000
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Go on behind the place that the page before has named
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Show every copy of one URI with its fields
    Show {
        /// The URI, or a path for every host
        uri: String,
        /// Only of this route
        #[arg(long)]
        route: Option<String>,
        /// Only of this tenant, subject or whatever the route names in `scope`
        #[arg(long, value_name = "PART")]
        scope: Option<String>,
        /// Write the body of the first copy, or of the one with this number, and nothing else
        #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "1")]
        body: Option<usize>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Put an answer in with the time at which it was observed, or have a list of URLs fetched
    #[command(after_help = "\
Examples:
  evenkeel snapshot seed http://shop.example/products/42 --from page.json \\
      --content-type application/json --observed 2026-11-29T03:02:07Z
  evenkeel snapshot seed --urls most-visited.txt --rate 20

Without --observed the copy is held and never given: nobody knows how old it is. With --urls the running gateway is asked for
each URL as a client would, one after the other.
Exit status: 0 all of it is in, 1 some of it is not, 2 nobody could be asked.")]
    Seed {
        /// The URI, with its host
        #[arg(required_unless_present = "urls", conflicts_with = "urls")]
        uri: Option<String>,
        /// The file with the body; - for standard input
        #[arg(long, value_name = "FILE", required_unless_present = "urls")]
        from: Option<PathBuf>,
        /// When it was observed: 2026-11-29T03:02:07Z, or @ and seconds of Unix time
        #[arg(long, value_name = "TIME")]
        observed: Option<String>,
        /// Its content type
        #[arg(long, value_name = "TYPE", default_value = "application/octet-stream")]
        content_type: String,
        /// Its Cache-Control, where the route goes by that
        #[arg(long, value_name = "VALUE")]
        cache_control: Option<String>,
        /// A file with one URL in each line
        #[arg(long, value_name = "FILE")]
        urls: Option<PathBuf>,
        /// The most URLs that are fetched in a second
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        rate: u32,
        #[command(flatten)]
        reach: Reach,
    },
}

impl Verb {
    /// Does it.
    pub(super) fn run(self) -> ExitCode {
        match self {
            Self::Ls {
                route,
                prefix,
                scope,
                limit,
                after,
                reach,
            } => {
                let limit = Some(limit.to_string());
                let query = query(&[
                    ("route", &route),
                    ("prefix", &prefix),
                    ("scope", &scope),
                    ("limit", &limit),
                    ("after", &after),
                ]);
                told(
                    &reach,
                    reach.get_with_token(&format!("/snapshots?{query}")),
                    listed,
                )
            }
            Self::Show {
                uri,
                route,
                scope,
                body,
                reach,
            } => {
                let (uri, number) = (Some(uri), body.map(|number| number.to_string()));
                let query = query(&[
                    ("uri", &uri),
                    ("route", &route),
                    ("scope", &scope),
                    ("body", &number),
                ]);
                let path = format!("/snapshot?{query}");
                if body.is_none() {
                    return told(&reach, reach.get_with_token(&path), detailed);
                }
                match reach.get_bytes(&path) {
                    Ok(body) => {
                        // A reader who has left is not an error.
                        drop(io::stdout().write_all(&body));
                        ExitCode::SUCCESS
                    }
                    Err(failure) => failure.tell(reach.json),
                }
            }
            Self::Seed {
                uri,
                from,
                observed,
                content_type,
                cache_control,
                urls,
                rate,
                reach,
            } => match (urls, uri, from) {
                (Some(urls), _, _) => fill(&reach, &urls, rate),
                (None, Some(uri), Some(from)) => {
                    let body = match read(&from) {
                        Ok(body) => body,
                        Err(error) => {
                            complain(&format!("cannot read {}: {error}", from.display()));
                            return ExitCode::from(UNUSABLE);
                        }
                    };
                    let (uri, by) = (Some(uri), Some(author()));
                    let query = query(&[
                        ("uri", &uri),
                        ("by", &by),
                        ("observed", &observed),
                        ("content_type", &Some(content_type)),
                        ("cache_control", &cache_control),
                    ]);
                    told(&reach, reach.send(&format!("/seed?{query}"), body), |done| {
                        let why = done["not_servable"].as_str();
                        let held = why
                            .map_or_else(String::new, |why| format!("; it is held and never given: {why}"));
                        let route = done["route"].as_str().unwrap_or_default();
                        format!("seeded: route {route}, {} bytes{held}", done["body_bytes"])
                    })
                }
                (None, _, _) => ExitCode::from(UNUSABLE),
            },
        }
    }
}

fn query(parameters: &[(&str, &Option<String>)]) -> String {
    let given = parameters
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let pairs: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    pairs.join("&")
}

fn read(from: &Path) -> io::Result<Bytes> {
    let mut body = Vec::new();
    if from == Path::new("-") {
        io::stdin().take(SEED_MAX + 1).read_to_end(&mut body)?;
    } else {
        fs::File::open(from)?.take(SEED_MAX + 1).read_to_end(&mut body)?;
    }
    if body.len() as u64 > SEED_MAX {
        return Err(io::Error::other(format!("more than {SEED_MAX} bytes")));
    }
    Ok(Bytes::from(body))
}

fn listed(list: &Value) -> String {
    let copies = list["copies"].as_array().map(Vec::as_slice).unwrap_or_default();
    if copies.is_empty() {
        return "nothing is kept".to_owned();
    }
    let mut lines: Vec<String> = copies.iter().map(line).collect();
    if let Some(next) = list["next"].as_str() {
        lines.push(format!("more: --after {next}"));
    }
    lines.join("\n")
}

fn line(copy: &Value) -> String {
    let text = |key: &str| copy[key].as_str().unwrap_or_default();
    let seconds = |key: &str| copy[key].as_u64().map_or_else(|| "-".to_owned(), span);
    let scope: Vec<&str> = copy["scope"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let whose = if scope.is_empty() {
        String::new()
    } else {
        format!("  [{}]", scope.join(", "))
    };
    let stands = copy["not_servable"].as_str().map_or_else(
        || "stands in".to_owned(),
        |why| format!("would not stand in: {why}"),
    );
    let purged = if copy["expired"] == true {
        "  purged softly"
    } else {
        ""
    };
    format!(
        "{:<12} {} {}  age {} of {}  {stands}  {} bytes{whose}{purged}",
        text("route"),
        copy["status"],
        text("uri"),
        seconds("age_seconds"),
        seconds("limit_seconds"),
        copy["body_bytes"],
    )
}

fn detailed(shown: &Value) -> String {
    let copies = shown["copies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines = Vec::new();
    for (number, copy) in copies.iter().enumerate() {
        lines.push(format!("{}. {}", number + 1, line(copy)));
        lines.push(format!(
            "   observed: {}",
            copy["observed"].as_str().unwrap_or("unknown")
        ));
        for field in copy["headers"].as_array().into_iter().flatten() {
            let text = |at: usize| field[at].as_str().unwrap_or_default();
            lines.push(format!("   {}: {:?}", text(0), text(1)));
        }
    }
    lines.join("\n")
}

/// Has each URL of a list fetched by the running gateway, as a client would.
fn fill(reach: &Reach, list: &Path, rate: u32) -> ExitCode {
    let text = match fs::read_to_string(list) {
        Ok(text) => text,
        Err(error) => {
            complain(&format!(
                "cannot read {}: {error}; name a text with one URL in each line",
                list.display()
            ));
            return ExitCode::from(UNUSABLE);
        }
    };
    let urls: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if urls.len() > URLS_MAX {
        complain(&format!(
            "{} URLs; at most {URLS_MAX} are taken at once",
            urls.len()
        ));
        return ExitCode::from(UNUSABLE);
    }
    let listen = match reach
        .get("/status")
        .map(|status| status["listen"].as_str().and_then(|text| text.parse().ok()))
    {
        Ok(Some(address)) => reachable(address, reach),
        Ok(None) => {
            complain("the gateway does not say where it listens: it is no gateway of this version");
            return ExitCode::from(UNUSABLE);
        }
        Err(failure) => return failure.tell(reach.json),
    };
    let (mut fetched, mut failed) = (0_u64, Vec::new());
    let every = Duration::from_secs(1) / rate;
    for (number, url) in urls.iter().enumerate() {
        match fetch(listen, url) {
            Ok(status) if status < 400 => fetched += 1,
            Ok(status) => failed.push(format!("{url}: status {status}")),
            Err(Failure::Unasked(why)) => failed.push(format!("{url}: {why}")),
            Err(Failure::Refused(_)) => failed.push(format!("{url}: refused")),
        }
        if !reach.json && ((number + 1) % 100 == 0 || number + 1 == urls.len()) {
            complain(&format!(
                "{} of {}: {fetched} fetched, {} failed",
                number + 1,
                urls.len(),
                failed.len()
            ));
        }
        thread::sleep(every);
    }
    if reach.json {
        print(&json!({ "urls": urls.len(), "fetched": fetched, "failed": failed }).to_string());
    } else {
        failed.iter().take(20).for_each(|why| complain(why));
        print(&format!("{fetched} of {} fetched", urls.len()));
    }
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}

/// Returns where a gateway that listens everywhere is reached: where its administration port is.
fn reachable(listen: SocketAddr, reach: &Reach) -> SocketAddr {
    let admin = reach.address().ok().map(|address| address.ip());
    let local = match listen.ip() {
        IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    };
    if listen.ip().is_unspecified() {
        SocketAddr::new(admin.unwrap_or(local), listen.port())
    } else {
        listen
    }
}
