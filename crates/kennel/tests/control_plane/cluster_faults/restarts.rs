//! `kennel up` stopped and restarted: it resumes, and running pods are not affected.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kennel_testkit::{Deadline, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster_faults::fixture::{BINARY, Fixture, SETS, daemon_set};

const ROLE: &str = "node-role.kubernetes.io/control-plane";
/// From Ctrl-C to the end: nothing has to be waited for.
const END: Duration = Duration::from_secs(10);

/// What must be the same after a restart, by path and name.
fn state(fixture: &mut Fixture) -> BTreeMap<String, Value> {
    let mut state = BTreeMap::new();
    for path in ["/api/v1/pods", "/api/v1/nodes", "/apis/apps/v1/daemonsets"] {
        for object in fixture.list(path) {
            let (meta, status) = (&object["metadata"], &object["status"]);
            let seen = match path {
                "/api/v1/nodes" => json!([meta["uid"], meta["labels"], object["spec"]]),
                "/api/v1/pods" => json!([
                    meta["uid"],
                    object["spec"]["nodeName"],
                    status["podIP"],
                    status["startTime"],
                    status["containerStatuses"],
                ]),
                _ => json!([meta["uid"], meta["generation"], status]),
            };
            state.insert(format!("{path} {}", meta["name"]), seen);
        }
    }
    state
}

/// A node, once it has its role and the taint that all new nodes have is gone.
fn in_its_role(fixture: &mut Fixture, path: &str) -> Value {
    eventually(Deadline::seconds(30), || {
        let node = fixture.ask("GET", path, &Value::Null).1;
        let new = node["spec"]["taints"].to_string().contains("not-ready");
        let settled = !new && node["metadata"]["labels"][ROLE] == "";
        settled.then_some(node).ok_or("it has no role yet")
    })
}

#[test]
fn what_ran_goes_on_running() {
    let up = ["up", "--simulate", "5", "--taint-control-plane"];
    let mut fixture = Fixture::start(&up);
    let first = in_its_role(&mut fixture, "/api/v1/nodes/sim-1");
    assert_eq!(first["spec"]["taints"][0]["key"], ROLE);
    fixture.create(SETS, &daemon_set("workers", "image"));
    fixture.converged(4);
    let on: Vec<String> = fixture.daemons("workers").into_keys().collect();
    assert_eq!(on, ["sim-2", "sim-3", "sim-4", "sim-5"]);
    fixture.tidy();
    let before = state(&mut fixture);
    let asked = Instant::now();
    let mut fixture = Fixture::of(fixture.kennel.restart());
    assert!(asked.elapsed() < END, "slow to end and begin again");
    // All parts are at work again when what comes now has been seen to.
    fixture.create(SETS, &daemon_set("later", "image"));
    fixture.converged(4);
    fixture.tidy();
    let mut after = state(&mut fixture);
    after.retain(|name, _| !name.contains("later"));
    assert_eq!(after, before);
}

#[test]
fn ctrl_c_ends_everything_at_any_time() {
    // Under load: a DaemonSet has just been created, and its pods are on their way.
    let mut fixture = Fixture::start(&["up", "--simulate", "20"]);
    for number in 0..5 {
        fixture.create(SETS, &daemon_set(&format!("set-{number}"), "image"));
    }
    let asked = Instant::now();
    fixture.kennel.interrupt();
    let status = fixture.kennel.wait_for_end();
    assert!(status.success(), "{status}");
    assert!(asked.elapsed() < END, "slow to end under load");
}

#[test]
fn ctrl_c_while_it_starts_ends_it_too() {
    for delay_ms in [0, 20, 60, 150] {
        let dir = tempfile::TempDir::new().unwrap();
        let data = dir.path().join("data");
        let mut child = Command::new(BINARY)
            .args([
                "up",
                "--simulate",
                "3",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It hears signals before it makes anything.
        eventually(Deadline::seconds(30), || {
            data.exists().then_some(()).ok_or("no data directory yet")
        });
        // Another moment each time: how far it has come is what is tried here.
        thread::sleep(Duration::from_millis(delay_ms));
        let asked = Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{status} after {delay_ms} ms");
        assert!(asked.elapsed() < END, "slow to end after {delay_ms} ms");
    }
}
