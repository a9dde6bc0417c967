//! What a playground offers: nodes that run processes, each with ports of its own.

use std::net::Ipv4Addr;

use kennel_testkit::Kubectl;
use kennel_testkit::machine::possible;
use rustix::process::Signal;

use crate::playground::ground::{Ground, fetch, nap, processes};

/// A web server on the same port of each node, which says what the node is called.
const WEB: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      tolerations: [{operator: Exists}]
      containers:
      - name: web
        image: none
        command:
        - sh
        - -c
        - |
          mkdir -p /srv/web && hostname >/srv/web/index.html
          echo "the API is at $KUBERNETES_SERVICE_HOST"
          exec busybox httpd -f -p 18088 -h /srv/web
        ports: [{containerPort: 18088, hostPort: 18088}]
        readinessProbe: {httpGet: {port: 18088}, periodSeconds: 1}
        volumeMounts: [{name: memory, mountPath: /memory}]
      volumes: [{name: memory, emptyDir: {medium: Memory}}]
"#;

/// Without root: no mounts, no view of processes.
const MODEST: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: modest}
spec:
  selector: {matchLabels: {app: modest}}
  template:
    metadata: {labels: {app: modest}}
    spec:
      hostNetwork: true
      hostPID: true
      automountServiceAccountToken: false
      containers:
      - {name: modest, image: none, command: [sh, -c, "id -u; exec sleep MARK"]}
"#;

#[test]
fn each_node_runs_processes_and_has_its_own_ports() {
    if !possible() {
        return;
    }
    let mut ground = Ground::start(&[]);
    let kubectl = ground.kubectl();
    let nodes = kubectl.run(&["get", "nodes", "--no-headers"]).ok();
    let words = |line: &str| {
        line.split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let nodes: Vec<String> = nodes.lines().map(words).collect();
    assert_eq!(
        nodes,
        [
            "kennel-1 Ready control-plane",
            "kennel-2 Ready <none>",
            "kennel-3 Ready <none>"
        ]
    );
    let taint = kubectl.run(&[
        "get",
        "node",
        "kennel-1",
        "-ojsonpath={.spec.taints[*].key}",
    ]);
    assert_eq!(taint.ok(), "node-role.kubernetes.io/control-plane");
    apply(&kubectl, WEB);
    rolled_out(&kubectl, "web");
    let addresses = "-ojsonpath={.items[*].status.addresses[0].address}";
    let addresses = kubectl.run(&["get", "nodes", addresses]).ok();
    let addresses: Vec<Ipv4Addr> = addresses.split(' ').map(|ip| ip.parse().unwrap()).collect();
    let answers = addresses.iter().map(|ip| fetch(*ip, 18088).unwrap());
    let answers: Vec<String> = answers.collect();
    assert_eq!(answers, ["kennel-1", "kennel-2", "kennel-3"]);
    looks_in(&kubectl);
    restarts_pods(&kubectl);
    let bridge = ground.bridge();
    assert!(bridge.exists());
    assert!(ground.end(Signal::TERM).success(), "{}", ground.said());
    assert!(!bridge.exists());
    ground.assert_gone();
}

/// Logs and exec reach the nodes, and pods reach the API and each other by name.
fn looks_in(kubectl: &Kubectl) {
    let pod = "-ojsonpath={.items[?(@.spec.nodeName==\"kennel-2\")].metadata.name}";
    let pod = kubectl.run(&["get", "pods", pod]).ok();
    let logs = kubectl.run(&["logs", &pod]).ok();
    let api = logs
        .trim()
        .strip_prefix("the API is at ")
        .unwrap_or_default();
    assert!(
        api.parse::<Ipv4Addr>().is_ok_and(|ip| !ip.is_loopback()),
        "{logs}"
    );
    let script = "getent hosts kennel-3 | { read ip name; busybox wget -q -O - http://$ip:18088/; }; \
                  busybox nc $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo reached";
    let answer = kubectl.run(&["exec", &pod, "--", "sh", "-c", script]);
    assert_eq!(answer.ok(), "kennel-3\nreached\n");
}

/// Pods with mounts are taken away and made anew, on all nodes.
fn restarts_pods(kubectl: &Kubectl) {
    let before = kubectl.run(&["get", "pods", "-oname"]).ok();
    let delete = ["delete", "pods", "--all", "--timeout=60s"];
    kubectl.run(&delete).ok();
    rolled_out(kubectl, "web");
    let after = kubectl.run(&["get", "pods", "-oname"]).ok();
    assert_eq!(after.lines().count(), 3, "{after}");
    assert!(
        after.lines().all(|pod| !before.contains(pod)),
        "{before}{after}"
    );
}

#[test]
fn many_simulated_nodes_are_ready_at_once() {
    let mut ground = Ground::start(&["--simulate=100", "--listen=127.0.0.1:0"]);
    let kubectl = ground.kubectl();
    let names = kubectl.run(&["get", "nodes", "-oname"]).ok();
    assert_eq!(names.lines().count(), 100);
    assert!(names.contains("node/kennel-1\n") && names.contains("node/kennel-100\n"));
    let tainted = "-ojsonpath={.items[?(@.spec.taints)].metadata.name}";
    assert_eq!(kubectl.run(&["get", "nodes", tainted]).ok(), "kennel-1");
    assert!(ground.end(Signal::INT).success(), "{}", ground.said());
    ground.assert_gone();
}

#[test]
fn without_root_the_nodes_share_the_machine() {
    if !possible() {
        return;
    }
    let mut ground = Ground::start_as_nobody(&["--listen=127.0.0.1:0"]);
    assert!(
        ground.said().contains("You are not root"),
        "{}",
        ground.said()
    );
    let kubectl = ground.kubectl();
    let nap = nap();
    apply(&kubectl, &MODEST.replace("MARK", &nap));
    rolled_out(&kubectl, "modest");
    assert_eq!(processes(&nap).len(), 2);
    let logs = kubectl.run(&["logs", "-l", "app=modest"]).ok();
    assert_eq!(logs, "65534\n65534\n");
    assert!(ground.end(Signal::TERM).success(), "{}", ground.said());
    ground.assert_gone();
    assert_eq!(processes(&nap), [] as [String; 0]);
}

/// A machine that lacks `ip` is told so, and still is a playground.
#[test]
fn without_ip_the_nodes_share_the_machine_too() {
    if !possible() {
        return;
    }
    let mut ground = Ground::start_with_path("/nowhere", &["--nodes=1", "--listen=127.0.0.1:0"]);
    let said = ground.said();
    assert!(said.contains("apt-get install iproute2"), "{said}");
    let nodes = ground.kubectl().run(&["get", "nodes", "--no-headers"]).ok();
    assert!(nodes.starts_with("kennel-1   Ready"), "{nodes}");
    assert!(ground.end(Signal::TERM).success(), "{}", ground.said());
    ground.assert_gone();
}

fn apply(kubectl: &Kubectl, manifest: &str) {
    kubectl.run_with_input(&["apply", "-f-"], manifest).ok();
}

fn rolled_out(kubectl: &Kubectl, name: &str) {
    let status = kubectl.run(&["rollout", "status", "ds", name, "--timeout=60s"]);
    status.ok();
}
