//! Why one node would not take a pod, by the filters themselves and with the numbers: for people.
//!
//! Other pods' labels are not weighed: that takes more than one node. It decides nothing.

use std::sync::Arc;

use super::demand::{Class, Demand};
use super::filter::Candidate;
use super::node::{Machine, Node, Usage};
use super::refusal::Reason;
use super::resources::Resources;

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// In upstream's words.
    pub reason: String,
    /// The numbers, or who is in the way.
    pub detail: Option<String>,
}

/// What stands in the way of a pod on a node where these pods are. Nothing, if it would be taken.
pub fn obstacles<'a>(
    machine: &Machine,
    there: impl IntoIterator<Item = (&'a str, &'a Demand)>,
    demand: &Demand,
) -> Vec<Obstacle> {
    let there: Vec<(&str, &Demand)> = there.into_iter().collect();
    let mut node = Node::new(machine.view.name.clone());
    for (_, other) in &there {
        node.usage.add(other);
    }
    node.machine = Some(machine.clone());
    let class = Arc::new(Class {
        id: 0,
        demand: demand.clone(),
    });
    let candidate = Candidate {
        class: &class,
        company: None,
    };
    let Err(refusal) = candidate.judge(&node, &node.usage, &[]) else {
        return Vec::new();
    };
    let reason = refusal.reason.map(|reason| Obstacle {
        reason: reason.text().to_owned(),
        detail: match reason {
            Reason::Ports => port_holder(&there, demand),
            Reason::TooManyPods => {
                let (taken, all) = (node.usage.pods, machine.allocatable.pods);
                Some(format!("{taken} of {all} are there"))
            }
            _ => None,
        },
    });
    let lacking = refusal.lacking.iter().map(|name| Obstacle {
        reason: format!("Insufficient {name}"),
        detail: Some(numbers(name, demand, machine, &node.usage)),
    });
    reason.into_iter().chain(lacking).collect()
}

/// Who has a port that is wanted.
fn port_holder(there: &[(&str, &Demand)], demand: &Demand) -> Option<String> {
    there.iter().find_map(|(name, other)| {
        let clash = |port| other.ports.iter().any(|taken| taken.conflicts(port));
        let port = demand.ports.iter().find(|port| clash(port))?;
        Some(format!("port {} is taken by {name}", port.number()))
    })
}

fn numbers(name: &str, demand: &Demand, machine: &Machine, usage: &Usage) -> String {
    let amount = |resources: &Resources| match name {
        "cpu" => resources.cpu,
        "memory" => resources.memory,
        "ephemeral-storage" => resources.storage,
        name => resources.other(name),
    };
    let show = |amount: i64| match name {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        "memory" | "ephemeral-storage" => bytes(amount),
        _ => amount.to_string(),
    };
    let (wanted, all) = (amount(&demand.requests), amount(&machine.allocatable));
    let free = (all - amount(&usage.requested)).max(0);
    format!(
        "it wants {}, {} of {} is free",
        show(wanted),
        show(free),
        show(all)
    )
}

/// An amount of memory in the largest unit that loses nothing that matters.
fn bytes(amount: i64) -> String {
    const UNITS: [(&str, i64); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let unit = UNITS
        .into_iter()
        .find(|(_, size)| amount >= 10 * size || (amount >= *size && amount % size == 0));
    match unit {
        Some((name, size)) => format!("{}{name}", amount / size),
        None => amount.to_string(),
    }
}
