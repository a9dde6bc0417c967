//! Several DaemonSets, pods, and formats, in kubectl's habits.

use serde_json::{Value, json};

use super::fixture::{Fixture, daemon_set};

/// `agent` runs in two namespaces, `broken` does not.
fn two_namespaces() -> Fixture {
    let scenario = "pods:\n- image: \"*:broken\"\n  unpullable: true\n";
    let fixture = Fixture::with(scenario, &["--simulate", "2"]);
    fixture.apply(json!({}), json!({}));
    fixture.kubectl.run(&["create", "namespace", "other"]).ok();
    let apply = |name: &str, image: &str| {
        let container = json!({"name": "main", "image": image});
        let mut set = daemon_set(json!({}), json!({"containers": [container]}));
        set["metadata"]["name"] = name.into();
        set["spec"]["selector"]["matchLabels"]["app"] = name.into();
        set["spec"]["template"]["metadata"]["labels"]["app"] = name.into();
        let arguments = ["apply", "-n", "other", "-f", "-"];
        fixture
            .kubectl
            .run_with_input(&arguments, &set.to_string())
            .ok();
    };
    apply("agent", "example.com/agent:1");
    apply("broken", "example.com/agent:broken");
    fixture
}

const ALL: &str = "\
DaemonSet other/broken: none of the 2 nodes that should run it does.

Should run it and does not: 2 nodes
  sim-1, sim-2, for [..]
    container main cannot pull its image example.com/agent:broken: [..]
      kubectl describe pod -n other broken-[..]

DaemonSet default/agent: all 2 nodes that should run it do.
DaemonSet other/agent: all 2 nodes that should run it do.
";

#[test]
fn several_daemon_sets_and_all_namespaces() {
    let fixture = two_namespaces();
    fixture.wait_for_output(&["-A"], ALL, 1);
    let both = "\
DaemonSet default/agent: all 2 nodes that should run it do.
DaemonSet other/agent: all 2 nodes that should run it do.
";
    fixture.wait_for_output(&["agent", "-A"], both, 0);
    fixture.wait_for_output(
        &["ds", "-n", "other"],
        &ALL.replace(
            "DaemonSet default/agent: all 2 nodes that should run it do.\n",
            "",
        ),
        1,
    );
    let two = fixture.why(&["-n", "other", "ds", "agent", "broken", "-o", "json"]);
    let two: Value = serde_json::from_str(&two.stdout).unwrap();
    assert_eq!(
        (&two["schema"], &two["ok"]),
        (&json!("kennel-why-list/1"), &json!(false))
    );
    let names = [&two["items"][0]["name"], &two["items"][1]["name"]];
    assert_eq!(names, ["agent", "broken"]);
    let in_full = fixture.why(&["-A", "--all"]).stdout;
    assert!(
        in_full.contains("Runs: 2 nodes\n  sim-1, sim-2\n\nDaemonSet other/agent"),
        "{in_full}"
    );
    // What does not exist is an error, and the rest is explained.
    let partly = fixture.why(&["ds/agent", "ds/nothing"]);
    assert!(
        partly.stdout.starts_with("DaemonSet default/agent: all 2"),
        "{}",
        partly.stdout
    );
    let text = "error: there is no DaemonSet nothing in namespace default; \
                `kubectl get daemonsets -A` lists all\n";
    assert_eq!((partly.stderr.as_str(), partly.code), (text, 2));
    let none = fixture.why(&["-n", "kube-system"]);
    let text = "No DaemonSets in namespace kube-system; -A looks in all namespaces.\n";
    assert_eq!((none.stdout.as_str(), none.code), (text, 0));
    check_one_node(&fixture);
}

fn check_one_node(fixture: &Fixture) {
    let found = fixture.why(&["-A", "--node", "sim-2"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let first = "Node sim-2, DaemonSet other/broken: should run it and does not\n";
    assert!(found.stdout.starts_with(first), "{}", found.stdout);
    let last =
        "Node sim-2, DaemonSet default/agent: runs\nNode sim-2, DaemonSet other/agent: runs\n";
    assert!(found.stdout.ends_with(last), "{}", found.stdout);
}

#[test]
fn yaml_is_the_same_as_json() {
    let fixture = Fixture::with("", &["--simulate", "2", "--taint-control-plane"]);
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    for arguments in [&["ds/agent"][..], &["-A"]] {
        let with = |format| fixture.why(&[arguments, &["-o", format]].concat()).stdout;
        let json: Value = serde_json::from_str(&with("json")).unwrap();
        let yaml: Value = serde_saphyr::from_str(&with("yaml")).unwrap();
        // How long a container has run may differ.
        let nodes = |answer: &Value| {
            let item = answer["items"].get(0).unwrap_or(answer).clone();
            item["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n["remedy"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(nodes(&json), nodes(&yaml));
        assert_eq!(
            (&json["schema"], &json["ok"]),
            (&yaml["schema"], &yaml["ok"])
        );
    }
}

#[test]
fn a_pod_is_answered_for_its_daemon_set_on_its_node() {
    let fixture = Fixture::with("", &["--simulate", "2"]);
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    let found = fixture.verdict("sim-2", "runs", "up-to-date");
    let pod = found["pod"].as_str().unwrap();
    let start = format!(
        "Pod default/{pod} belongs to DaemonSet default/agent, which is available on 2 of 2 nodes.\n\n\
         Node sim-2, DaemonSet default/agent: runs\n  cause    up-to-date\n"
    );
    for arguments in [&[&format!("pod/{pod}")[..]][..], &["pod", pod], &[pod]] {
        let answer = fixture.why(arguments);
        assert!(
            answer.stdout.starts_with(&start),
            "{}{}",
            answer.stdout,
            answer.stderr
        );
        assert_eq!(answer.code, 0);
    }
    let json = fixture.why(&["pod", pod, "-o", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["name"], &json["nodes"][0]["node"]),
        (&json!("agent"), &json!("sim-2"))
    );
}

#[test]
fn a_pod_without_a_daemon_set_is_refused_with_what_it_belongs_to() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    let pod = |name: &str, owners: Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"containers": [{"name": "c", "image": "x"}]}});
        let arguments = ["create", "-f", "-"];
        fixture
            .kubectl
            .run_with_input(&arguments, &pod.to_string())
            .ok();
    };
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u-1", "controller": true}]);
    pod("alone", json!([]));
    pod("web-1", owner("ReplicaSet", "web"));
    let refused = |arguments: &[&str], text: &str| {
        let answer = fixture.why(arguments);
        let found = (answer.stdout.as_str(), answer.stderr.as_str(), answer.code);
        assert_eq!(found, ("", text, 2));
    };
    let text = "error: pod default/alone does not belong to a DaemonSet: it has no controller\n";
    refused(&["pod/alone"], text);
    refused(&["alone"], text);
    let text = "error: pod default/web-1 belongs to ReplicaSet web, not to a DaemonSet\n";
    refused(&["pod", "web-1"], text);
    refused(
        &["pod/nothing"],
        "error: there is no pod nothing in namespace default\n",
    );
    let text =
        "error: there is no pod alone in namespace kube-system; there is one with -n default\n";
    refused(&["pod/alone", "-n", "kube-system"], text);
    refused(
        &["pod/alone", "--node", "sim-1"],
        "error: a pod has its node: leave out --node\n",
    );
}
