//! Admission decisions with upstream's reasons and messages.

use serde_json::{Value, json};

use super::*;

fn node() -> AdmissionNode {
    AdmissionNode::read(&json!({
        "metadata": {"name": "n1", "labels": {"zone": "a", "kubernetes.io/os": "linux"}},
        "spec": {"taints": [{"key": "drain", "effect": "NoExecute"},
            {"key": "keep-off", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "10Gi",
            "pods": "3", "example.com/gpu": "1"}}}))
}

/// A pod that tolerates the taints of the node, unless it says otherwise.
fn pod(uid: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec["tolerations"].is_null() {
        spec["tolerations"] = json!([{"operator": "Exists"}]);
    }
    json!({"metadata": {"name": uid, "namespace": "ns", "uid": uid}, "spec": spec})
}

fn with_requests(requests: &Value) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
}

fn decide(pod: &AdmissionPod, others: &[AdmissionPod]) -> Admission {
    admit(pod, &node(), &others.iter().collect::<Vec<_>>())
}

/// Checks a pod on a node where another pod requests 500m CPU and takes port 80.
fn check(spec: Value, reason: &str, message: &str) {
    let mut other =
        with_requests(&json!({"cpu": "500m", "memory": "100Mi", "example.com/gpu": "1"}));
    other["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
    let other = AdmissionPod::read(&pod("other", other), false);
    let text = spec.to_string();
    let expected = if reason.is_empty() {
        Admission::Admit
    } else {
        reject(reason, message)
    };
    let found = decide(&AdmissionPod::read(&pod("new", spec), false), &[other]);
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_pod_that_fits_is_admitted() {
    check(json!({"containers": [{"name": "c"}]}), "", "");
    check(
        with_requests(&json!({"cpu": "1500m", "memory": "924Mi"})),
        "",
        "",
    );
    check(
        with_requests(&json!({"unknown.example.com/x": "5"})),
        "",
        "",
    );
    check(
        json!({"nodeSelector": {"zone": "a"}, "containers": []}),
        "",
        "",
    );
}

#[test]
fn an_insufficient_resource_is_named_with_its_amounts() {
    check(
        with_requests(&json!({"cpu": "1501m"})),
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 1501, used: 500, capacity: 2000",
    );
    check(
        with_requests(&json!({"memory": "1Gi"})),
        "OutOfmemory",
        "Node didn't have enough resource: memory, requested: 1073741824, used: 104857600, \
         capacity: 1073741824",
    );
    check(
        with_requests(&json!({"ephemeral-storage": "11Gi"})),
        "OutOfephemeral-storage",
        "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, \
         capacity: 10737418240",
    );
    check(
        with_requests(&json!({"example.com/gpu": "1"})),
        "OutOfexample.com/gpu",
        "Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1",
    );
}

#[test]
fn the_number_of_pods_is_bounded() {
    let pods = ["a", "b", "c", "d"].map(|uid| AdmissionPod::read(&pod(uid, json!({})), false));
    let [first, rest @ ..] = &pods;
    let message = "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3";
    assert_eq!(decide(first, rest), reject("OutOfpods", message));
}

#[test]
fn node_affinity_ports_and_taints_are_checked() {
    let affinity =
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    check(
        json!({"nodeSelector": {"zone": "b"}}),
        "NodeAffinity",
        affinity,
    );
    check(
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields":
                [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}}),
        "NodeAffinity",
        affinity,
    );
    check(
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 8080, "hostPort": 80}]}]}),
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    );
    check(
        json!({"tolerations": []}),
        "TaintToleration",
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    );
    check(
        json!({"tolerations": [{"key": "drain", "operator": "Exists"}]}),
        "",
        "",
    );
}

#[test]
fn other_operating_systems_are_rejected() {
    check(
        json!({"os": {"name": "windows"}}),
        "PodOSNotSupported",
        "Failed to admit pod as the OS field doesn't match node OS",
    );
    check(json!({"os": {"name": "linux"}}), "", "");
}

#[test]
fn static_pods_ignore_taints() {
    let pod = AdmissionPod::read(&pod("s", json!({"tolerations": []})), true);
    assert_eq!(decide(&pod, &[]), Admission::Admit);
}

/// Checks which pods a critical pod with these requests preempts.
fn check_preempted(wanted: &Value, others: &[(&str, i32, Value)], expected: &[&str]) {
    let mut spec = with_requests(wanted);
    spec["priority"] = json!(CRITICAL);
    let others: Vec<AdmissionPod> = others
        .iter()
        .map(|(uid, priority, requests)| {
            let mut spec = with_requests(requests);
            spec["priority"] = json!(priority);
            AdmissionPod::read(&pod(uid, spec), false)
        })
        .collect();
    let found = decide(&AdmissionPod::read(&pod("critical", spec), false), &others);
    let victims = Admission::Preempt(expected.iter().map(|uid| (*uid).to_owned()).collect());
    assert_eq!(found, victims, "{wanted}");
}

#[test]
fn critical_pods_preempt_as_few_pods_as_possible() {
    let small = ("small", 0, json!({"cpu": "300m"}));
    let large = ("large", 0, json!({"cpu": "1500m"}));
    let nothing = ("nothing", 0, json!({}));
    check_preempted(
        &json!({"cpu": "1"}),
        &[small.clone(), large.clone()],
        &["large"],
    );
    check_preempted(&json!({"cpu": "400m"}), &[small.clone(), large], &["small"]);
    check_preempted(&json!({}), &[nothing, small.clone(), small], &["nothing"]);
}

#[test]
fn critical_pods_do_not_preempt_pods_of_their_priority() {
    let mut spec = with_requests(&json!({"cpu": "2"}));
    spec["priority"] = json!(CRITICAL);
    let pods = ["a", "b"].map(|uid| AdmissionPod::read(&pod(uid, spec.clone()), false));
    let message = "Unexpected error while attempting to recover from admission failure: preemption: \
        error finding a set of pods to preempt: no set of running pods found to reclaim resources: \
        [(res: cpu, q: 2000), ]";
    let rejected = reject("UnexpectedAdmissionError", message);
    assert_eq!(decide(&pods[0], &pods[1..]), rejected);
}
