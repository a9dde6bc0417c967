//! The guide about three machines with containerd: names, services and the pod network together.

use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};
use serde_json::json;

use super::fixture::{Cluster, TIMEOUT};

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
    eventually(Deadline::seconds(TIMEOUT), || {
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
    // Without a bridge, packets to the pod on the own node meet the rules of services, too.
    let pods = [("own", 0), ("near", 1), ("far", 2), ("client", 0)];
    let mut client = String::new();
    for (name, machine) in pods {
        client = cluster.pod(name, machine, false).to_string();
        let label = format!("app={name}");
        cluster.kubectl.run(&["label", "pod", name, &label]).ok();
        let created = cluster
            .kubectl
            .run_with_input(&["apply", "-f", "-"], &service(name));
        created.ok();
    }
    let own = cluster.machines[0].run("ip -4 -o addr show scope global");
    for name in ["own", "near", "far", "client"] {
        // Of itself, a pod has the bare name in its file of hosts.
        let url = format!("http://{name}.default/cgi-bin/peer");
        let fetch = ["timeout", "3", "wget", "-q", "-O", "-", &url];
        let seen = until_answered(&cluster, "client", &fetch);
        if name == "client" {
            // It sees an address of its node: with its own, answers would not pass the node.
            assert!(own.contains(&format!(" {seen}/")), "{seen}: {own}");
        } else {
            assert_eq!(seen, client, "{name} sees the client's own address");
        }
    }
    let api = [
        "sh",
        "-c",
        "timeout 3 nc kubernetes.default.svc 443 </dev/null",
    ];
    until_answered(&cluster, "client", &api);
}

#[test]
fn n1_2_a_host_port_leads_to_its_pod_from_other_machines_and_pods() {
    if !possible() {
        return;
    }
    let cluster = Cluster::with_proxy("auto", &[0, 1]);
    let server = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server"},
        "spec": {
            "nodeName": cluster.machines[0].node(), "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "kennel.test/peer:1", "imagePullPolicy": "Never",
                "ports": [{"containerPort": 8080, "hostPort": 9200}]}],
        },
    });
    cluster
        .kubectl
        .run_with_input(&["apply", "-f", "-"], &server.to_string())
        .ok();
    cluster.pod("client", 1, false);
    let url = format!("http://{}:9200/cgi-bin/peer", cluster.machines[0].address());
    let fetch = ["timeout", "3", "wget", "-q", "-O", "-", &url];
    let other = cluster.machines[1].address().to_string();
    let from_pod = until_answered(&cluster, "client", &fetch);
    assert_eq!(from_pod, other, "masqueraded over VXLAN");
    let from_machine = cluster.machines[1].run(&format!("timeout 3 busybox wget -q -O - {url}"));
    assert_eq!(from_machine.trim(), other);
}
