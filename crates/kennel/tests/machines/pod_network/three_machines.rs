//! The guide about three machines with containerd: names, services and the pod network together.

use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};
use serde_json::json;

use super::fixture::{Cluster, PATIENCE};

/// A service with a cluster IP for the pods with this label.
fn service(name: &str) -> String {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    service.to_string()
}

/// Waits until a command in a pod succeeds, and returns what it prints.
fn until_answered(cluster: &Cluster, pod: &str, command: &[&str]) -> String {
    eventually(Deadline::seconds(PATIENCE), || {
        let answer = cluster
            .kubectl
            .run(&[&["exec", pod, "--"], command].concat());
        if answer.code == 0 {
            return Ok(answer.stdout.trim().to_owned());
        }
        let logs: Vec<String> = cluster.machines.iter().map(|one| one.agent.log()).collect();
        Err(format!(
            "{command:?}: {}\n{}",
            answer.stderr,
            logs.join("\n")
        ))
    })
}

#[test]
fn n2_1_and_n3_a_pod_reaches_a_service_on_another_machine_by_its_name() {
    if !possible() {
        return;
    }
    // Two machines on one link, and one behind a router.
    let cluster = Cluster::with_proxy("auto", &[0, 0, 1]);
    for (name, machine) in [("near", 1), ("far", 2)] {
        cluster.pod(name, machine, false);
        let label = format!("app={name}");
        cluster.kubectl.run(&["label", "pod", name, &label]).ok();
        let created = cluster
            .kubectl
            .run_with_input(&["apply", "-f", "-"], &service(name));
        created.ok();
    }
    let client = cluster.pod("client", 0, false).to_string();
    for name in ["near", "far"] {
        let url = format!("http://{name}/cgi-bin/peer");
        let fetch = ["timeout", "3", "wget", "-q", "-O", "-", &url];
        let seen = until_answered(&cluster, "client", &fetch);
        assert_eq!(
            seen, client,
            "the pod behind {name} sees the client's own address"
        );
    }
    let api = [
        "sh",
        "-c",
        "timeout 3 nc kubernetes.default.svc 443 </dev/null",
    ];
    until_answered(&cluster, "client", &api);
}
