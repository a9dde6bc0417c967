//! The tour of the playground: without pauses, with a terminal, and with a step that fails.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use kennel_testkit::{Deadline, Version, eventually};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

fn playground(directory: &TempDir, kubectl: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .arg("playground")
        .args(arguments)
        .arg("--data-dir")
        .arg(directory.path().join("data"))
        .arg("--kubectl")
        .arg(kubectl)
        .args(["--listen", "127.0.0.1:0"])
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// Runs the tour with --auto.
fn run_tour(kubectl: &Path, arguments: &[&str]) -> Output {
    let directory = TempDir::new().unwrap();
    let mut command = playground(&directory, kubectl, arguments);
    let output = command.arg("--auto").output().unwrap();
    let left = directory.path().join("data");
    assert!(!left.exists(), "files are left behind: {output:?}");
    output
}

/// The stdout of a successful tour.
fn tour_output(kubectl: &Path, arguments: &[&str]) -> String {
    let output = run_tour(kubectl, arguments);
    let shown = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}\n{errors}");
    shown
}

/// Asserts that the text contains these parts, in order.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is not where it should be in:\n{text}");
        };
        rest = after;
    }
}

const COMMANDS: [&str; 24] = [
    "\n$ kubectl get nodes\n",
    "\n$ cat log-shipper.yaml\n",
    "\n$ kubectl apply -f log-shipper.yaml\ndaemonset.apps/log-shipper created\n",
    "\n$ kennel why ds/log-shipper\n",
    "is not tolerated",
    "\n    +       tolerations:\n",
    "\n$ kubectl apply -f log-shipper.yaml\ndaemonset.apps/log-shipper configured\n",
    "\n    +       nodeSelector: {logs: ship}\n",
    "\n$ kubectl label nodes --all logs=ship --overwrite\n",
    "\n$ kubectl rollout status daemonset/log-shipper\ndaemon set \"log-shipper\" successfully rolled out\n",
    "CrashLoopBackOff",
    "\n$ kennel why ds/log-shipper\n",
    "Should run it and does not",
    "\n$ kubectl rollout history daemonset/log-shipper\n",
    "\n$ kubectl rollout undo daemonset/log-shipper\n",
    "\n    +     rollout.kennel.dev/stages: 1 manual, 100% ",
    "\n$ kennel rollout status ds/log-shipper --timeout=1m\n",
    "waits for a person",
    "\n$ kennel rollout promote ds/log-shipper\n",
    "\n$ kennel rollout history ds/log-shipper\n",
    "failed (target)",
    "\n$ kubectl delete daemonset log-shipper --cascade=orphan\n",
    "\n$ kubectl apply -f log-shipper.yaml\ndaemonset.apps/log-shipper created\n",
    "\n$ kubectl delete -f log-shipper.yaml\n",
];

#[test]
fn the_tour_runs_on_three_nodes_with_processes() {
    let shown = tour_output(&Version::V1_32.path(), &[]);
    assert_in_order(&shown, &COMMANDS);
    let logs = "version 1.0 ships the logs of kennel-3";
    assert_in_order(
        &shown,
        &[
            "── 6/14  Look into the pods ─",
            logs,
            "printenv NODE\nkennel-",
        ],
    );
    assert_in_order(
        &shown,
        &["── 8/14  Break it ─", "exec: ship-logs: not found"],
    );
    // The rollout stopped at the first node.
    let (_, broken) = shown.split_once("  Break it ─").unwrap();
    let fails = broken.lines().find(|line| line.contains("3.0 fails"));
    assert_eq!(fails.unwrap().matches("2.0").count(), 2, "{shown}");
    // The release in stages reached one node before it was promoted, and so did the one that went back.
    let (_, staged) = shown.split_once("  Release in stages ─").unwrap();
    let (stage, _) = staged.split_once("rollout promote").unwrap();
    // Lines of the table begin with a time; how many states it catches depends on the machine.
    let rows = stage.lines().filter(|line| line.contains(" s   2."));
    let reached = rows.map(|row| row.matches("2.1").count()).max();
    assert_eq!(reached, Some(1), "{shown}");
    let (_, bad) = staged.split_once("  A bad release goes back").unwrap();
    let mut bad = bad.lines().filter(|line| {
        let states = ["3.1 starts", "3.1 fails", "3.1 ends"];
        states.iter().any(|state| line.contains(state))
    });
    let kept = |line: &str| line.matches("2.1").count() == 2;
    assert!(bad.all(kept), "{shown}");
    assert!(!shown.contains('\x1b'), "colours in a pipe: {shown}");
}

#[test]
fn the_tour_runs_on_many_simulated_nodes_with_an_old_kubectl() {
    let shown = tour_output(&Version::V1_20.path(), &["--simulate", "20"]);
    assert_in_order(&shown, &COMMANDS);
    assert_in_order(&shown, &["Left out: Look into the pods", "5×3.0"]);
    assert_in_order(&shown, &["node/kennel-14 labeled", "… and 6 lines more"]);
}

#[test]
fn the_tour_runs_on_one_node() {
    let shown = tour_output(&Version::V1_32.path(), &["--simulate", "1"]);
    assert_in_order(
        &shown,
        &["No pod at all: kennel-1 is the only node", "3.0 fails"],
    );
}

#[test]
fn a_step_that_fails_ends_the_tour_and_is_named() {
    let tools = TempDir::new().unwrap();
    let kubectl = tools.path().join("kubectl");
    let real = Version::V1_32.path();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *\"label node\"*) echo not today >&2; exit 3;; esac\nexec {} \"$@\"\n",
        real.display()
    );
    std::fs::write(&kubectl, script).unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = run_tour(&kubectl, &["--simulate", "3"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_in_order(
        &said,
        &[
            "error: the tour failed",
            "step 4, Choose nodes by label",
            "`kubectl label node kennel-3 logs=ship` ended with code 3: not today",
        ],
    );
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!shown.contains("Label nodes in and out"), "{shown}");
}

/// A playground on a terminal.
struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
    _directory: TempDir,
}

impl Terminal {
    fn open(arguments: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let side = || {
            let file = File::options().read(true).write(true).open(&name).unwrap();
            Stdio::from(OwnedFd::from(file))
        };
        let directory = TempDir::new().unwrap();
        let mut command = playground(&directory, &Version::V1_32.path(), arguments);
        command.stdin(side()).stdout(side()).stderr(side());
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(keys);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut output, text) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the other side is closed.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                let piece = String::from_utf8_lossy(&bytes[..read]).into_owned();
                text.lock().unwrap().push_str(&piece);
            }
        });
        Self {
            child,
            keys,
            shown,
            _directory: directory,
        }
    }

    fn wait_for(&self, text: &str) {
        eventually(Deadline::seconds(60), || {
            let shown = self.shown.lock().unwrap().clone();
            let seen = shown.contains(text);
            seen.then_some(())
                .ok_or(format!("no {text:?} in:\n{shown}"))
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let ended = eventually(Deadline::seconds(30), || {
            self.child.try_wait().unwrap().ok_or("still there")
        });
        let shown = self.shown.lock().unwrap().clone();
        assert!(ended.success(), "{ended}:\n{shown}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has exited, unless the test failed.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn enter_runs_a_step_and_q_leaves_the_tour_but_keeps_the_playground() {
    let mut terminal = Terminal::open(&["--simulate", "3"]);
    terminal.wait_for("Look around");
    terminal.wait_for("[q] leave the tour");
    assert!(
        !terminal
            .shown
            .lock()
            .unwrap()
            .contains("kubectl get nodes\x1b[0m")
    );
    terminal.press("\n");
    terminal.wait_for("\x1b[1m$ kubectl get nodes\x1b[0m");
    terminal.wait_for("Apply a DaemonSet");
    terminal.press("q\n");
    terminal.wait_for("Ctrl-C stops the playground");
    terminal.interrupt();
}

#[test]
fn control_c_stops_the_tour_in_the_middle_of_a_step() {
    let mut terminal = Terminal::open(&["--simulate", "3"]);
    terminal.press("\n\n\n");
    terminal.wait_for("Tolerate the taint");
    terminal.wait_for("1.0 ends");
    terminal.interrupt();
}
