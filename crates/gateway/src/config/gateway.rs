//! Decides the settings of the gateway itself: where it listens, what it may hold in memory, how it ends.
//! It exists so that these numbers have one place, with their ranges and the reasons for their defaults.
//! It refuses an administration port on the same address as the traffic.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{
    hints::{self, Hints},
    identity::{self, Identity},
    lints,
    network::{self, Network},
    reader::Fields,
    steering::{self, Steering},
};

/// Settings of the gateway itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where metrics and health are read.
    pub admin: SocketAddr,
    /// The most bytes of snapshots.
    pub memory: usize,
    /// The most that one scope may take of the memory of routes that cache, in millionths.
    pub scope_share_ppm: u32,
    /// The most bytes of bodies held back at once until they are complete.
    pub buffers: usize,
    /// Worker threads; `None` means one per available core.
    pub workers: Option<usize>,
    /// The longest that calls in flight may take after a request to stop.
    pub drain: Duration,
    /// Where a line is written about each request.
    pub access_log: AccessLog,
    /// The proxies whose word about their clients counts.
    pub trusted_peers: Vec<Network>,
    /// What concerns operators.
    pub steering: Steering,
    /// The fields by which these proxies say whose data a request is about.
    pub identity_from_peers: Identity,
    /// What else is read of requests.
    pub hints: Hints,
    /// A change of its files is followed without being told.
    pub watch: bool,
}

/// Where a line is written about each request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    #[default]
    Off,
    /// To standard output.
    Stdout,
    /// At the end of this file.
    File(PathBuf),
}

impl Gateway {
    /// Loopback only: metrics and health are nobody else's business unless somebody says so.
    pub const ADMIN: &str = "127.0.0.1:9181";
    /// Room for some hundred thousand small answers.
    pub const MEMORY: usize = 256 << 20;
    /// No tenant can push out all others, and one that is alone still has room.
    pub const SCOPE_SHARE_PPM: u32 = 500_000;
    /// Room for 256 bodies of the default largest size.
    pub const BUFFERS: usize = 256 << 20;
    /// Three default deadlines: enough for what runs, short enough for a rolling restart.
    pub const DRAIN: Duration = Duration::from_secs(10);
    /// A contract changes when somebody says so, not whenever an editor saves.
    pub const WATCH: bool = false;
}

/// The most bytes for one of the two memory bounds: 1 TiB.
const BYTES_MAX: u64 = 1 << 40;

pub(super) fn read(mut fields: Fields<'_, '_>) -> Option<Gateway> {
    fields.require("listen", "\"127.0.0.1:8080\"");
    let listen = address(&mut fields, "listen", "\"127.0.0.1:8080\"");
    let admin = address(&mut fields, "admin", "\"127.0.0.1:9181\"").or_else(|| Gateway::ADMIN.parse().ok());
    if let (Some(listen), Some(admin)) = (listen, admin)
        && listen == admin
        && listen.port() != 0
    {
        fields.lint(
            lints::ADDRESS_TWICE,
            "admin",
            &format!("\"{admin}\", where traffic is received too"),
            "an address of its own",
            "choose another port",
        );
    }
    let memory = fields.size("memory", 1 << 20, BYTES_MAX, "\"256MiB\"");
    let scope_share = fields.share_ppm("scope_share", "\"50%\"");
    if scope_share == Some(0) {
        fields.problem(
            "scope_share",
            "nothing",
            "more than 0%",
            "raise it: no scope could keep anything",
        );
    }
    let buffers = fields.size("buffers", 64 << 10, BYTES_MAX, "\"256MiB\"");
    let workers = fields.integer("workers", 1, 1024, "2");
    let drain = fields.duration("drain", "\"10s\"");
    if let Some(drain) = drain
        && drain > Duration::from_secs(3600)
    {
        fields.problem(
            "drain",
            &super::units::show_duration(drain),
            "1ms to 1h",
            "lower it to 1h",
        );
    }
    let access_log = access_log(&mut fields);
    let steering = steering::read(&mut fields, admin);
    let watch = fields.boolean("watch").unwrap_or(Gateway::WATCH);
    let bytes = |given: Option<u64>, default| {
        given
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(default)
    };
    let trusted_peers = network::read(&mut fields, "trusted_peers");
    let identity_from_peers = identity::read(&mut fields, "identity_from_peers");
    if trusted_peers.is_empty() && !identity_from_peers.is_empty() {
        fields.lint(
            evenkeel_core::codes::NO_EFFECT,
            "identity_from_peers",
            "set without `trusted_peers`",
            "only beside the list of those who may say it: nobody else is believed",
            "add `trusted_peers`, or remove it",
        );
    }
    let hints = hints::read(&mut fields, !trusted_peers.is_empty());
    Some(Gateway {
        listen: listen?,
        admin: admin?,
        memory: bytes(memory, Gateway::MEMORY),
        scope_share_ppm: scope_share.unwrap_or(Gateway::SCOPE_SHARE_PPM),
        buffers: bytes(buffers, Gateway::BUFFERS),
        workers: workers.and_then(|workers| usize::try_from(workers).ok()),
        drain: drain.unwrap_or(Gateway::DRAIN),
        access_log,
        steering,
        trusted_peers,
        identity_from_peers,
        hints,
        watch,
    })
}

fn access_log(fields: &mut Fields<'_, '_>) -> AccessLog {
    const EXAMPLE: &str = "\"/var/log/evenkeel/access.log\"";
    match fields.text("access_log", EXAMPLE).as_deref() {
        None | Some("off") => AccessLog::Off,
        Some("stdout") => AccessLog::Stdout,
        Some(path) if path.starts_with('/') => AccessLog::File(path.into()),
        Some(other) => {
            fields.problem(
                "access_log",
                &format!("{other:?}"),
                "\"off\", \"stdout\", or the path of a file from the root",
                &format!("write `access_log = {EXAMPLE}`, say"),
            );
            AccessLog::Off
        }
    }
}

pub(super) fn address(fields: &mut Fields<'_, '_>, key: &'static str, example: &str) -> Option<SocketAddr> {
    let text = fields.text(key, example)?;
    let address = text.parse().ok();
    if address.is_none() {
        fields.problem(
            key,
            &format!("{text:?}"),
            "an IP address and a port",
            &format!("write `{key} = {example}`, say"),
        );
    }
    address
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (key, seen, allowed) in [
            (
                "access_log = \"access.log\"",
                "access_log: \"access.log\"",
                "from the root",
            ),
            ("access_log = \"\"", "access_log: \"\"", "\"stdout\""),
            ("access_log = true", "access_log", "text"),
            (
                "trusted_peers = [\"10.0.0.1/8\"]",
                "trusted_peers: \"10.0.0.1/8\": it has bits behind the network",
                "such as 10.0.0.0/8",
            ),
            (
                "trusted_peers = [\"proxy\"]",
                "it is not an IP address",
                "an IP address",
            ),
            ("trusted_peers = \"::1\"", "trusted_peers", "a list of texts"),
            (
                "trusted_peers = [\"::1\", \"::1/128\"]",
                "\"::1/128\" twice",
                "each once",
            ),
        ] {
            let text = format!(
                "[gateway]\nlisten = \"127.0.0.1:0\"\n{key}\n[dependencies.d]\nurls = [\"http://a\"]\n\
                 [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
            );
            let shown = parse("contract.toml", &text)
                .map_or_else(|problems| problems.to_string(), |_| key.to_owned());
            assert!(shown.contains(seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
            assert!(shown.contains("= mend: "), "{shown}");
        }
    }
}
