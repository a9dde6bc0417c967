//! The Helm chart of `kennel controller`: installed, upgraded and removed with a real Helm, and its rights in use.

use kennel_testkit::{Controller, Deadline, Helm, eventually};
use serde_json::Value;

use super::processes::{BINARY, Cluster, WITHOUT};

const CHART: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/helm/kennel-controller"
);
/// The release, and so the name of everything in it.
const RELEASE: &str = "kennel-controller";
/// The same in every release.
const LEASE: &str = "kennel-daemonset-controller";
/// Kennel's own API has no Deployments.
const DAEMON_SET: &str = "workload=DaemonSet";

impl Cluster {
    fn helm(&self, command: &str) -> String {
        let helm = Helm::new(&self.kennel.kubeconfig());
        let words: Vec<&str> = command.split(' ').collect();
        helm.run(&words).ok()
    }

    /// Whether the release's object of this kind exists.
    fn has(&self, kind: &str) -> bool {
        let name = match kind {
            "service" => format!("{RELEASE}-metrics"),
            "lease" => LEASE.to_owned(),
            _ => RELEASE.to_owned(),
        };
        let arguments = [
            "get",
            kind,
            &name,
            "-n",
            "kube-system",
            "--ignore-not-found",
            "-o",
            "name",
        ];
        !self.kubectl.run(&arguments).ok().is_empty()
    }

    fn rules(&self, kind: &str, name: &str) -> Value {
        let object = self.ask(&format!("get {kind} {name} -n kube-system -o json"));
        let object: Value = serde_json::from_str(&object).unwrap();
        object["rules"].clone()
    }
}

/// What the chart renders, or Helm's error.
fn render(values: &[&str]) -> Result<String, String> {
    let helm = Helm::new(std::path::Path::new("/nonexistent"));
    let mut arguments = vec!["template", RELEASE, CHART, "--namespace", "kube-system"];
    arguments.extend(values.iter().flat_map(|value| ["--set", value]));
    let answer = helm.run(&arguments);
    match answer.code {
        0 => Ok(answer.stdout),
        _ => Err(answer.stderr),
    }
}

const KINDS: [&str; 6] = [
    "serviceaccount",
    "clusterrole",
    "clusterrolebinding",
    "role",
    "rolebinding",
    "daemonset",
];

#[test]
fn the_chart_can_be_installed_upgraded_rolled_back_and_uninstalled() {
    let cluster = Cluster::start(&["up", "--simulate", "3"]);
    let flags = format!("{RELEASE} {CHART} -n kube-system --wait --timeout 60s --set {DAEMON_SET}");
    let installed = cluster.helm(&format!("install {flags}"));
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    assert!(
        installed.contains("It manages all DaemonSets."),
        "{installed}"
    );
    for kind in KINDS {
        assert!(cluster.has(kind), "{kind}");
    }
    assert!(!cluster.has("service"));
    let ready = "get ds kennel-controller -n kube-system -o jsonpath={.status.numberReady}";
    assert_eq!(cluster.ask(ready), "3");

    cluster.helm(&format!(
        "upgrade {flags} --set metrics.expose=true,placement=direct"
    ));
    assert!(cluster.has("service"));
    let arguments = "get ds kennel-controller -n kube-system -o jsonpath={.spec.template.spec.containers[0].args}";
    assert!(cluster.ask(arguments).contains("--placement=direct"));
    cluster.helm(&format!(
        "rollback {RELEASE} 1 -n kube-system --wait --timeout 60s"
    ));
    assert!(!cluster.has("service"));
    assert!(!cluster.ask(arguments).contains("--placement=direct"));

    cluster.helm(&format!("uninstall {RELEASE} -n kube-system"));
    eventually(Deadline::seconds(60), || {
        let left: Vec<&str> = KINDS.into_iter().filter(|kind| cluster.has(kind)).collect();
        left.is_empty().then_some(()).ok_or(format!("{left:?}"))
    });
}

#[test]
fn the_rights_and_arguments_of_the_chart_are_enough() {
    let cluster = Cluster::start(WITHOUT);
    cluster.helm(&format!(
        "install {RELEASE} {CHART} -n kube-system --set {DAEMON_SET}"
    ));
    // Their rights are those of the manifests, which another test sees to be enough for everything.
    cluster.kubeconfig_of_the_manifests();
    let manifests = cluster.rules("clusterrole", "kennel:daemonset-controller");
    assert_eq!(cluster.rules("clusterrole", RELEASE), manifests);
    let manifests = cluster.rules("role", "kennel:daemonset-controller");
    assert_eq!(cluster.rules("role", RELEASE), manifests);

    let kubeconfig = cluster.kubeconfig_of(RELEASE);
    let arguments = "get ds kennel-controller -n kube-system -o jsonpath={.spec.template.spec.containers[0].args}";
    let arguments: Vec<String> = serde_json::from_str(&cluster.ask(arguments)).unwrap();
    assert_eq!(arguments[0], "controller");
    // The fixture listens on an address of its own.
    let arguments = arguments[1..].iter().map(String::as_str);
    let arguments: Vec<&str> = arguments
        .filter(|flag| !flag.starts_with("--metrics-listen"))
        .collect();
    let controller = Controller::start(BINARY, &kubeconfig, &arguments);
    controller.wait_for("became leader");
    cluster.create("one");
    cluster.rolled_out();
    cluster.ask("set image ds/agent agent=two");
    cluster.rolled_out();
    for path in ["/livez", "/readyz"] {
        assert!(controller.get(path).starts_with("HTTP/1.1 200"), "{path}");
    }
    let log = controller.log();
    assert!(!log.contains("forbidden"), "{log}");
    assert!(cluster.has("lease"));
}

#[test]
fn r11_an_assistant_has_exactly_the_rights_that_it_uses() {
    // The cluster's own controller works beside it.
    let cluster = Cluster::start(&["up", "--simulate", "3"]);
    let flags = format!("-n kube-system --set {DAEMON_SET},assist=true");
    cluster.helm(&format!("install {RELEASE} {CHART} {flags}"));
    let account = format!("--as=system:serviceaccount:kube-system:{RELEASE}");
    for (may, verb, resource) in [
        (true, "delete", "pods"),
        (true, "patch", "nodes"),
        (true, "patch", "controllerrevisions.apps"),
        (false, "create", "pods"),
        (false, "patch", "pods"),
        (false, "create", "configmaps"),
        (false, "list", "configmaps"),
        (false, "create", "controllerrevisions.apps"),
        (false, "delete", "controllerrevisions.apps"),
        (false, "update", "daemonsets.apps"),
        (false, "list", "events"),
    ] {
        let arguments = ["auth", "can-i", verb, resource, &account];
        let answer = cluster.kubectl.run(&arguments).stdout;
        let expected = if may { "yes" } else { "no" };
        assert_eq!(answer.trim(), expected, "{verb} {resource}");
    }
    let kubeconfig = cluster.kubeconfig_of(RELEASE);
    let namespace = "--leader-elect-resource-namespace=kube-system";
    let assistant = Controller::start(BINARY, &kubeconfig, &["--assist", namespace]);
    assistant.wait_for("became leader");
    cluster.create("one");
    cluster.rolled_out();
    let policy = r#"{"metadata":{"annotations":{"rollout.kennel.dev/stages":"1,100%"}},"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}"#;
    cluster.ask(&format!("patch ds agent --type=merge -p {policy}"));
    cluster.ask("set image ds/agent agent=two");
    // It writes states, deletes pods, emits events and writes conditions.
    eventually(Deadline::seconds(60), || {
        let path = "jsonpath={.status.updatedNumberScheduled}{.status.conditions[*].reason}";
        let found = cluster.ask(&format!("get ds agent -o {path}"));
        let complete = found.starts_with('3') && found.contains("Complete");
        complete.then_some(()).ok_or(found)
    });
    let told = "get events --field-selector=reason=RolloutComplete -o name";
    eventually(Deadline::seconds(30), || {
        let found = cluster.ask(told);
        (!found.trim().is_empty())
            .then_some(())
            .ok_or("no event so far")
    });
    let log = assistant.log();
    assert!(!log.contains("forbidden"), "{log}");
}

#[test]
fn the_chart_renders_what_its_values_say() {
    let plain = render(&[]).unwrap();
    let image = format!("image: \"localhost/kennel:{}\"", env!("CARGO_PKG_VERSION"));
    for line in [
        "kind: Deployment",
        "replicas: 2",
        &image,
        "- --leader-elect-resource-namespace=",
        "- --metrics-listen=127.0.0.1:10290",
        "path: /livez",
        "path: /readyz",
        "runAsNonRoot: true",
        "key: kennel.dev/daemons-not-ready",
    ] {
        assert!(plain.contains(line), "{line} in\n{plain}");
    }
    for flag in [
        "--assist",
        "--prometheus-url",
        "--allow-check-host",
        "--placement",
    ] {
        assert!(!plain.contains(flag), "{flag} in\n{plain}");
    }
    let assisting = render(&[
        "assist=true",
        "prometheusUrl=http://prometheus:9090",
        "allowCheckHosts={one.example.org,two.example.org}",
        "metrics.expose=true",
        "metrics.serviceMonitor.enabled=true",
    ]);
    let assisting = assisting.unwrap();
    for line in [
        "- --assist",
        "- \"--prometheus-url=http://prometheus:9090\"",
        "- \"--allow-check-host=one.example.org\"",
        "- \"--allow-check-host=two.example.org\"",
        "- --metrics-listen=0.0.0.0:10290",
        "kind: ServiceMonitor",
    ] {
        assert!(assisting.contains(line), "{line} in\n{assisting}");
    }
    let alone = render(&["leaderElection=false", "replicas=1"]).unwrap();
    assert!(
        !alone.contains("leases") && alone.contains("- --leader-elect=false"),
        "{alone}"
    );
}

#[test]
fn the_chart_refuses_values_that_cannot_work() {
    let refused = |values: &[&str], words: &str| {
        let error = render(values).expect_err("it is refused");
        assert!(error.contains(words), "{values:?}: {error}");
    };
    refused(&["workload=ReplicaSet"], "workload");
    refused(&["leaderElection=false"], "replicas");
    refused(&["replica=3"], "replica");
    refused(&["prometheusUrl=prometheus:9090"], "prometheusUrl");
    refused(
        &["metrics.serviceMonitor.enabled=true"],
        "needs metrics.expose",
    );
}
