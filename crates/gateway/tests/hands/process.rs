//! A gateway in a process of its own, and the command line that speaks to it.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::kit::PATIENCE;

/// A gateway that runs.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) directory: PathBuf,
}

/// Two ports that were free just now. Somebody else may be quicker.
fn free() -> (SocketAddr, SocketAddr) {
    let listeners = [0, 1].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [one, other] = listeners
        .each_ref()
        .map(|listener| listener.local_addr().unwrap());
    (one, other)
}

/// A directory of one test, empty.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("hands")
        .join(name);
    drop(std::fs::remove_dir_all(&directory));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

impl Running {
    /// Starts one by a contract as the kit writes them.
    pub(crate) async fn start(directory: &std::path::Path, contract: &str) -> Self {
        for _ in 0..5 {
            let (address, admin) = free();
            let text = contract
                .replacen("127.0.0.1:0", &address.to_string(), 1)
                .replacen("127.0.0.1:0", &admin.to_string(), 1);
            std::fs::write(directory.join("contract.toml"), text).unwrap();
            if let Some(running) = Self::spawn(directory, address, admin).await {
                return running;
            }
        }
        panic!(
            "it did not start: {}",
            std::fs::read_to_string(directory.join("log")).unwrap()
        );
    }

    /// Starts it; none if it has ended by itself.
    async fn spawn(directory: &std::path::Path, address: SocketAddr, admin: SocketAddr) -> Option<Self> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("log"))
            .unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("serve")
            .arg(directory.join("contract.toml"))
            .env("XDG_RUNTIME_DIR", directory)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Self {
            child,
            address,
            admin,
            directory: directory.to_owned(),
        };
        let end = tokio::time::Instant::now() + PATIENCE;
        while tokio::net::TcpStream::connect(admin).await.is_err() {
            if running.child.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "it did not start: {}",
                running.log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Its port is open before everything is ready behind it; an answer comes after that.
        let live = crate::kit::get_admin(admin, "localhost", "/livez").await;
        assert_eq!(live.status, 200);
        Some(running)
    }

    /// Ends it without a chance to do anything, and starts another one at the same place.
    pub(crate) async fn killed_and_started_again(mut self) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let started = Self::spawn(&self.directory.clone(), self.address, self.admin).await;
        started.expect("it starts again at the same place")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap()
    }

    /// Runs a verb against it.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = evenkeel(arguments);
        command
            .args(["--admin", &self.admin.to_string()])
            .env("XDG_RUNTIME_DIR", &self.directory)
            .env("USER", "ana")
            .env_remove("SUDO_USER");
        finished(command).await
    }

    /// Runs a verb that has to succeed, and returns what it prints as JSON.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let output = self.run(&arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a verb that has to succeed, and returns what it prints.
    pub(crate) async fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a verb that the gateway has to refuse, and returns what it says.
    pub(crate) async fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Asks until the answer of a verb fits.
    pub(crate) async fn until(&self, arguments: &[&str], fits: impl Fn(&Value) -> bool) -> Value {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let value = self.json(arguments).await;
            if fits(&value) {
                return value;
            }
            assert!(tokio::time::Instant::now() < end, "waited in vain: {value}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn evenkeel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(arguments);
    command
}

pub(crate) async fn finished(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

pub(crate) fn told(output: &Output) -> String {
    format!(
        "{:?} {}{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
