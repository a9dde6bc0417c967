//! A real daemon, Debian's node exporter, on three machines: placed, asked, rolled out, left alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kennel_testkit::machine::Image;
use kennel_testkit::{Deadline, eventually};
use serde_json::Value;

use super::fleet::{Engine, Fleet, Machine, TIMEOUT};

/// Where the image has it. Without an image it is where `scripts/prometheus.sh` has put it.
const EXPORTER: &str = "/bin/node-exporter";
const PORT: u16 = 9100;
/// Longer than a request takes, shorter than a restart does.
const BETWEEN: Duration = Duration::from_millis(20);

/// Like those that people have: the host's network and processes, /proc and /sys to read, limits, probes.
fn manifest(exporter: &str, version: u32) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: node-exporter, labels: {{app: node-exporter}}}}
spec:
  selector: {{matchLabels: {{app: node-exporter}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 1}}}}
  template:
    metadata: {{labels: {{app: node-exporter}}}}
    spec:
      hostNetwork: true
      hostPID: true
      automountServiceAccountToken: false
      tolerations: [{{operator: Exists}}]
      terminationGracePeriodSeconds: 5
      containers:
      - name: node-exporter
        image: kennel.test/node-exporter:1
        command: [{exporter}]
        args:
        - --path.procfs=/host/proc
        - --path.sysfs=/host/sys
        - --web.listen-address=:{PORT}
        - --web.telemetry-path=/metrics
        - --collector.disable-defaults
        - --collector.loadavg
        - --collector.meminfo
        env: [{{name: VERSION, value: "{version}"}}]
        ports: [{{name: metrics, containerPort: {PORT}, hostPort: {PORT}}}]
        resources:
          requests: {{cpu: 10m, memory: 16Mi}}
          limits: {{cpu: 500m, memory: 128Mi}}
        readinessProbe: {{httpGet: {{path: /, port: metrics}}, periodSeconds: 1}}
        livenessProbe: {{httpGet: {{path: /, port: metrics}}, initialDelaySeconds: 5}}
        volumeMounts:
        - {{name: proc, mountPath: /host/proc, readOnly: true}}
        - {{name: sys, mountPath: /host/sys, readOnly: true}}
      volumes:
      - {{name: proc, hostPath: {{path: /proc}}}}
      - {{name: sys, hostPath: {{path: /sys}}}}
"#
    )
}

#[test]
fn an_exporter_in_containers_on_three_machines() {
    if kennel_testkit::machine::possible() {
        let image = Image::new("kennel.test/node-exporter:1").program(EXPORTER, fetched());
        walk(Fleet::new(Engine::Containerd, 3, &[image]), EXPORTER);
    }
}

#[test]
fn an_exporter_as_processes_on_three_machines() {
    if kennel_testkit::machine::possible() {
        let exporter = fetched();
        walk(
            Fleet::new(Engine::Process, 3, &[]),
            exporter.to_str().unwrap(),
        );
    }
}

/// Debian's, as `scripts/prometheus.sh` fetches it.
fn fetched() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    let path = tools.join("node-exporter").canonicalize();
    path.expect("the exporter is there: run scripts/prometheus.sh")
}

fn walk(mut fleet: Fleet, exporter: &str) {
    fleet.apply(&manifest(exporter, 1));
    rolled_out(&fleet);
    for machine in &fleet.machines {
        let metrics = serves(machine);
        assert!(metrics.contains("node_load1 "), "{metrics}");
        assert!(metrics.contains("node_memory_MemTotal_bytes"), "{metrics}");
    }
    let before = pods(&fleet);
    rolls_out_node_by_node(&fleet, &manifest(exporter, 2));
    let after = pods(&fleet);
    for (old, new) in before.iter().zip(&after) {
        assert_eq!(old["spec"]["nodeName"], new["spec"]["nodeName"]);
        assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"]);
    }
    outlives_its_agent(&mut fleet);
    ends_with_its_daemon_set(&fleet);
}

fn rolled_out(fleet: &Fleet) {
    let wait = ["rollout", "status", "ds/node-exporter", "--timeout=90s"];
    let answer = fleet.kubectl.run(&wait);
    if answer.code != 0 {
        let pods = fleet.kubectl.run(&["describe", "pods"]).stdout;
        let logs: Vec<String> = fleet.machines.iter().map(|m| m.agent.log()).collect();
        panic!("{}\n{pods}\n{}", answer.stderr, logs.join("\n----\n"));
    }
}

/// The metrics of a machine's exporter.
fn serves(machine: &Machine) -> String {
    eventually(Deadline::seconds(TIMEOUT), || machine.get(PORT, "/metrics"))
}

/// Its pods, by node.
fn pods(fleet: &Fleet) -> Vec<Value> {
    let pods = fleet.get(&["pods", "-l", "app=node-exporter"]).unwrap();
    let mut pods = pods["items"].as_array().unwrap().clone();
    pods.sort_by_key(|pod| pod["spec"]["nodeName"].to_string());
    assert_eq!(pods.len(), fleet.machines.len());
    pods
}

/// While everybody is asked all the time, no two are ever silent at once.
fn rolls_out_node_by_node(fleet: &Fleet, next: &str) {
    let done = AtomicBool::new(false);
    let silences = std::thread::scope(|scope| {
        let watch = |machine| {
            let done = &done;
            scope.spawn(move || silences(machine, done))
        };
        let watchers: Vec<_> = fleet.machines.iter().map(watch).collect();
        fleet.apply(next);
        rolled_out(fleet);
        done.store(true, Ordering::Relaxed);
        let joined = watchers.into_iter().map(|watcher| watcher.join().unwrap());
        joined.collect::<Vec<_>>()
    });
    for (first, one) in silences.iter().enumerate() {
        for other in &silences[first + 1..] {
            for (from, to) in one {
                let beside = other.iter().find(|(start, end)| start < to && from < end);
                assert_eq!(beside, None, "two nodes were without at once");
            }
        }
    }
}

/// Each outage: from its first to its last failed request.
fn silences(machine: &Machine, done: &AtomicBool) -> Vec<(Instant, Instant)> {
    let (mut silences, mut quiet) = (Vec::new(), None::<(Instant, Instant)>);
    while !done.load(Ordering::Relaxed) {
        let asked = Instant::now();
        match machine.get(PORT, "/metrics") {
            Ok(_) => silences.extend(quiet.take()),
            Err(_) => quiet = Some(quiet.map_or((asked, asked), |(from, _)| (from, asked))),
        }
        std::thread::sleep(BETWEEN);
    }
    silences.extend(quiet);
    silences
}

fn outlives_its_agent(fleet: &mut Fleet) {
    let before = pods(fleet);
    let started = |metrics: &str| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with("process_start_time_seconds"));
        line.map(str::to_owned)
    };
    let since = started(&serves(&fleet.machines[0]));
    fleet.machines[0].agent.kill();
    for _ in 0..20 {
        let metrics = fleet.machines[0].get(PORT, "/metrics");
        assert_eq!(started(&metrics.unwrap()), since, "it was not left alone");
    }
    fleet.machines[0].start_again();
    fleet.machines[0].agent.wait_for("all pod sources synced");
    rolled_out(fleet);
    assert_eq!(started(&serves(&fleet.machines[0])), since);
    let id = |pods: &[Value]| pods[0]["status"]["containerStatuses"][0]["containerID"].clone();
    let after = pods(fleet);
    assert_eq!(id(&after), id(&before));
    assert_eq!(
        after[0]["status"]["containerStatuses"][0]["restartCount"],
        0
    );
}

fn ends_with_its_daemon_set(fleet: &Fleet) {
    let delete = [
        "delete",
        "ds",
        "node-exporter",
        "--cascade=foreground",
        "--timeout=60s",
    ];
    fleet.kubectl.run(&delete).ok();
    for machine in &fleet.machines {
        let answer = machine.get(PORT, "/metrics");
        assert!(answer.is_err(), "it still runs on {}", machine.node());
    }
}
