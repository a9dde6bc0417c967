//! A cluster of simulated nodes with a DaemonSet `agent` that has a rollout policy, and `kennel rollout`.

use std::collections::BTreeSet;
use std::process::Command;

use kennel_testkit::{Answer, Deadline, eventually};
use serde_json::{Value, json};

use crate::why::fixture::{self as cluster, KENNEL};

const TIMEOUT_SECONDS: u64 = 60;
/// As an argument; no rollout here takes that long.
pub(crate) const WATCH: &str = "--timeout=60s";

pub(crate) struct Fixture {
    pub(crate) cluster: cluster::Fixture,
    policy: Vec<(String, String)>,
    strategy: Value,
}

impl Fixture {
    /// So many nodes, all with version 1, and a policy.
    pub(crate) fn new(nodes: usize, policy: &[(&str, &str)]) -> Self {
        Self::with("", nodes, policy)
    }

    /// The same, with a scenario.
    pub(crate) fn with(scenario: &str, nodes: usize, policy: &[(&str, &str)]) -> Self {
        Self::with_flags(&[], scenario, nodes, policy)
    }

    /// With flags of `kennel up`.
    pub(crate) fn with_flags(
        flags: &[&str],
        scenario: &str,
        nodes: usize,
        policy: &[(&str, &str)],
    ) -> Self {
        let count = nodes.to_string();
        let flags = [&["--simulate", &count], flags].concat();
        Self::of(cluster::Fixture::with(scenario, &flags), nodes, policy)
    }

    /// A cluster with so many nodes.
    pub(crate) fn of(cluster: cluster::Fixture, nodes: usize, policy: &[(&str, &str)]) -> Self {
        let strategy = json!({"rollingUpdate": {"maxUnavailable": "100%"}});
        Self::with_strategy(cluster, nodes, policy, strategy)
    }

    pub(crate) fn with_strategy(
        cluster: cluster::Fixture,
        nodes: usize,
        policy: &[(&str, &str)],
        strategy: Value,
    ) -> Self {
        let policy = policy.iter();
        let policy = policy.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let fixture = Self {
            cluster,
            policy: policy.collect(),
            strategy,
        };
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let names = fixture.cluster.kubectl.run(&["get", "nodes", "-o", "name"]);
            let found = names.stdout.lines().count();
            (found == nodes).then_some(()).ok_or(names.stdout)
        });
        fixture.apply("1");
        fixture.check(&["status", "ds/agent", WATCH], 0);
        fixture
    }

    /// The manifest of a version.
    pub(crate) fn manifest(&self, version: &str) -> String {
        let image = format!("example.com/agent:{version}");
        let mut set = cluster::daemon_set(
            json!({"updateStrategy": self.strategy}),
            json!({"containers": [{"name": "main", "image": image}]}),
        );
        for (key, value) in &self.policy {
            let key = format!("rollout.kennel.dev/{key}");
            set["metadata"]["annotations"][key] = value.clone().into();
        }
        set.to_string()
    }

    pub(crate) fn apply(&self, version: &str) {
        let kubectl = &self.cluster.kubectl;
        kubectl
            .run_with_input(&["apply", "-f", "-"], &self.manifest(version))
            .ok();
    }

    pub(crate) fn rollout(&self, arguments: &[&str]) -> Answer {
        let mut command = Command::new(KENNEL);
        command.arg("rollout").args(arguments);
        command
            .arg("--kubeconfig")
            .arg(self.cluster.kennel.kubeconfig());
        cluster::answer(&mut command)
    }

    /// Runs it, checks the exit code, and returns stdout and stderr.
    pub(crate) fn check(&self, arguments: &[&str], code: i32) -> String {
        let answer = self.rollout(arguments);
        let shown = format!("{}{}", answer.stdout, answer.stderr);
        assert_eq!(answer.code, code, "{arguments:?}: {shown}");
        shown
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.rollout(&[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}{}", answer.stdout, answer.stderr);
        })
    }

    /// The plan for a version that is not applied yet.
    pub(crate) fn plan(&self, version: &str) -> Value {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), self.manifest(version)).unwrap();
        self.json(&["plan", "-f", file.path().to_str().unwrap()])
    }

    /// The nodes whose pod has this version.
    pub(crate) fn nodes_with(&self, version: &str) -> BTreeSet<String> {
        let pods = self.cluster.kubectl.get(&["pods"]).unwrap();
        let pods = pods["items"].as_array().unwrap().iter();
        let image = format!("example.com/agent:{version}");
        let with = pods.filter(|pod| pod["spec"]["containers"][0]["image"] == image.as_str());
        let nodes = with.filter_map(|pod| pod["spec"]["nodeName"].as_str());
        nodes.map(str::to_owned).collect()
    }

    /// Waits for an event of the DaemonSet with this reason whose message contains this.
    pub(crate) fn wait_for_event(&self, reason: &str, words: &str) {
        let selector = format!("reason={reason}");
        let message = "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}";
        let command = [
            "get",
            "events",
            "--field-selector",
            &selector,
            "-o",
            message,
        ];
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let shown = self.cluster.kubectl.run(&command).stdout;
            shown.contains(words).then_some(()).ok_or(shown)
        });
    }

    /// Waits for these conditions, as `TYPE=STATUS REASON` in lines.
    pub(crate) fn wait_for_conditions(&self, expected: &str) {
        let lines =
            "jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}{\"\\n\"}{end}";
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let shown = self
                .cluster
                .kubectl
                .run(&["get", "ds", "agent", "-o", lines]);
            (shown.stdout == expected).then_some(()).ok_or(shown.stdout)
        });
    }

    /// Waits until a field of the status has this value.
    pub(crate) fn wait_for(&self, field: &str, value: impl Into<Value>) {
        let value = value.into();
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let status = self.json(&["status", "ds/agent"]);
            let right = status[field] == value;
            right.then_some(()).ok_or(status.to_string())
        });
    }
}

/// The nodes of a plan's stages, from 1, up to this one.
pub(crate) fn planned(plan: &Value, up_to: usize) -> BTreeSet<String> {
    let stages = plan["stages"].as_array().unwrap().iter().take(up_to);
    let nodes = stages.flat_map(|stage| stage["nodes"].as_array().unwrap());
    nodes
        .map(|node| node.as_str().unwrap().to_owned())
        .collect()
}
