//! The command line of `kennel why`, its exit codes, and answers with missing rights.

use std::process::Command;

use serde_json::{Value, json};

use super::fixture::{Fixture, KENNEL, answer, matches, plug_in, why};

#[test]
fn a_node_in_detail() {
    let fixture = Fixture::with("", &["--simulate", "2", "--taint-control-plane"]);
    fixture.apply(
        json!({}),
        json!({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
    );
    fixture
        .kubectl
        .run(&["taint", "node", "sim-1", "dedicated=db:NoSchedule"])
        .ok();
    let expected = "\
Node sim-1, DaemonSet default/agent: not eligible
  cause    taint
  because  taint node-role.kubernetes.io/control-plane:NoSchedule is not tolerated
  try      # add to spec.template.spec:
           tolerations:
           - key: node-role.kubernetes.io/control-plane
             operator: Exists
             effect: NoSchedule

Placement rules, in order
  yes  taint dedicated=db:NoSchedule: tolerated by dedicated (any effect)
  no   taint node-role.kubernetes.io/control-plane:NoSchedule: not tolerated

Last events of the DaemonSet
  [..] ago  Normal   SuccessfulCreate: Created pod: agent-[..]
";
    fixture.wait_for_output(&["ds/agent", "--node", "sim-1"], expected, 0);
    let expected = "\
Node sim-2, DaemonSet default/agent: runs
  cause    up-to-date
  because  runs

The pod template has no node constraints, and this node has no taints.

Pods
  agent-[..]: Running, ready, current template, created [..] ago
    container main: running for [..]
";
    fixture.verdict("sim-2", "runs", "up-to-date");
    let shown = fixture.why(&["ds/agent", "--node", "sim-2"]).stdout;
    let above = shown.split("\nLast events").next().unwrap();
    assert!(matches(above, expected), "{shown}");
}

#[test]
fn a_node_that_does_not_exist() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({}), json!({}));
    let refused = |arguments: &[&str], text: &str| {
        let answer = fixture.why(arguments);
        let found = (answer.stdout.as_str(), answer.stderr.as_str(), answer.code);
        assert_eq!(found, ("", text, 2));
    };
    let text = "error: there is no node sim-9; `kubectl get nodes` lists all\n";
    refused(&["ds/agent", "--node", "sim-9"], text);
    refused(&["ds/agent", "--node", "node/sim-9", "-o", "json"], text);
    refused(&["-A", "--node", "sim-9"], text);
    let text = "error: there is no node smi-1; did you mean sim-1?\n";
    refused(&["ds/agent", "--node", "smi-1"], text);
    fixture.wait_until_ok();
    let answer = fixture.why(&["ds/agent", "--node", "node/sim-1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn the_exit_code_is_two_if_the_cluster_cannot_be_read() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({}), json!({}));
    let nothing = fixture.why(&["ds/nothing"]);
    let text = "error: there is no DaemonSet nothing in namespace default; \
                `kubectl get daemonsets -A` lists all\n";
    assert_eq!((nothing.stderr.as_str(), nothing.code), (text, 2));
    let misspelt = fixture.why(&["ds/agnet"]);
    let text = "error: there is no DaemonSet agnet in namespace default; did you mean agent?\n";
    assert_eq!((misspelt.stderr.as_str(), misspelt.code), (text, 2));
    let elsewhere = fixture.why(&["ds/agent", "-n", "kube-system"]);
    let text = "error: there is no DaemonSet agent in namespace kube-system; \
                there is one with -n default\n";
    assert_eq!((elsewhere.stderr.as_str(), elsewhere.code), (text, 2));
    let other = fixture.why(&["deploy/agent"]);
    assert!(
        other
            .stderr
            .contains("deploy is not a DaemonSet or a pod: use ds/agent"),
        "{}",
        other.stderr
    );
    assert_eq!(other.code, 2);
    let wrong_context = fixture.why(&["ds/agent", "--context", "nowhere"]);
    assert_eq!(wrong_context.code, 2, "{}", wrong_context.stderr);
    let url = fixture.kennel.url().to_owned();
    let kubeconfig = std::fs::read_to_string(fixture.kennel.kubeconfig()).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig.replace(&url, "https://127.0.0.1:1")).unwrap();
    let unreachable = why(file.path(), &["ds/agent"]);
    assert_eq!(unreachable.code, 2);
    assert!(
        unreachable
            .stderr
            .contains("cannot read DaemonSet default/agent")
    );
}

/// The kubeconfig of a service account that may read these resources in the namespace `default`.
fn kubeconfig_of(fixture: &Fixture, resources: &str) -> tempfile::NamedTempFile {
    let kubectl = &fixture.kubectl;
    kubectl.run(&["create", "serviceaccount", "reader"]).ok();
    let resources = format!("--resource={resources}");
    kubectl
        .run(&["create", "role", "reader", "--verb=get,list", &resources])
        .ok();
    let binding = [
        "create",
        "rolebinding",
        "reader",
        "--role=reader",
        "--serviceaccount=default:reader",
    ];
    kubectl.run(&binding).ok();
    let token = kubectl.run(&["create", "token", "reader"]).ok();
    let config = kubectl.run(&["config", "view", "--raw", "-o", "json"]).ok();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    file
}

#[test]
fn missing_rights_are_noted_and_the_rest_is_explained() {
    let fixture = Fixture::with("", &["--simulate", "2"]);
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    let reader = kubeconfig_of(&fixture, "daemonsets.apps,pods");
    let found = why(reader.path(), &["ds/agent"]);
    let expected = "\
DaemonSet default/agent: all 2 nodes that should run it do.
Note: you may not list nodes: only nodes with pods are shown.
Note: you may not list controllerrevisions: old pods are recognised by their template generation only.
Note: you may not list events: failed pod creations cannot be explained.

Runs: 2 nodes
  sim-1, sim-2
";
    assert_eq!(
        (found.stdout.as_str(), found.code),
        (expected, 0),
        "{}",
        found.stderr
    );
}

#[test]
fn without_the_right_to_read_pods_there_is_no_answer() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({}), json!({}));
    let reader = kubeconfig_of(&fixture, "daemonsets.apps");
    let found = why(reader.path(), &["ds/agent"]);
    assert_eq!(found.code, 2);
    assert!(
        found
            .stderr
            .contains("cannot list the pods of namespace default"),
        "{}",
        found.stderr
    );
}

#[test]
fn it_works_as_a_kubectl_plug_in() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    let (dir, path) = plug_in();
    let search = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    for version in kennel_testkit::Version::ALL {
        // kubectl takes no flags of its own before the name of a plug-in.
        let mut command = Command::new(version.path());
        command
            .args(["kennel", "why", "ds", "agent", "-o", "json"])
            .env("PATH", &search);
        command.env("KUBECONFIG", fixture.kennel.kubeconfig());
        let found = answer(&mut command);
        assert_eq!(found.code, 0, "{}{}", found.stdout, found.stderr);
        let json: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(json["nodes"][0]["verdict"], "runs");
    }
    let help = answer(Command::new(path).args(["why", "--help"])).stdout;
    assert!(
        help.contains("Usage: kubectl kennel why [OPTIONS] [DAEMONSET]..."),
        "{help}"
    );
    let help = answer(Command::new(KENNEL).args(["why", "--help"])).stdout;
    assert!(
        help.contains("Usage: kennel why [OPTIONS] [DAEMONSET]..."),
        "{help}"
    );
}
