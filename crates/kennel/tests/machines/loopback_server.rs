//! A server that listens on a loopback address, as `kennel up` does: pods of its machine reach it at the machine's address, and
//! other machines do not.

use std::ffi::OsString;
use std::process::{Child, Command, Output, Stdio};

use kennel_testkit::machine::{self, Lan};
use kennel_testkit::{Deadline, Version, eventually};
use tempfile::TempDir;

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
const API: &str = "https://10.0.0.1:6443/version";

/// A server on the first machine. Ends with it.
struct Server {
    child: Child,
    dir: TempDir,
}

impl Server {
    fn start(lan: &Lan) -> Self {
        let dir = TempDir::new().unwrap();
        let child = on(&lan.way(0), KENNEL)
            .args(["server", "--data-dir"])
            .arg(dir.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, dir }
    }

    /// Runs kubectl on the server's machine.
    fn kubectl(&self, lan: &Lan, arguments: &[&str]) -> Output {
        let kubeconfig = self.dir.path().join("data/admin.kubeconfig");
        let mut command = on(&lan.way(0), Version::V1_36.path());
        command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
        command.output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A command that runs on a machine.
fn on(way: &[OsString], program: impl Into<OsString>) -> Command {
    let mut command = Command::new(&way[0]);
    command.args(&way[1..]).arg(program.into());
    command
}

/// Whether the API answers on this machine.
fn reaches(lan: &Lan, number: usize) -> Result<(), String> {
    let output = on(&lan.way(number), "curl")
        .args([
            "--silent",
            "--show-error",
            "--insecure",
            "--max-time",
            "10",
            API,
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains("gitVersion") {
        return Ok(());
    }
    Err(format!("{output:?}"))
}

#[test]
fn n2_6_only_pods_and_this_machine_reach_a_loopback_server() {
    if !machine::possible() {
        return;
    }
    let lan = Lan::new(&["server", "web-1"]);
    let server = Server::start(&lan);
    eventually(Deadline::seconds(60), || reaches(&lan, 0));
    let refused = reaches(&lan, 1);
    assert!(refused.is_err(), "another machine reaches the server");
    // The same address, but now it is in the pod network of a node.
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"podCIDR": "10.0.0.2/32", "podCIDRs": ["10.0.0.2/32"]}}"#;
    let file = server.dir.path().join("node.json");
    std::fs::write(&file, node).unwrap();
    let made = server.kubectl(&lan, &["create", "-f", file.to_str().unwrap()]);
    assert!(made.status.success(), "{made:?}");
    reaches(&lan, 1).unwrap();
    let deleted = server.kubectl(&lan, &["delete", "node", "n1"]);
    assert!(deleted.status.success(), "{deleted:?}");
    assert!(reaches(&lan, 1).is_err());
}
