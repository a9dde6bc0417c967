//! Compiling requirements and sharing classes.

use super::*;
use serde_json::json;

fn compile(spec: &Value) -> (PodRequirements, Option<Arc<str>>) {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    PodRequirements::of("ns", None, &spec)
}

fn container(cpu: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu}}})
}

fn sidecar(cpu: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu}}, "restartPolicy": "Always"})
}

fn check(spec: &Value, cpu: i64) {
    assert_eq!(compile(spec).0.requests.cpu, cpu, "{spec}");
}

#[test]
fn requests_are_summed_as_containers_run() {
    check(
        &json!({"containers": [container("1"), container("500m")]}),
        1500,
    );
    check(
        &json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]}),
        3000,
    );
    check(
        &json!({"containers": [container("1")], "initContainers": [sidecar("1"), container("2")]}),
        3000,
    );
    check(
        &json!({"containers": [container("2")], "initContainers": [container("2"), sidecar("1")]}),
        3000,
    );
    check(
        &json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}),
        1250,
    );
    check(
        &json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}},
                "overhead": {"cpu": "1"}}),
        5000,
    );
    check(&json!({"containers": [{}]}), 0);
}

#[test]
fn a_container_without_requests_has_defaults_in_scores() {
    let (requirements, _) = compile(&json!({"containers": [{}, container("1")]}));
    assert_eq!(requirements.scored, (1100, 2 * DEFAULT_MEMORY));
}

#[test]
fn host_ports_are_those_of_containers_and_sidecars() {
    let port = |number: i64| json!({"ports": [{"hostPort": number}]});
    let mut sidecar = port(3);
    sidecar["restartPolicy"] = json!("Always");
    let (requirements, _) = compile(&json!({"containers": [port(1), {}],
        "initContainers": [port(2), sidecar]}));
    let expected = [1, 3].map(|number| HostPort::new("", "", number));
    assert_eq!(requirements.ports, expected);
}

#[test]
fn pods_that_differ_by_their_pin_alone_are_one_class() {
    let pinned = |name: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields":
                [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}})
    };
    let mut classes = Classes::default();
    let (a, pin_a) = compile(&pinned("a"));
    let (b, pin_b) = compile(&pinned("b"));
    assert_eq!((pin_a.as_deref(), pin_b.as_deref()), (Some("a"), Some("b")));
    let (a, b) = (classes.of(&a), classes.of(&b));
    assert_eq!(a.id, b.id);
    let (other, _) = compile(&json!({"containers": [container("1")]}));
    assert_ne!(classes.of(&other).id, a.id);
}

#[test]
fn unused_classes_are_dropped() {
    let mut classes = Classes::default();
    for number in 0..5000 {
        classes.of(&compile(&json!({"containers": [container(&format!("{number}m"))]})).0);
    }
    assert!(classes.known.len() <= 1025, "{}", classes.known.len());
}
