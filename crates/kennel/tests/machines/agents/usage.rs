//! kubectl top, an old one and a new one, and the usage metrics of agents.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use kennel_testkit::machine::{BlockDevice, Image};
use kennel_testkit::{Deadline, Kubectl, Version, eventually};
use serde_json::Value;

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready};

#[test]
fn usage_of_containers() {
    if kennel_testkit::machine::possible() {
        walk(Engine::Containerd);
    }
}

#[test]
fn usage_of_processes() {
    if kennel_testkit::machine::possible() {
        walk(Engine::Process);
    }
}

/// One container is busy for a tenth of a core, as its limit allows (or less, if the machine is busy), and the other sleeps.
const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: worker, labels: {app: worker}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: busy
    image: "kennel.test/app:1"
    command: [sh, -c, "while true; do :; done"]
    resources: {limits: {cpu: 100m, memory: 64Mi}}
  - {name: idle, image: "kennel.test/app:1", command: [sh, -c, "sleep infinity"]}
---
apiVersion: v1
kind: Pod
metadata: {name: sleeper, labels: {app: sleeper}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - {name: only, image: "kennel.test/app:1", command: [sh, -c, "sleep infinity"]}
"#;

/// Writes to a disk past the page cache, again and again.
const WRITER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  volumes: [{name: disk, hostPath: {path: DISK}}]
  containers:
  - name: only
    image: "kennel.test/app:1"
    command: [sh, -c, "while dd if=/dev/zero of=/disk/file bs=64k count=4 oflag=direct; do sleep 1; done"]
    volumeMounts: [{name: disk, mountPath: /disk}]
"#;

/// It has a network of its own, and its probe sends packets to it.
const NETWORKED: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: networked}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: served
    image: "kennel.test/app:1"
    command: [sh, -c, "mkdir /page && echo page > /page/index.html && exec busybox httpd -f -p 8080 -h /page"]
    readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}
  - {name: beside, image: "kennel.test/app:1", command: [sh, -c, "sleep infinity"]}
"#;

fn walk(engine: Engine) {
    let disk = BlockDevice::mounted();
    let fleet = Fleet::new(engine, 1, &[Image::new("kennel.test/app:1")]);
    fleet.apply(PODS);
    for name in ["worker", "sleeper"] {
        fleet.pod(name, is_ready);
    }
    for version in Version::ALL {
        let kubectl = Kubectl::new(version, &fleet.server.kubeconfig());
        shows_nodes(&kubectl);
        shows_pods(&kubectl);
    }
    serves_metrics(&fleet);
    serves_devices(&fleet, &disk);
    if engine == Engine::Containerd {
        serves_interfaces(&fleet);
    }
    serves_its_configuration(&fleet);
}

/// The words of each line, without the header.
fn top(kubectl: &Kubectl, arguments: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let mut all = vec!["top"];
    all.extend(arguments);
    let answer = kubectl.run(&all);
    if answer.code != 0 {
        return Err(format!("{}{}", answer.stdout, answer.stderr));
    }
    let lines = answer.stdout.lines().skip(1);
    let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
    Ok(words.collect())
}

/// A number before its unit: `100` of `100m`.
fn amount(text: &str) -> u64 {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let digits = digits.unwrap_or(text.len());
    text[..digits].parse().unwrap_or_else(|_| panic!("{text}"))
}

fn shows_nodes(kubectl: &Kubectl) {
    let nodes = eventually(Deadline::seconds(TIMEOUT), || top(kubectl, &["nodes"]));
    let [line] = nodes.as_slice() else {
        panic!("{nodes:?}");
    };
    assert_eq!(line[0], "machine-1");
    // Cores with their share, memory with its share.
    assert!(amount(&line[1]) > 0 && line[2].ends_with('%'), "{line:?}");
    assert!(line[3].ends_with("Mi") && amount(&line[3]) > 0, "{line:?}");
}

fn shows_pods(kubectl: &Kubectl) {
    // Until the window contains nothing from before the containers were busy.
    let lines = eventually(Deadline::seconds(TIMEOUT), || {
        let lines = top(kubectl, &["pods", "-A", "--containers"])?;
        let busy = lines.iter().find(|line| line[2] == "busy");
        let is_busy = busy.is_some_and(|line| (20..=150).contains(&amount(&line[3])));
        let is_whole = lines.len() == 3;
        (is_busy && is_whole)
            .then_some(lines.clone())
            .ok_or(format!("{lines:?}"))
    });
    for line in &lines {
        let [namespace, pod, container, cpu, memory] = line.as_slice() else {
            panic!("{line:?}");
        };
        assert_eq!(namespace, "default");
        assert!(cpu.ends_with('m') && memory.ends_with("Mi"), "{line:?}");
        match container.as_str() {
            "busy" | "idle" => assert_eq!(pod, "worker"),
            "only" => assert_eq!(pod, "sleeper"),
            other => panic!("{other}"),
        }
        if container != "busy" {
            assert!(amount(cpu) < 20, "{line:?}");
        }
    }
    let selected = top(kubectl, &["pod", "-l", "app=worker"]).unwrap();
    let [line] = selected.as_slice() else {
        panic!("{selected:?}");
    };
    assert_eq!(line[0], "worker");
    assert!((20..=160).contains(&amount(&line[1])), "{line:?}");
    let one = top(kubectl, &["pod", "sleeper"]).unwrap();
    assert_eq!(one[0][0], "sleeper");
    let absent = top(kubectl, &["pod", "absent"]).unwrap_err();
    assert!(absent.contains("NotFound"), "{absent}");
}

/// What the agent answers to a path.
fn raw(fleet: &Fleet, path: &str) -> String {
    let path = format!("/api/v1/nodes/machine-1/proxy{path}");
    fleet.kubectl.run(&["get", "--raw", &path]).ok()
}

/// The value of the sample whose line starts with a name and contains these labels.
fn find(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let mut lines = page.lines();
    let of = |line: &&str| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    };
    let (_, values) = lines.find(of)?.rsplit_once("} ").unwrap();
    Some(values.split(' ').next().unwrap().parse().unwrap())
}

fn sample(page: &str, name: &str, labels: &[&str]) -> f64 {
    let found = find(page, name, labels);
    found.unwrap_or_else(|| panic!("no {name} of {labels:?} in\n{page}"))
}

fn serves_metrics(fleet: &Fleet) {
    let busy = [
        "container=\"busy\"",
        "pod=\"worker\"",
        "namespace=\"default\"",
    ];
    let page = raw(fleet, "/metrics/resource");
    check_metrics(&page);
    assert!(sample(&page, "container_cpu_usage_seconds_total", &busy) > 0.0);
    assert!(sample(&page, "pod_memory_working_set_bytes", &busy[1..]) > 0.0);
    assert!(page.contains("\nresource_scrape_error 0\n"), "{page}");
    let page = raw(fleet, "/metrics/cadvisor");
    check_metrics(&page);
    let of = |name: &str| sample(&page, name, &busy);
    assert!(of("container_cpu_usage_seconds_total") > 0.0);
    assert!(of("container_memory_rss") > 0.0);
    let working_set = of("container_memory_working_set_bytes");
    assert!(of("container_memory_usage_bytes") >= working_set && working_set > 0.0);
    assert_eq!(
        of("container_spec_memory_limit_bytes").to_string(),
        "67108864"
    );
    let share = of("container_spec_cpu_quota") / of("container_spec_cpu_period");
    assert!((0.099..0.101).contains(&share), "{share}");
    assert!(of("container_cpu_cfs_throttled_periods_total") > 0.0);
    let whole_pod = ["container=\"\"", busy[1]];
    let of_pod = |name: &str| sample(&page, name, &whole_pod);
    assert!(of_pod("container_memory_working_set_bytes") > 0.0);
    let whole = sample(&page, "container_cpu_usage_seconds_total", &["id=\"/\""]);
    assert!(whole > of("container_cpu_usage_seconds_total"));
    assert!(of("container_processes") >= 1.0);
    assert!(of("container_threads") >= of("container_processes"));
    assert!(of("container_oom_events_total") < 1.0);
    let seen = of("container_last_seen");
    assert!(seen > 1.7e9, "{seen}");
    let on_disk = |name: &str| sample(&page, name, &["id=\"/\"", "device=\""]);
    let disk = on_disk("container_fs_usage_bytes");
    assert!(disk > 0.0 && disk <= on_disk("container_fs_limit_bytes"));
    // Its network is the machine's.
    let received = "container_network_receive_bytes_total";
    assert_eq!(find(&page, received, &[busy[1]]), None);
    let summary: Value = serde_json::from_str(&raw(fleet, "/stats/summary")).unwrap();
    let node = &summary["node"];
    assert!(node["cpu"]["usageNanoCores"].as_u64() > Some(0), "{node}");
}

fn serves_devices(fleet: &Fleet, disk: &BlockDevice) {
    let place = disk.mount_point().to_str().unwrap();
    fleet.apply(&WRITER.replace("DISK", place));
    fleet.pod("writer", is_ready);
    let device = format!("device=\"{}\"", disk.file().display());
    let labels = ["container=\"only\"", device.as_str(), "pod=\"writer\""];
    let page = eventually(Deadline::seconds(TIMEOUT), || {
        let page = raw(fleet, "/metrics/cadvisor");
        let written = find(&page, "container_fs_writes_bytes_total", &labels);
        let is_written = written.is_some_and(|written| written >= 1_048_576.0);
        is_written.then_some(page.clone()).ok_or(page)
    });
    check_metrics(&page);
    let of = |name: &str| sample(&page, name, &labels);
    assert!(of("container_fs_writes_total") >= 1.0);
    // It reads nothing but, at most, what the file system needs for writing.
    assert!(of("container_fs_reads_bytes_total") < of("container_fs_writes_bytes_total"));
    assert!(of("container_fs_reads_total") < of("container_fs_writes_total"));
    // A pod that has not touched the disk has no row for it.
    let others = ["pod=\"sleeper\"", device.as_str()];
    assert_eq!(
        find(&page, "container_fs_writes_bytes_total", &others),
        None
    );
}

fn serves_interfaces(fleet: &Fleet) {
    fleet.apply(NETWORKED);
    fleet.pod("networked", is_ready);
    let page = raw(fleet, "/metrics/cadvisor");
    check_metrics(&page);
    let labels = ["container=\"\"", "interface=\"eth0\"", "pod=\"networked\""];
    for direction in ["receive", "transmit"] {
        let of = |what: &str| {
            let name = format!("container_network_{direction}_{what}_total");
            sample(&page, &name, &labels)
        };
        // A request and its answer, over TCP.
        assert!(of("packets") >= 4.0 && of("bytes") > 200.0, "{page}");
        assert!(
            of("errors") + of("packets_dropped") < of("packets"),
            "{page}"
        );
    }
    // The containers of a pod share its network, which is counted once; pods in the machine's network have no rows.
    let name = "container_network_receive_bytes_total{";
    let is_of_pod = |line: &&str| line.starts_with(name) && !line.contains("id=\"/\"");
    let rows: Vec<&str> = page.lines().filter(is_of_pod).collect();
    let is_its =
        |row: &&str| row.contains("pod=\"networked\"") && row.contains("namespace=\"default\"");
    assert!(rows.iter().all(is_its), "{rows:?}");
    let of_interface = |row: &&&str| row.contains("interface=\"eth0\"");
    assert_eq!(rows.iter().filter(of_interface).count(), 1, "{rows:?}");
}

/// Prometheus' own opinion of the text.
fn check_metrics(page: &str) {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    let promtool = tools.join("promtool").canonicalize();
    let promtool = promtool.expect("promtool is there: run scripts/prometheus.sh");
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(page.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

fn serves_its_configuration(fleet: &Fleet) {
    let config: Value = serde_json::from_str(&raw(fleet, "/configz")).unwrap();
    let config = &config["kubeletconfig"];
    assert_eq!(config["kind"], "KubeletConfiguration");
    assert_eq!(config["evictionHard"]["memory.available"], "1Mi");
    assert_eq!(config["maxPods"], 110);
}
