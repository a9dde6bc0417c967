//! A server, a machine with containers and a disk of its own that has joined it, and simulated nodes beside it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kennel_testkit::machine::{Containerd, Network};
use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Version, eventually, fetch};
use serde_json::Value;

use super::substitute_images;

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
/// For everything that a test waits for.
pub(crate) const PATIENCE: u64 = 90;
/// The node that is real.
pub(crate) const MACHINE: &str = "machine-1";

/// Disks of machines that build are full, and that is not what these tests are about.
const CALM: &str = "--eviction-hard=memory.available<1Mi";
/// Where log collectors look: on a disk of its own, that is no more than any other place.
const LOGS: &str = "--log-dir=/var/log";

/// See the [module](self).
pub(crate) struct Fixture {
    pub(crate) agent: Agent,
    pub(crate) machine: Containerd,
    pub(crate) kubectl: Kubectl,
    _server: Kennel,
}

/// A file of the examples.
pub(crate) fn directory(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.canonicalize().unwrap().join(name)
}

impl Fixture {
    /// The machine has no pod network, and so it is not ready. All images are there.
    pub(crate) fn new() -> Self {
        let network = Network::with_disk();
        let gateway = network.gateway();
        let machine = Containerd::builder()
            .with_usual_cni()
            .in_network(network)
            .start();
        for image in substitute_images::all() {
            machine.import(&image);
        }
        let told = ["up", "--simulate", "2", "--tls-san", &gateway.to_string()];
        let server = Kennel::start_at(KENNEL, &told, "0.0.0.0:0");
        let mut arguments = server.join_flags();
        arguments.extend([
            format!("--server=https://{gateway}:{}", server.address().port()),
            "--runtime=cri".to_owned(),
            // An example brings the network.
            "--network=none".to_owned(),
            "--proxy=nftables".to_owned(),
            format!("--cri-socket={}", machine.socket().display()),
            CALM.to_owned(),
            LOGS.to_owned(),
        ]);
        let plan = AgentPlan {
            binary: KENNEL.into(),
            node: MACHINE.to_owned(),
            arguments,
        };
        Self {
            agent: Agent::start(plan, Some(machine.network())),
            machine,
            kubectl: Kubectl::new(Version::V1_32, &server.kubeconfig()),
            _server: server,
        }
    }

    /// Applies an example as its page says.
    pub(crate) fn apply(&self, example: &str) {
        let path = directory(example);
        let path = path.to_str().unwrap();
        self.kubectl.run(&["apply", "-f", path]).ok();
    }

    /// Waits until all nodes run what was asked for last.
    pub(crate) fn rolled_out(&self, name: &str, namespace: &str) {
        let name = format!("ds/{name}");
        let wait = ["rollout", "status", &name, "-n", namespace, "--timeout=90s"];
        let answer = self.kubectl.run(&wait);
        if answer.code != 0 {
            let pods = ["describe", "pods", "-n", namespace];
            let pods = self.kubectl.run(&pods).stdout;
            panic!("{}\n{pods}\n{}", answer.stderr, self.agent.log());
        }
    }

    /// Deletes an example as its page says, and waits until it is gone.
    pub(crate) fn delete(&self, example: &str) {
        let path = directory(example);
        let path = path.to_str().unwrap();
        let delete = ["delete", "-f", path, "--timeout=60s"];
        self.kubectl.run(&delete).ok();
    }

    /// What kubectl gets, as JSON.
    pub(crate) fn get(&self, what: &[&str]) -> Result<Value, String> {
        self.kubectl.get(what)
    }

    /// An example's pods on the machine.
    pub(crate) fn pods(&self, example: &str, namespace: &str) -> Vec<Value> {
        let label = format!("app={example}");
        let here = format!("--field-selector=spec.nodeName={MACHINE}");
        let pods = self.get(&["pods", "-n", namespace, "-l", &label, &here]);
        pods.unwrap()["items"].as_array().unwrap().clone()
    }

    /// The name of an example's only pod on the machine.
    pub(crate) fn pod(&self, example: &str, namespace: &str) -> String {
        let pods = self.pods(example, namespace);
        assert_eq!(pods.len(), 1, "{pods:#?}");
        pods[0]["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// The output of a script in a pod.
    pub(crate) fn inside(&self, pod: &str, namespace: &str, script: &str) -> String {
        let exec = ["exec", "-n", namespace, pod, "--", "sh", "-c", script];
        self.kubectl.run(&exec).ok().trim_end().to_owned()
    }

    /// The output of a script on the machine, or why it failed.
    pub(crate) fn on_machine(&self, script: &str) -> Result<String, String> {
        let mut command = self.machine.network().command("sh");
        let output = command.args(["-c", script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Ok(said.trim_end().to_owned());
        }
        Err(format!(
            "{script}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// What answers to a GET on a port of the machine.
    pub(crate) fn fetch(&self, port: u16, path: &str) -> std::io::Result<String> {
        fetch(SocketAddr::from((self.machine.address(), port)), path)
    }

    /// May the account of an example do this?
    #[track_caller]
    pub(crate) fn may(&self, account: &str, asked: &[&str], expected: bool) {
        let account = format!("--as=system:serviceaccount:{account}");
        let asked = [&["auth", "can-i", &account, "-A"], asked].concat();
        let answer = self.kubectl.run(&asked).stdout;
        assert_eq!(answer.trim() == "yes", expected, "{asked:?}: {answer}");
    }
}

/// Waits until something holds, and says what it is.
pub(crate) fn wait<T>(look: impl FnMut() -> Result<T, String>) -> T {
    eventually(Deadline::seconds(PATIENCE), look)
}

/// Does a condition hold?
pub(crate) fn condition(object: &Value, kind: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|condition| condition["type"] == kind && condition["status"] == "True")
}
