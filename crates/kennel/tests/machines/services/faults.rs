//! Agents that are killed, rules that others change, kernels that refuse.

use std::io::{BufRead as _, BufReader};

use kennel_testkit::machine;
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Cluster, ask, say, sh, slice, start, until_answered};

const TABLE: &str = "nft list table ip kennel-services";

#[test]
fn n2_7_rules_outlive_the_agent_and_connections_its_successors() {
    const CLIENT: &str = "import socket, sys\naddress, port = sys.stdin.readline().split()\n\
        made = socket.create_connection((address, int(port)), 10)\n\
        for line in sys.stdin:\n    made.sendall(line.encode())\n    print(made.recv(200).decode().strip())";
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    let pods = [cluster.pod(0, 11), cluster.pod(1, 12)];
    let ip = cluster.service("web", &json!({}));
    cluster.ready("web", &[&pods[1]]);
    until_answered(
        &pods[0].network,
        "tcp",
        &ip,
        80,
        &format!("b12 {}", pods[0].address),
    );
    let mut client = start(&pods[0].network, CLIENT);
    let mut answers = BufReader::new(client.stdout.take().unwrap()).lines();
    say(&mut client, &format!("{ip} 80"));
    let mut echo = |word: &str| {
        say(&mut client, word);
        assert_eq!(answers.next().unwrap().unwrap(), word);
    };
    echo("first");
    for round in 0..3 {
        for node in &mut cluster.nodes {
            node.agent.kill();
        }
        echo("while no agent runs");
        let answer = ask(&pods[0].network, "tcp", &ip, 80, 20);
        assert_eq!(
            answer.trim(),
            format!("20 b12 {}", pods[0].address),
            "round {round}"
        );
        for node in &mut cluster.nodes {
            node.restart();
        }
        // While the table is written again.
        for _ in 0..5 {
            echo("while it starts");
            let answer = ask(&pods[0].network, "tcp", &ip, 80, 20);
            assert_eq!(
                answer.trim(),
                format!("20 b12 {}", pods[0].address),
                "round {round}"
            );
        }
        for node in &cluster.nodes {
            node.agent.wait_for("routing services");
        }
        echo("after its start");
    }
    // What changed while it was down.
    cluster.nodes[0].agent.kill();
    cluster.ready("web", &[&pods[0]]);
    cluster.nodes[0].restart();
    let expected = format!("a11 {}", cluster.nodes[0].address());
    eventually(Deadline::seconds(60), || {
        let found = ask(&cluster.nodes[0].network, "tcp", &ip, 80, 3);
        found
            .contains("3 a11")
            .then_some(())
            .ok_or(format!("{expected}: {found}"))
    });
    echo("an old connection");
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn n2_7_a_foreign_change_is_undone_and_other_tables_are_never_touched() {
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    let pod = cluster.pod(0, 11);
    let host = &cluster.nodes[0].network;
    let foreign = "nft 'table ip theirs { set s { type ipv4_addr; elements = { 192.0.2.7 }; }; chain c { counter; }; }'";
    sh(host, foreign);
    let theirs = sh(host, "nft -a list table ip theirs");
    let ip = cluster.service("web", &json!({}));
    cluster.ready("web", &[&pod]);
    let until_reached = || {
        eventually(Deadline::seconds(30), || {
            let found = ask(host, "tcp", &ip, 80, 1);
            found.starts_with("1 a11").then_some(()).ok_or(found)
        });
    };
    until_reached();
    let own = |host| {
        let listing = sh(host, TABLE);
        let mut lines: Vec<String> = listing.split_whitespace().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = own(host);
    for damage in [
        "nft delete table ip kennel-services",
        "nft flush chain ip kennel-services prerouting",
        "nft flush map ip kennel-services cluster-endpoints",
        "nft add rule ip kennel-services output drop",
    ] {
        sh(host, damage);
        eventually(Deadline::seconds(30), || {
            let listing = sh(host, &format!("{TABLE} || true"));
            let mut found: Vec<String> = listing.split_whitespace().map(str::to_owned).collect();
            found.sort();
            (found == before)
                .then_some(())
                .ok_or(format!("after {damage}:\n{listing}"))
        });
        until_reached();
    }
    assert_eq!(sh(host, "nft -a list table ip theirs"), theirs);
    // Nothing of ours is left after a cleanup, and of theirs everything.
    cluster.nodes[0].agent.stop();
    let host = &cluster.nodes[0].network;
    let data = cluster.nodes[0].agent.data_dir();
    let kennel = env!("CARGO_BIN_EXE_kennel");
    let said = sh(
        host,
        &format!(
            "{kennel} agent --cleanup --yes --data-dir {}",
            data.display()
        ),
    );
    assert!(
        said.contains("removes the nftables rules of services"),
        "{said}"
    );
    assert_eq!(sh(host, "nft list tables"), "table ip theirs\n");
    assert_eq!(sh(host, "nft -a list table ip theirs"), theirs);
}

#[test]
fn n2_7_a_second_agent_in_a_network_namespace_refuses() {
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let host = &cluster.nodes[0].network;
    let dir = tempfile::tempdir().unwrap();
    let arguments = format!(
        "unset KENNEL_PROXY\n{} agent --node-name other --data-dir {} --server https://127.0.0.1:1 --token abcdef.0123456789abcdef \
         --ca-hash sha256:{} --listen 127.0.0.1:0 --runtime process",
        env!("CARGO_BIN_EXE_kennel"),
        dir.path().join("data").display(),
        "0".repeat(64),
    );
    let output = host
        .command("sh")
        .args(["-c", &arguments])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let expected = "another agent routes services in this network namespace: stop it, or start this one with --proxy=none";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_kernel_that_refuses_makes_the_node_not_ready_and_leaves_nothing() {
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    cluster.nodes[0].agent.stop();
    sh(
        &cluster.nodes[0].network,
        "nft delete table ip kennel-services",
    );
    // Another program has our table, and nobody else may change it.
    let owner = "table ip kennel-services { flags owner; }";
    let mut child = cluster.nodes[0]
        .network
        .command("nft")
        .arg("-i")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    say(&mut child, owner);
    eventually(Deadline::seconds(30), || {
        let tables = sh(&cluster.nodes[0].network, "nft list tables");
        tables
            .contains("kennel-services")
            .then_some(())
            .ok_or(tables)
    });
    cluster.nodes[0].restart();
    let ready = [
        "get",
        "node",
        "a",
        "-o=jsonpath={.status.conditions[?(@.type==\"Ready\")]}",
    ];
    let until = |expected: &str| {
        eventually(Deadline::seconds(60), || {
            let found = cluster.kubectl.run(&ready).ok();
            found
                .contains(expected)
                .then_some(())
                .ok_or(format!("{expected}: {found}"))
        });
    };
    until("services are not routed: cannot write nftables rules: Operation not permitted");
    // The table goes with its owner.
    child.kill().unwrap();
    child.wait().unwrap();
    until("kubelet is posting ready status");
    sh(&cluster.nodes[0].network, TABLE);
}

/// A network of a machine that lies in the range of services.
const COLLIDING: &str =
    "ip link add vpn0 type bridge; ip link set vpn0 up; ip route add 10.96.40.0/24 dev vpn0";
const COLLISION: &str = "the route 10.96.40.0/24 of this machine lies in the range of services 10.96.0.0/16 (--service-cidr)";

#[test]
fn a_network_of_the_machine_in_the_range_of_services_is_refused_with_both_named() {
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    let pod = cluster.pod(1, 12);
    let ip = cluster.service("web", &json!({}));
    cluster.ready("web", &[&pod]);
    cluster.nodes[0].agent.stop();
    let remove = "nft delete table ip kennel-services";
    sh(&cluster.nodes[0].network, &format!("{remove}; {COLLIDING}"));
    cluster.nodes[0].restart();
    let ready = "-o=jsonpath={.status.conditions[?(@.type==\"Ready\")]}";
    let until = |expected: &str| {
        eventually(Deadline::seconds(60), || {
            let found = cluster.kubectl.run(&["get", "node", "a", ready]).ok();
            found
                .contains(expected)
                .then_some(())
                .ok_or(format!("{expected}: {found}"))
        });
    };
    until(&format!("services are not routed: {COLLISION}"));
    let host = &cluster.nodes[0].network;
    assert_eq!(sh(host, "nft list tables"), "");
    // A route to more than the range is usual.
    sh(
        host,
        "ip route add 10.0.0.0/8 dev vpn0; ip route del 10.96.40.0/24",
    );
    until("kubelet is posting ready status");
    let lan = cluster.nodes[0].address();
    until_answered(host, "tcp", &ip, 80, &format!("b12 {lan}"));
}

#[test]
fn a_server_with_a_node_does_not_start_with_such_a_network() {
    if !machine::possible() {
        return;
    }
    let network = machine::Network::new();
    sh(&network, COLLIDING);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let output = network
        .command(env!("CARGO_BIN_EXE_kennel"))
        .args(["up", "--listen=127.0.0.1:0", "--runtime=process"])
        .args(["--proxy=nftables", "--data-dir"])
        .arg(&data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(COLLISION), "{said}");
    assert!(!data.exists(), "nothing is left behind");
}

#[test]
fn a_server_with_a_node_does_not_start_with_a_network_in_the_range_of_pods() {
    if !machine::possible() {
        return;
    }
    let network = machine::Network::new();
    sh(
        &network,
        "ip link add vpn0 type bridge; ip link set vpn0 up; ip route add 10.200.0.0/16 dev vpn0",
    );
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let output = network
        .command(env!("CARGO_BIN_EXE_kennel"))
        .args(["up", "--listen=127.0.0.1:0", "--runtime=process"])
        .args(["--network=vxlan", "--proxy=none", "--data-dir"])
        .arg(&data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let overlap = "the pods' range 10.128.0.0/9 (--cluster-cidr) overlaps the route 10.200.0.0/16 of this machine";
    assert!(said.contains(overlap), "{said}");
    assert!(!data.exists(), "nothing is left behind");
}

#[test]
fn a_service_ip_that_the_machine_has_still_leads_to_the_endpoints() {
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let pods = [cluster.pod(0, 11), cluster.pod(1, 12)];
    let ip = cluster.service("web", &json!({}));
    let host = &cluster.nodes[0].network;
    sh(host, &format!("ip addr add {ip}/32 dev lo"));
    for pod in [&pods[0], &pods[1]] {
        cluster.ready("web", &[pod]);
        for from in [host, &pods[0].network] {
            eventually(Deadline::seconds(30), || {
                let found = ask(from, "tcp", &ip, 80, 3);
                found
                    .starts_with(&format!("3 {}", pod.name))
                    .then_some(())
                    .ok_or(found)
            });
        }
    }
    // Other ports are the machine's own.
    let mut server = start(
        host,
        &format!(
            "import http.server as h\nh.HTTPServer(('{ip}', 81), h.BaseHTTPRequestHandler).serve_forever()"
        ),
    );
    eventually(Deadline::seconds(30), || {
        let code = sh(
            host,
            &format!("curl -s -m 3 -o /dev/null -w '%{{http_code}}' http://{ip}:81/ || true"),
        );
        (code == "501").then_some(()).ok_or(code)
    });
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn ten_thousand_endpoints_that_flap_leave_the_right_rules() {
    const SLICES: usize = 100;
    if !machine::possible() {
        return;
    }
    let cluster = Cluster::new();
    let pod = cluster.pod(0, 11);
    let ip = cluster.service("many", &json!({}));
    let endpoints = |slice: usize, is_ready: bool| -> Vec<Value> {
        (0..100)
            .map(|number| {
                json!({"addresses": [format!("10.140.{slice}.{number}")], "nodeName": "elsewhere",
                    "conditions": {"ready": is_ready}})
            })
            .collect()
    };
    let put = |slices: std::ops::Range<usize>, is_ready: bool| {
        let items: Vec<Value> = slices
            .map(|number| slice("many", &format!("-{number}"), &endpoints(number, is_ready)))
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        cluster
            .kubectl
            .run_with_input(&["apply", "-f", "-"], &list.to_string())
            .ok();
    };
    let count = |network| {
        let script =
            "nft list map ip kennel-services cluster-endpoints | grep -o '10\\.140\\.' | wc -l";
        sh(network, script).trim().to_owned()
    };
    let until = |expected: &str| {
        for node in &cluster.nodes {
            eventually(Deadline::seconds(120), || {
                let found = count(&node.network);
                (found == expected)
                    .then_some(())
                    .ok_or(format!("{expected}: {found}"))
            });
        }
    };
    put(0..SLICES, true);
    for round in 0..4 {
        put(0..SLICES, round % 2 == 1);
        put(round * 20..round * 20 + 20, round % 2 == 0);
    }
    put(0..SLICES, true);
    // TCP and UDP.
    until("20000");
    put(0..SLICES, false);
    until("0");
    cluster.ready("many", &[&pod]);
    eventually(Deadline::seconds(30), || {
        let found = ask(&pod.network, "tcp", &ip, 80, 20);
        found.starts_with("20 a11").then_some(()).ok_or(found)
    });
    // Chains of numbers of endpoints that no service has are gone.
    let chains = sh(
        &cluster.nodes[1].network,
        "nft list table ip kennel-services | grep -c 'chain cluster-[0-9]'",
    );
    assert_eq!(chains.trim(), "1");
}
