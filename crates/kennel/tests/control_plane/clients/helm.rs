//! Helm with a chart of our own (`chart/`) that has every kind which the charts of daemons bring along.

use kennel_testkit::{Answer, Deadline, Helm, Kennel, Kubectl, Version, eventually};
use serde_json::Value;

use super::{BINARY, file};

const NAMESPACE: &str = "agents";

/// Pods of hooks end at once, well or not.
const SCENARIO: &str = "
pods:
- {image: \"*hook:good\", exits: {after: 1ms, code: 0}}
- {image: \"*hook:bad\", exits: {after: 1ms, code: 1}}
";

/// Each object of the chart by kind and name, with a field that the value `tag` decides, and what it is then for `one`
/// and for `two`.
const OBJECTS: [(&str, &str, &str, &str); 17] = [
    (
        "sa/agent",
        "{.metadata.annotations.example\\.com/tag}",
        "one",
        "two",
    ),
    ("role/agent", "{.rules[0].resourceNames[0]}", "one", "two"),
    ("rolebinding/agent", "{.subjects[1].name}", "one", "two"),
    (
        "clusterrole/agent",
        "{.rules[0].resourceNames[0]}",
        "one",
        "two",
    ),
    (
        "clusterrolebinding/agent",
        "{.subjects[1].name}",
        "one",
        "two",
    ),
    (
        "cm/agent",
        "{.data.agent\\.yaml}",
        "tag: one\n",
        "tag: two\n",
    ),
    ("secret/agent", "{.data.token}", "b25l", "dHdv"),
    (
        "ds/agent",
        "{.spec.template.spec.containers[0].image}",
        "example.com/agent:one",
        "example.com/agent:two",
    ),
    ("priorityclass/agent", "{.description}", "one", "two"),
    ("pdb/agent", "{.spec.maxUnavailable}", "1", "2"),
    ("svc/agent", "{.spec.ports[0].port}", "8080", "9090"),
    (
        "svc/agent-headless",
        "{.spec.clusterIP} {.spec.ports[0].port}",
        "None 8080",
        "None 9090",
    ),
    (
        "netpol/agent",
        "{.spec.ingress[0].ports[0].port}",
        "8080",
        "9090",
    ),
    (
        "limits/agent",
        "{.spec.limits[0].defaultRequest.cpu}",
        "20m",
        "30m",
    ),
    ("quota/agent", "{.spec.hard.pods}", "20", "30"),
    ("sc/agent", "{.allowVolumeExpansion}", "false", "true"),
    ("csidriver/agent", "{.spec.podInfoOnMount}", "false", "true"),
];

struct Cluster {
    _kennel: Kennel,
    _scenario: tempfile::NamedTempFile,
    kubectl: Kubectl,
    helm: Helm,
}

impl Cluster {
    fn new() -> Self {
        let scenario = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(scenario.path(), SCENARIO).unwrap();
        let path = scenario.path().to_str().unwrap();
        let kennel = Kennel::start(BINARY, &["up", "--simulate", "3", "--scenario", path]);
        Self {
            kubectl: Kubectl::new(Version::V1_32, &kennel.kubeconfig()),
            helm: Helm::new(&kennel.kubeconfig()),
            _kennel: kennel,
            _scenario: scenario,
        }
    }

    /// Runs `helm COMMAND agent … -n agents`, with the chart if the command takes one.
    fn helm(&self, command: &str, flags: &[&str]) -> Answer {
        let chart = file("chart");
        let mut words: Vec<&str> = command.split(' ').collect();
        words.push("agent");
        if ["install", "upgrade"].contains(&command) {
            words.push(chart.to_str().unwrap());
        }
        words.extend(["-n", NAMESPACE]);
        words.extend(flags);
        self.helm.run(&words)
    }

    /// That every object is as the chart says with `one`, or with `two`.
    fn is_at(&self, second: bool) {
        for (object, field, one, two) in OBJECTS {
            let output = format!("jsonpath={field}");
            let shown = self
                .kubectl
                .run(&["get", object, "-n", NAMESPACE, "-o", &output]);
            let expected = if second { two } else { one };
            assert_eq!(shown.ok(), expected, "{object} {field}");
        }
        let ready = "jsonpath={.status.numberReady} {.status.updatedNumberScheduled}";
        let shown = self
            .kubectl
            .run(&["get", "ds/agent", "-n", NAMESPACE, "-o", ready]);
        assert_eq!(shown.ok(), "3 3");
    }

    /// Everything in the cluster that belongs to the release, hooks and records of Helm included.
    fn leftovers(&self) -> String {
        let kinds = self
            .kubectl
            .run(&["api-resources", "--verbs=list", "-o", "name"])
            .ok();
        let kinds: Vec<&str> = kinds.lines().collect();
        let kinds = kinds.join(",");
        ["app.kubernetes.io/instance=agent", "owner=helm"]
            .map(|labels| {
                self.kubectl
                    .run(&["get", &kinds, "-A", "-l", labels, "-o", "name"])
                    .ok()
            })
            .concat()
    }

    fn history(&self) -> Vec<(u64, String)> {
        let shown = self.helm("history", &["-o", "json"]).ok();
        let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
        let revision = |entry: &Value| {
            let status = entry["status"].as_str().unwrap().to_owned();
            (entry["revision"].as_u64().unwrap(), status)
        };
        shown.iter().map(revision).collect()
    }
}

/// With the time in which everything must be ready.
const WAIT: [&str; 3] = ["--wait", "--timeout", "60s"];

fn flags(more: &[&'static str]) -> Vec<&'static str> {
    [&WAIT[..], more].concat()
}

fn revisions(statuses: &[&str]) -> Vec<(u64, String)> {
    let statuses = statuses.iter().map(ToString::to_string);
    (1..).zip(statuses).collect()
}

#[test]
fn a_chart_with_every_kind_lives_its_whole_life() {
    let cluster = Cluster::new();
    let dry = ["--create-namespace", "--dry-run=server"];
    let rendered = cluster.helm("install", &dry).ok();
    assert!(rendered.contains("STATUS: pending-install"), "{rendered}");
    assert!(rendered.contains("server: v1.36."), "{rendered}");
    assert!(!rendered.contains("cluster: \"none\""), "{rendered}");
    assert_eq!(cluster.leftovers(), "");

    let installed = cluster
        .helm("install", &flags(&["--create-namespace"]))
        .ok();
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    assert!(
        installed.contains("The agent one runs on every node."),
        "{installed}"
    );
    cluster.is_at(false);
    let status = cluster.helm("status", &["--show-resources"]).ok();
    assert!(status.contains("==> v1/DaemonSet"), "{status}");
    let manifest = cluster.helm("get manifest", &[]).ok();
    assert!(manifest.contains("kind: NetworkPolicy"), "{manifest}");

    cluster.helm("upgrade", &flags(&["--set", "tag=two"])).ok();
    cluster.is_at(true);
    assert_eq!(cluster.history(), revisions(&["superseded", "deployed"]));

    let tested = cluster.helm("test", &["--timeout", "60s"]).ok();
    assert!(tested.contains("Phase:          Succeeded"), "{tested}");

    cluster.helm("rollback", &flags(&["1"])).ok();
    cluster.is_at(false);
    let expected = revisions(&["superseded", "superseded", "deployed"]);
    assert_eq!(cluster.history(), expected);

    cluster.helm("uninstall", &WAIT).ok();
    eventually(Deadline::seconds(60), || {
        let left = cluster.leftovers();
        left.is_empty().then_some(()).ok_or(left)
    });
}

#[test]
fn a_failing_test_of_a_chart_fails() {
    let cluster = Cluster::new();
    let bad = flags(&[
        "--create-namespace",
        "--set",
        "testImage=example.com/hook:bad",
    ]);
    cluster.helm("install", &bad).ok();
    let tested = cluster.helm("test", &["--timeout", "60s"]);
    assert_eq!(tested.code, 1);
    assert!(
        tested.stdout.contains("Phase:          Failed"),
        "{}",
        tested.stdout
    );
    assert!(
        tested.stderr.contains("pod agent-test failed"),
        "{}",
        tested.stderr
    );
}

#[test]
fn a_chart_with_a_deployment_fails_as_a_whole() {
    let cluster = Cluster::new();
    let kind = "no matches for kind \"Deployment\" in version \"apps/v1\"";
    let with = ["--create-namespace", "--set", "deployment=true"];
    let really: &[&str] = &[];
    for dry in [really, &["--dry-run=server"]] {
        let refused = cluster.helm("install", &[&with[..], dry].concat());
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains(kind), "{}", refused.stderr);
        assert_eq!(cluster.leftovers(), "");
    }
    cluster
        .helm("install", &flags(&["--create-namespace"]))
        .ok();
    let refused = cluster.helm("upgrade", &["--set", "deployment=true,tag=two"]);
    assert!(refused.stderr.contains(kind), "{}", refused.stderr);
    cluster.is_at(false);
    assert_eq!(cluster.history(), revisions(&["deployed"]));
}
