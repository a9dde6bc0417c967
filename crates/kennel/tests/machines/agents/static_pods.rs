//! Static pods: files in a directory, with and without a server.

use std::fs;
use std::path::Path;

use kennel_testkit::machine::{Image, Network};
use kennel_testkit::{Agent, AgentPlan, Deadline, eventually};

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready, processes_with};
use crate::process_runtime::fixture::{nap, processes};

fn manifest(name: &str, words: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: static}}}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - {{name: c, image: "kennel.test/app:1", command: [sh, -c, "echo {words}; exec sleep infinity"]}}
"#
    )
}

#[test]
fn files_become_pods_and_mirrors_do_not_stop_them() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fleet = Fleet::new(Engine::Containerd, 1, &[Image::new("kennel.test/app:1")]);
    let dir = fleet.machines[0].agent.manifest_dir();
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("broken.yaml"), "kind: Pod\nmetadata: [").unwrap();
    fs::write(dir.join("dog.yaml"), manifest("dog", "woof")).unwrap();
    let pod = fleet.pod("dog-machine-1", is_ready);
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "Node");
    let id = pod["status"]["containerStatuses"][0]["containerID"].clone();
    fleet.machines[0].agent.wait_for("broken.yaml");
    // Deleting the mirror deletes the mirror.
    let delete = [
        "delete",
        "pod",
        "dog-machine-1",
        "--grace-period=0",
        "--force",
    ];
    fleet.kubectl.run(&delete);
    let uid = pod["metadata"]["uid"].clone();
    let back = fleet.pod("dog-machine-1", |pod| {
        is_ready(pod) && pod["metadata"]["uid"] != uid
    });
    assert_eq!(back["status"]["containerStatuses"][0]["containerID"], id);
    // A changed file is another pod under the same name.
    fs::write(dir.join("dog.yaml"), manifest("dog", "grr")).unwrap();
    fleet.pod("dog-machine-1", |pod| {
        is_ready(pod) && pod["status"]["containerStatuses"][0]["containerID"] != id
    });
    let logs = fleet.kubectl.run(&["logs", "dog-machine-1"]).ok();
    assert_eq!(logs, "grr\n");
    fs::remove_file(dir.join("dog.yaml")).unwrap();
    eventually(Deadline::seconds(TIMEOUT), || {
        let pods = fleet.get(&["pods"])?;
        let none = pods["items"].as_array().is_some_and(Vec::is_empty);
        none.then_some(()).ok_or(pods.to_string())
    });
}

#[test]
fn files_become_pods_without_any_server() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let network = Network::new();
    let plan = AgentPlan {
        binary: env!("CARGO_BIN_EXE_kennel").into(),
        node: "alone".to_owned(),
        arguments: vec!["--runtime=process".to_owned()],
    };
    let mut agent = Agent::start(plan, Some(&network));
    let dir = agent.manifest_dir();
    fs::create_dir_all(&dir).unwrap();
    let shared = tempfile::tempdir().unwrap();
    let beat = shared.path().join("beat");
    let heart = HEART.replace("SHARED", shared.path().to_str().unwrap());
    fs::write(dir.join("dog.yaml"), heart).unwrap();
    let beats = || {
        let last = fs::read_to_string(&beat).unwrap_or_default();
        eventually(Deadline::seconds(TIMEOUT), || {
            let now = fs::read_to_string(&beat).unwrap_or_default();
            (now != last && !now.is_empty())
                .then_some(())
                .ok_or(agent_says(&agent))
        });
    };
    beats();
    let holder = format!("HOLDER={}", shared.path().display());
    assert!(processes_with(&holder) > 0, "it is seen while it runs");
    agent.kill();
    let last = fs::read_to_string(&beat).unwrap();
    eventually(Deadline::seconds(TIMEOUT), || {
        let now = fs::read_to_string(&beat).unwrap();
        (now != last).then_some(()).ok_or("it ended with its agent")
    });
    agent.start_again(Some(&network));
    agent.wait_for("all pod sources synced");
    fs::remove_file(dir.join("dog.yaml")).unwrap();
    eventually(Deadline::seconds(TIMEOUT), || {
        let left = processes_with(&holder);
        (left == 0).then_some(()).ok_or(agent_says(&agent))
    });
}

/// The nearest limit of processes for a process, from its group up to the root.
fn pids_limit(pid: i32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let root = match controllers {
            "pids" => Path::new("/sys/fs/cgroup/pids"),
            "" => Path::new("/sys/fs/cgroup"),
            _ => return None,
        };
        let group = root.join(path.trim_start_matches('/'));
        group.ancestors().find_map(|group| {
            let limit = fs::read_to_string(group.join("pids.max")).ok()?;
            limit.trim().parse().ok()
        })
    })
}

#[test]
fn a_pod_of_processes_has_a_limit_of_4096_unless_a_flag_says_otherwise() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    for (flags, limit) in [(&[][..], 4096), (&["--pod-max-pids=777"], 777)] {
        let network = Network::new();
        let runtime = std::iter::once("--runtime=process".to_owned());
        let flags = flags.iter().map(|&flag: &&str| flag.to_owned());
        let plan = AgentPlan {
            binary: env!("CARGO_BIN_EXE_kennel").into(),
            node: "alone".to_owned(),
            arguments: runtime.chain(flags).collect(),
        };
        let agent = Agent::start(plan, Some(&network));
        let dir = agent.manifest_dir();
        fs::create_dir_all(&dir).unwrap();
        let nap = nap();
        fs::write(dir.join("nap.yaml"), NAP.replace("NAP", &nap)).unwrap();
        eventually(Deadline::seconds(TIMEOUT), || {
            let found = processes(&nap).into_iter().find_map(pids_limit);
            (found == Some(limit))
                .then_some(())
                .ok_or_else(|| format!("{found:?}: {}", agent_says(&agent)))
        });
        fs::remove_file(dir.join("nap.yaml")).unwrap();
        eventually(Deadline::seconds(TIMEOUT), || {
            processes(&nap)
                .is_empty()
                .then_some(())
                .ok_or_else(|| agent_says(&agent))
        });
    }
}

const NAP: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: none, command: [sleep, "NAP"]}
"#;

const HEART: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: heart}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  volumes: [{name: shared, hostPath: {path: SHARED}}]
  containers:
  - name: c
    image: none
    command: [sh, -c, "while :; do date +%N > /shared/beat; sleep 0.1; done"]
    env: [{name: HOLDER, value: SHARED}]
    volumeMounts: [{name: shared, mountPath: /shared}]
"#;

fn agent_says(agent: &Agent) -> String {
    agent.log()
}
