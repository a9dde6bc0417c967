//! The cache: a new template changes nothing until somebody deletes a pod.

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};

use super::fixture::{Fixture, MACHINE, wait};

const NAME: &str = "node-cache";
const NAMESPACE: &str = "node-cache";
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
    wait(|| answers(fixture));
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

/// At the port of the node.
fn answers(fixture: &Fixture) -> Result<(), String> {
    let address = SocketAddr::from((fixture.machine.address(), 6379));
    let within = std::time::Duration::from_secs(2);
    let ask = || {
        let mut socket = TcpStream::connect_timeout(&address, within)?;
        socket.set_read_timeout(Some(within))?;
        let mut said = String::new();
        socket.read_to_string(&mut said).map(|_| said)
    };
    let said = ask().map_err(|error: std::io::Error| error.to_string())?;
    (said == "+PONG\n").then_some(()).ok_or(said)
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
