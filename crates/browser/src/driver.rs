//! The process chromedriver, and HTTP requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::processes;

/// Of Debian's package `chromium-driver`.
pub(super) const CHROMEDRIVER: &str = "/usr/bin/chromedriver";

/// Longer than any command takes, also while other tests use the processor.
const TIMEOUT: Duration = Duration::from_mins(2);
const STARTED: &str = "ChromeDriver was started successfully on port ";

/// A running chromedriver, with a port of its own.
pub(super) struct Driver {
    child: Child,
    address: SocketAddr,
    /// Kept open, so that it can print.
    _stdout: BufReader<ChildStdout>,
}

impl Driver {
    pub(super) fn start() -> Self {
        let mut child = Command::new(CHROMEDRIVER)
            .args(["--port=0", "--log-level=SEVERE"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{CHROMEDRIVER} cannot be started: {error}"));
        let stdout = child.stdout.take().expect("stdout was piped");
        let mut stdout = BufReader::new(stdout);
        let mut lines = stdout.by_ref().lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let port = line.strip_prefix(STARTED)?;
            port.trim_end_matches('.').parse().ok()
        });
        let port = port.expect("chromedriver says on which port it listens");
        Self {
            child,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            _stdout: stdout,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command; returns its `value`.
    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.request(method, path, body);
        let (head, body) = answer.unwrap_or_else(|error| panic!("chromedriver: {error}"));
        let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let value = body["value"].take();
        assert!(head.contains(" 200 "), "{method} {path}: {value:#}");
        value
    }

    /// Reads something, if that is possible.
    pub(super) fn try_get(&self, path: &str) -> Option<Value> {
        let (head, body) = self.request("GET", path, None).ok()?;
        let mut body: Value = serde_json::from_slice(&body).ok()?;
        head.contains(" 200 ").then(|| body["value"].take())
    }

    /// Sends a last command, whatever comes of it.
    pub(super) fn end(&self, method: &str, path: &str) {
        drop(self.request(method, path, None));
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> std::io::Result<(String, Vec<u8>)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        // It keeps connections open, whatever it is asked to.
        let mut socket = BufReader::new(socket);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let start = head.len();
            socket.read_line(&mut head)?;
            let line = head[start..].trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body)?;
        Ok((head, body))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Chromium outlives a chromedriver that is killed. What has ended already cannot be killed.
        let browser = processes::below(self.pid());
        drop(self.child.kill());
        drop(self.child.wait());
        for pid in browser.into_iter().filter_map(|pid| pid.try_into().ok()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ended = kill_process(pid, Signal::KILL);
            }
        }
    }
}
