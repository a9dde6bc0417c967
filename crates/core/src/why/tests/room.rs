//! Pods that find no room: by the scheduler's own filters, else by its words.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Cause, Crowd, Neighbour};
use super::world::{World, pending};
use crate::daemonset::fit::Rules;
use crate::schedule::{Asked, Container, Demand, HostPort, Machine, Resources};

fn unscheduled(message: &str) -> World {
    let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "message": message}]});
    World::new().pod(pending("p1", "n1", json!({}), status))
}

fn demand(requests: &Resources, port: Option<i64>) -> Demand {
    let container = Container {
        requests,
        ports: port
            .map(|port| HostPort::new("", "", port))
            .into_iter()
            .collect(),
        sidecar: false,
    };
    let labels = BTreeMap::new();
    let none = Resources::default();
    Demand::compile(Asked {
        namespace: "default",
        labels: Some(&labels),
        rules: Rules::of_pod_spec(&json!({})),
        affinity: &Value::Null,
        containers: &[container],
        init_containers: &[],
        overhead: &none,
        whole: &none,
        priority: 0,
        preempts: true,
    })
    .0
}

/// n1 with this much to give, one pod there, and what the other wants.
fn crowded(allocatable: Value, taken: Demand, wanted: Demand) -> World {
    let mut world = unscheduled("0/3 nodes are available: 1 something else.");
    let machine = Machine {
        view: world.0.nodes[0].view.clone(),
        allocatable: serde_json::from_value(allocatable).unwrap(),
    };
    let there = vec![Neighbour {
        name: "shop/db".to_owned(),
        demand: taken,
    }];
    world.0.crowds.push(Crowd {
        machine,
        there,
        demand: wanted,
    });
    world
}

const GIB: i64 = 1 << 30;

#[test]
fn too_little_processor_and_memory_are_left() {
    let wanted = demand(&Resources::of(2000, 2 * GIB), None);
    let taken = demand(&Resources::of(2500, 3 * GIB), None);
    let world = crowded(
        json!({"cpu": "4", "memory": "4Gi", "pods": "10"}),
        taken,
        wanted,
    );
    let message = "its pod finds no room: Insufficient cpu (it wants 2, 1500m of 4 is free); \
                   Insufficient memory (it wants 2Gi, 1Gi of 4Gi is free)";
    world.missing(Cause::Unschedulable, message);
}

#[test]
fn a_port_of_the_host_is_taken() {
    let (wanted, taken) = (Resources::default(), Resources::default());
    let (wanted, taken) = (demand(&wanted, Some(9100)), demand(&taken, Some(9100)));
    let world = crowded(
        json!({"cpu": "4", "memory": "4Gi", "pods": "10"}),
        taken,
        wanted,
    );
    let message = "its pod finds no room: node(s) didn't have free ports for the requested pod ports \
                   (port 9100 is taken by shop/db)";
    world.missing(Cause::Unschedulable, message);
}

#[test]
fn there_are_too_many_pods() {
    let (wanted, taken) = (Resources::default(), Resources::default());
    let (wanted, taken) = (demand(&wanted, None), demand(&taken, None));
    let world = crowded(
        json!({"cpu": "4", "memory": "4Gi", "pods": "1"}),
        taken,
        wanted,
    );
    let message = "its pod finds no room: Too many pods (1 of 1 are there)";
    world.missing(Cause::Unschedulable, message);
}

#[test]
fn without_a_look_at_the_node_the_schedulers_words_do() {
    let said = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) \
                [NodeAffinity]. preemption: 0/3 nodes are available: 3 Preemption is not helpful for \
                scheduling.";
    let world = unscheduled(said);
    world.missing(
        Cause::Unschedulable,
        "its pod finds no room: Insufficient cpu",
    );
    let other = unscheduled("something else went wrong.");
    other.missing(
        Cause::Unschedulable,
        "its pod finds no room: something else went wrong",
    );
}
