//! The program while its contract changes: by signal, by the command line, and at a start without a usable one (case 071).
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

const GOOD: &str = r#"
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[dependencies.catalog]
urls = ["http://127.0.0.1:9"]
[[routes]]
name = "product"
match = { path = "/products/{id}" }
class = "read"
from = "catalog"
ladder = [ { default = { status = 200, body = "one", content_type = "text/plain" } } ]
"#;

/// A gateway that ends with its test, also when the test fails.
struct Serving {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    /// Where clients and administrators connect; empty as long as it has not started.
    listen: String,
    admin: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Empties a directory of this test's own, and names a contract in it.
fn place(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&directory));
    std::fs::create_dir_all(&directory).unwrap();
    directory.join("contract.toml")
}

fn program(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.arg("serve").arg(path).args(arguments);
    // The token is written below a directory of the test's own.
    command.env("XDG_RUNTIME_DIR", path.parent().unwrap());
    command
}

impl Serving {
    fn start(path: &Path, arguments: &[&str]) -> Self {
        let mut child = program(path, arguments).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serving = Self {
            child,
            log,
            listen: String::new(),
            admin: String::new(),
        };
        let started = serving.next("started");
        let field = |name: &str| {
            let (_, rest) = started.split_once(&format!(" {name}=")).unwrap();
            rest.split(' ').next().unwrap().to_owned()
        };
        (serving.listen, serving.admin) = (field("listen"), field("admin"));
        serving
    }

    /// Returns the next line of the log about this.
    fn next(&mut self, event: &str) -> String {
        let word = format!(" event={event} ");
        let found = self
            .log
            .find(|line| format!("{} ", line.as_ref().unwrap()).contains(&word));
        found.unwrap().unwrap()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    fn ask(&self) -> String {
        ask(&self.listen, "/products/1")
    }
}

fn ask(address: &str, path: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn reload(path: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("reload")
        .args(arguments)
        .env("XDG_RUNTIME_DIR", path.parent().unwrap())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits for a file that is written soon after the start.
fn wait_for(path: &Path) {
    for _ in 0..2_000 {
        if path.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("never: {}", path.display());
}

#[test]
fn a_signal_loads_the_contract_anew_and_the_log_says_what_has_changed_or_is_wrong() {
    let path = place("signal");
    std::fs::write(&path, GOOD).unwrap();
    let mut serving = Serving::start(&path, &[]);
    assert!(serving.ask().ends_with("one"));
    std::fs::write(&path, GOOD.replace("\"one\"", "\"two\"")).unwrap();
    serving.signal("HUP");
    let line = serving.next("reloaded");
    assert!(
        line.contains("trigger=signal") && line.contains("routes-changed=product"),
        "{line}"
    );
    assert!(serving.ask().ends_with("two"));
    std::fs::write(&path, GOOD.replace("\"read\"", "\"raed\"")).unwrap();
    serving.signal("HUP");
    let line = serving.next("reload-refused");
    assert!(
        line.contains("level=error") && line.contains(&format!("at={}:10:", path.display())),
        "{line}"
    );
    assert!(serving.ask().ends_with("two"));
    serving.signal("TERM");
    serving.next("stopped");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_command_line_reloads_and_its_status_says_what_came_of_it() {
    let path = place("command");
    std::fs::write(&path, GOOD).unwrap();
    let serving = Serving::start(&path, &[]);
    let admin = ["--admin", &serving.admin];
    let unchanged = reload(&path, &admin);
    assert_eq!(unchanged.status.code(), Some(0), "{}", text(&unchanged.stderr));
    assert!(
        text(&unchanged.stdout).starts_with("unchanged: "),
        "{}",
        text(&unchanged.stdout)
    );
    std::fs::write(&path, GOOD.replace("\"one\"", "\"two\"")).unwrap();
    let done = reload(&path, &admin);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).contains("\n  routes changed: product\n"),
        "{}",
        text(&done.stdout)
    );
    assert!(serving.ask().ends_with("two"));
    std::fs::write(&path, GOOD.replace("status = 200", "status = 1")).unwrap();
    let refused = reload(&path, &admin);
    assert_eq!(refused.status.code(), Some(1));
    let why = text(&refused.stderr);
    assert!(
        why.starts_with("refused, and nothing has changed: ") && why.contains(":12:"),
        "{why}"
    );
    let refused = reload(&path, &[&admin[..], &["--json"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(
        (&told["result"], &told["problems"]),
        (&"refused".into(), &1.into())
    );
    assert_eq!(told["list"][0]["line"], 12);
    let nobody = reload(&path, &["--admin", "127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(2));
}

#[test]
fn case_071_a_start_without_a_usable_contract_serves_the_last_good_one_and_says_so() {
    let path = place("fallback");
    std::fs::write(&path, GOOD).unwrap();
    let kept = path.with_file_name("contract.toml.last-good");
    let serving = Serving::start(&path, &[]);
    wait_for(&kept);
    drop(serving);
    for bad in [GOOD.replace("\"read\"", "null").as_str(), "", "\0"] {
        std::fs::write(&path, bad).unwrap();
        let mut serving = Serving::start(&path, &[]);
        let line = serving.next("last-good");
        assert!(
            line.contains("level=error") && line.contains("because="),
            "{line}"
        );
        assert!(serving.ask().ends_with("one"));
        assert!(ask(&serving.admin, "/metrics").contains("\nevenkeel_contract_is_last_good 1\n"));
        assert!(ask(&serving.admin, "/readyz?verbose").contains("\"is_last_good\":true"));
        // Mended, it is taken, and no more is said.
        std::fs::write(&path, GOOD.replace("\"one\"", "\"two\"")).unwrap();
        serving.signal("HUP");
        serving.next("reloaded");
        assert!(serving.ask().ends_with("two"));
        assert!(ask(&serving.admin, "/metrics").contains("\nevenkeel_contract_is_last_good 0\n"));
        // What was good before is good again for the next round.
        std::fs::write(&path, GOOD).unwrap();
        serving.signal("HUP");
        serving.next("reloaded");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(
        Serving::start(&path, &[]).ask().ends_with("one"),
        "also where the file is gone"
    );
    let refused = program(&path, &["--no-fallback"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    std::fs::write(&kept, "{}").unwrap();
    let neither = program(&path, &[]).output().unwrap();
    assert_eq!(neither.status.code(), Some(2));
    assert!(
        text(&neither.stderr).contains("no last good contract"),
        "{}",
        text(&neither.stderr)
    );
}

#[test]
fn the_last_good_contract_is_kept_where_one_says_or_not_at_all() {
    let path = place("elsewhere");
    std::fs::write(&path, GOOD).unwrap();
    let beside = path.with_file_name("contract.toml.last-good");
    let mut serving = Serving::start(&path, &["--no-fallback"]);
    // It is kept before a signal is taken, if it is kept.
    serving.signal("TERM");
    serving.next("stopped");
    assert!(!beside.exists());
    let elsewhere = path.with_file_name("kept");
    let serving = Serving::start(&path, &["--last-good", elsewhere.to_str().unwrap()]);
    wait_for(&elsewhere);
    assert!(!beside.exists());
    drop(serving);
    let nowhere = path.with_file_name("no").join("such");
    let mut serving = Serving::start(&path, &["--last-good", nowhere.to_str().unwrap()]);
    let line = serving.next("last-good-not-kept");
    assert!(line.contains("level=warn"), "{line}");
    assert!(serving.ask().ends_with("one"), "it serves all the same");
}
