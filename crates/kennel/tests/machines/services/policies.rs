//! Traffic policies, hints, node ports and session affinity.

use kennel_testkit::machine;
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Cluster, Pod, ask, sh, until_answered};
use super::names;

/// Waits until all of many questions are answered by these pods, each of them.
fn until_names(from: &machine::Network, address: &str, port: u16, expected: &[&str]) {
    eventually(Deadline::seconds(30), || {
        let answers = ask(from, "tcp", address, port, 24);
        let found = names(&answers);
        (found == expected)
            .then_some(())
            .ok_or(format!("{expected:?} are expected: {answers}"))
    });
}

fn cluster_with_pods() -> (Cluster, [Pod; 2]) {
    let cluster = Cluster::new();
    let pods = [cluster.pod(0, 11), cluster.pod(1, 12)];
    (cluster, pods)
}

#[test]
fn n2_2_local_traffic_reaches_the_own_node_or_is_dropped_or_refused() {
    if !machine::possible() {
        return;
    }
    let (cluster, pods) = cluster_with_pods();
    let (a, b) = (&cluster.nodes[0].network, &cluster.nodes[1].network);
    let ip = cluster.service("own", &json!({"internalTrafficPolicy": "Local"}));
    cluster.ready("own", &[&pods[0], &pods[1]]);
    for (from, expected) in [
        (a, "a11"),
        (&pods[0].network, "a11"),
        (b, "b12"),
        (&pods[1].network, "b12"),
    ] {
        until_names(from, &ip, 80, &[expected]);
    }
    cluster.ready("own", &[&pods[0]]);
    until_answered(b, "tcp", &ip, 80, "timeout");
    until_answered(&pods[1].network, "udp", &ip, 80, "timeout");
    until_names(a, &ip, 80, &["a11"]);
    cluster.ready("own", &[]);
    until_answered(b, "tcp", &ip, 80, "refused");
    until_answered(a, "tcp", &ip, 80, "refused");
}

#[test]
fn n2_2_hints_prefer_the_own_node_then_the_zone() {
    if !machine::possible() {
        return;
    }
    let (cluster, pods) = cluster_with_pods();
    let (a, b) = (&cluster.nodes[0].network, &cluster.nodes[1].network);
    let ip = cluster.service("hinted", &json!({}));
    let for_node = |name: &str| json!({"hints": {"forNodes": [{"name": name}]}});
    let for_zone = |name: &str| json!({"hints": {"forZones": [{"name": name}]}});
    let put = |first: Value, second: Value| {
        cluster.endpoints("hinted", &[(&pods[0], first), (&pods[1], second)]);
    };
    put(for_node("a"), for_node("b"));
    until_names(a, &ip, 80, &["a11"]);
    until_names(b, &ip, 80, &["b12"]);
    put(for_node("a"), json!({}));
    until_names(a, &ip, 80, &["a11", "b12"]);
    put(for_zone("zone-b"), for_zone("zone-a"));
    until_names(a, &ip, 80, &["b12"]);
    until_names(b, &ip, 80, &["a11"]);
    // The zone is that of the node's label, also when it changes.
    cluster
        .kubectl
        .run(&[
            "label",
            "node",
            "a",
            "--overwrite",
            "topology.kubernetes.io/zone=zone-b",
        ])
        .ok();
    until_names(a, &ip, 80, &["a11"]);
}

#[test]
fn n2_3_node_ports_answer_on_the_nodes_addresses_and_local_ones_keep_the_source() {
    if !machine::possible() {
        return;
    }
    let (cluster, pods) = cluster_with_pods();
    let nodes = [cluster.nodes[0].address(), cluster.nodes[1].address()];
    cluster.service("web", &json!({"type": "NodePort"}));
    let port = cluster.node_port("web");
    cluster.ready("web", &[&pods[0], &pods[1]]);
    for node in &nodes {
        until_names(&cluster.outside, node, port, &["a11", "b12"]);
        // Its answers have to come back to the node that was asked.
        let answers = ask(&cluster.outside, "udp", node, port, 24);
        assert_eq!(names(&answers), ["a11", "b12"]);
        assert!(!answers.contains("10.77.0.9"), "{answers}");
    }
    until_names(&cluster.nodes[0].network, &nodes[0], port, &["a11", "b12"]);
    until_names(&pods[0].network, &nodes[0], port, &["a11", "b12"]);
    until_answered(
        &cluster.nodes[0].network,
        "tcp",
        "127.0.0.1",
        port,
        "refused",
    );

    cluster.service(
        "web",
        &json!({"type": "NodePort", "externalTrafficPolicy": "Local"}),
    );
    until_names(&cluster.outside, &nodes[0], port, &["a11"]);
    until_names(&cluster.outside, &nodes[1], port, &["b12"]);
    let answers = ask(&cluster.outside, "tcp", &nodes[0], port, 4);
    assert_eq!(answers.trim(), "4 a11 10.77.0.9");
    cluster.ready("web", &[&pods[1]]);
    until_answered(&cluster.outside, "tcp", &nodes[0], port, "timeout");
    // The node itself is inside of the cluster.
    until_names(&cluster.nodes[0].network, &nodes[0], port, &["b12"]);
}

#[test]
fn n2_3_the_doctor_says_that_node_ports_need_forwarding() {
    if !machine::possible() {
        return;
    }
    let (cluster, pods) = cluster_with_pods();
    let host = &cluster.nodes[0].network;
    let doctor = || {
        let kennel = env!("CARGO_BIN_EXE_kennel");
        let arguments = "doctor network --cni-conf-dir=/nowhere --cluster-dns=127.0.0.1";
        sh(host, &format!("{kennel} {arguments} || true"))
    };
    sh(host, "echo 0 > /proc/sys/net/ipv4/ip_forward");
    let off = "ok       forwarding: off, and neither a pod network nor node ports need it";
    assert!(doctor().contains(off), "{}", doctor());
    cluster.service("web", &json!({"type": "NodePort"}));
    let port = cluster.node_port("web");
    cluster.ready("web", &[&pods[1]]);
    let problem = "PROBLEM  forwarding: off, so that packets to node ports reach no endpoints but those with this machine's network: \
                   sysctl -w net.ipv4.ip_forward=1";
    eventually(Deadline::seconds(30), || {
        let said = doctor();
        said.contains(problem).then_some(()).ok_or(said)
    });
    let node = cluster.nodes[0].address();
    until_answered(&cluster.outside, "tcp", &node, port, "timeout");
    sh(host, "echo 1 > /proc/sys/net/ipv4/ip_forward");
    assert!(doctor().contains("ok       forwarding: on"), "{}", doctor());
    until_names(&cluster.outside, &node, port, &["b12"]);
}

#[test]
fn n2_3_the_health_check_port_tells_nodes_with_endpoints_from_others() {
    if !machine::possible() {
        return;
    }
    let (cluster, pods) = cluster_with_pods();
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    cluster.service("web", &spec);
    let path = [
        "get",
        "service",
        "web",
        "-o=jsonpath={.spec.healthCheckNodePort}",
    ];
    let port = cluster.kubectl.run(&path).ok();
    let until = |node: usize, expected: &str| {
        let url = format!("http://{}:{port}/", cluster.nodes[node].address());
        eventually(Deadline::seconds(30), || {
            let found = sh(
                &cluster.outside,
                &format!("curl -s -m 3 -w ' %{{http_code}}' {url} || true"),
            );
            found
                .ends_with(expected)
                .then_some(())
                .ok_or(format!("{expected}: {found}"))
        });
    };
    until(0, "503");
    cluster.ready("web", &[&pods[0]]);
    until(
        0,
        "\"localEndpoints\":1,\"service\":{\"name\":\"web\",\"namespace\":\"default\"},\"serviceProxyHealthy\":true} 200",
    );
    until(1, "503");
    cluster.kubectl.run(&["delete", "service", "web"]).ok();
    until(0, "000");
}

#[test]
fn n2_3_session_affinity_keeps_a_client_with_its_endpoint_for_the_timeout() {
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    let pods: Vec<Pod> = (11..17)
        .map(|number| cluster.pod(usize::from(number % 2), number))
        .collect();
    let all: Vec<&Pod> = pods.iter().collect();
    let affinity = |seconds: u32| {
        json!({"type": "NodePort", "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}})
    };
    let ip = cluster.service("sticky", &affinity(1000));
    let port = cluster.node_port("sticky");
    cluster.ready("sticky", &all);
    let node = cluster.nodes[0].address();
    for (from, address, port) in [
        (&cluster.nodes[0].network, &ip, 80),
        (&pods[0].network, &ip, 80),
        (&cluster.outside, &node, port),
    ] {
        eventually(Deadline::seconds(30), || {
            let answers = ask(from, "tcp", address, port, 1);
            (!answers.contains("refused")).then_some(()).ok_or(answers)
        });
        let answers = ask(from, "tcp", address, port, 24);
        assert_eq!(names(&answers).len(), 1, "{answers}");
    }
    // An agent that is killed and started writes its table anew, and each client keeps its endpoint. Of six, another one would
    // have the same by chance.
    let asked = |cluster: &Cluster| {
        let of = [
            ask(&cluster.nodes[0].network, "tcp", &ip, 80, 1),
            ask(&pods[1].network, "tcp", &ip, 80, 1),
            ask(&cluster.outside, "tcp", &node, port, 1),
        ];
        of.map(|answers| names(&answers))
    };
    let before = asked(&cluster);
    for _ in 0..3 {
        cluster.nodes[0].agent.kill();
        cluster.nodes[0].restart();
        cluster.nodes[0].agent.wait_for("routing services");
        assert_eq!(asked(&cluster), before);
    }
    // An endpoint that goes is forgotten, and the clients of others stay.
    let from = &cluster.nodes[0].network;
    let own = names(&ask(from, "tcp", &ip, 80, 1)).remove(0);
    let without =
        |name: &str| -> Vec<&Pod> { all.iter().copied().filter(|pod| pod.name != name).collect() };
    cluster.ready("sticky", &without(&own));
    eventually(Deadline::seconds(30), || {
        let next = names(&ask(from, "tcp", &ip, 80, 12));
        (next.len() == 1 && next[0] != own)
            .then_some(())
            .ok_or(format!("{own}, then {next:?}"))
    });
    let next = names(&ask(from, "tcp", &ip, 80, 1)).remove(0);
    cluster.ready("sticky", &all);
    assert_eq!(names(&ask(from, "tcp", &ip, 80, 12)), [next]);
    // After the timeout without connections, any endpoint may be next.
    cluster.service("sticky", &affinity(1));
    eventually(Deadline::seconds(60), || {
        let found: Vec<String> = (0..3)
            .flat_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(1500));
                names(&ask(from, "tcp", &ip, 80, 1))
            })
            .collect();
        let differ = found.iter().any(|name| *name != found[0]);
        differ.then_some(()).ok_or(format!("{found:?}"))
    });
}
