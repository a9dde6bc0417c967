//! Eligible nodes and others, and whether the proposed remedies work.

use std::process::Command;

use serde_json::{Value, json};

use super::fixture::Fixture;

#[test]
fn it_runs_everywhere() {
    let fixture = Fixture::new();
    fixture.apply(json!({}), json!({}));
    let expected = "DaemonSet default/agent: all 3 nodes that should run it do.\n\n\
                    Runs: 3 nodes\n  sim-1, sim-2, sim-3\n";
    fixture.wait_for_output(&["ds/agent"], expected, 0);
}

const TAINTED: &str = "\
DaemonSet default/agent: all 2 nodes that should run it do.

Not eligible: 1 node
  sim-1
    taint node-role.kubernetes.io/control-plane:NoSchedule is not tolerated
      # add to spec.template.spec:
      tolerations:
      - key: node-role.kubernetes.io/control-plane
        operator: Exists
        effect: NoSchedule

Runs: 2 nodes
  sim-2, sim-3
";

#[test]
fn the_proposed_toleration_makes_a_tainted_node_eligible() {
    let fixture = Fixture::with("", &["--simulate", "3", "--taint-control-plane"]);
    fixture.apply(json!({}), json!({}));
    fixture.wait_for_output(&["ds/agent"], TAINTED, 0);
    let found = fixture.verdict("sim-1", "excluded", "taint");
    let remedy = found["remedy"].as_str().unwrap();
    let patch = remedy.replace('\n', "\n      ");
    let patch = format!("spec:\n  template:\n    spec:\n      {patch}\n");
    let patch = ["patch", "ds", "agent", "--patch", &patch];
    fixture.kubectl.run(&patch).ok();
    fixture.verdict("sim-1", "runs", "up-to-date");
}

#[test]
fn the_proposed_command_adds_a_missing_label() {
    let fixture = Fixture::new();
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "gpu", "operator": "In", "values": ["a100", "h100"]}]}]});
    let affinity =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    fixture.apply(
        json!({}),
        json!({"nodeSelector": {"disk": "ssd"}, "affinity": affinity}),
    );
    let found = fixture.verdict("sim-2", "excluded", "node-selector");
    let message = "nodeSelector wants disk=ssd, the node has no label disk (and one more rule)";
    assert_eq!(found["message"], message);
    let remedy = found["remedy"].as_str().unwrap();
    assert_eq!(remedy, "kubectl label node sim-2 disk=ssd gpu=a100");
    let arguments: Vec<&str> = remedy.split(' ').skip(1).collect();
    fixture.kubectl.run(&arguments).ok();
    fixture.verdict("sim-2", "runs", "up-to-date");
    assert_eq!(fixture.why(&["ds/agent"]).code, 0);
}

#[test]
fn a_later_taint_keeps_the_running_pod() {
    let fixture = Fixture::new();
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    fixture
        .kubectl
        .run(&["taint", "node", "sim-3", "dedicated=db:NoSchedule"])
        .ok();
    let found = fixture.verdict("sim-3", "lingers", "taint");
    assert_eq!(found["checks"][0]["rule"], "taint dedicated=db:NoSchedule");
    assert_eq!(fixture.why(&["ds/agent"]).code, 1);
    let first = found["remedy"]
        .as_str()
        .unwrap()
        .lines()
        .nth(1)
        .unwrap()
        .to_owned();
    let arguments: Vec<&str> = first.split(' ').skip(1).collect();
    fixture.kubectl.run(&arguments).ok();
    fixture.verdict("sim-3", "excluded", "taint");
    assert_eq!(fixture.why(&["ds/agent"]).code, 0);
}

#[test]
fn a_pod_that_does_not_fit_is_explained_with_the_schedulers_numbers() {
    let fixture = Fixture::with("nodes:\n- capacity: {cpu: \"2\"}\n", &["--simulate", "2"]);
    let hog = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog"},
        "spec": {"nodeName": "sim-1", "containers": [{"name": "c", "image": "x",
            "ports": [{"containerPort": 9100, "hostPort": 9100}],
            "resources": {"requests": {"cpu": "1500m"}}}]}});
    fixture
        .kubectl
        .run_with_input(&["apply", "-f", "-"], &hog.to_string())
        .ok();
    let container = |extra: Value| {
        let mut container = json!({"name": "main", "image": "example.com/agent:1"});
        container
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({ "containers": [container] })
    };
    fixture.apply(
        json!({}),
        container(json!({"resources": {"requests": {"cpu": "700m"}}})),
    );
    let found = fixture.verdict("sim-1", "missing", "unschedulable");
    let message =
        "its pod cannot be scheduled: Insufficient cpu (it wants 700m, 500m of 2 is free)";
    assert_eq!(found["message"], message);
    fixture.verdict("sim-2", "runs", "up-to-date");
    let port = json!({"ports": [{"containerPort": 1, "hostPort": 9100}]});
    fixture.apply(json!({}), container(port));
    let message = "its pod cannot be scheduled: node(s) didn't have free ports for the requested pod ports \
                   (port 9100 is taken by default/hog)";
    let found = fixture.verdict_with("sim-1", "missing", "unschedulable", "ports");
    assert_eq!(found["message"], message);
}

#[test]
fn nodes_in_the_same_state_are_grouped() {
    let scenario = "pods:\n- node: sim-7\n  unpullable: true\n- {}\n";
    let fixture = Fixture::with(scenario, &["--simulate", "30"]);
    fixture.apply(json!({}), json!({}));
    fixture.verdict("sim-7", "missing", "image");
    fixture.verdict("sim-30", "runs", "up-to-date");
    let expected = "\
DaemonSet default/agent: of 30 nodes that should run it, 29 do.

Should run it and does not: 1 node
  sim-7, for [..]
    container main cannot pull its image example.com/agent:1: [..]
      kubectl describe pod -n default agent-[..]

Runs: 29 nodes
  sim-1, sim-2, sim-3, sim-4, sim-5, sim-6, sim-8, sim-9 and 21 more (--all names them)
";
    fixture.wait_for_output(&["ds/agent"], expected, 1);
    let all = fixture.why(&["ds/agent", "--all"]).stdout;
    assert!(all.contains("sim-29") && !all.contains("--all"), "{all}");
    let mut names = all.lines().skip_while(|line| !line.starts_with("Runs: "));
    assert!(names.all(|line| line.len() <= 100), "{all}");
}

#[test]
fn output_can_be_cut_off_and_the_exit_code_stays() {
    let fixture = Fixture::new();
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    let kubeconfig = fixture.kennel.kubeconfig();
    let line = format!(
        "{} why ds/agent --all --kubeconfig {} | true; echo ${{PIPESTATUS[0]}}",
        super::fixture::KENNEL,
        kubeconfig.display()
    );
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
