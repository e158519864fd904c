//! Contracts of several files, with values from outside, and files that are none: what `evenkeel check` says of them.
//! Cases 070 and 071.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use evenkeel_gateway::config::{self, NotLoaded};
use serde_json::Value;

const GATEWAY: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";
const DEPENDENCY: &str = "[dependencies.catalog]\nurls = [\"http://127.0.0.1:9\"]\n";

fn route(name: &str) -> String {
    format!(
        "[[routes]]\nname = \"{name}\"\nmatch = {{ path = \"/{name}\" }}\nclass = \"read\"\nfrom = \"catalog\"\n"
    )
}

/// An empty directory of its own.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("contract-files")
        .join(name);
    drop(fs::remove_dir_all(&path));
    fs::create_dir_all(&path).unwrap();
    path
}

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn evenkeel(arguments: &[&str], path: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(arguments)
        .arg(path)
        .env("EVENKEEL_TEST_TOKEN", "hunter2-hunter2")
        .env("EVENKEEL_TEST_SPAN", "5 fortnights")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns what the check prints, and its exit status.
fn check(path: &Path) -> (String, i32) {
    let output = evenkeel(&["check"], path);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(!shown.contains("panicked"), "{shown}");
    (shown, output.status.code().unwrap())
}

#[track_caller]
fn assert_told(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
}

#[test]
fn routes_of_included_files_come_in_the_order_of_their_names() {
    let dir = directory("order");
    write(&dir, "routes/b.toml", route("b"));
    write(&dir, "routes/a.toml", route("a"));
    write(&dir, "routes/c.txt", "not = ");
    write(&dir, "routes/.hidden.toml", "not = ");
    write(&dir, "dependencies.toml", DEPENDENCY);
    let contract = format!(
        "include = [\"dependencies.toml\", \"routes/*.toml\"]\n{GATEWAY}{}",
        route("own")
    );
    let path = write(&dir, "contract.toml", contract);
    let loaded = match config::load(&path) {
        Ok(loaded) => loaded,
        Err(why) => panic!("{why:?}"),
    };
    let names: Vec<&str> = loaded.contract.routes.iter().map(|route| &*route.name).collect();
    assert_eq!(names, ["own", "a", "b"]);
    let read: Vec<&str> = loaded
        .files
        .iter()
        .map(|file| file.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(read, ["contract.toml", "dependencies.toml", "a.toml", "b.toml"]);
}

#[test]
fn a_problem_in_an_included_file_names_that_file_and_its_line() {
    let dir = directory("lines");
    write(
        &dir,
        "routes/a.toml",
        format!("# ö\n{}deadline = \"soon\"\n", route("a")),
    );
    let contract = format!("include = [\"routes/*.toml\"]\n{GATEWAY}{DEPENDENCY}timeout = \"2h\"\n");
    let path = write(&dir, "contract.toml", contract);
    let (shown, status) = check(&path);
    assert_eq!(status, 1);
    assert_told(
        &shown,
        &[
            "routes/a.toml:7:12\n7 | deadline = \"soon\"",
            "contract.toml:7:11",
            "3 problems in ",
        ],
    );
    let output = evenkeel(&["check", "--json"], &path);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = list.as_array().unwrap().last().unwrap();
    assert!(
        last["file"].as_str().unwrap().ends_with("routes/a.toml"),
        "{last}"
    );
    assert_eq!(
        (&last["line"], &last["column"], &last["end_column"]),
        (&7.into(), &12.into(), &18.into())
    );
    assert_eq!(last["place"], "routes[0] \"a\".deadline");
}

#[test]
fn a_name_that_two_files_declare_is_told_with_both_places() {
    let dir = directory("twice");
    write(&dir, "more.toml", format!("{DEPENDENCY}{}", route("a")));
    let contract = format!("include = [\"more.toml\"]\n{GATEWAY}{DEPENDENCY}{}", route("b"));
    let path = write(&dir, "contract.toml", contract);
    let (shown, status) = check(&path);
    assert_eq!(status, 1);
    assert_told(
        &shown,
        &[
            "error[duplicate-name]: dependencies.catalog: declared in ",
            "contract.toml, line 5 too",
            "more.toml:1:15",
            "1 problem in ",
        ],
    );
    write(&dir, "more.toml", route("b").replace("/b", "/c"));
    let (shown, _) = check(&path);
    assert_told(
        &shown,
        &[
            "error[duplicate-name]: routes[1] \"b\".name: \"b\", as another route (",
            "contract.toml, line 8)",
            "more.toml:2:8",
            "1 problem in ",
        ],
    );
}

#[test]
fn what_cannot_be_included_is_told_at_the_place_that_names_it() {
    let dir = directory("refused");
    write(&dir, "a.toml", route("a"));
    write(&dir, "bad.toml", "x = = 1");
    write(&dir, "latin1.toml", b"# ok\n# \xe4\n");
    write(&dir, "big.toml", "#".repeat(5 << 20));
    write(&dir, "nested.toml", "include = [\"a.toml\"]\n");
    for (include, code, seen) in [
        ("[\"../a.toml\"]", "bad-value", "not below the directory"),
        ("[\"/etc/hosts\"]", "bad-value", "not below the directory"),
        ("[\"*/a.toml\"]", "bad-value", "before the last part"),
        ("[\"b.toml\"]", "include-not-there", "no such file"),
        ("[\"b*.tom\"]", "include-not-there", "no file has such a name"),
        ("[\"a.toml\", \"./a.toml\", \"*.toml\"]", "bad-value", "./a.toml"),
        (
            "[\"a.toml\", \"a.*\"]",
            "include-twice",
            "part of the contract already",
        ),
        (
            "[\"contract.toml\"]",
            "include-twice",
            "part of the contract already",
        ),
        ("[\"nested.toml\"]", "include-nested", "nested.toml"),
        ("[\"latin1.toml\"]", "unreadable-file", "not UTF-8 in line 2"),
        ("[\"big.toml\"]", "unreadable-file", "larger than"),
        ("[\"bad.toml\"]", "syntax", "bad.toml:1:"),
        ("\"a.toml\"", "wrong-type", "a list of paths"),
        ("[1]", "wrong-type", "a path in quotes"),
        ("{ env = \"A\" }", "wrong-type", "a list of paths"),
    ] {
        let contract = format!("include = {include}\n{GATEWAY}{DEPENDENCY}{}", route("own"));
        let (shown, status) = check(&write(&dir, "contract.toml", contract));
        assert_eq!(status, 1, "{include}: {shown}");
        assert_told(&shown, &[&format!("error[{code}]"), seen, "= mend: "]);
    }
}

#[test]
fn a_value_comes_from_the_environment_or_a_file_and_is_never_printed() {
    let dir = directory("values");
    let secret = write(&dir, "secret", "hunter2-hunter2\n\n");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let rewrite = |value: &str| {
        let lines = format!("rewrite = {{ set_request = {{ authorization = {value} }} }}\n");
        write(
            &dir,
            "contract.toml",
            format!("{GATEWAY}{DEPENDENCY}{lines}{}", route("a")),
        )
    };
    let loaded = |path: &Path| match config::load(path) {
        Ok(loaded) => loaded,
        Err(why) => panic!("{why:?}"),
    };
    // One newline goes, and the other is no character of a field.
    let (shown, status) = check(&rewrite("{ file = \"secret\" }"));
    assert_eq!(status, 1);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_told(&shown, &["set_request: authorization = (from file secret)"]);
    fs::write(&secret, "hunter2-hunter2\r\n").unwrap();
    let found = loaded(&rewrite("{ file = \"secret\" }"));
    let (_, value) = &found.contract.dependencies[0].rewrite.request.set[0];
    assert_eq!(value, "hunter2-hunter2");
    assert_eq!(found.files.last().unwrap(), &secret);
    assert_eq!(check(&rewrite("{ env = \"EVENKEEL_TEST_TOKEN\" }")).1, 0);
    for (value, parts) in [
        (
            "{ env = \"EVENKEEL_NOT_SET\" }",
            &[
                "error[value-not-there]",
                "EVENKEEL_NOT_SET: there is no such variable",
            ][..],
        ),
        (
            "{ file = \"gone\" }",
            &["error[value-not-there]", "gone: No such file"],
        ),
        ("{ file = \".\" }", &["error[value-not-there]", "directory"]),
        ("{ env = \"A\", file = \"b\" }", &["authorization = a table"]),
        ("{ env = 1 }", &["authorization = a table"]),
    ] {
        let (shown, status) = check(&rewrite(value));
        assert_eq!(status, 1, "{value}: {shown}");
        assert_told(&shown, parts);
    }
    // Whatever is wrong with it, in text and for programs.
    let span = format!(
        "{GATEWAY}{DEPENDENCY}{}deadline = {{ env = \"EVENKEEL_TEST_SPAN\" }}\n",
        route("a")
    );
    let path = write(&dir, "span.toml", span);
    for arguments in [&["check"][..], &["check", "--json"], &["serve"]] {
        let output = evenkeel(arguments, &path);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(!shown.contains("fortnights"), "{shown}");
        assert_told(&shown, &["(from the environment, EVENKEEL_TEST_SPAN)"]);
    }
}

#[test]
fn a_secret_that_everybody_may_read_is_a_warning_and_strict_makes_it_a_problem() {
    let dir = directory("readable");
    let secret = write(&dir, "secret", "abc");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let rewrite = "rewrite = { set_request = { authorization = { file = \"secret\" } } }\n";
    let path = write(
        &dir,
        "contract.toml",
        format!("{GATEWAY}{DEPENDENCY}{rewrite}{}", route("a")),
    );
    let output = evenkeel(&["check"], &path);
    assert_eq!(output.status.code(), Some(0));
    assert_told(
        &text(&output.stderr),
        &["warning[secret-readable-by-all]", "\n1 warning in "],
    );
    assert_told(&text(&output.stdout), &["no problem, 1 warning, 1 route"]);
    let output = evenkeel(&["check", "--json"], &path);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&list[0]["severity"], output.status.code()),
        (&"warning".into(), Some(0))
    );
    let output = evenkeel(&["check", "--strict"], &path);
    assert_eq!(output.status.code(), Some(1));
    assert_told(
        &text(&output.stderr),
        &["error[secret-readable-by-all]", "\n1 problem in "],
    );
}

#[test]
fn a_field_named_env_is_a_name_and_no_reference() {
    let dir = directory("names");
    let rewrite = "rewrite = { set_request = { env = \"production\" }, set_response = { file = \"a\" } }\n";
    let route = route("a").replace("\"/a\" }", "\"/a\", header = { env = \"*\" } }");
    let path = write(
        &dir,
        "contract.toml",
        format!("{GATEWAY}{DEPENDENCY}{rewrite}{route}"),
    );
    let (shown, status) = check(&path);
    assert_eq!(status, 0, "{shown}");
}

/// Case 071: nothing in a file can crash the program, and whatever is wrong is told with its place.
#[test]
fn files_that_are_no_contracts_are_told_what_they_are() {
    let dir = directory("no-contracts");
    let good = format!("{GATEWAY}{DEPENDENCY}{}", route("a"));
    let deep = format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let dotted = format!("{} = 1", vec!["a"; 100_000].join("."));
    for (name, bytes, status, parts) in [
        (
            "empty",
            Vec::new(),
            1,
            &[
                "gateway.listen: missing",
                "dependencies: missing",
                "routes: missing",
            ][..],
        ),
        ("mark", format!("\u{feff}{good}").into_bytes(), 0, &["no problem"]),
        (
            "mark-and-mistake",
            format!("\u{feff}{good}x = 1").into_bytes(),
            1,
            &[":11:1\n"],
        ),
        (
            "crlf",
            good.replace('\n', "\r\n").into_bytes(),
            0,
            &["no problem"],
        ),
        (
            "crlf-and-mistake",
            format!("{good}x = 1\n").replace('\n', "\r\n").into_bytes(),
            1,
            &[":11:1\n11 | x = 1\n"],
        ),
        ("nul", b"a = \"\0\"".to_vec(), 1, &["error[syntax]", ":1:"]),
        (
            "latin1",
            b"# fine\n# \xe4\n".to_vec(),
            2,
            &["not UTF-8 in line 2", "name a contract"],
        ),
        (
            "huge",
            vec![b'#'; 10 << 20],
            2,
            &["larger than 4194304 bytes", "at most 4 MiB"],
        ),
        ("deep", deep.into_bytes(), 1, &["error[syntax]"]),
        ("dotted", dotted.into_bytes(), 1, &["error[syntax]"]),
        (
            "twice",
            format!("{good}{GATEWAY}").into_bytes(),
            1,
            &["error[syntax]", ":11:2"],
        ),
        (
            "key-twice",
            b"[gateway]\nlisten = \"a\"\nlisten = \"b\"\n".to_vec(),
            1,
            &["error[syntax]", ":3:1"],
        ),
        (
            "list",
            b"[[gateway]]\n[[dependencies]]\n[routes]\n".to_vec(),
            1,
            &["gateway", "dependencies", "routes"],
        ),
        ("json", b"{ \"gateway\": null }".to_vec(), 1, &["error[syntax]"]),
        (
            "null",
            b"[gateway]\nlisten = null\n".to_vec(),
            1,
            &["error[syntax]", ":2:"],
        ),
        (
            "blank",
            b"[gateway]\nlisten = \"\"\nmemory = \" \"\n".to_vec(),
            1,
            &["gateway.listen: \"\"", "gateway.memory: \" \""],
        ),
    ] {
        let (shown, code) = check(&write(&dir, name, bytes));
        assert_eq!(code, status, "{name}: {shown}");
        assert_told(&shown, parts);
        assert!(shown.len() < 1 << 16, "{name}: {} bytes", shown.len());
    }
    let (shown, code) = check(&dir);
    assert_eq!(code, 2, "{shown}");
    assert_told(&shown, &["cannot read", "directory"]);
    assert!(matches!(config::load(&dir), Err(NotLoaded::Unreadable(_))));
}

#[test]
fn a_code_is_explained_and_an_unknown_one_is_not_guessed() {
    let explain = |code: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("explain")
            .args(code)
            .output()
            .unwrap()
    };
    let page = explain(&["stale-without-limit"]);
    assert!(text(&page.stdout).starts_with("# stale-without-limit: "));
    assert_eq!(page.status.code(), Some(0));
    let list = text(&explain(&[]).stdout);
    assert_told(
        &list,
        &[
            "unknown-key ",
            "warning  a ladder on a route that covers every path",
        ],
    );
    let unknown = explain(&["unknown"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_told(&text(&unknown.stderr), &["\"unknown\" is no code"]);
}
