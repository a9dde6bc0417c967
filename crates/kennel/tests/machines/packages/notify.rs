//! `Type=notify`: a service manager hears when a verb does what it is for, and when it is about to end.

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kennel_testkit::{Access, Kennel};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::packages::{BINARY, PATIENCE};

/// A verb, started as systemd would.
struct Service {
    child: Child,
    socket: UnixDatagram,
    dir: TempDir,
}

impl Service {
    fn start(words: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let patience = Duration::from_secs(PATIENCE);
        socket.set_read_timeout(Some(patience)).unwrap();
        let child = Command::new(BINARY)
            .args(words)
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .env("NOTIFY_SOCKET", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, socket, dir }
    }

    /// What it says next.
    fn says(&self) -> String {
        let mut words = [0; 512];
        let length = self.socket.recv(&mut words).expect("it says something");
        String::from_utf8_lossy(&words[..length]).into_owned()
    }

    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert_eq!(self.says(), "STOPPING=1\nSTATUS=Stopping\n");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The address in `Serving the Kubernetes API at https://…`.
fn address(said: &str) -> SocketAddr {
    let ready = said.strip_prefix("READY=1\nSTATUS=Serving the Kubernetes API at https://");
    let address = ready.unwrap_or_else(|| panic!("it says {said}"));
    address.trim().parse().unwrap()
}

#[test]
fn servers_are_ready_when_they_answer() {
    for words in [vec!["server"], vec!["up", "--simulate", "1"]] {
        let mut service = Service::start(&[words, vec!["--listen", "127.0.0.1:0"]].concat());
        let address = address(&service.says());
        let admin = Access::admin(address, &service.dir.path().join("data"));
        assert_eq!(admin.ask("GET", "/readyz", b"").text(), "ok");
        service.stop();
    }
}

#[test]
fn agents_are_ready_when_they_look_after_pods_even_if_their_server_is_away() {
    let server = Kennel::start(BINARY, &["up", "--nodes", "0"]);
    let kubeconfig = server.kubeconfig().to_str().unwrap().to_owned();
    let agent = [
        "agent",
        "--runtime=simulated",
        "--node-name=n1",
        "--listen=127.0.0.1:0",
        "--eviction-hard=memory.available<1Mi",
        "--kubeconfig",
        &kubeconfig,
    ];
    let ready = "READY=1\nSTATUS=Managing the pods of node n1\n";
    let mut first = Service::start(&agent);
    assert_eq!(first.says(), "STATUS=Waiting for the server\n");
    assert_eq!(first.says(), ready);
    first.stop();

    server.terminate();
    let mut second = Service::start(&agent);
    assert_eq!(second.says(), "STATUS=Waiting for the server\n");
    assert_eq!(second.says(), ready);
    second.stop();
}
