//! Every code of a problem has a page, and every page an example that has this problem and one that has none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use evenkeel::Engine;
use evenkeel_gateway::{
    config::{self, Diagnostics, NotLoaded, lints},
    proxy::{App, Limits},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Marks the line of a bad example at which the problem is told.
const MARK: &str = "# <- here";

/// Returns the example under a heading, made complete at its end, where no line moves.
fn example(page: &str, heading: &str) -> String {
    let section = page.split(&format!("## {heading}\n")).nth(1).unwrap();
    let block = section.split("```toml\n").nth(1).unwrap();
    let mut text = block.split("```").next().unwrap().to_owned();
    let includes = text.contains("include =");
    if !text.contains("[gateway]") {
        text.push_str("\n[gateway]\nlisten = \"127.0.0.1:0\"\n");
    }
    if !text.contains("[dependencies.") {
        text.push_str("\n[dependencies.catalog]\nurls = [\"http://127.0.0.1:8000\"]\n");
    }
    // What is included has a route.
    if !text.contains("[[routes]]") && !includes || heading == "Bad" && !text.contains("[[routes]]") {
        text.push_str(
            "\n[[routes]]\nname = \"other\"\nmatch = { path = \"/other\" }\nclass = \"read\"\nfrom = \"catalog\"\n",
        );
    }
    text
}

/// The files that examples name, beside the contract.
fn beside(directory: &Path) {
    let route = "[[routes]]\nname = \"product\"\nmatch = { path = \"/products/{id}\" }\nclass = \"read\"\nfrom = \"catalog\"\n";
    fs::create_dir_all(directory.join("routes")).unwrap();
    for (name, text, mode) in [
        ("routes/product.toml", route.as_bytes(), 0o644),
        ("nested.toml", b"include = [\"routes/product.toml\"]\n", 0o644),
        ("latin1.toml", b"# \xe4\n", 0o644),
        ("body.html", b"<p>soon</p>\n", 0o640),
        ("token", b"Bearer abc\n", 0o600),
        ("open-token", b"Bearer abc\n", 0o644),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Returns what is found in a contract, problems and warnings.
fn check(path: &Path) -> Diagnostics {
    match config::load(path) {
        Err(NotLoaded::Unreadable(why)) => panic!("{why}"),
        Err(NotLoaded::Problems(found)) => found,
        Ok(mut loaded) => {
            if let Err(problems) = App::build(&loaded.contract, &Engine::system(), Limits::default(), 1) {
                loaded.diagnostics.absorb(&problems, &loaded.places);
            }
            loaded.diagnostics
        }
    }
}

/// Returns each finding as its code and the file and line where it is told.
fn told(found: &Diagnostics) -> Vec<(String, String, usize)> {
    let spots = found.spots().into_iter();
    spots
        .map(|(problem, spot)| {
            let spot = spot.unwrap();
            let file = Path::new(spot.file).file_name().unwrap().to_str().unwrap();
            (problem.code.to_owned(), file.to_owned(), spot.line)
        })
        .collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages: BTreeSet<String> = fs::read_dir(root().join("docs/reference/lints"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    let codes: BTreeSet<String> = lints::ALL
        .iter()
        .map(|lint| format!("{}.md", lint.code))
        .collect();
    assert_eq!(codes, pages);
    for lint in lints::ALL {
        let title = format!("# {}: ", lint.code);
        assert!(lint.page.starts_with(&title), "{} opens with its code", lint.code);
        let path = root().join(lints::see(lint.code));
        assert_eq!(fs::read_to_string(path).unwrap(), lint.page);
    }
    let index = fs::read_to_string(root().join("docs/reference/lints/README.md")).unwrap();
    let listed: Vec<&str> = index
        .lines()
        .filter_map(|line| line.strip_prefix("| [`")?.split('`').next())
        .collect();
    let codes: Vec<&str> = lints::ALL.iter().map(|lint| lint.code).collect();
    assert_eq!(listed, codes, "the index lists them in this order");
}

#[test]
fn the_bad_example_of_each_page_has_its_problem_and_the_mended_one_has_none() {
    let mut wrong = Vec::new();
    for lint in lints::ALL {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join("lints")
            .join(lint.code);
        beside(&directory);
        let (bad, mended) = (directory.join("bad.toml"), directory.join("mended.toml"));
        let text = example(lint.page, "Bad");
        let line = text.lines().position(|line| line.contains(MARK));
        // Its mark stands in the file that it includes.
        let at = line.map_or_else(
            || ("nested.toml".to_owned(), 1),
            |line| ("bad.toml".to_owned(), line + 1),
        );
        fs::write(&bad, &text).unwrap();
        fs::write(&mended, example(lint.page, "Mended")).unwrap();
        let found = check(&bad);
        if told(&found) != [(lint.code.to_owned(), at.0, at.1)] {
            wrong.push(format!("{}: the bad example says\n{found}", lint.code));
        }
        let found = check(&mended);
        if !told(&found).is_empty() {
            wrong.push(format!("{}: the mended example says\n{found}", lint.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What a contract cannot say at all is refused by its danger, however it is spelt.
#[test]
fn a_danger_has_its_code_in_every_spelling() {
    const AUTHORITY: &str = "[dependencies.sso]\nurls = [\"http://127.0.0.1:8001\"]\n[authorities.sso]\nfrom = \"sso\"\npath = \"/v\"\nheaders = []\n";
    const PROTECTED: &str = "authorize = \"sso\"";
    let stale = |value: &str| format!("ladder = [ {{ {value} }} ]");
    let default = |key: &str| {
        format!("ladder = [ {{ default = {{ content_type = \"a/b\", body = \"\", {key} = \"x\" }} }} ]")
    };
    let keeps = "ladder = [ { stale = \"1m\" } ]";
    let mut wrong = Vec::new();
    for (code, top, dependency, route) in [
        ("stale-without-limit", "", "", stale("stale = true")),
        ("stale-without-limit", "", "", stale("stale = \"Unlimited\"")),
        ("stale-without-limit", "", "", stale("stale = \"\"")),
        ("stale-without-limit", "", "", stale("stale = inf")),
        ("stale-without-limit", "", "", stale("stale = {}")),
        ("stale-without-limit", "", "", stale("max_age = \"60s\"")),
        (
            "protect-with-ladder",
            &format!("{AUTHORITY}stale = \"1m\""),
            "",
            PROTECTED.to_owned(),
        ),
        (
            "protect-with-ladder",
            &format!("{AUTHORITY}default = \"allow\""),
            "",
            PROTECTED.to_owned(),
        ),
        (
            "protect-with-ladder",
            "",
            "",
            format!("class = \"protect\"\n{keeps}"),
        ),
        (
            "pass-with-ladder",
            "",
            "",
            format!("class = \"operate\"\n{keeps}"),
        ),
        ("operate-without-status", "", "", "class = \"operate\"".to_owned()),
        ("class-not-built", "", "", "class = \"page\"".to_owned()),
        ("bad-value", "", "", "class = \"protect\"".to_owned()),
        (
            "ladder-by-wildcard",
            "ladder = [ { stale = \"1m\" } ]",
            "",
            String::new(),
        ),
        (
            "ladder-by-wildcard",
            "",
            "ladder = [ { stale = \"1m\" } ]",
            String::new(),
        ),
        (
            "ladder-by-wildcard",
            "[presets]\nstale = \"1m\"",
            "",
            String::new(),
        ),
        ("default-calls-dependency", "", "", default("from")),
        ("default-calls-dependency", "", "", default("urls")),
        (
            "store-on-own-resource",
            "[store]\npath = \"/tmp/store\"\nurl = \"redis://db\"",
            "",
            String::new(),
        ),
        (
            "retries-at-two-layers",
            "",
            "rewrite = { set_response = { Evenkeel-Retried = \"?0\" } }",
            String::new(),
        ),
        (
            "shared-copies-with-credentials",
            "",
            "",
            "match = { path = \"/a\", header = { cookie = \"*\" } }\nfreshness = \"origin\"".to_owned(),
        ),
        (
            "session-cookie-ignored",
            "",
            "",
            format!("{keeps}\nignore_cookies = [\"PHPSESSID\"]"),
        ),
    ] {
        let matched = if route.contains("match =") {
            ""
        } else {
            "match = { path = \"/a\" }\n"
        };
        let class = if route.contains("class =") {
            ""
        } else {
            "class = \"read\"\n"
        };
        let text = format!(
            "{top}\n[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://127.0.0.1:8000\"]\n{dependency}\n\
             [[routes]]\nname = \"r\"\nfrom = \"d\"\n{matched}{class}{route}\n"
        );
        let found = match config::parse("contract.toml", &text) {
            Ok(loaded) => loaded.diagnostics,
            Err(found) => found,
        };
        let codes: Vec<&str> = found.list().iter().map(|problem| problem.code).collect();
        if codes != [code] {
            wrong.push(format!("{code} is not what is said of\n{text}\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
