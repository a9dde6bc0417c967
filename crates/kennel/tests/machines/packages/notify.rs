//! `Type=notify`: verbs notify the service manager when they are ready and when they stop.

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kennel_testkit::{Access, Kennel};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::packages::{BINARY, TIMEOUT_SECONDS};

/// A process with a notification socket.
struct Service {
    child: Child,
    socket: UnixDatagram,
    dir: TempDir,
}

impl Service {
    fn start(arguments: &[&str]) -> Self {
        Self::with_watchdog(arguments, false)
    }

    fn with_watchdog(arguments: &[&str], watchdog: bool) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let timeout = Duration::from_secs(TIMEOUT_SECONDS);
        socket.set_read_timeout(Some(timeout)).unwrap();
        let child = Command::new(BINARY)
            .args(arguments)
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .env("NOTIFY_SOCKET", &path)
            .envs(watchdog.then_some(("WATCHDOG_USEC", "200000")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, socket, dir }
    }

    /// Receives the next notification.
    fn receive(&self) -> String {
        let mut message = [0; 512];
        let length = self.socket.recv(&mut message).expect("no notification");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert_eq!(self.receive(), "STOPPING=1\nSTATUS=Stopping\n");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The address in `Serving the Kubernetes API at https://…`.
fn address(message: &str) -> SocketAddr {
    let ready = message.strip_prefix("READY=1\nSTATUS=Serving the Kubernetes API at https://");
    let address = ready.unwrap_or_else(|| panic!("unexpected notification: {message}"));
    address.trim().parse().unwrap()
}

#[test]
fn servers_notify_when_they_serve() {
    for arguments in [vec!["server"], vec!["up", "--simulate", "1"]] {
        let mut service = Service::start(&[arguments, vec!["--listen", "127.0.0.1:0"]].concat());
        let address = address(&service.receive());
        let admin = Access::admin(address, &service.dir.path().join("data"));
        assert_eq!(admin.ask("GET", "/readyz", b"").text(), "ok");
        service.stop();
    }
}

#[test]
fn servers_report_to_the_watchdog_until_they_stop() {
    let arguments = ["up", "--nodes=0", "--listen=127.0.0.1:0"];
    let mut service = Service::with_watchdog(&arguments, true);
    address(&service.receive());
    for _ in 0..3 {
        assert_eq!(service.receive(), "WATCHDOG=1\n");
    }
    kill_process(Pid::from_child(&service.child), Signal::TERM).unwrap();
    while service.receive() == "WATCHDOG=1\n" {}
    assert!(service.child.wait().unwrap().success());
}

#[test]
fn agents_notify_when_they_run_pods_even_without_a_server() {
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
    assert_eq!(first.receive(), "STATUS=Waiting for the server\n");
    assert_eq!(first.receive(), ready);
    first.stop();

    server.terminate();
    let mut second = Service::start(&agent);
    assert_eq!(second.receive(), "STATUS=Waiting for the server\n");
    assert_eq!(second.receive(), ready);
    second.stop();
}
