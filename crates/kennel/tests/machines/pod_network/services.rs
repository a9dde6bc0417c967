//! Services whose endpoints are behind direct routes and behind VXLAN: cluster IPs, traffic policies, node ports, session
//! affinity, TCP and UDP.

use std::process::{Child, Command, Stdio};

use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Cluster, TIMEOUT};

const ASK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/machines/services/ask.py"
);
const PEER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/machines/services/peer.py"
);
/// Where peers listen.
const PORT: u16 = 9090;
/// Questions, of which each endpoint gets some.
const MANY: u32 = 24;
/// The pods, and their machines.
pub(super) const PODS: [(&str, usize); 3] = [("here", 0), ("near", 1), ("far", 2)];

/// What answers in the network of a pod, with the pod's name. It ends when it is dropped.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Three machines, of which the third is behind a router, and a pod with a peer on each.
pub(super) struct Fixture {
    _peers: Vec<Peer>,
    pub(super) cluster: Cluster,
}

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    Pod(&'static str, usize),
    Machine(usize),
    Outside,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let cluster = Cluster::with_proxy("auto", &[0, 0, 1]);
        let peers = PODS.map(|(name, machine)| {
            cluster.pod(name, machine, false);
            cluster.kubectl.run(&["label", "pod", name, "app=web"]).ok();
            let mut command = cluster.in_pod(name, machine);
            let command = command.args(["python3", PEER, name, &PORT.to_string()]);
            Peer(command.stdin(Stdio::null()).spawn().unwrap())
        });
        let fixture = Self {
            _peers: peers.into(),
            cluster,
        };
        for (name, machine) in PODS {
            let from = Asker::Pod(name, machine);
            let address = fixture.address(name);
            fixture.until(from, "tcp", &address, PORT, &[name]);
        }
        fixture
    }

    fn address(&self, pod: &str) -> String {
        let pod = self.cluster.get(&["pod", pod]).unwrap();
        pod["status"]["podIP"].as_str().unwrap().to_owned()
    }

    pub(super) fn node(&self, machine: usize) -> String {
        self.cluster.machines[machine].address().to_string()
    }

    fn router(&self) -> String {
        self.cluster.links.address(0, 1).to_string()
    }

    /// The same service with other settings. Returns its cluster IP and node port.
    pub(super) fn service(&self, more: &Value) -> (String, u16) {
        let node_port = 30_080;
        let port = |protocol: &str| {
            json!({"name": protocol.to_lowercase(), "protocol": protocol, "port": 80, "targetPort": PORT,
                "nodePort": node_port})
        };
        let mut spec = json!({
            "type": "NodePort", "selector": {"app": "web"}, "ports": [port("TCP"), port("UDP")],
            "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster", "sessionAffinity": "None",
        });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec});
        let applied = self.cluster.kubectl.run_with_input(
            &["apply", "-o", "jsonpath={.spec.clusterIP}", "-f", "-"],
            &service.to_string(),
        );
        (applied.ok(), node_port)
    }

    /// A line for each answer: how often it came, the pod's name, and the address that it has seen.
    pub(super) fn ask(
        &self,
        from: Asker,
        kind: &str,
        address: &str,
        port: u16,
        count: u32,
    ) -> String {
        let program = ["python3", ASK, kind, address];
        let mut command = match from {
            Asker::Pod(name, machine) => self.cluster.in_pod(name, machine),
            Asker::Machine(machine) => self.cluster.machines[machine].network().command("env"),
            Asker::Outside => self.cluster.links.router().command("env"),
        };
        let (port, count) = (port.to_string(), count.to_string());
        let output = Command::args(&mut command, program)
            .args([&port, &count, "2"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until these pods answer, each of them. Returns the last answers.
    pub(super) fn until(
        &self,
        from: Asker,
        kind: &str,
        address: &str,
        port: u16,
        pods: &[&str],
    ) -> String {
        eventually(Deadline::seconds(TIMEOUT), || {
            let answers = self.ask(from, kind, address, port, MANY);
            let mut found: Vec<&str> = answers
                .lines()
                .filter_map(|line| line.split(' ').nth(1))
                .collect();
            found.dedup();
            (found == pods).then(|| answers.clone()).ok_or_else(|| {
                let counters = self.counters();
                format!(
                    "{from:?} asks {address} {kind}: {pods:?} are expected, not {answers}{counters}"
                )
            })
        })
    }

    /// What the kernels of the machines and the pods have counted, for failures.
    fn counters(&self) -> String {
        let count = "nstat -a | grep -iE 'udp|rpfilter|csum'; grep udp /proc/net/nf_conntrack | grep -w 9090 | tail -5";
        let machines = self
            .cluster
            .machines
            .iter()
            .map(|machine| machine.run(count));
        let pods = PODS.iter().map(|(name, machine)| {
            let mut command = self.cluster.in_pod(name, *machine);
            let output = command.args(["sh", "-c", count]).output().unwrap();
            format!("{name}: {}", String::from_utf8_lossy(&output.stdout))
        });
        machines.chain(pods).collect::<Vec<_>>().join("\n")
    }

    /// Waits until a single question has this result.
    pub(super) fn until_result(
        &self,
        from: Asker,
        kind: &str,
        address: &str,
        port: u16,
        expected: &str,
    ) {
        eventually(Deadline::seconds(TIMEOUT), || {
            let found = self.ask(from, kind, address, port, 1);
            (found.trim() == format!("1 {expected}"))
                .then_some(())
                .ok_or(found)
        });
    }

    pub(super) fn relabel(&self, pod: &str, label: &str) {
        let relabelled = self
            .cluster
            .kubectl
            .run(&["label", "--overwrite", "pod", pod, label]);
        relabelled.ok();
    }
}

#[test]
fn n5_services_work_between_machines_on_one_link_and_behind_a_router() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let all = ["far", "here", "near"];
    let (ip, port) = fixture.service(&json!({}));
    for (name, machine) in PODS {
        for kind in ["tcp", "udp"] {
            let answers = fixture.until(Asker::Pod(name, machine), kind, &ip, 80, &all);
            // Itself apart, each pod sees the one that asks.
            let own = fixture.address(name);
            let others = answers.lines().filter(|line| !line.contains(name));
            for line in others {
                assert!(line.ends_with(&format!(" {own}")), "{name}: {answers}");
            }
            fixture.until(Asker::Machine(machine), kind, &ip, 80, &all);
        }
    }
    node_ports(&fixture, port);

    let affinity = json!({"sessionAffinity": "ClientIP"});
    fixture.service(&affinity);
    for (from, address, port) in [
        (Asker::Pod("here", 0), ip.clone(), 80),
        (Asker::Machine(2), ip.clone(), 80),
        (Asker::Outside, fixture.node(0), port),
    ] {
        eventually(Deadline::seconds(TIMEOUT), || {
            let answers = fixture.ask(from, "tcp", &address, port, MANY);
            let is_one = answers.lines().count() == 1 && answers.starts_with("24 ");
            is_one
                .then_some(())
                .ok_or_else(|| format!("{from:?}: {answers}"))
        });
    }

    fixture.service(&json!({"internalTrafficPolicy": "Local"}));
    for (name, machine) in PODS {
        for kind in ["tcp", "udp"] {
            fixture.until(Asker::Pod(name, machine), kind, &ip, 80, &[name]);
            fixture.until(Asker::Machine(machine), kind, &ip, 80, &[name]);
        }
    }
    fixture.relabel("here", "app=none");
    fixture.until_result(Asker::Pod("here", 0), "tcp", &ip, 80, "timeout");
}

/// From the router, which knows no pods.
fn node_ports(fixture: &Fixture, port: u16) {
    for (_, machine) in PODS {
        let node = fixture.node(machine);
        for kind in ["tcp", "udp"] {
            let all = ["far", "here", "near"];
            let answers = fixture.until(Asker::Outside, kind, &node, port, &all);
            assert!(!answers.contains(&fixture.router()), "{answers}");
        }
    }
    fixture.service(&json!({"externalTrafficPolicy": "Local"}));
    for (name, machine) in PODS {
        let node = fixture.node(machine);
        for kind in ["tcp", "udp"] {
            let answers = fixture.until(Asker::Outside, kind, &node, port, &[name]);
            let link = u8::from(machine == 2);
            let router = fixture.cluster.links.address(link, 1);
            let seen = format!("{MANY} {name} {router}");
            assert_eq!(answers.trim(), seen, "the source is kept");
        }
    }
}
