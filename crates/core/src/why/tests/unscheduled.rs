//! Pods that cannot be scheduled, by the scheduler's filters or its message.

use serde_json::{Value, json};

use super::super::{Cause, NodeOccupancy, OccupyingPod};
use super::fixture::{Fixture, pending};
use crate::schedule::{NodeInfo, PodRequirements, Resources};

fn unscheduled(message: &str) -> Fixture {
    let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "message": message}]});
    Fixture::new().pod(pending("p1", "n1", json!({}), status))
}

fn demand(requests: &Value, port: Option<i64>) -> PodRequirements {
    let ports: Vec<Value> = port.iter().map(|port| json!({"hostPort": port})).collect();
    let container = json!({"resources": {"requests": requests}, "ports": ports});
    let spec = serde_json::from_value(json!({"containers": [container]})).unwrap();
    PodRequirements::of("default", None, &spec).0
}

/// n1 with these resources, a pod on it, and a pod that does not fit.
fn occupied(allocatable: Value, taken: PodRequirements, wanted: PodRequirements) -> Fixture {
    let mut fixture = unscheduled("0/3 nodes are available: 1 something else.");
    let machine = NodeInfo {
        view: fixture.0.nodes[0].view.clone(),
        allocatable: Resources::from(&serde_json::from_value(allocatable).unwrap()),
    };
    let pods = vec![OccupyingPod {
        name: "shop/db".to_owned(),
        demand: taken,
    }];
    fixture.0.occupancies.push(NodeOccupancy {
        machine,
        pods,
        demand: wanted,
    });
    fixture
}

#[test]
fn too_little_cpu_and_memory_are_free() {
    let wanted = demand(&json!({"cpu": "2", "memory": "2Gi"}), None);
    let taken = demand(&json!({"cpu": "2500m", "memory": "3Gi"}), None);
    let fixture = occupied(
        json!({"cpu": "4", "memory": "4Gi", "pods": "10"}),
        taken,
        wanted,
    );
    let message = "its pod cannot be scheduled: Insufficient cpu (it wants 2, 1500m of 4 is free); \
                   Insufficient memory (it wants 2Gi, 1Gi of 4Gi is free)";
    fixture.missing(Cause::Unschedulable, message);
}

#[test]
fn a_host_port_is_taken() {
    let (wanted, taken) = (json!({}), json!({}));
    let (wanted, taken) = (demand(&wanted, Some(9100)), demand(&taken, Some(9100)));
    let fixture = occupied(
        json!({"cpu": "4", "memory": "4Gi", "pods": "10"}),
        taken,
        wanted,
    );
    let message = "its pod cannot be scheduled: node(s) didn't have free ports for the requested pod ports \
                   (port 9100 is taken by shop/db)";
    fixture.missing(Cause::Unschedulable, message);
}

#[test]
fn the_node_has_too_many_pods() {
    let (wanted, taken) = (json!({}), json!({}));
    let (wanted, taken) = (demand(&wanted, None), demand(&taken, None));
    let fixture = occupied(
        json!({"cpu": "4", "memory": "4Gi", "pods": "1"}),
        taken,
        wanted,
    );
    let message = "its pod cannot be scheduled: Too many pods (1 of 1 are there)";
    fixture.missing(Cause::Unschedulable, message);
}

#[test]
fn without_the_nodes_pods_the_schedulers_message_explains_it() {
    let said = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) \
                [NodeAffinity]. preemption: 0/3 nodes are available: 3 Preemption is not helpful for \
                scheduling.";
    let fixture = unscheduled(said);
    fixture.missing(
        Cause::Unschedulable,
        "its pod cannot be scheduled: Insufficient cpu",
    );
    let other = unscheduled("something else went wrong.");
    other.missing(
        Cause::Unschedulable,
        "its pod cannot be scheduled: something else went wrong",
    );
}
