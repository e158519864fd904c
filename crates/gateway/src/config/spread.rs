//! Decides what a contract says about several addresses of one dependency: who is asked next, and who is left out.
//! It exists apart from the breaker, which is about all of them together.
//! It refuses a choice where there is nothing to choose.

use evenkeel_core::{EjectRules, Spread as Balance, codes};
use http::StatusCode;

use super::{
    keys, lints,
    reader::{Fields, shown},
};

/// How the addresses of a dependency share its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Who is asked next.
    pub balance: Balance,
    /// When an address is left out, and for how long; `None` for never.
    pub eject: Option<EjectRules>,
    /// The statuses that are failures of the address.
    pub failures: Vec<StatusCode>,
}

impl Spread {
    /// What says that this server, or what it stands on, is not there. A 500 is as often about what was asked for.
    pub const FAILURES: [u16; 3] = [502, 503, 504];
}

/// Reads `balance` and `eject` of a dependency with so many addresses.
pub(super) fn read(fields: &mut Fields<'_, '_>, addresses: usize) -> Spread {
    // The first is what a slip of the pen is told to write.
    let words =
        [Balance::PowerOfTwo, Balance::LeastLoaded, Balance::RoundRobin].map(|one| (one.as_str(), one));
    let balance = fields.word("balance", &words);
    if addresses == 1 && fields.has("balance") {
        fields.lint(
            codes::NO_EFFECT,
            "balance",
            "set beside one address",
            "only beside several `urls`: with one it has no effect",
            "add an address, or remove it",
        );
    }
    let mut failures = statuses(&Spread::FAILURES.map(u32::from));
    let eject = eject(fields, addresses, &mut failures);
    Spread {
        balance: balance.unwrap_or_default(),
        eject,
        failures,
    }
}

fn eject(
    fields: &mut Fields<'_, '_>,
    addresses: usize,
    failures: &mut Vec<StatusCode>,
) -> Option<EjectRules> {
    let default = EjectRules::DEFAULT;
    let Some(value) = fields.value("eject") else {
        return (addresses > 1).then_some(default);
    };
    if value.get_ref().as_str() == Some("off") {
        return None;
    }
    if value.get_ref().as_table().is_none() {
        fields.lint(
            lints::WRONG_TYPE,
            "eject",
            &shown(value),
            "\"off\", or a table of rules",
            "write `eject = { consecutive = 5 }`, say, or `eject = \"off\"`",
        );
        return None;
    }
    let place = fields.place_of("eject");
    let mut reader = fields.reader();
    let mut inner = reader.open(place, value, keys::EJECT)?;
    let first = inner.duration("for", "\"10s\"").unwrap_or(default.first);
    let rules = EjectRules {
        consecutive: inner
            .integer("consecutive", 1, 1000, "5")
            .unwrap_or(default.consecutive),
        first,
        longest: inner
            .duration("for_max", "\"5m\"")
            .unwrap_or_else(|| default.longest.max(first)),
        jitter_ppm: inner.share_ppm("jitter", "\"20%\"").unwrap_or(default.jitter_ppm),
        max_share_ppm: inner
            .share_ppm("max_share", "\"90%\"")
            .unwrap_or(default.max_share_ppm),
    };
    if let Some(said) = inner.integers("statuses", 500, 599, "[502, 503, 504]") {
        *failures = statuses(&said);
    }
    let mut found = evenkeel_core::Problems::default();
    rules.check("eject", &mut found);
    if !found.list().is_empty() {
        fields.absorb(found);
    }
    Some(rules)
}

fn statuses(numbers: &[u32]) -> Vec<StatusCode> {
    numbers
        .iter()
        .filter_map(|number| StatusCode::from_u16(u16::try_from(*number).ok()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn read(dependency: &str) -> Result<Spread, String> {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\n{dependency}\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
        );
        parse("contract.toml", &text)
            .map(|loaded| loaded.contract.dependencies[0].spread.clone())
            .map_err(|problems| problems.to_string())
    }

    const ONE: &str = "urls = [\"http://a:81\"]";
    const TWO: &str = "urls = [\"http://a:81\", \"http://b:81\"]";

    #[test]
    fn one_address_is_left_out_only_where_the_contract_says_so() {
        assert_eq!(read(ONE).unwrap().eject, None);
        let default = Some(EjectRules::DEFAULT);
        assert_eq!(read(&format!("{ONE}\neject = {{}}")).unwrap().eject, default);
        assert_eq!(read(TWO).unwrap().eject, default);
        assert_eq!(read(&format!("{TWO}\neject = \"off\"")).unwrap().eject, None);
        // A first time that is longer than the longest by default moves that up.
        let long = read(&format!("{TWO}\neject = {{ for = \"20m\" }}"))
            .unwrap()
            .eject
            .unwrap();
        assert_eq!((long.first, long.longest), (long.first, long.first));
    }

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (dependency, seen, allowed) in [
            ("urls = []".to_owned(), "urls: 0 addresses", "1 to 64"),
            (
                "urls = [\"http://a\", \"http://a:80\"]".to_owned(),
                "urls: \"http://a:80\" twice",
                "each address once",
            ),
            (
                format!("{ONE}\nbalance = \"round-robin\""),
                "balance: set beside one",
                "several `urls`",
            ),
            (
                format!("{TWO}\nbalance = \"random\""),
                "balance: \"random\"",
                "power-of-two, least-loaded",
            ),
            (format!("{TWO}\neject = 3"), "eject: 3", "\"off\", or a table"),
            (
                format!("{TWO}\neject = {{ times = 3 }}"),
                "eject.times: an unknown key",
                "consecutive, for",
            ),
            (
                format!("{TWO}\neject = {{ consecutive = 0 }}"),
                "eject.consecutive: 0",
                "1 to 1000",
            ),
            (
                format!("{TWO}\neject = {{ max_share = \"100%\" }}"),
                "eject.max_share",
                "1 to 999999",
            ),
            (
                format!("{TWO}\neject = {{ for = \"2h\" }}"),
                "eject.for",
                "1ms to 3600s",
            ),
            (
                format!("{TWO}\neject = {{ for = \"2s\", for_max = \"1s\" }}"),
                "eject.for_max",
                "2s to 3600s",
            ),
            (
                format!("{TWO}\neject = {{ statuses = [404] }}"),
                "eject.statuses",
                "500 to 599",
            ),
        ] {
            let shown = read(&dependency).unwrap_err();
            let seen = format!("]: dependencies.d.{seen}");
            assert!(shown.contains(&seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
        }
    }
}
