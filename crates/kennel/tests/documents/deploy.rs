//! What `deploy` ships for other clusters agrees with the program: the admission policy refuses what the server refuses,
//! and alerts and dashboards read metrics that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use kennel_core::daemonset::required;
use kennel_core::metric::Metric;
use kennel_core::rollout::{PREFIX, command, policy};
use regex::Regex;
use serde_json::Value;

fn read(name: &str) -> String {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    fs::read_to_string(deploy.join(name)).unwrap()
}

fn documents(name: &str) -> Vec<Value> {
    let text = read(name);
    let documents = text.split("\n---\n");
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}")))
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    let text = value[field].as_str();
    text.unwrap_or_else(|| panic!("no {field} in {value}"))
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let list = value[field].as_array();
    list.unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// The `ValidatingAdmissionPolicy`, as far as a pattern for each key goes.
struct AdmissionPolicy {
    /// Expressions by name.
    variables: BTreeMap<String, String>,
    /// What a value of each key must match: every one of these patterns.
    patterns: BTreeMap<String, Vec<Regex>>,
}

impl AdmissionPolicy {
    fn read() -> Self {
        let all = documents("kubernetes/rollout-policies.yaml");
        let [rules, binding] = &all[..] else {
            panic!("a policy and its binding: {all:?}");
        };
        assert_eq!(rules["kind"], "ValidatingAdmissionPolicy");
        assert_eq!(binding["kind"], "ValidatingAdmissionPolicyBinding");
        let name = &rules["metadata"]["name"];
        assert_eq!(binding["spec"]["policyName"], *name);
        let spec = &rules["spec"];
        let variables = list(spec, "variables").iter();
        let variables = variables
            .map(|variable| {
                let expression = text(variable, "expression").to_owned();
                (text(variable, "name").to_owned(), expression)
            })
            .collect();
        let mut found = Self {
            variables,
            patterns: BTreeMap::new(),
        };
        for validation in list(spec, "validations") {
            let expression = text(validation, "expression");
            text(validation, "message");
            text(validation, "messageExpression");
            if let Some(key) = quoted(expression).next() {
                let patterns = expression.split(".matches(").skip(1);
                let patterns = patterns.map(|rest| found.pattern(rest)).collect();
                found.patterns.insert(key.to_owned(), patterns);
            }
        }
        found
    }

    /// The pattern of a call: strings and variables, joined by `+`.
    fn pattern(&self, call: &str) -> Regex {
        let pattern = self.concatenate(call);
        Regex::new(&pattern).unwrap_or_else(|error| panic!("{error}"))
    }

    fn concatenate(&self, expression: &str) -> String {
        let mut rest = expression.trim_start();
        let mut joined = String::new();
        loop {
            if let Some(literal) = rest.strip_prefix("r'") {
                let (literal, after) = literal.split_once('\'').unwrap();
                joined.push_str(literal);
                rest = after;
            } else {
                let name = rest.strip_prefix("variables.");
                let name = name.unwrap_or_else(|| panic!("not a pattern: {rest}"));
                let end = name.find(|c: char| !c.is_ascii_alphanumeric());
                let (name, after) = name.split_at(end.unwrap_or(name.len()));
                joined.push_str(&self.concatenate(&self.variables[name]));
                rest = after;
            }
            match rest.trim_start().strip_prefix('+') {
                Some(after) => rest = after.trim_start(),
                None => return joined,
            }
        }
    }

    fn refuses(&self, key: &str, value: &str) -> bool {
        let patterns = &self.patterns[&format!("{PREFIX}{key}")];
        !patterns.iter().all(|pattern| pattern.is_match(value))
    }
}

/// The strings of an expression.
fn quoted(expression: &str) -> impl Iterator<Item = &str> {
    expression.split('\'').skip(1).step_by(2)
}

fn prefixed(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| format!("{PREFIX}{key}")).collect()
}

#[test]
fn r1_2_the_admission_policy_knows_the_keys_of_the_policy_and_no_others() {
    let found = AdmissionPolicy::read();
    let named = |variable: &str| {
        let keys = quoted(&found.variables[variable]);
        let keys = keys.filter(|key| *key != PREFIX);
        keys.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    assert_eq!(named("unknown"), prefixed(&policy::KEYS));
    assert_eq!(named("changed"), prefixed(&command::KEYS));
    let checked: BTreeSet<String> = found.patterns.keys().cloned().collect();
    assert_eq!(checked, prefixed(&policy::KEYS));
}

/// Values of each key, readable and not.
const VALUES: [(&str, &[&str]); 13] = [
    ("blame-window", DURATIONS),
    ("healthy-deadline", DURATIONS),
    ("progress-deadline", DURATIONS),
    ("stages-on-create", FLAGS),
    ("pin-config", FLAGS),
    (
        "down-nodes",
        &["skip", "count", " count ", "", "Skip", "skip,count"],
    ),
    (
        "on-failure",
        &["pause", "rollback", "", "Rollback", "abort"],
    ),
    (
        "policy",
        &["none", " none\n", "", "off", "None", "none none"],
    ),
    (
        "max-restarts",
        &["0", "12", "", "-1", "+1", "50%", "1.5", "few"],
    ),
    (
        "max-failures",
        &[
            "0", "3", "0%", "5%", "100%", "101%", "110%", "", "-1", "5 %", "few",
        ],
    ),
    (
        "spread",
        &[
            "zone",
            "topology.kubernetes.io/zone",
            "a_b.C-d",
            "",
            "a b",
            "/zone",
            "a/b/c",
            "-zone",
            "Example.com/zone",
            "zone=a",
        ],
    ),
    ("stages", STAGES),
    ("check", CHECKS),
];

const DURATIONS: &[&str] = &[
    "90s", "10m", "1h30m", "500ms", " 1s ", "", "10", "0s", "0h0m", "-5m", "1d", "1h 30m", "1.5h",
    "s",
];
const FLAGS: &[&str] = &["true", "false", " true", "", "yes", "True", "1"];
const STAGES: &[&str] = &[
    "100%",
    "3",
    " 1 ,2 1h30m manual ",
    "nodes(pool=canary) 15m, 10% 30m, 50% manual, 100% 10m",
    "nodes(pool in (a, b),!edge) manual, 100%",
    "nodes(a==b), nodes(c!=d), nodes(e), nodes(f notin (g)), nodes(h>3)",
    "nodes(example.com/pool=canary)\n, 100%",
    "",
    " ",
    ",",
    "10%,",
    "0",
    "0%",
    "101%",
    "-1",
    "ten",
    "10 %",
    "1.5%",
    "10% soon",
    "10% manual 5m",
    "10% 5m 5m",
    "10% 5",
    "nodes()",
    "nodes( )",
    "nodes(a=b",
    "nodes(a=b)15m",
    "nodes(a==)b) 1m",
    "nodes(a in b)",
    "nodes(a=b c)",
    "nodes(a;b)",
    "canary",
];
const CHECKS: &[&str] = &[
    "prometheus up > 1",
    "prometheus sum(rate(errors{ds=\"$daemonset\"}[5m])) / 2 <= 0.05",
    "prometheus a\n+ b != -1e3",
    "webhook http://gate:8080/x?y=z",
    " webhook https://gate.example/ok ",
    "",
    "prometheus up",
    "prometheus up ~ 1",
    "prometheus up > many",
    "prometheus up > NaN",
    "prometheus > 1",
    "webhook ftp://x",
    "webhook https://",
    "webhook https:///x",
    "webhook https://a b",
    "webhook https://gate.example",
    "webhook https://gate.example?x=(1,'2')&y=$~z",
    "webhook http://[fd00::1]:8080/a@b",
    "webhook http://[fd00::1/",
    "webhook https://me@gate.example/",
    "webhook https://gate.example:80@evil/",
    "webhook https://gate.example:port/",
    "webhook https://gate.example:0/",
    "webhook https://gate.example:/",
    "webhook https://gate.example/#part",
    "webhook https://gate.example/{x}",
    "webhook https://*.example/",
    "shell rm",
];

#[test]
fn r1_2_the_admission_policy_refuses_what_the_server_refuses() {
    let found = AdmissionPolicy::read();
    let (mut accepted, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (key, values) in VALUES {
        for value in values {
            let annotations = [(format!("{PREFIX}{key}"), (*value).to_owned())];
            let server = !policy::errors(&annotations.into()).is_empty();
            assert_eq!(found.refuses(key, value), server, "{key}: {value:?}");
            let seen = if server { &mut refused } else { &mut accepted };
            seen.insert(key);
        }
    }
    // Both answers were seen for every key.
    assert_eq!(accepted.len(), policy::KEYS.len());
    assert_eq!(refused.len(), policy::KEYS.len());
}

#[test]
fn r6_the_admission_policy_refuses_commands_on_namespaces() {
    let found = AdmissionPolicy::read();
    let misplaced = &found.variables["misplaced"];
    assert!(misplaced.contains("object.kind == 'Namespace'"));
    let named: BTreeSet<&str> = quoted(misplaced).collect();
    let commands = command::KEYS.map(|key| format!("{PREFIX}{key}"));
    for command in &commands {
        assert!(named.contains(command.as_str()), "{command}");
        let given = [(command.clone(), "x".to_owned())];
        let errors = policy::namespace_errors(&given.into());
        assert_eq!(errors.len(), 1, "{command}");
        assert!(read("kubernetes/rollout-policies.yaml").contains(&errors[0].allowed));
    }
}

/// The metrics that `kennel controller` serves.
const CONTROLLER: &[&[&Metric]] = &[
    kennel_control::daemonset::METRICS,
    kennel_control::daemonset::ROLLOUT_METRICS,
    kennel_client::lease::METRICS,
    kennel_agent::kubeconfig_certificate::METRICS,
    kennel_control::frame::METRICS,
];

/// The metrics of a server and of the agents of its nodes that alerts read.
const SERVER: &[&[&Metric]] = &[
    kennel_server::metrics::METRICS,
    kennel_standalone::supervisor::METRICS,
    kennel_node::manifests::METRICS,
    kennel_node::agent::identity::expiration::METRICS,
];

/// Checks that an expression reads metrics of ours, and only such that exist.
fn check_expression(expression: &str, tables: &[&[&Metric]]) {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = [
        "kennel_",
        "leader_election_",
        "workqueue_",
        "kubelet_",
        "kubernetes_",
    ];
    let ours = words.filter(|word| ours.iter().any(|prefix| word.starts_with(prefix)));
    let names: Vec<&str> = ours.collect();
    assert!(!names.is_empty(), "no metric in {expression}");
    let exists = |name: &str| tables.iter().copied().flatten().any(|m| m.name == name);
    for name in names {
        assert!(exists(name), "{name} in {expression}");
    }
}

/// Checks the rules of a file; returns the names of its alerts.
fn checked_alerts(file: &str, tables: &[&[&Metric]]) -> BTreeSet<String> {
    let all = documents(file);
    let mut names = BTreeSet::new();
    for group in list(&all[0], "groups") {
        for rule in list(group, "rules") {
            let name = text(rule, "alert");
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            check_expression(text(rule, "expr"), tables);
            let severity = text(&rule["labels"], "severity");
            assert!(
                ["critical", "warning", "info"].contains(&severity),
                "{name}"
            );
            for annotation in ["summary", "description"] {
                assert!(!text(&rule["annotations"], annotation).is_empty(), "{name}");
            }
        }
    }
    names
}

#[test]
fn r9_3_alerts_read_metrics_that_exist() {
    let names = checked_alerts("prometheus/rollout-alerts.yaml", CONTROLLER);
    for expected in [
        "KennelRolloutFailed",
        "KennelRolloutHeld",
        "KennelRolloutStalled",
        "KennelRolloutAwaitsPromotion",
        "KennelControllerStuck",
        "KennelControllerCertificateExpiring",
    ] {
        assert!(names.contains(expected), "{expected}");
    }
}

#[test]
fn alerts_of_servers_read_metrics_that_exist() {
    let names = checked_alerts("prometheus/server-alerts.yaml", SERVER);
    for expected in [
        "KennelServerUnhealthy",
        "KennelStorageQuotaUsed",
        "KennelCertificateExpiring",
        "KennelDamagedObject",
        "KennelBackupFailed",
        "KennelAuditLinesLost",
    ] {
        assert!(names.contains(expected), "{expected}");
    }
}

#[test]
fn r9_3_prometheus_accepts_the_alert_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let promtool = root.join(".tools/promtool").canonicalize();
    let promtool = promtool.expect("promtool is there: run scripts/prometheus.sh");
    let output = Command::new(promtool)
        .args(["check", "rules"])
        .arg(root.join("deploy/prometheus/rollout-alerts.yaml"))
        .arg(root.join("deploy/prometheus/server-alerts.yaml"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        output.status.success() && said.contains("SUCCESS"),
        "{said}"
    );
}

#[test]
fn r9_3_the_dashboard_reads_metrics_that_exist() {
    let dashboard: Value = serde_json::from_str(&read("grafana/rollouts.json")).unwrap();
    let panels = list(&dashboard, "panels");
    let ids: BTreeSet<i64> = panels.iter().filter_map(|p| p["id"].as_i64()).collect();
    assert_eq!(ids.len(), panels.len(), "panels need ids of their own");
    for panel in panels {
        for target in list(panel, "targets") {
            check_expression(text(target, "expr"), CONTROLLER);
        }
    }
}

#[test]
fn r12_the_admission_policy_knows_the_annotation_and_its_values() {
    let all = documents("kubernetes/required-daemonsets.yaml");
    let [rules, binding] = &all[..] else {
        panic!("a policy and its binding: {all:?}");
    };
    assert_eq!(binding["spec"]["policyName"], rules["metadata"]["name"]);
    let [validation] = list(&rules["spec"], "validations") else {
        panic!("one validation: {rules}");
    };
    let expression = text(validation, "expression");
    let name = required::ANNOTATION;
    let values = format!("object.metadata.annotations['{name}'] in ['true', 'false']");
    assert!(expression.starts_with(&values), "{expression}");
    assert!(text(validation, "message").ends_with(required::ALLOWED));
    assert!(required::is_allowed("true") && required::is_allowed("false"));
}
