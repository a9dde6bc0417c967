//! `kennel bench --connections` as the server sees it: one user, one connection and a set of watches for each node.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const NODES: usize = 20;
const AGENT_WATCHES: [&str; 5] = [
    "/api/v1/namespaces/kube-node-lease/configmaps",
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
];
/// Connections of the benchmark itself and of the test: each watch and each request under way.
const OTHER_CONNECTIONS: usize = 15;
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const PODS: &str = "/api/v1/namespaces/default/pods";

struct Cluster {
    kennel: Kennel,
    admin: Access,
}

impl Cluster {
    /// A server that logs every request.
    fn start() -> Self {
        let log = ["--log", "info,kennel::request=debug"];
        let arguments = [&["up", "--simulate", "0"], &log[..]].concat();
        let kennel = Kennel::start(BINARY, &arguments);
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        Self { kennel, admin }
    }

    fn bench(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(["bench", "--kubeconfig"])
            .arg(self.kennel.kubeconfig())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn measure(&self, arguments: &[&str]) -> Value {
        let output = self.bench(arguments).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn metric(&self, name: &str) -> usize {
        let page = self.admin.ask("GET", "/metrics", b"").text();
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|value| value.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no metric {name} in:\n{page}"))
    }

    /// The collections that nodes have begun to watch, by user.
    fn watches_of_nodes(&self) -> BTreeMap<String, Vec<String>> {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for line in self.kennel.log().lines() {
            let mut words = line.split_whitespace();
            let user = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix("user="));
            let path = words.find(|word| word.starts_with("/api"));
            let (Some(user), Some((collection, query))) =
                (user, path.and_then(|path| path.split_once('?')))
            else {
                continue;
            };
            let is_watch = query.contains("watch=") && words.next() == Some("200");
            if is_watch && user.starts_with("system:node:") {
                let watched = found.entry(user.to_owned()).or_default();
                watched.push(collection.to_owned());
            }
        }
        for watched in found.values_mut() {
            watched.sort();
        }
        found
    }

    /// Access as a node, with a certificate like those of the benchmark.
    fn node(&self, name: &str) -> Access {
        let key = KeyPair::generate().unwrap();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::OrganizationName, "system:nodes");
        subject.push(DnType::CommonName, format!("system:node:{name}"));
        let mut params = CertificateParams::default();
        params.distinguished_name = subject;
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = json!({"metadata": {"name": "intruder"}, "spec": {
            "request": STANDARD.encode(pem), "usages": ["digital signature", "client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet"}});
        let made = self
            .admin
            .ask("POST", REQUESTS, request.to_string().as_bytes());
        assert_eq!(made.code, 201, "{}", made.text());
        let path = format!("{REQUESTS}/intruder");
        let chain = eventually(Deadline::seconds(30), || {
            let mut request = self.admin.ask("GET", &path, b"").json();
            if let Some(text) = request["status"]["certificate"].as_str() {
                return Ok(STANDARD.decode(text).unwrap());
            }
            request["status"]["conditions"] =
                json!([{"type": "Approved", "status": "True", "reason": "Test"}]);
            let approval = format!("{path}/approval");
            self.admin
                .ask("PUT", &approval, request.to_string().as_bytes());
            Err(request)
        });
        let (address, data) = (self.kennel.address(), self.kennel.data_dir());
        let chain = String::from_utf8(chain).unwrap();
        Access::showing(address, &data, &chain, &key.serialize_pem())
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn interrupt(child: Child) -> Output {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|one| one["type"] == "Ready");
    ready.is_some_and(|ready| ready["status"] == "True")
}

#[test]
fn each_node_is_a_user_with_one_connection_and_the_watches_of_an_agent() {
    let cluster = Cluster::start();
    let nodes = NODES.to_string();
    let child = cluster
        .bench(&["--nodes", &nodes, "--connections", "--idle", "600"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let by_user = eventually(Deadline::seconds(120), || {
        let by_user = cluster.watches_of_nodes();
        let watches: usize = by_user.values().map(Vec::len).sum();
        let all = watches >= NODES * AGENT_WATCHES.len();
        all.then_some(by_user).ok_or(format!("{watches} watches"))
    });
    assert_eq!(by_user.len(), NODES);
    for (user, watched) in &by_user {
        assert_eq!(watched, &AGENT_WATCHES, "{user}");
    }
    let connections = cluster.metric("kennel_inflight_requests{lane=\"connections\"} ");
    assert!(
        (NODES..=NODES + OTHER_CONNECTIONS).contains(&connections),
        "{connections} connections"
    );
    let watches = cluster.metric("kennel_watches ");
    assert!(watches >= NODES * AGENT_WATCHES.len(), "{watches} are open");
    eventually(Deadline::seconds(30), || {
        let nodes = cluster.admin.ask("GET", "/api/v1/nodes", b"").json();
        let nodes = nodes["items"].as_array().unwrap().iter();
        let ready = nodes.filter(|node| is_ready(node)).count();
        (ready == NODES)
            .then_some(())
            .ok_or(format!("{ready} nodes are ready"))
    });

    a_pod_is_its_nodes_alone(&cluster);

    let output = interrupt(child);
    assert!(stderr(&output).contains("stopped"), "{}", stderr(&output));
    nothing_is_left(&cluster.admin);
}

/// A pod runs by the hands of its own node, with a token, and another node can do nothing with it.
fn a_pod_is_its_nodes_alone(cluster: &Cluster) {
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "bench-2", "containers": [{"name": "c", "image": "i"}]}});
    let made = cluster.admin.ask("POST", PODS, pod.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
    let path = format!("{PODS}/p");
    eventually(Deadline::seconds(30), || {
        let pod = cluster.admin.ask("GET", &path, b"").json();
        let runs = pod["status"]["phase"] == "Running";
        runs.then_some(()).ok_or(pod["status"].to_string())
    });
    let log = cluster.kennel.log();
    let by_its_node = |start: &str| {
        let mut lines = log.lines().filter(|line| line.contains(start));
        lines.any(|line| line.contains("user=system:node:bench-2 "))
    };
    assert!(by_its_node(
        "POST /api/v1/namespaces/default/serviceaccounts/default/token 201"
    ));
    assert!(by_its_node(&format!("PATCH {path}/status 200")));
    let mounted = &cluster.watches_of_nodes()["system:node:bench-2"];
    let authorities = "/api/v1/namespaces/default/configmaps";
    assert!(mounted.iter().any(|one| one == authorities), "{mounted:?}");

    let other = cluster.node("bench-1");
    let status = br#"{"status": {"phase": "Failed"}}"#;
    for (method, path, body) in [
        ("GET", path.clone(), &b""[..]),
        ("PATCH", format!("{path}/status"), status),
        ("DELETE", path.clone(), b""),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dbench-2".to_owned(),
            b"",
        ),
        ("DELETE", "/api/v1/nodes/bench-2".to_owned(), b""),
    ] {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let answer = other.open().unwrap().ask(method, &path, kind, body);
        let answer = answer.unwrap();
        assert_eq!(answer.code, 403, "{method} {path}: {}", answer.text());
    }
    let own = other.ask("GET", "/api/v1/nodes/bench-1", b"");
    assert_eq!(own.code, 200, "{}", own.text());
    let now = format!("{path}?gracePeriodSeconds=0");
    let removed = cluster.admin.ask("DELETE", &now, b"");
    assert_eq!(removed.code, 200, "{}", removed.text());
}

fn nothing_is_left(admin: &Access) {
    for path in [
        "/api/v1/nodes",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        REQUESTS,
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/roles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/rolebindings",
        "/api/v1/namespaces",
    ] {
        let list = admin.ask("GET", path, b"").json();
        let items = list["items"].as_array().unwrap().iter();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        let ours = items.map(name).filter(|name| name.contains("bench"));
        assert_eq!(ours.collect::<Vec<_>>(), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn steps_are_measured_with_the_load_of_agents_and_without() {
    let cluster = Cluster::start();
    let nodes = NODES.to_string();
    let common = ["--nodes", &nodes, "-o", "json"];
    let agent = cluster.measure(&[&common[..], &["--connections"]].concat());
    let plain = cluster.measure(&[&common[..], &["--connections=plain"]].concat());
    for (figures, kind) in [(&agent, "agent"), (&plain, "plain")] {
        assert_eq!(figures["connections"]["kind"], kind);
        assert_eq!(figures["connections"]["protocol"], "HTTP/2");
        for step in ["apply", "update"] {
            let latency = &figures["steps"][step]["latency"];
            assert_eq!(
                latency["createdToReady"]["count"], NODES,
                "{step}: {latency}"
            );
        }
    }
    assert!(agent["connections"]["agentWatchBytes"].as_u64().unwrap() > 0);
    assert_eq!(plain["connections"]["agentWatchBytes"], 0);
    nothing_is_left(&cluster.admin);
}

#[test]
fn without_http2_each_watch_has_a_connection() {
    let cluster = Cluster::start();
    let arguments = [
        "--nodes",
        "2",
        "-o",
        "json",
        "--connections=plain",
        "--http1",
    ];
    let figures = cluster.measure(&arguments);
    assert_eq!(figures["connections"]["protocol"], "HTTP/1.1");
}
