//! All examples with all kubectls, and where they go: simulated nodes, one of them a control plane, another to be
//! emptied.

use kennel_testkit::{Kennel, Kubectl, Version};

use super::fixture::{directory, wait};

/// An example's directory, a DaemonSet of it, and the nodes that it goes to.
const PLACES: &[(&str, &str, &str, &[&str])] = &[
    ("disk-watch", "disk-watch", "disk-watch", &["sim-3"]),
    (
        "exporter-process",
        "exporter-process",
        "exporter-process",
        &["sim-1", "sim-3"],
    ),
    (
        "log-collector",
        "logging",
        "log-collector",
        &["sim-1", "sim-3"],
    ),
    (
        "network-plugin",
        "kube-system",
        "network-plugin",
        &["sim-1", "sim-2", "sim-3"],
    ),
    ("node-cache", "node-cache", "node-cache", &["sim-3"]),
    (
        "node-exporter",
        "monitoring",
        "node-exporter",
        &["sim-1", "sim-3"],
    ),
    ("per-hardware", "hardware", "gpu-nvidia", &[]),
    ("per-hardware", "hardware", "gpu-amd", &[]),
    ("per-hardware", "hardware", "ssd-health", &[]),
    (
        "security-audit",
        "security",
        "security-audit",
        &["sim-1", "sim-2", "sim-3"],
    ),
    (
        "storage-plugin",
        "kube-system",
        "storage-plugin",
        &["sim-1", "sim-2", "sim-3"],
    ),
];

const TAINTS: &[(&str, &str)] = &[
    ("sim-1", "node-role.kubernetes.io/control-plane:NoSchedule"),
    ("sim-2", "maintenance=soon:NoExecute"),
];

#[test]
fn examples_with_all_kubectls() {
    let kennel = Kennel::up(env!("CARGO_BIN_EXE_kennel"), 3);
    let [old, recent, new] =
        Version::ALL.map(|version| Kubectl::new(version, &kennel.kubeconfig()));
    for (node, taint) in TAINTS {
        new.run(&["taint", "node", node, taint]).ok();
    }
    let mut examples: Vec<&str> = PLACES.iter().map(|(example, ..)| *example).collect();
    examples.dedup();
    for example in &examples {
        let path = directory(example);
        let apply = ["apply", "-f", path.to_str().unwrap()];
        let made = old.run(&apply).ok();
        assert!(
            made.lines().all(|line| line.ends_with(" created")),
            "{made}"
        );
        for kubectl in [&recent, &new] {
            let same = kubectl.run(&apply).ok();
            assert!(
                same.lines().all(|line| line.ends_with(" unchanged")),
                "{same}"
            );
        }
    }
    for (_, namespace, name, nodes) in PLACES {
        is_on(&new, namespace, name, nodes);
    }
    for example in &examples {
        let path = directory(example);
        old.run(&["delete", "-f", path.to_str().unwrap()]).ok();
    }
    wait(|| {
        let left = new.run(&["get", "ds,pods", "-A", "-o", "name"]).ok();
        left.is_empty().then_some(()).ok_or(left)
    });
}

/// Waits until all pods of a DaemonSet are ready on these nodes and on no others.
pub(super) fn is_on(kubectl: &Kubectl, namespace: &str, name: &str, nodes: &[&str]) {
    let status =
        "{.status.observedGeneration} {.status.desiredNumberScheduled} {.status.numberReady}";
    let status = format!("jsonpath={status}");
    let expected = format!("1 {0} {0}", nodes.len());
    wait(|| {
        let ask = ["get", "ds", "-n", namespace, name, "-o", &status];
        let said = kubectl.run(&ask).ok();
        let owned = pods_of(kubectl, namespace, name);
        (said == expected && owned == nodes)
            .then_some(())
            .ok_or(format!("{name}: {said}, {owned:?}"))
    });
}

/// The nodes of a DaemonSet's pods, sorted.
fn pods_of(kubectl: &Kubectl, namespace: &str, name: &str) -> Vec<String> {
    let lines =
        r#"{range .items[*]}{.metadata.ownerReferences[0].name} {.spec.nodeName}{"\n"}{end}"#;
    let lines = format!("jsonpath={lines}");
    let said = kubectl
        .run(&["get", "pods", "-n", namespace, "-o", &lines])
        .ok();
    let mut nodes: Vec<String> = said
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .map(str::to_owned)
        .collect();
    nodes.sort();
    nodes
}
