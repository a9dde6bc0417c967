//! A running `kennel dashboard`: a child process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::{Deadline, Visitor};

/// From its start to the line with the address, and from SIGTERM to its end.
const TIMEOUT: Duration = Duration::from_mins(1);

/// It prints few lines.
const LINES_MAX: usize = 100;

/// A `kennel dashboard` process on a free port.
#[derive(Debug)]
pub struct Dashboard {
    child: Child,
    lines: Receiver<String>,
    address: String,
}

impl Dashboard {
    /// Starts one for the cluster of a kubeconfig.
    pub fn start(binary: impl AsRef<Path>, kubeconfig: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary.as_ref());
        command.args(["dashboard", "--no-open", "--listen", "127.0.0.1:0"]);
        command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
        Self::of(&mut command)
    }

    /// Any command that prints an address with a token.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the dashboard can be started");
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped"));
        let (sender, lines) = mpsc::sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut dashboard = Self {
            child,
            lines,
            address: String::new(),
        };
        dashboard.address = dashboard.next_address();
        dashboard
    }

    /// The address that it printed first, with its token.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The next address that it prints.
    pub fn next_address(&self) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(TIMEOUT)
                .expect("it prints an address");
            let mut words = line.split_whitespace();
            if let Some(address) = words.find(|word| word.contains("/?token=")) {
                return address.to_owned();
            }
        }
    }

    /// Its `host:port`.
    pub fn host(&self) -> &str {
        let (_, rest) = self
            .address
            .split_once("://")
            .expect("an address has a scheme");
        rest.split('/').next().unwrap_or(rest)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Opens the first address, as a browser does.
    pub fn visitor(&self) -> Visitor {
        let stranger = self.stranger();
        let (_, path) = self
            .address
            .split_once(self.host())
            .expect("the host is in it");
        let reply = stranger.get(path);
        let cookie = reply.headers.get("set-cookie");
        let cookie = cookie.unwrap_or_else(|| panic!("no cookie in {reply:?}"));
        let pair = cookie.split(';').next().unwrap_or_default();
        stranger.with("Cookie", pair)
    }

    /// Somebody without a cookie.
    pub fn stranger(&self) -> Visitor {
        Visitor::new(self.host())
    }

    /// Waits until it ends by itself.
    pub fn wait_for_end(mut self) {
        let deadline = Deadline::seconds(TIMEOUT.as_secs());
        while self
            .child
            .try_wait()
            .expect("it can be waited for")
            .is_none()
        {
            assert!(!deadline.passed(), "the dashboard does not end");
            deadline.pause();
        }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // It may have exited already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
