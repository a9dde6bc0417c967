//! Explains why one node rejects a pod, with numbers, for `kennel why`.
//!
//! It runs the scheduler's filters, except for pod (anti-)affinity, which depends on other nodes too.

use std::sync::Arc;

use super::filter::Candidate;
use super::node::{Node, NodeInfo, Usage};
use super::rejection::Reason;
use super::requirements::{Class, PodRequirements};
use super::resources::Resources;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Upstream's message.
    pub reason: String,
    /// The numbers, or the pod that is in the way.
    pub detail: Option<String>,
}

/// Why a node with these pods rejects a pod; empty if it does not.
pub fn obstacles<'a>(
    info: &NodeInfo,
    there: impl IntoIterator<Item = (&'a str, &'a PodRequirements)>,
    requirements: &PodRequirements,
) -> Vec<Obstacle> {
    let there: Vec<(&str, &PodRequirements)> = there.into_iter().collect();
    let mut node = Node::new(info.view.name.clone());
    for (_, other) in &there {
        node.usage.add(other);
    }
    node.info = Some(info.clone());
    let class = Arc::new(Class {
        id: 0,
        requirements: requirements.clone(),
    });
    let candidate = Candidate {
        class: &class,
        affinity: None,
    };
    let Err(rejection) = candidate.filter(&node, &node.usage, &[]) else {
        return Vec::new();
    };
    let reason = rejection.reason.map(|reason| Obstacle {
        reason: reason.text().to_owned(),
        detail: match reason {
            Reason::Ports => port_holder(&there, requirements),
            Reason::TooManyPods => {
                let (taken, all) = (node.usage.pods, info.allocatable.pods);
                Some(format!("{taken} of {all} are there"))
            }
            _ => None,
        },
    });
    let lacking = rejection.lacking.iter().map(|name| Obstacle {
        reason: format!("Insufficient {name}"),
        detail: Some(numbers(name, requirements, info, &node.usage)),
    });
    reason.into_iter().chain(lacking).collect()
}

/// The pod that has a requested host port.
fn port_holder(
    there: &[(&str, &PodRequirements)],
    requirements: &PodRequirements,
) -> Option<String> {
    there.iter().find_map(|(name, other)| {
        let conflict = |port| other.ports.iter().any(|taken| taken.conflicts(port));
        let port = requirements.ports.iter().find(|port| conflict(port))?;
        Some(format!("port {} is taken by {name}", port.number()))
    })
}

fn numbers(name: &str, requirements: &PodRequirements, info: &NodeInfo, usage: &Usage) -> String {
    let amount = |resources: &Resources| resources.amount(name);
    let show = |amount: i64| match name {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        "memory" | "ephemeral-storage" => bytes(amount),
        _ => amount.to_string(),
    };
    let (wanted, all) = (amount(&requirements.requests), amount(&info.allocatable));
    let free = (all - amount(&usage.requested)).max(0);
    format!(
        "it wants {}, {} of {} is free",
        show(wanted),
        show(free),
        show(all)
    )
}

/// An amount of memory in the largest unit that shows at least two digits or is exact.
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
