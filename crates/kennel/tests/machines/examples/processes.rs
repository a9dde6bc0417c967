//! The examples for nodes without a container engine, on a machine with a disk of its own.

use std::net::SocketAddr;
use std::path::Path;

use kennel_testkit::machine::{Network, possible};
use kennel_testkit::{Agent, AgentPlan, Kennel, Kubectl, Version, fetch};

use super::fixture::{directory, wait};

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");

struct Machine {
    agent: Agent,
    network: Network,
    kubectl: Kubectl,
    _server: Kennel,
}

impl Machine {
    fn new() -> Self {
        let network = Network::with_disk();
        let gateway = network.gateway().to_string();
        let up = ["up", "--nodes=0", "--tls-san", &gateway];
        let server = Kennel::start_at(KENNEL, &up, "0.0.0.0:0");
        let mut arguments = server.join_flags();
        arguments.extend([
            format!("--server=https://{gateway}:{}", server.address().port()),
            "--runtime=process".to_owned(),
            "--eviction-hard=memory.available<1Mi".to_owned(),
        ]);
        let plan = AgentPlan {
            binary: KENNEL.into(),
            node: "machine-1".to_owned(),
            arguments,
        };
        Self {
            agent: Agent::start(plan, Some(&network)),
            network,
            kubectl: Kubectl::new(Version::V1_32, &server.kubeconfig()),
            _server: server,
        }
    }

    fn apply(&self, example: &str) {
        let path = directory(example);
        let apply = ["apply", "-f", path.to_str().unwrap()];
        self.kubectl.run(&apply).ok();
    }

    /// Waits until the example's DaemonSet, which is in a namespace of the same name, is rolled out.
    fn rolled_out(&self, example: &str) {
        let name = format!("ds/{example}");
        let wait = ["rollout", "status", &name, "-n", example, "--timeout=90s"];
        let answer = self.kubectl.run(&wait);
        let pods = || {
            self.kubectl
                .run(&["describe", "pods", "-n", example])
                .stdout
        };
        let log = || self.agent.log();
        assert_eq!(answer.code, 0, "{}\n{}\n{}", answer.stderr, pods(), log());
    }

    /// Waits until kubectl prints this.
    fn shows(&self, arguments: &[&str], text: &str) {
        wait(|| {
            let shown = self.kubectl.run(arguments).stdout;
            shown.contains(text).then_some(()).ok_or(shown)
        });
    }

    fn delete(&self, example: &str) {
        let path = directory(example);
        let delete = ["delete", "-f", path.to_str().unwrap(), "--timeout=60s"];
        self.kubectl.run(&delete).ok();
    }
}

#[test]
fn examples_without_a_container_engine() {
    if !possible() {
        return;
    }
    let machine = Machine::new();
    disk_watch(&machine);
    exporter(&machine);
}

fn disk_watch(machine: &Machine) {
    const NAME: &str = "disk-watch";
    machine.apply(NAME);
    let logs = ["logs", "-n", NAME, "ds/disk-watch"];
    machine.shows(&logs, "/host ");
    machine.shows(&logs, "/host/var ");
    let limit = |limit: &str| {
        let set = ["set", "env", "-n", NAME, "ds/disk-watch", limit];
        machine.kubectl.run(&set).ok();
    };
    limit("LIMIT=100");
    machine.rolled_out(NAME);
    limit("LIMIT=0");
    machine.shows(&["get", "events", "-n", NAME], "% full");
    machine.delete(NAME);
}

fn exporter(machine: &Machine) {
    const NAME: &str = "exporter-process";
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    let exporter = tools.join("node-exporter").canonicalize();
    let exporter = exporter.expect("the exporter is there: run scripts/prometheus.sh");
    let mut install = machine.network.command("cp");
    install
        .arg(exporter)
        .arg("/usr/bin/prometheus-node-exporter");
    assert!(install.status().unwrap().success());
    machine.apply(NAME);
    machine.rolled_out(NAME);
    let address = SocketAddr::from((machine.network.address(), 9101));
    let metrics = fetch(address, "/metrics").unwrap();
    assert!(metrics.contains("node_memory_MemTotal_bytes "), "{metrics}");
    let root = metrics.lines().any(|line| {
        line.starts_with("node_filesystem_size_bytes") && line.contains("mountpoint=\"/\"")
    });
    assert!(root, "the machine's root is not seen: {metrics}");
    let user = ["exec", "-n", NAME, "ds/exporter-process", "--", "id", "-u"];
    assert_eq!(machine.kubectl.run(&user).ok(), "65534\n");
    machine.delete(NAME);
    assert!(fetch(address, "/metrics").is_err(), "it still runs");
}
