//! The node exporter, a real one: it sees the machine, not its container, and is found at the node's address.

use super::fixture::{Fixture, wait};

const NAME: &str = "node-exporter";
const NAMESPACE: &str = "monitoring";
const PORT: u16 = 9100;

pub(crate) fn check(fixture: &Fixture) {
    fixture.apply(NAME);
    fixture.rolled_out(NAME, NAMESPACE);
    let metrics = fixture.fetch(PORT, "/metrics").unwrap();
    for name in ["node_load1 ", "node_memory_MemTotal_bytes ", "node_cpu_"] {
        assert!(metrics.contains(name), "no {name} in {metrics}");
    }
    sees_the_machine(fixture, &metrics);
    let pod = fixture.pod(NAME, NAMESPACE);
    let user = fixture.inside(&pod, NAMESPACE, "id -u; touch /x 2>&1 || true");
    assert!(user.starts_with("65534\n"), "{user}");
    assert!(user.contains("Read-only file system"), "{user}");
    is_found_by_the_service(fixture);
    fixture.delete(NAME);
    assert!(fixture.fetch(PORT, "/metrics").is_err(), "it still runs");
}

/// Its network and its mounts: a container's own would be others. What the exclusion names is left out.
fn sees_the_machine(fixture: &Fixture, metrics: &str) {
    let bridge = "node_network_receive_bytes_total{device=\"cni0\"}";
    let of_the_machine = metrics.contains(bridge);
    assert!(of_the_machine, "the bridge of the pods is not seen");
    let root = metrics.lines().any(|line| {
        line.starts_with("node_filesystem_size_bytes") && line.contains("mountpoint=\"/\"")
    });
    assert!(root, "the machine's root is not seen: {metrics}");
    assert!(!metrics.contains("mountpoint=\"/run\""), "{metrics}");
    let mounted = fixture.on_machine("grep -c ' /run ' /proc/self/mounts");
    assert_ne!(mounted.unwrap(), "0", "there is such a mount to leave out");
}

fn is_found_by_the_service(fixture: &Fixture) {
    let address = fixture.machine.address().to_string();
    let label = "kubernetes.io/service-name=node-exporter";
    wait(|| {
        let slices = fixture.get(&["endpointslices", "-n", NAMESPACE, "-l", label])?;
        let said = slices.to_string();
        (said.contains(&address) && said.contains("9100"))
            .then_some(())
            .ok_or(said)
    });
}
