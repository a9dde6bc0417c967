//! Variants by hardware: labels bring each variant to its nodes, and take it away again.

use kennel_testkit::{Kennel, Kubectl, Version};

use super::fixture::directory;
use super::placement::is_on;

const NAMESPACE: &str = "hardware";

#[test]
fn per_hardware_variants_follow_labels() {
    let kennel = Kennel::up(env!("CARGO_BIN_EXE_kennel"), 4);
    let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
    let path = directory("per-hardware");
    let path = path.to_str().unwrap();
    kubectl.run(&["apply", "-f", path]).ok();
    let label = |node: &str, labels: &[&str]| {
        let label = [&["label", "node", node, "--overwrite"], labels].concat();
        kubectl.run(&label).ok();
    };
    let check = |nvidia: &[&str], amd: &[&str], ssd: &[&str]| {
        for (name, nodes) in [
            ("gpu-nvidia", nvidia),
            ("gpu-amd", amd),
            ("ssd-health", ssd),
        ] {
            is_on(&kubectl, NAMESPACE, name, nodes);
        }
    };
    check(&[], &[], &[]);
    // Nodes with such hardware often have a taint, which both variants tolerate.
    kubectl
        .run(&[
            "taint",
            "node",
            "sim-1",
            "nvidia.com/gpu=present:NoSchedule",
        ])
        .ok();
    label("sim-1", &["gpu=nvidia"]);
    label("sim-2", &["gpu=amd-instinct", "disktype=ssd"]);
    label("sim-3", &["gpu=amd-radeon"]);
    label("sim-4", &["disktype=ssd"]);
    check(&["sim-1"], &["sim-2", "sim-3"], &["sim-2", "sim-4"]);
    // Another card in the machine; the owner of another does not want to be measured; a disk is exchanged.
    label("sim-2", &["gpu=nvidia"]);
    label("sim-3", &["gpu-metrics-disabled="]);
    label("sim-4", &["disktype=hdd"]);
    check(&["sim-1", "sim-2"], &[], &["sim-2"]);
}
