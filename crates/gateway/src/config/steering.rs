//! Decides the settings of steering: where what people decided is kept, who may change something, where numbers are read.
//! It exists apart from the rest of `[gateway]` because these concern operators and not traffic.
//! It refuses an administration port that others reach unless its token is somebody's choice.

use std::{net::SocketAddr, path::PathBuf};

use http::HeaderName;

use super::{lints, reader::Fields};

/// Settings of steering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steering {
    /// The directory of what outlives the process.
    pub state: Option<PathBuf>,
    /// The file with the token for changes; without one the gateway makes a token at each start.
    pub admin_token_file: Option<PathBuf>,
    /// Where metrics are read beside the administration port.
    pub metrics: Option<SocketAddr>,
    /// Every route only watches, unless it says otherwise itself.
    pub observe_only: bool,
}

pub(super) fn read(fields: &mut Fields<'_, '_>, admin: Option<SocketAddr>) -> Steering {
    let state = from_the_root(fields, "state", "\"/var/lib/evenkeel\"");
    let admin_token_file = from_the_root(fields, "admin_token_file", "\"/run/secrets/evenkeel-admin\"");
    if let Some(admin) = admin
        && !admin.ip().is_loopback()
        && admin_token_file.is_none()
        && !fields.has("admin_token_file")
    {
        fields.lint(
            lints::ADMIN_WITHOUT_TOKEN,
            "admin",
            &format!("\"{admin}\", which other machines reach, without `admin_token_file`"),
            "a loopback address, or a token that you have chosen",
            "add `admin_token_file = \"/run/secrets/evenkeel-admin\"`; for metrics alone set `metrics` and leave `admin` \
             on loopback",
        );
    }
    let metrics = super::gateway::address(fields, "metrics", "\"0.0.0.0:9182\"");
    Steering {
        state,
        admin_token_file,
        metrics,
        observe_only: fields.boolean("observe_only").unwrap_or_default(),
    }
}

/// Reads the field with the tags of a route's answers.
pub(super) fn tags(fields: &mut Fields<'_, '_>) -> Option<HeaderName> {
    let text = fields.text("tags", "\"surrogate-key\"")?;
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    if name.is_none() {
        fields.problem(
            "tags",
            &format!("{text:?}"),
            "the name of a field of answers",
            "write `tags = \"surrogate-key\"`, say",
        );
    }
    name
}

/// Reads a path from the root: what a path is relative to differs from one way of starting to the next.
fn from_the_root(fields: &mut Fields<'_, '_>, key: &'static str, example: &str) -> Option<PathBuf> {
    let text = fields.text(key, example)?;
    if text.starts_with('/') {
        return Some(text.into());
    }
    fields.problem(
        key,
        &format!("{text:?}"),
        "a path from the root",
        &format!("write `{key} = {example}`, say"),
    );
    None
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn shown(keys: &str) -> String {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n{keys}\n[dependencies.d]\nurls = [\"http://a\"]\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
        );
        parse("contract.toml", &text).map_or_else(|problems| problems.to_string(), |_| String::new())
    }

    #[test]
    fn an_administration_port_that_others_reach_needs_a_chosen_token() {
        let seen = shown("admin = \"0.0.0.0:9181\"");
        assert!(seen.contains("which other machines reach"), "{seen}");
        for fine in [
            "admin = \"0.0.0.0:9181\"\nadmin_token_file = \"/run/secrets/t\"",
            "admin = \"[::1]:9181\"",
            "metrics = \"0.0.0.0:9182\"",
        ] {
            assert_eq!(shown(fine), "", "{fine}");
        }
    }

    #[test]
    fn paths_are_from_the_root_and_addresses_have_a_port() {
        for (key, allowed) in [
            ("state = \"state\"", "a path from the root"),
            ("admin_token_file = \"\"", "a path from the root"),
            ("metrics = \"9182\"", "an IP address and a port"),
        ] {
            let seen = shown(key);
            assert!(seen.contains(allowed), "{key}: {seen}");
        }
    }
}
