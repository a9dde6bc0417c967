//! The lifecycle of pods as kubectl shows it: start order, restarts, reasons, probes, hooks, termination.

use std::fs;

use kennel_testkit::machine::Image;
use serde_json::Value;

use super::fleet::{Engine, Fleet, has_event, is_ready, processes_with};

#[test]
fn the_life_of_pods_in_containers() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fleet = Fleet::new(Engine::Containerd, 1, &[Image::new("kennel.test/app:1")]);
    let shared = tempfile::tempdir().unwrap();
    let place = shared.path().to_str().unwrap();
    // All at once: what is slow about them is waiting.
    fleet.apply(&ORDER.replace("SHARED", place));
    fleet.apply(CRASHES);
    fleet.apply(IMAGES);
    fleet.apply(MISSING);
    fleet.apply(GREEDY);
    fleet.apply(&STUBBORN.replace("SHARED", place));
    fleet.apply(ONCE);
    fleet.apply(MISPLACED);
    runs_in_order(&fleet, shared.path());
    runs_once(&fleet);
    is_refused_where_it_does_not_fit(&fleet);
    crashes(&fleet);
    waits_for_images(&fleet);
    waits_for_what_it_names(&fleet);
    is_killed_for_its_greed(&fleet);
    fleet.apply(&PROBED.replace("SHARED", place));
    is_probed(&fleet, shared.path());
    ends_with_its_hooks_and_its_grace(&fleet, shared.path());
}

fn state<'a>(pod: &'a Value, kind: &str) -> &'a Value {
    &pod["status"]["containerStatuses"][0]["state"][kind]
}

fn last(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
}

fn restarts(pod: &Value) -> i64 {
    let count = &pod["status"]["containerStatuses"][0]["restartCount"];
    count.as_i64().unwrap_or_default()
}

const ORDER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: order}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  volumes: [{name: shared, hostPath: {path: SHARED}}]
  initContainers:
  - {name: first, image: "kennel.test/app:1", command: [sh, -c, "echo first >> /s/order"], volumeMounts: [{name: shared, mountPath: /s}]}
  - name: beside
    image: kennel.test/app:1
    restartPolicy: Always
    command: [sh, -c, "echo beside >> /s/order; trap 'echo beside ends >> /s/order; exit 0' TERM; while :; do sleep 0.1; done"]
    startupProbe: {exec: {command: [grep, beside, /s/order]}, periodSeconds: 1}
    volumeMounts: [{name: shared, mountPath: /s}]
  - {name: second, image: "kennel.test/app:1", command: [sh, -c, "echo second >> /s/order"], volumeMounts: [{name: shared, mountPath: /s}]}
  containers:
  - name: main
    image: kennel.test/app:1
    command: [sh, -c, "echo main >> /s/order; trap 'echo main ends >> /s/order; exit 0' TERM; while :; do sleep 0.1; done"]
    volumeMounts: [{name: shared, mountPath: /s}]
"#;

fn runs_in_order(fleet: &Fleet, shared: &std::path::Path) {
    let pod = fleet.pod("order", is_ready);
    assert_eq!(pod["status"]["phase"], "Running");
    let table = fleet
        .kubectl
        .run(&["get", "pod", "order", "--no-headers"])
        .ok();
    assert!(table.contains("2/2"), "the sidecar counts: {table}");
    fleet.kubectl.run(&["delete", "pod", "order"]).ok();
    let order = fs::read_to_string(shared.join("order")).unwrap();
    let expected = "first\nbeside\nsecond\nmain\nmain ends\nbeside ends\n";
    assert_eq!(order, expected);
}

const ONCE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: well}
spec:
  restartPolicy: Never
  containers: [{name: c, image: "kennel.test/app:1", command: [sh, -c, "echo done"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: badly}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sh, -c, "echo no luck > /dev/termination-log; exit 7"]
"#;

fn runs_once(fleet: &Fleet) {
    let pod = fleet.pod("well", |pod| pod["status"]["phase"] == "Succeeded");
    assert_eq!(state(&pod, "terminated")["reason"], "Completed");
    let pod = fleet.pod("badly", |pod| pod["status"]["phase"] == "Failed");
    let ended = state(&pod, "terminated");
    assert_eq!(ended["exitCode"], 7);
    assert_eq!(ended["reason"], "Error");
    assert_eq!(ended["message"], "no luck\n");
}

const CRASHES: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: crashes}
spec:
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sh, -c, "echo last words; exit 3"]
    terminationMessagePolicy: FallbackToLogsOnError
"#;

fn crashes(fleet: &Fleet) {
    let waits = |pod: &Value| state(pod, "waiting")["reason"] == "CrashLoopBackOff";
    let pod = fleet.pod("crashes", |pod| waits(pod) && restarts(pod) >= 1);
    let message = state(&pod, "waiting")["message"].as_str().unwrap();
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let expected = format!("restarting failed container=c pod=crashes_default({uid})");
    assert!(message.starts_with("back-off 10s "), "{message}");
    assert!(message.ends_with(&expected), "{message}");
    assert_eq!(last(&pod)["exitCode"], 3);
    assert_eq!(last(&pod)["reason"], "Error");
    assert_eq!(last(&pod)["message"], "last words\n");
    has_event(fleet, "crashes", "Back-off restarting failed container c");
    let again = fleet.pod("crashes", |pod| restarts(pod) >= 2);
    assert_eq!(again["status"]["phase"], "Running");
}

const IMAGES: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: no-image}
spec:
  containers: [{name: c, image: "127.0.0.1:1/nobody/has:this"}]
---
apiVersion: v1
kind: Pod
metadata: {name: never-image}
spec:
  containers: [{name: c, image: "kennel.test/absent:1", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: bad-image}
spec:
  containers: [{name: c, image: "Not//A Name"}]
"#;

fn waits_for_images(fleet: &Fleet) {
    let waits = |reason: &'static str| move |pod: &Value| state(pod, "waiting")["reason"] == reason;
    let pod = fleet.pod("no-image", waits("ImagePullBackOff"));
    assert_eq!(pod["status"]["phase"], "Pending");
    has_event(
        fleet,
        "no-image",
        "Failed to pull image \"127.0.0.1:1/nobody/has:this\"",
    );
    fleet.pod("never-image", waits("ErrImageNeverPull"));
    fleet.pod("bad-image", waits("InvalidImageName"));
}

const MISSING: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: missing}
spec:
  containers:
  - name: c
    image: kennel.test/app:1
    env: [{name: GREETING, valueFrom: {configMapKeyRef: {name: greetings, key: english}}}]
";

fn waits_for_what_it_names(fleet: &Fleet) {
    let pod = fleet.pod("missing", |pod| {
        state(pod, "waiting")["reason"] == "CreateContainerConfigError"
    });
    let message = state(&pod, "waiting")["message"].as_str().unwrap();
    assert_eq!(message, "configmap \"greetings\" not found");
    let create = [
        "create",
        "configmap",
        "greetings",
        "--from-literal=english=hello",
    ];
    fleet.kubectl.run(&create).ok();
    fleet.pod("missing", is_ready);
}

const GREEDY: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sh, -c, "exec tail /dev/zero"]
    resources: {limits: {memory: 24Mi}}
"#;

fn is_killed_for_its_greed(fleet: &Fleet) {
    let pod = fleet.pod("greedy", |pod| {
        pod["status"]["phase"] == "Failed" && state(pod, "terminated")["reason"] != "Error"
    });
    assert_eq!(state(&pod, "terminated")["reason"], "OOMKilled");
    assert_eq!(state(&pod, "terminated")["exitCode"], 137);
}

const PROBED: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: shared, hostPath: {path: SHARED}}]
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sh, -c, "touch /s/alive; sleep infinity"]
    readinessProbe: {exec: {command: [cat, /s/ready]}, periodSeconds: 1, failureThreshold: 1}
    livenessProbe: {exec: {command: [cat, /s/alive]}, periodSeconds: 1, failureThreshold: 2, initialDelaySeconds: 1}
    volumeMounts: [{name: shared, mountPath: /s}]
"#;

fn is_probed(fleet: &Fleet, shared: &std::path::Path) {
    let runs = |pod: &Value| state(pod, "running").is_object();
    let pod = fleet.pod("probed", runs);
    assert!(!is_ready(&pod), "nothing says that it is ready");
    has_event(
        fleet,
        "probed",
        "Readiness probe failed: cat: can't open '/s/ready'",
    );
    fs::write(shared.join("ready"), "").unwrap();
    fleet.pod("probed", is_ready);
    fs::remove_file(shared.join("ready")).unwrap();
    fleet.pod("probed", |pod| runs(pod) && !is_ready(pod));
    fs::remove_file(shared.join("alive")).unwrap();
    let pod = fleet.pod("probed", |pod| runs(pod) && restarts(pod) == 1);
    assert_eq!(last(&pod)["exitCode"], 137);
    has_event(
        fleet,
        "probed",
        "Container c failed liveness probe, will be restarted",
    );
}

const STUBBORN: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: stubborn}
spec:
  terminationGracePeriodSeconds: 3
  volumes: [{name: shared, hostPath: {path: SHARED}}]
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sh, -c, "trap '' TERM; while :; do sleep 0.1; done"]
    env: [{name: HOLDER, value: SHARED}]
    lifecycle:
      postStart: {exec: {command: [touch, /s/started]}}
      preStop: {exec: {command: [touch, /s/stopping]}}
    volumeMounts: [{name: shared, mountPath: /s}]
"#;

fn ends_with_its_hooks_and_its_grace(fleet: &Fleet, shared: &std::path::Path) {
    fleet.pod("stubborn", is_ready);
    let holder = format!("HOLDER={}", shared.display());
    assert!(processes_with(&holder) > 0, "it is seen while it runs");
    assert!(shared.join("started").exists(), "postStart has run");
    assert!(!shared.join("stopping").exists());
    fleet.kubectl.run(&["delete", "pod", "stubborn"]).ok();
    assert!(shared.join("stopping").exists(), "preStop has run");
    // Gone from the API means gone from the machine.
    assert_eq!(processes_with(&holder), 0, "it still runs");
}

const MISPLACED: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: too-large}
spec:
  nodeName: machine-1
  containers: [{name: c, image: "kennel.test/app:1", resources: {requests: {cpu: "1000"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: elsewhere}
spec:
  nodeName: machine-1
  nodeSelector: {kubernetes.io/os: plan9}
  containers: [{name: c, image: "kennel.test/app:1"}]
---
apiVersion: v1
kind: Pod
metadata: {name: port-1}
spec:
  nodeName: machine-1
  containers: [{name: c, image: "kennel.test/app:1", ports: [{containerPort: 80, hostPort: 8080}]}]
"#;

const SECOND_PORT: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: port-2}
spec:
  nodeName: machine-1
  containers: [{name: c, image: "kennel.test/app:1", ports: [{containerPort: 81, hostPort: 8080}]}]
"#;

fn is_refused_where_it_does_not_fit(fleet: &Fleet) {
    fleet.pod("port-1", is_ready);
    fleet.apply(SECOND_PORT);
    let check = |name: &str, reason: &str| {
        let pod = fleet.pod(name, |pod| pod["status"]["phase"] == "Failed");
        assert_eq!(pod["status"]["reason"], reason, "{pod:#}");
    };
    check("too-large", "OutOfcpu");
    check("elsewhere", "NodeAffinity");
    check("port-2", "NodePorts");
}
