//! The network plug-in: on a node that is not ready for want of a network, it is what makes it ready.

use kennel_core::cidr::Cidr;
use serde_json::{Value, json};

use super::fixture::{Fixture, MACHINE, condition, wait};

const NAME: &str = "network-plugin";
const NAMESPACE: &str = "kube-system";

/// A pod with a network of its own, on the machine.
const WITH_NETWORK: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: networked}
spec:
  nodeName: machine-1
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: "docker.io/falcosecurity/falco:0.43.0", command: [sleep, infinity]}
"#;

pub(crate) fn check(fixture: &Fixture) {
    is_not_ready(fixture);
    // As a control plane has it, and as machines have it that are to be emptied.
    let taints = [
        "node-role.kubernetes.io/control-plane:NoSchedule",
        "maintenance=soon:NoExecute",
    ];
    let taint = [&["taint", "node", MACHINE], taints.as_slice()].concat();
    fixture.kubectl.run(&taint).ok();
    fixture.apply(NAME);
    fixture.rolled_out(NAME, NAMESPACE);
    wait(|| {
        let node = fixture.get(&["node", MACHINE])?;
        let ready = condition(&node, "Ready");
        ready
            .then_some(())
            .ok_or_else(|| format!("{node:#}\n{}", fixture.agent.log()))
    });
    is_installed(fixture);
    is_critical_and_of_the_host(fixture);
    fixture.may("kube-system:network-plugin", &["watch", "nodes"], true);
    fixture.may("kube-system:network-plugin", &["delete", "nodes"], false);
    fixture
        .kubectl
        .run(&["taint", "node", MACHINE, "maintenance-"])
        .ok();
    let range = takes_subnets(fixture);
    gives_addresses(fixture, range);
}

/// A node without a network takes no pods, but for those that need none.
fn is_not_ready(fixture: &Fixture) {
    wait(|| {
        let node = fixture.get(&["node", MACHINE])?;
        let said = node.to_string();
        let ready = condition(&node, "Ready");
        (!ready && said.contains("cni plugin not initialized"))
            .then_some(())
            .ok_or(said)
    });
}

fn is_installed(fixture: &Fixture) {
    fixture.on_machine("test -x /opt/cni/bin/flannel").unwrap();
    let list = fixture.on_machine("cat /etc/cni/net.d/10-flannel.conflist");
    let list: serde_json::Value = serde_json::from_str(&list.unwrap()).unwrap();
    assert_eq!(list["plugins"][0]["type"], "flannel");
    fixture.on_machine("test -f /run/xtables.lock").unwrap();
}

fn is_critical_and_of_the_host(fixture: &Fixture) {
    let pods = fixture.pods(NAME, NAMESPACE);
    assert_eq!(pods.len(), 1);
    let pod = &pods[0];
    assert_eq!(pod["spec"]["priority"], 2_000_001_000);
    assert_eq!(
        pod["status"]["podIP"],
        fixture.machine.address().to_string().as_str()
    );
    let name = pod["metadata"]["name"].as_str().unwrap();
    let rights = fixture.inside(
        name,
        NAMESPACE,
        "grep CapEff /proc/1/status; ls -d /dev/kmsg",
    );
    assert!(rights.contains("/dev/kmsg"), "it is privileged: {rights}");
}

/// Pods after it get their networks from it.
fn gives_addresses(fixture: &Fixture, range: Cidr) {
    fixture
        .kubectl
        .run_with_input(&["apply", "-f", "-"], WITH_NETWORK)
        .ok();
    let address = wait(|| {
        let pod = fixture.get(&["pod", "networked"])?;
        let address = pod["status"]["podIP"].as_str();
        let ready = address.filter(|_| condition(&pod, "Ready"));
        ready.map(str::to_owned).ok_or_else(|| {
            fixture
                .kubectl
                .run(&["describe", "pod", "networked"])
                .stdout
        })
    });
    let is_of_the_node = range.contains(address.parse().unwrap());
    assert!(is_of_the_node, "{address} of {range}");
    fixture.kubectl.run(&["delete", "pod", "networked"]).ok();
}

/// As the page says: the real daemon wants to be told which addresses are a node's, and the node asks for them.
fn takes_subnets(fixture: &Fixture) -> Cidr {
    let ask = [
        "annotate",
        "node",
        MACHINE,
        "network.kennel.dev/mode=external",
    ];
    fixture.kubectl.run(&ask).ok();
    let range: Cidr = wait(|| {
        let node = fixture.get(&["node", MACHINE])?;
        let range = node["spec"]["podCIDR"].as_str();
        range
            .and_then(|range| range.parse().ok())
            .ok_or_else(|| format!("{node:#}"))
    });
    let config = fixture.get(&["configmap", NAME, "-n", NAMESPACE]).unwrap();
    let config = config["data"]["net-conf.json"].as_str().unwrap();
    let config: Value = serde_json::from_str(config).unwrap();
    let all: Cidr = config["Network"].as_str().unwrap().parse().unwrap();
    assert!(
        range.bits() == 24 && all.contains(range.base()),
        "{range} of {all}"
    );
    let node = fixture.get(&["node", MACHINE]).unwrap();
    assert_eq!(node["spec"]["podCIDRs"], json!([range.to_string()]));
    range
}

/// What it installed stays when it goes, so that pods go on: the page says so.
pub(crate) fn check_end(fixture: &Fixture) {
    fixture.delete(NAME);
    wait(|| {
        let gone = fixture.pods(NAME, NAMESPACE).is_empty();
        gone.then_some(()).ok_or("it still runs".to_owned())
    });
    fixture.on_machine("test -x /opt/cni/bin/flannel").unwrap();
}
