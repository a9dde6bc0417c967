//! Nodes that wait for required DaemonSets.

use std::sync::Arc;

use super::super::{RequiredSnapshot, Verdict};
use super::fixture::{Fixture, ready};
use crate::daemonset::required::{ANNOTATION, TAINT};

fn waiting() -> Fixture {
    Fixture::new()
        .taint(TAINT, "", "NoSchedule")
        .pod(ready("p1", "n1"))
}

/// Adds a required DaemonSet like the one that is explained, without pods.
fn requires(mut fixture: Fixture, name: &str) -> Fixture {
    let mut set = fixture.0.daemon_set.clone();
    if name != "agent" {
        (set.name, set.uid) = (name.into(), format!("uid-{name}").into());
    }
    set.annotations = Arc::new([(ANNOTATION.to_owned(), "true".to_owned())].into());
    let pods = Vec::new();
    fixture.0.required.push(RequiredSnapshot {
        daemon_set: set,
        pods,
    });
    fixture
}

#[test]
fn r12_5_a_node_says_what_it_waits_for() {
    let fixture = requires(requires(waiting(), "cni"), "csi");
    let n1 = fixture.on("n1");
    assert_eq!(n1.verdict, Verdict::Runs, "the taint is tolerated: {n1:?}");
    assert_eq!(
        n1.remarks,
        [
            "the node waits for default/cni and default/csi: until then, other pods are not placed there \
          (kennel.dev/daemons-not-ready)"
        ]
    );
    assert!(fixture.on("n2").remarks.is_empty());
    let own = requires(waiting(), "agent");
    assert!(own.on("n1").remarks[0].starts_with("the node waits for this DaemonSet:"));
}

#[test]
fn r12_5_a_node_that_waits_for_nothing_known_says_that_it_has_the_taint() {
    let remarks = waiting().on("n1").remarks;
    assert!(remarks[0].starts_with("the node has the taint kennel.dev/daemons-not-ready"));
    let mut available = requires(waiting(), "agent");
    available.0.required[0].pods = available
        .0
        .pods
        .iter()
        .map(|pod| pod.view.clone())
        .collect();
    assert!(available.on("n1").remarks[0].starts_with("the node has the taint"));
}
