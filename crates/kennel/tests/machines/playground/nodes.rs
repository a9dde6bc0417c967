//! The nodes of a playground: they run processes, each with a network of its own.

use std::net::Ipv4Addr;

use kennel_testkit::Kubectl;
use kennel_testkit::machine::possible;
use rustix::process::Signal;

use crate::playground::fixture::{Playground, http_get, processes, unique_seconds};

/// A web server on the same port of each node, which serves the host name.
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
    let mut playground = Playground::start(&[]);
    let kubectl = playground.kubectl();
    let nodes = kubectl.run(&["get", "nodes", "--no-headers"]).ok();
    let first_columns = |line: &str| {
        line.split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let nodes: Vec<String> = nodes.lines().map(first_columns).collect();
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
    wait_for_rollout(&kubectl, "web");
    let addresses = "-ojsonpath={.items[*].status.addresses[0].address}";
    let addresses = kubectl.run(&["get", "nodes", addresses]).ok();
    let addresses: Vec<Ipv4Addr> = addresses.split(' ').map(|ip| ip.parse().unwrap()).collect();
    let answers = addresses.iter().map(|ip| http_get(*ip, 18088).unwrap());
    let answers: Vec<String> = answers.collect();
    assert_eq!(answers, ["kennel-1", "kennel-2", "kennel-3"]);
    check_logs_and_exec(&kubectl);
    check_pod_replacement(&kubectl);
    let bridge = playground.bridge();
    assert!(bridge.exists());
    assert!(
        playground.stop(Signal::TERM).success(),
        "{}",
        playground.output()
    );
    assert!(!bridge.exists());
    playground.assert_gone();
}

/// Logs and exec reach the nodes, and pods reach the API and each other by name.
fn check_logs_and_exec(kubectl: &Kubectl) {
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

/// Pods with mounts are deleted and replaced on all nodes.
fn check_pod_replacement(kubectl: &Kubectl) {
    let before = kubectl.run(&["get", "pods", "-oname"]).ok();
    let delete = ["delete", "pods", "--all", "--timeout=60s"];
    kubectl.run(&delete).ok();
    wait_for_rollout(kubectl, "web");
    let after = kubectl.run(&["get", "pods", "-oname"]).ok();
    assert_eq!(after.lines().count(), 3, "{after}");
    assert!(
        after.lines().all(|pod| !before.contains(pod)),
        "{before}{after}"
    );
}

#[test]
fn many_nodes_can_be_simulated() {
    let mut playground = Playground::start(&["--simulate=100", "--listen=127.0.0.1:0"]);
    let kubectl = playground.kubectl();
    let names = kubectl.run(&["get", "nodes", "-oname"]).ok();
    assert_eq!(names.lines().count(), 100);
    assert!(names.contains("node/kennel-1\n") && names.contains("node/kennel-100\n"));
    let tainted = "-ojsonpath={.items[?(@.spec.taints)].metadata.name}";
    assert_eq!(kubectl.run(&["get", "nodes", tainted]).ok(), "kennel-1");
    assert!(
        playground.stop(Signal::INT).success(),
        "{}",
        playground.output()
    );
    playground.assert_gone();
}

#[test]
fn without_root_the_nodes_share_the_network() {
    if !possible() {
        return;
    }
    let mut playground = Playground::start_without_root(&["--listen=127.0.0.1:0"]);
    assert!(
        playground.output().contains("You are not root"),
        "{}",
        playground.output()
    );
    let kubectl = playground.kubectl();
    let seconds = unique_seconds();
    apply(&kubectl, &MODEST.replace("MARK", &seconds));
    wait_for_rollout(&kubectl, "modest");
    assert_eq!(processes(&seconds).len(), 2);
    let logs = kubectl.run(&["logs", "-l", "app=modest"]).ok();
    assert_eq!(logs, "65534\n65534\n");
    assert!(
        playground.stop(Signal::TERM).success(),
        "{}",
        playground.output()
    );
    playground.assert_gone();
    assert_eq!(processes(&seconds), [] as [String; 0]);
}

/// Without `ip`, the user is told to install it, and the playground works.
#[test]
fn without_ip_the_nodes_share_the_network() {
    if !possible() {
        return;
    }
    let mut playground =
        Playground::start_with_path("/nowhere", &["--nodes=1", "--listen=127.0.0.1:0"]);
    let output = playground.output();
    assert!(output.contains("apt-get install iproute2"), "{output}");
    let nodes = playground
        .kubectl()
        .run(&["get", "nodes", "--no-headers"])
        .ok();
    assert!(nodes.starts_with("kennel-1   Ready"), "{nodes}");
    assert!(
        playground.stop(Signal::TERM).success(),
        "{}",
        playground.output()
    );
    playground.assert_gone();
}

fn apply(kubectl: &Kubectl, manifest: &str) {
    kubectl.run_with_input(&["apply", "-f-"], manifest).ok();
}

fn wait_for_rollout(kubectl: &Kubectl, name: &str) {
    let status = kubectl.run(&["rollout", "status", "ds", name, "--timeout=60s"]);
    status.ok();
}
