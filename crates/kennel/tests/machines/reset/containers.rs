//! Pods in containerd, of an agent that has joined a cluster.

use std::path::{Path, PathBuf};
use std::process::Output;

use kennel_node::runtime::cri::Cri;
use kennel_node::runtime::{PodId, Runtime as _, SandboxConfig};
use kennel_testkit::machine::{Containerd, Image, possible};

use super::{KENNEL, cgroups, check, mounts, run};
use crate::agents::fleet::{Engine, Fleet, Machine, is_ready};

const POD: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: kennel.test/app:1
    volumeMounts: [{name: memory, mountPath: /memory}]
  volumes: [{name: memory, emptyDir: {medium: Memory}}]
";

fn cleanup(machine: &Machine, flags: &[&str]) -> Output {
    let mut command = machine.network().command(KENNEL);
    command.args(["agent", "--cleanup", "--yes", "--data-dir"]);
    command.arg(machine.agent.data_dir());
    run(command.args(flags))
}

/// The ids of all containers and sandboxes.
fn containers(containerd: &Containerd) -> Vec<String> {
    let listed = run(containerd.ctr().args(["containers", "list", "--quiet"]));
    let listed = check(&listed, 0);
    listed.lines().map(str::to_owned).collect()
}

/// Creates a sandbox as the agent of another data directory does.
fn sandbox_of_another_agent(containerd: &Containerd) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = SandboxConfig {
        pod: PodId {
            namespace: "default".to_owned(),
            name: "other".to_owned(),
            uid: "other-uid".to_owned(),
        },
        host_network: true,
        log_dir: containerd.directory().join("other-logs"),
        data_dir: "/var/lib/another-agent".into(),
        ..SandboxConfig::default()
    };
    runtime.block_on(async {
        let cri = Cri::new(&containerd.socket());
        cri.start_sandbox(&config).await.unwrap()
    })
}

#[test]
fn pods_in_containers_are_ended_and_those_of_others_are_not() {
    if !possible() {
        return;
    }
    let mut fleet = Fleet::new(Engine::Containerd, 1, &[Image::new("kennel.test/app:1")]);
    fleet.apply(POD);
    let pod = fleet.pod("app", is_ready);
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let machine = &mut fleet.machines[0];
    let refused = check(&cleanup(machine, &[]), 2);
    let process = format!("process {}, runs with", machine.agent.pid());
    assert!(refused.contains(&process), "{refused}");

    assert!(machine.agent.stop().success());
    let other = sandbox_of_another_agent(machine.containerd());
    assert_eq!(containers(machine.containerd()).len(), 3);
    let (data, logs) = (machine.agent.data_dir(), machine.agent.log_dir());
    assert!(!mounts(&data).is_empty() && !cgroups(uid).is_empty());

    // Without its container runtime, nothing is forgotten.
    machine.containerd().kill();
    let text = check(&cleanup(machine, &[]), 1);
    let socket = machine.containerd().socket();
    assert!(
        text.contains(&format!("container runtime at {}", socket.display())),
        "{text}"
    );
    assert!(text.contains("repeat the command"), "{text}");
    assert!(data.join("pods").join(uid).exists());
    machine.containerd().start_again();

    let text = check(&cleanup(machine, &[]), 0);
    assert!(text.contains("default/app"), "{text}");
    assert!(text.contains("kubectl delete node"), "{text}");
    assert_eq!(containers(machine.containerd()), [other]);
    assert_eq!(mounts(&data), [] as [String; 0]);
    assert_eq!(cgroups(uid), [] as [PathBuf; 0]);
    assert!(!data.exists());
    assert_eq!(entries(&logs), [] as [PathBuf; 0]);
    let text = check(&cleanup(machine, &[]), 0);
    assert!(text.contains("Nothing to do"), "{text}");
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
