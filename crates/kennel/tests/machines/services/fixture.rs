//! A server, two nodes whose agents route services, a machine outside of the cluster, and pods with networks of their own.
//!
//! ```text
//!   test (server) ─┬─ node a ─── lan 10.77.0.0/24 ─┬─ node b ─── pods 10.128.2.x
//!                  │    └ pods 10.128.1.x          └─ outside
//!                  └─ node b
//! ```
//!
//! The pods are processes in network namespaces and endpoints in slices that the test writes, so that it decides which of them
//! is ready.

use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};

use kennel_testkit::machine::Network;
use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
const ASK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/machines/services/ask.py"
);
const PEER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/machines/services/peer.py"
);
const TIMEOUT: u64 = 60;
/// Where pods listen.
pub(super) const PORT: u16 = 8080;

/// A node: its machine and its agent.
pub(super) struct Node {
    pub(super) agent: Agent,
    pub(super) network: Network,
    number: u8,
}

impl Node {
    /// Its address on the LAN.
    pub(super) fn address(&self) -> String {
        lan_address(self.number)
    }

    pub(super) fn restart(&mut self) {
        self.agent.start_again(Some(&self.network));
    }
}

/// A process with a network of its own behind a node. It ends when it is dropped.
pub(super) struct Pod {
    peer: Child,
    pub(super) network: Network,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) node: &'static str,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _gone = self.peer.kill();
        let _reaped = self.peer.wait();
    }
}

pub(super) struct Cluster {
    pub(super) nodes: [Node; 2],
    pub(super) outside: Network,
    pub(super) kubectl: Kubectl,
    _server: Kennel,
    _lan: Network,
}

fn lan_address(number: u8) -> String {
    format!("10.77.0.{number}")
}

fn done(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a script on a machine.
pub(super) fn sh(network: &Network, script: &str) -> String {
    done(
        &network
            .command("sh")
            .args(["-ec", script])
            .output()
            .unwrap(),
    )
}

/// Asks so many times from a machine. Returns how often each answer came, a line each.
pub(super) fn ask(from: &Network, kind: &str, address: &str, port: u16, count: u32) -> String {
    let (port, count) = (port.to_string(), count.to_string());
    let command = from
        .command("python3")
        .args([ASK, kind, address, &port, &count, "2"])
        .output();
    done(&command.unwrap())
}

/// Waits until a single question is answered so.
pub(super) fn until_answered(from: &Network, kind: &str, address: &str, port: u16, expected: &str) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let found = ask(from, kind, address, port, 1);
        let is_expected = found.trim() == format!("1 {expected}");
        is_expected
            .then_some(())
            .ok_or(format!("{expected} is expected, not {found}"))
    });
}

const STRICT: &str = "echo 1 > /proc/sys/net/ipv4/ip_forward\n\
    for name in all default; do echo 1 > /proc/sys/net/ipv4/conf/$name/rp_filter; done\n\
    for call in /proc/sys/net/bridge/bridge-nf-call-*; do if [ -e $call ]; then echo 0 > $call; fi; done";

impl Cluster {
    pub(super) fn new() -> Self {
        let lan = Network::new();
        sh(&lan, "ip link add lan type bridge; ip link set lan up");
        let machines =
            [("a", 1), ("b", 2)].map(|(name, number)| (name, number, machine(&lan, number)));
        let mut arguments = vec!["up".to_owned(), "--nodes=0".to_owned()];
        arguments.extend(
            machines
                .iter()
                .map(|(_, _, network)| format!("--tls-san={}", network.gateway())),
        );
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let server = Kennel::start_at(KENNEL, &arguments, "0.0.0.0:0");
        let nodes = machines.map(|(name, number, network)| {
            let mut arguments = server.join_flags();
            arguments.extend([
                format!(
                    "--server=https://{}:{}",
                    network.gateway(),
                    server.address().port()
                ),
                "--runtime=process".to_owned(),
                "--proxy=nftables".to_owned(),
                format!("--node-ip={}", lan_address(number)),
                format!("--node-labels=topology.kubernetes.io/zone=zone-{name}"),
            ]);
            let plan = AgentPlan {
                binary: KENNEL.into(),
                node: name.to_owned(),
                arguments,
            };
            Node {
                agent: Agent::start(plan, Some(&network)),
                network,
                number,
            }
        });
        let outside = machine(&lan, 9);
        let kubectl = Kubectl::new(Version::V1_32, &server.kubeconfig());
        let cluster = Self {
            nodes,
            outside,
            kubectl,
            _server: server,
            _lan: lan,
        };
        for (node, other) in [(0, 1), (1, 0)] {
            let (pods, other) = (other + 1, lan_address(u8::try_from(other + 1).unwrap()));
            let route = format!("ip route add 10.128.{pods}.0/24 via {other}");
            sh(&cluster.nodes[node].network, &route);
            cluster.nodes[node].agent.wait_for("routing services");
        }
        cluster
    }

    /// A pod behind a node, number 0 or 1.
    pub(super) fn pod(&self, node: usize, number: u8) -> Pod {
        let network = Network::new();
        let address = format!("10.128.{}.{number}", node + 1);
        let machine = &self.nodes[node].network;
        let port = format!("pod{number}");
        let script = format!(
            "ip link del eth0\nip link add eth0 type veth peer name {port} netns {}\nip addr add {address}/32 dev eth0\n\
             ip link set eth0 up\nip route add 169.254.1.1 dev eth0\nip route add default via 169.254.1.1 dev eth0",
            machine.name()
        );
        sh(&network, &script);
        sh(
            machine,
            &format!(
                "ip link set {port} up\necho 1 > /proc/sys/net/ipv4/conf/{port}/proxy_arp\nip route add {address}/32 dev {port}"
            ),
        );
        let name = format!("{}{number}", ["a", "b"][node]);
        let mut command = network.command("python3");
        command
            .args([PEER, &name, &PORT.to_string()])
            .stdin(Stdio::null());
        let peer = command.spawn().unwrap();
        let pod = Pod {
            peer,
            network,
            name,
            address,
            node: ["a", "b"][node],
        };
        let own = pod.address.clone();
        until_answered(
            &pod.network,
            "tcp",
            &own,
            PORT,
            &format!("{} {own}", pod.name),
        );
        pod
    }

    /// Creates or replaces an object.
    pub(super) fn apply(&self, object: &Value) -> Value {
        let stored = self
            .kubectl
            .run_with_input(&["apply", "-o", "json", "-f", "-"], &object.to_string())
            .ok();
        serde_json::from_str(&stored).unwrap()
    }

    /// A service of TCP and UDP, port 80. Returns its cluster IP.
    pub(super) fn service(&self, name: &str, spec: &Value) -> String {
        let ports = json!([{"name": "tcp", "protocol": "TCP", "port": 80, "targetPort": PORT},
            {"name": "udp", "protocol": "UDP", "port": 80, "targetPort": PORT}]);
        let mut whole = json!({"ports": ports});
        for (key, value) in spec.as_object().unwrap() {
            whole[key] = value.clone();
        }
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole});
        self.apply(&object)["spec"]["clusterIP"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The node port of a service for TCP, and for UDP: they are made the same.
    pub(super) fn node_port(&self, service: &str) -> u16 {
        let object = self
            .kubectl
            .run(&["get", "service", service, "-o", "json"])
            .ok();
        let mut object: Value = serde_json::from_str(&object).unwrap();
        let port = object["spec"]["ports"][0]["nodePort"].clone();
        object["spec"]["ports"][1]["nodePort"] = port.clone();
        self.apply(&object);
        u16::try_from(port.as_u64().unwrap()).unwrap()
    }

    /// The endpoints of a service: pods, and what an endpoint has beside its address and node.
    pub(super) fn endpoints(&self, service: &str, pods: &[(&Pod, Value)]) {
        let endpoints: Vec<Value> = pods
            .iter()
            .map(|(pod, more)| {
                let mut endpoint = json!({"addresses": [pod.address], "nodeName": pod.node,
                    "conditions": {"ready": true, "serving": true, "terminating": false}});
                for (key, value) in more.as_object().into_iter().flatten() {
                    endpoint[key] = value.clone();
                }
                endpoint
            })
            .collect();
        self.apply(&slice(service, "", &endpoints));
    }

    /// Endpoints that are simply ready.
    pub(super) fn ready(&self, service: &str, pods: &[&Pod]) {
        let pods: Vec<_> = pods.iter().map(|pod| (*pod, json!({}))).collect();
        self.endpoints(service, &pods);
    }
}

pub(super) fn slice(service: &str, suffix: &str, endpoints: &[Value]) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("{service}-test{suffix}"), "labels": {"kubernetes.io/service-name": service}},
        "ports": [{"name": "tcp", "protocol": "TCP", "port": PORT}, {"name": "udp", "protocol": "UDP", "port": PORT}],
        "endpoints": endpoints})
}

/// A machine on the LAN, with strict reverse-path filters.
fn machine(lan: &Network, number: u8) -> Network {
    let machine = Network::new();
    let mut command = Command::new("sh");
    let script = format!(
        "ip -n {machine} link add lan0 type veth peer name port{number} netns {lan}\n\
         ip -n {lan} link set port{number} master lan up\nip -n {machine} addr add {}/24 dev lan0\n\
         ip -n {machine} link set lan0 up",
        lan_address(number),
        machine = machine.name(),
        lan = lan.name(),
    );
    done(&command.args(["-ec", &script]).output().unwrap());
    sh(&machine, STRICT);
    machine
}

/// A child whose standard input and output the test uses.
pub(super) fn start(network: &Network, script: &str) -> Child {
    let mut command = network.command("python3");
    command
        .args(["-uc", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Sends a line to a child.
pub(super) fn say(child: &mut Child, line: &str) {
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
}
