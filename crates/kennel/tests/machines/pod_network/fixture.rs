//! A server behind a router, and machines with containerd whose agents make the pod network.

use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::thread::JoinHandle;

use kennel_testkit::machine::{Containerd, Image, Links, Network};
use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
/// For everything that a test waits for.
pub(super) const TIMEOUT: u64 = 90;
/// The range of all pods: apart from the addresses of the test's own networks.
pub(super) const CLUSTER: &str = "10.192.0.0/12";
/// Where pods answer with the address that they see.
pub(super) const PORT: u16 = 8080;

/// A machine, and its agent.
pub(super) struct Machine {
    pub(super) agent: Agent,
    pub(super) containerd: Containerd,
}

pub(super) struct Cluster {
    // What runs ends before its networks.
    pub(super) machines: Vec<Machine>,
    pub(super) kubectl: Kubectl,
    pub(super) server: Kennel,
    pub(super) links: Links,
    flags: Vec<String>,
}

/// What answers with the address of whoever asks.
const PEER: &str = "#!/bin/sh\necho\necho \"$REMOTE_ADDR\"\n";

/// A server on the router, which knows no pods.
pub(super) struct Outside {
    child: Child,
    _dir: TempDir,
}

impl Outside {
    pub(super) fn start(links: &Links) -> Self {
        let dir = TempDir::new().unwrap();
        let program = dir.path().join("cgi-bin/peer");
        std::fs::create_dir(dir.path().join("cgi-bin")).unwrap();
        std::fs::write(&program, PEER).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let mut command = links.router().command("busybox");
        let command = command
            .args(["httpd", "-f", "-p", &format!("0.0.0.0:{PORT}"), "-h"])
            .arg(dir.path());
        let child = command.spawn().unwrap();
        Self { child, _dir: dir }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Answers with the address of whoever asks.
pub(super) fn image() -> Image {
    Image::new("kennel.test/peer:1")
        .executable("/www/cgi-bin/peer", PEER)
        .entrypoint(&["/bin/httpd", "-f", "-p", "0.0.0.0:8080", "-h", "/www"])
}

impl Machine {
    pub(super) fn network(&self) -> &Network {
        self.containerd.network()
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        self.network().address()
    }

    pub(super) fn node(&self) -> &str {
        self.agent.node()
    }

    /// The output of a script on the machine.
    pub(super) fn run(&self, script: &str) -> String {
        let output = self
            .network()
            .command("sh")
            .args(["-c", script])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(super) fn start_again(&mut self) {
        self.agent.start_again(Some(self.containerd.network()));
    }

    /// Everything of the agent in the kernel, and its file.
    pub(super) fn traces(&self) -> String {
        let conf = self.containerd.directory().join("cni/10-kennel.conflist");
        let script = format!(
            "ip route show proto 75; ip -o link show kennel-vxlan 2>/dev/null; nft list tables | grep kennel-network; ls {} \
             2>/dev/null",
            conf.display()
        );
        self.run(&script)
    }
}

impl Drop for Cluster {
    /// All machines at the same time.
    fn drop(&mut self) {
        std::thread::scope(|scope| {
            for machine in self.machines.drain(..) {
                scope.spawn(move || drop(machine));
            }
        });
    }
}

impl Cluster {
    /// A machine per entry, which is the number of its link.
    pub(super) fn new(mode: &str, machines: &[u8]) -> Self {
        Self::with(mode, machines, |_| {})
    }

    /// The same, with links that were prepared.
    pub(super) fn with(mode: &str, machines: &[u8], prepare: impl FnOnce(&Links)) -> Self {
        Self::start(mode, &["--proxy=none"], machines, prepare)
    }

    /// The same, with agents that route services.
    pub(super) fn with_proxy(mode: &str, machines: &[u8]) -> Self {
        Self::start(mode, &["--proxy=nftables"], machines, |_| {})
    }

    /// The same, with agents that soon notice links which change.
    pub(super) fn with_fast_probes(machines: &[u8]) -> Self {
        let more = ["--proxy=none", "--link-recheck-seconds=2"];
        Self::start("auto", &more, machines, |_| {})
    }

    fn start(mode: &str, more: &[&str], machines: &[u8], prepare: impl FnOnce(&Links)) -> Self {
        let links = Links::new(machines.iter().max().unwrap() + 1);
        prepare(&links);
        let gateway = links.router().gateway().to_string();
        let arguments = [
            "up",
            "--nodes",
            "0",
            "--tls-san",
            &gateway,
            "--advertise-address",
            &gateway,
            "--cluster-cidr",
            CLUSTER,
        ];
        let server = Kennel::start_at(KENNEL, &arguments, "0.0.0.0:0");
        let mut flags = server.join_flags();
        flags.extend([
            format!("--server=https://{gateway}:{}", server.address().port()),
            format!("--network={mode}"),
            "--eviction-hard=memory.available<1Mi".to_owned(),
        ]);
        flags.extend(more.iter().map(ToString::to_string));
        let mut cluster = Self {
            machines: Vec::new(),
            kubectl: Kubectl::new(Version::V1_32, &server.kubeconfig()),
            server,
            links,
            flags,
        };
        let networks = machines.iter().map(|link| cluster.links.machine(*link));
        for containerd in start_containerds(networks.collect()) {
            cluster.join_with(containerd, &[]);
        }
        cluster.ready();
        cluster
    }

    /// Another machine on a link.
    pub(super) fn join(&mut self, link: u8) {
        self.join_in(self.links.machine(link));
    }

    /// A machine that has this network.
    pub(super) fn join_in(&mut self, network: Network) {
        self.join_with(start_containerd(network), &[]);
    }

    pub(super) fn join_with(&mut self, containerd: Containerd, more: &[&str]) {
        self.join_as(KENNEL.into(), containerd, more);
    }

    /// The same, with an agent that another program starts.
    pub(super) fn join_as(&mut self, binary: PathBuf, containerd: Containerd, more: &[&str]) {
        let mut arguments = self.flags.clone();
        arguments.extend([
            "--runtime=cri".to_owned(),
            format!("--cri-socket={}", containerd.socket().display()),
        ]);
        arguments.extend(more.iter().map(ToString::to_string));
        let plan = AgentPlan {
            binary,
            node: format!("machine-{}", self.machines.len()),
            arguments,
        };
        let agent = Agent::start(plan, Some(containerd.network()));
        self.machines.push(Machine { agent, containerd });
    }

    /// Waits until all nodes are ready, and have a pod network.
    pub(super) fn ready(&self) {
        for machine in &self.machines {
            self.condition(machine, "NetworkUnavailable", "False");
            self.condition(machine, "Ready", "True");
        }
    }

    /// Waits until a node's condition has this status, and returns it.
    pub(super) fn condition(&self, machine: &Machine, kind: &str, status: &str) -> Value {
        eventually(Deadline::seconds(TIMEOUT), || {
            let node = self.get(&["node", machine.node()]);
            let node = node.map_err(|error| format!("{error}\n{}", machine.agent.log()))?;
            let all = node["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let found = all
                .into_iter()
                .find(|one| one["type"] == kind && one["status"] == status);
            found.ok_or_else(|| format!("no {kind}={status}: {node:#}\n{}", machine.agent.log()))
        })
    }

    pub(super) fn get(&self, what: &[&str]) -> Result<Value, String> {
        let answer = self.kubectl.run(&[&["get", "-o", "json"], what].concat());
        if answer.code == 0 {
            return Ok(serde_json::from_str(&answer.stdout).unwrap());
        }
        Err(answer.stderr)
    }

    /// Starts a pod on a machine, and returns its address.
    pub(super) fn pod(&self, name: &str, machine: usize, host_network: bool) -> Ipv4Addr {
        self.start_pod(
            name,
            machine,
            &json!({"hostNetwork": host_network}),
            &json!([]),
        )
    }

    /// The same, with a port of the machine that leads to it.
    pub(super) fn pod_with_host_port(&self, name: &str, machine: usize, port: u16) -> Ipv4Addr {
        let ports = json!([{"containerPort": PORT, "hostPort": port}]);
        self.start_pod(name, machine, &json!({}), &ports)
    }

    fn start_pod(&self, name: &str, machine: usize, more: &Value, ports: &Value) -> Ipv4Addr {
        let node = self.machines[machine].node();
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "kennel.test/peer:1", "imagePullPolicy": "Never", "ports": ports}],
            },
        });
        for (key, value) in more.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        self.kubectl
            .run_with_input(&["apply", "-f", "-"], &pod.to_string())
            .ok();
        eventually(Deadline::seconds(TIMEOUT), || {
            let pod = self.get(&["pod", name])?;
            let ready = pod["status"]["containerStatuses"][0]["ready"] == true;
            let address = pod["status"]["podIP"]
                .as_str()
                .and_then(|ip| ip.parse().ok());
            let log = || format!("{pod:#}\n{}", self.machines[machine].agent.log());
            address.filter(|_| ready).ok_or_else(log)
        })
    }

    /// A service for a pod alone, with its ports. Returns its cluster IP.
    pub(super) fn service(&self, pod: &str, ports: &[u16]) -> Ipv4Addr {
        let label = format!("app={pod}");
        self.kubectl.run(&["label", "pod", pod, &label]).ok();
        self.service_of(pod, ports)
    }

    /// A service for the pods with the label `app=NAME`, with these ports. Returns its cluster IP.
    pub(super) fn service_of(&self, name: &str, ports: &[u16]) -> Ipv4Addr {
        let ports: Vec<Value> = ports
            .iter()
            .map(|port| json!({"name": format!("port-{port}"), "port": port}))
            .collect();
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": ports},
        });
        let applied = self.kubectl.run_with_input(
            &["apply", "-o", "jsonpath={.spec.clusterIP}", "-f", "-"],
            &service.to_string(),
        );
        applied.ok().parse().unwrap()
    }

    /// A program with the network of a pod, and with the machine's files.
    pub(super) fn in_pod(&self, pod: &str, machine: usize) -> Command {
        let status = self.get(&["pod", pod]).unwrap();
        let id = &status["status"]["containerStatuses"][0]["containerID"];
        let id = id
            .as_str()
            .and_then(|id| id.strip_prefix("containerd://"))
            .unwrap();
        let mut tasks = self.machines[machine].containerd.ctr();
        let tasks = tasks.args(["tasks", "ls"]).output().unwrap();
        let tasks = String::from_utf8_lossy(&tasks.stdout).into_owned();
        let task = tasks.lines().find_map(|line| line.strip_prefix(id));
        let pid = task.and_then(|task| task.split_whitespace().next());
        let pid = pid.unwrap_or_else(|| panic!("{id}: {tasks}"));
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{pid}/ns/net"));
        command
    }

    /// Waits until a pod reaches an address, and returns the address that the other end sees.
    #[track_caller]
    pub(super) fn seen_by(&self, from: &str, to: Ipv4Addr) -> Ipv4Addr {
        eventually(Deadline::seconds(TIMEOUT), || {
            let answer = self.kubectl.run(&[
                "exec",
                from,
                "--",
                "timeout",
                "3",
                "wget",
                "-q",
                "-O",
                "-",
                &url(to),
            ]);
            let seen = answer.stdout.trim().parse();
            seen.map_err(|_| {
                let states: Vec<String> = self.machines.iter().map(state).collect();
                format!("{from} to {to}: {}\n{}", answer.stderr, states.join("\n"))
            })
        })
    }

    /// The same, from the host of a machine.
    #[track_caller]
    pub(super) fn host_seen_by(&self, machine: usize, to: Ipv4Addr) -> Ipv4Addr {
        eventually(Deadline::seconds(TIMEOUT), || {
            let output = wget(&self.machines[machine], to);
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            text.parse()
                .map_err(|_| format!("{to}: {output:?}\n{}", state(&self.machines[machine])))
        })
    }

    /// Whether the packets to the pods of another machine travel in VXLAN.
    pub(super) fn uses_vxlan(&self, from: usize, to: Ipv4Addr) -> bool {
        let route = self.machines[from].run(&format!("ip route get {to}"));
        route.contains("kennel-vxlan")
    }
}

/// One for each network, at the same time.
fn start_containerds(networks: Vec<Network>) -> Vec<Containerd> {
    let started = networks
        .into_iter()
        .map(|network| std::thread::spawn(|| start_containerd(network)));
    let started: Vec<_> = started.collect();
    let ended = started.into_iter().map(JoinHandle::join);
    ended.map(|containerd| containerd.unwrap()).collect()
}

fn start_containerd(network: Network) -> Containerd {
    let builder = Containerd::builder().without_pod_network();
    let containerd = builder.in_network(network).start();
    containerd.import(&image());
    containerd
}

pub(super) fn url(to: Ipv4Addr) -> String {
    format!("http://{to}:{PORT}/cgi-bin/peer")
}

fn wget(machine: &Machine, to: Ipv4Addr) -> Output {
    let arguments = ["3", "busybox", "wget", "-q", "-O", "-", &url(to)];
    machine
        .network()
        .command("timeout")
        .args(arguments)
        .output()
        .unwrap()
}

fn state(machine: &Machine) -> String {
    let kernel = machine.run("ip addr; ip route; bridge fdb; ip neigh; nft list ruleset");
    format!("{}\n{kernel}\n{}", machine.node(), machine.agent.log())
}
