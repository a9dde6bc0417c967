//! Services with real packets: what the agents' rules in nftables do with them.

mod faults;
mod fixture;
mod policies;
mod rolling;

use std::io::{BufRead as _, BufReader};

use kennel_testkit::machine;
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use fixture::{Cluster, ask, say, sh, start, until_answered};

/// The answers to so many questions, without counts and addresses.
fn names(answers: &str) -> Vec<String> {
    let words = answers.lines().filter_map(|line| line.split(' ').nth(1));
    words.map(str::to_owned).collect()
}

#[test]
fn n2_1_cluster_ips_lead_pods_and_hosts_to_all_ready_endpoints() {
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let pods = [cluster.pod(0, 11), cluster.pod(1, 12), cluster.pod(1, 13)];
    let ip = cluster.service("web", &json!({}));
    cluster.ready("web", &[&pods[0], &pods[1]]);
    let (a, b) = (&cluster.nodes[0].network, &cluster.nodes[1].network);
    for kind in ["tcp", "udp"] {
        for from in [a, b, &pods[0].network, &pods[2].network] {
            eventually(Deadline::seconds(30), || {
                let found = names(&ask(from, kind, &ip, 80, 24));
                let both = found == ["a11", "b12"];
                both.then_some(()).ok_or(format!("{kind}: {found:?}"))
            });
        }
    }
    // Pods see each other's addresses, whoever is between them.
    let answers = ask(&pods[2].network, "tcp", &ip, 80, 24);
    assert!(
        answers.lines().all(|line| line.ends_with(&pods[2].address)),
        "{answers}"
    );
    // A machine with several interfaces uses the address of the one that leads to the endpoint.
    let answers = ask(b, "tcp", &ip, 80, 24);
    let lan = cluster.nodes[1].address();
    assert!(
        answers
            .lines()
            .any(|line| line.ends_with(&format!("a11 {lan}"))),
        "{answers}"
    );
    // Each of three has the same share, though their chain has four slots: 100 each, with a standard deviation of 8.
    cluster.ready("web", &[&pods[0], &pods[1], &pods[2]]);
    for kind in ["tcp", "udp"] {
        eventually(Deadline::seconds(30), || {
            let answers = ask(b, kind, &ip, 80, 300);
            let shares: Vec<u32> = answers
                .lines()
                .filter_map(|line| line.split(' ').next()?.parse().ok())
                .collect();
            let even = shares.len() == 3 && shares.iter().all(|share| (55..146).contains(share));
            even.then_some(()).ok_or(answers)
        });
    }
    // Endpoints that are not ready get nothing; those that serve while they terminate only if there is no other.
    let terminating = json!({"conditions": {"ready": false, "serving": true, "terminating": true}});
    cluster.endpoints(
        "web",
        &[(&pods[0], terminating.clone()), (&pods[1], json!({}))],
    );
    eventually(Deadline::seconds(30), || {
        let found = names(&ask(a, "tcp", &ip, 80, 12));
        (found == ["b12"]).then_some(()).ok_or(format!("{found:?}"))
    });
    cluster.endpoints("web", &[(&pods[0], terminating)]);
    eventually(Deadline::seconds(30), || {
        let found = names(&ask(a, "tcp", &ip, 80, 12));
        (found == ["a11"]).then_some(()).ok_or(format!("{found:?}"))
    });
}

/// Listens for SCTP. Kernels without SCTP sockets route it all the same, so this looks at the bare packets.
const SCTP_LISTEN: &str = "import socket\nmade = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)\nprint('ready')\n\
    while True:\n    packet = made.recv(2000)\n    print('port', int.from_bytes(packet[22:24], 'big'))";
/// Sends the beginning of an SCTP connection from a port, and says whether ICMP refuses it within two seconds.
const SCTP_SEND: &str = "import socket, struct, sys\n\
    def crc(data):\n    value = 0xffffffff\n    for byte in data:\n        value ^= byte\n        for _ in range(8):\n            \
    value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)\n    return value ^ 0xffffffff\n\
    chunk = struct.pack('!BBHIIHHI', 1, 0, 20, 7, 65536, 1, 1, 7)\n\
    head = struct.pack('!HHI', int(sys.argv[2]), 80, 0)\n\
    sum = struct.pack('<I', crc(head + b'\\0' * 4 + chunk))\n\
    made = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)\n\
    errors = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)\n\
    errors.settimeout(2)\n\
    made.sendto(head + sum + chunk, (sys.argv[1], 0))\n\
    try:\n    while errors.recv(2000)[20:22] != b'\\x03\\x03':\n        pass\n    print('refused')\n\
    except TimeoutError:\n    print('sent')";

#[test]
fn n2_1_and_n2_4_sctp_is_routed_and_refused() {
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let pods = [cluster.pod(0, 11), cluster.pod(0, 12)];
    let ports = json!([{"name": "sctp", "protocol": "SCTP", "port": 80, "targetPort": 9000}]);
    let ip = cluster.service("sctp", &json!({ "ports": ports }));
    let endpoints = |endpoints: &[Value]| {
        let mut slice = fixture::slice("sctp", "", endpoints);
        slice["ports"] = json!([{"name": "sctp", "protocol": "SCTP", "port": 9000}]);
        cluster.apply(&slice);
    };
    // Each packet from a port of its own is a connection of its own.
    let mut ports = 4000..;
    let mut send = || {
        let port = ports.next().unwrap().to_string();
        let sent = pods[1]
            .network
            .command("python3")
            .args(["-c", SCTP_SEND, &ip, &port])
            .output()
            .unwrap();
        assert!(sent.status.success(), "{sent:?}");
        String::from_utf8_lossy(&sent.stdout).trim().to_owned()
    };
    let mut until_sent = |expected: &str| {
        eventually(Deadline::seconds(30), || {
            let found = send();
            (found == expected).then_some(()).ok_or(found)
        });
    };
    let mut listener = start(&pods[0].network, SCTP_LISTEN);
    let mut lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    until_sent("refused");
    endpoints(&[json!({"addresses": [pods[0].address], "nodeName": "a"})]);
    until_sent("sent");
    assert_eq!(lines.next().unwrap().unwrap(), "port 9000");
    endpoints(&[]);
    until_sent("refused");
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[test]
fn n2_4_no_endpoint_is_refused_at_once_and_a_pod_reaches_itself() {
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let pod = cluster.pod(0, 11);
    let ip = cluster.service("web", &json!({"type": "NodePort"}));
    let port = cluster.node_port("web");
    let host = &cluster.nodes[0].network;
    let node = cluster.nodes[0].address();
    for from in [host, &pod.network, &cluster.nodes[1].network] {
        until_answered(from, "tcp", &ip, 80, "refused");
        until_answered(from, "udp", &ip, 80, "refused");
    }
    until_answered(&cluster.outside, "tcp", &node, port, "refused");
    until_answered(host, "tcp", &node, port, "refused");
    // A port that the service does not have.
    until_answered(&pod.network, "tcp", &ip, 81, "refused");
    cluster.ready("web", &[&pod]);
    // It sees the address of its node: with its own, answers would not pass the node.
    for kind in ["tcp", "udp"] {
        eventually(Deadline::seconds(30), || {
            let found = ask(&pod.network, kind, &ip, 80, 1);
            let itself = found.starts_with("1 a11 ") && !found.contains(&pod.address);
            itself.then_some(()).ok_or(found)
        });
    }
    cluster.ready("web", &[]);
    until_answered(&pod.network, "tcp", &ip, 80, "refused");
}

#[test]
fn n2_5_datagrams_of_one_socket_reach_the_next_endpoint() {
    const CLIENT: &str = "import socket, sys\nmade = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nmade.settimeout(1)\n\
        for line in sys.stdin:\n    address, port = line.split()\n    try:\n        made.sendto(b'?', (address, int(port)))\n        \
        print(made.recv(200).decode().strip())\n    except OSError as error:\n        print(error)";
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    let pods = [cluster.pod(0, 11), cluster.pod(0, 12), cluster.pod(0, 13)];
    let ip = cluster.service("dns", &json!({"type": "NodePort"}));
    let node_port = cluster.node_port("dns");
    let node = cluster.nodes[0].address();
    cluster.ready("dns", &[&pods[0]]);
    let seen = format!("a11 {}", pods[2].address);
    until_answered(&pods[2].network, "udp", &ip, 80, &seen);
    // One of a pod at the cluster IP, and one from outside of the cluster at the node port.
    let mut clients = [
        (&pods[2].network, format!("{ip} 80")),
        (&cluster.outside, format!("{node} {node_port}")),
    ]
    .map(|(from, target)| {
        let mut client = start(from, CLIENT);
        let answers = BufReader::new(client.stdout.take().unwrap()).lines();
        (client, answers, target)
    });
    let mut ask_again = |expected: &str| {
        for (client, answers, target) in &mut clients {
            eventually(Deadline::seconds(30), || {
                say(client, target);
                let found = answers.next().unwrap().unwrap();
                let is_expected = found.split(' ').next() == Some(expected);
                is_expected
                    .then_some(())
                    .ok_or(format!("{target}: {expected} is expected: {found}"))
            });
        }
    };
    ask_again("a11");
    cluster.ready("dns", &[&pods[1]]);
    ask_again("a12");
    // The pod is still there: its connection was deleted, not only broken.
    cluster.ready("dns", &[&pods[0]]);
    ask_again("a11");
    // What goes while no agent runs is found by the next one.
    cluster.nodes[0].agent.kill();
    cluster.ready("dns", &[&pods[1]]);
    ask_again("a11");
    cluster.nodes[0].restart();
    ask_again("a12");
    cluster.ready("dns", &[]);
    // An ICMP error does not reach a socket that is not connected.
    ask_again("timed");
    for (mut client, _, _) in clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
}

#[test]
fn n2_6_the_api_is_reached_through_its_service_from_pods_and_hosts() {
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let pod = cluster.pod(1, 11);
    let ip = cluster
        .kubectl
        .run(&[
            "get",
            "service",
            "kubernetes",
            "-o=jsonpath={.spec.clusterIP}",
        ])
        .ok();
    let slices = [
        "get",
        "endpointslices",
        "kubernetes",
        "-o=jsonpath={.endpoints[*].addresses[*]}",
    ];
    let addresses = cluster.kubectl.run(&slices).ok();
    let reaches = |from, script: &str| sh(from, &format!("{script} || true"));
    for from in [&cluster.nodes[0].network, &cluster.nodes[1].network] {
        eventually(Deadline::seconds(30), || {
            let found = reaches(from, &format!("curl -sk -m 3 https://{ip}/version"));
            found
                .contains("gitVersion")
                .then_some(())
                .ok_or(format!("{addresses}: {found:?}"))
        });
    }
    // A pod's way to the server leads through its node, which the test has no route back through: it must be masqueraded by
    // the network, as any traffic that leaves the cluster.
    let rule = "nft 'table ip leaves { chain post { type nat hook postrouting priority 100; oifname eth0 masquerade; }; }'";
    sh(&cluster.nodes[1].network, rule);
    eventually(Deadline::seconds(30), || {
        let found = reaches(&pod.network, &format!("curl -sk -m 3 https://{ip}/version"));
        found
            .contains("gitVersion")
            .then_some(())
            .ok_or(format!("{addresses}: {found:?}"))
    });
}
