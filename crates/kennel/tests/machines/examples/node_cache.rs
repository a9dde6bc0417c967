//! The cache: a new template changes nothing until somebody deletes a pod.

use std::fmt::Display;

use super::fixture::{Fixture, MACHINE, wait};

const NAME: &str = "node-cache";
const NAMESPACE: &str = "node-cache";
/// Were they spread over three nodes, one of them would meet another node's cache.
const QUESTIONS: usize = 24;
const GENERATIONS: &str = "cat /var/lib/node-cache/generations";

pub(crate) fn check(fixture: &Fixture) {
    fixture.apply(NAME);
    ready_on(fixture, 2);
    assert!(
        fixture.pods(NAME, NAMESPACE).is_empty(),
        "it tolerates no taint, and so it keeps off control planes"
    );
    let taint = "node-role.kubernetes.io/control-plane:NoSchedule-";
    fixture.kubectl.run(&["taint", "node", MACHINE, taint]).ok();
    ready_on(fixture, 3);
    wait(|| answers(fixture, fixture.machine.address()));
    services_lead_to_the_own_node(fixture);
    changes_when_its_pod_is_deleted(fixture);
    fixture.delete(NAME);
}

/// `kubectl rollout status` refuses to wait for what is updated by hand.
fn ready_on(fixture: &Fixture, nodes: u64) {
    wait(|| {
        let set = fixture.get(&["ds", NAME, "-n", NAMESPACE])?;
        let status = &set["status"];
        let ready = status["desiredNumberScheduled"] == nodes && status["numberReady"] == nodes;
        ready.then_some(()).ok_or_else(|| set.to_string())
    });
}

/// On the machine, at this address.
fn answers(fixture: &Fixture, address: impl Display) -> Result<(), String> {
    let ask = format!("timeout 3 busybox nc {address} 6379 </dev/null");
    let said = fixture.on_machine(&ask)?;
    (said == "+PONG").then_some(()).ok_or(said)
}

/// The caches of the other nodes are simulated, and answer nobody.
fn services_lead_to_the_own_node(fixture: &Fixture) {
    for name in ["node-cache", "node-cache-nearest"] {
        let service = fixture.get(&["service", name, "-n", NAMESPACE]).unwrap();
        let address = service["spec"]["clusterIP"].as_str().unwrap().to_owned();
        wait(|| answers(fixture, &address));
        for _ in 0..QUESTIONS {
            answers(fixture, &address).unwrap();
        }
    }
}

fn changes_when_its_pod_is_deleted(fixture: &Fixture) {
    let before = fixture.pod(NAME, NAMESPACE);
    let update = [
        "set",
        "env",
        "-n",
        NAMESPACE,
        "ds/node-cache",
        "GENERATION=second",
    ];
    fixture.kubectl.run(&update).ok();
    // The controller has seen it, and has left everybody alone.
    wait(|| {
        let set = fixture.get(&["ds", NAME, "-n", NAMESPACE])?;
        let seen = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        let updated = set["status"]["updatedNumberScheduled"].as_u64();
        let waiting = updated.unwrap_or(0) == 0;
        (seen && waiting)
            .then_some(())
            .ok_or_else(|| set.to_string())
    });
    assert_eq!(fixture.pod(NAME, NAMESPACE), before);
    assert_eq!(fixture.on_machine(GENERATIONS).unwrap(), "first");
    fixture
        .kubectl
        .run(&["delete", "pod", "-n", NAMESPACE, &before])
        .ok();
    // What it kept on the machine is there for its successor.
    wait(|| match fixture.on_machine(GENERATIONS)? {
        both if both == "first\nsecond" => Ok(()),
        other => Err(other),
    });
}
