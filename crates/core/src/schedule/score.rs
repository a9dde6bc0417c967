//! Which of the nodes that would take a pod is best for it.
//!
//! Upstream's scores with upstream's weights, as far as they are here: taints that only advise, preferred
//! node affinity, preferred pod affinity (the pod's own), room left, and how evenly it is left.

use std::collections::HashMap;
use std::sync::Arc;

use super::demand::Demand;
use super::node::{Machine, Node, Usage};
use crate::taint::{PREFER_NO_SCHEDULE, Toleration};

const TOP: i64 = 100;
const TAINTS: i64 = 3;
const NODE_AFFINITY: i64 = 2;
const POD_AFFINITY: i64 = 2;

/// What each weighted term of preferred pod affinity counts in each domain of its topology key.
pub(super) type Liking = Vec<(i64, Arc<str>, HashMap<Box<str>, usize>)>;

/// The best of these nodes: the first of those with the highest score.
pub(super) fn best<'a>(
    demand: &Demand,
    liking: &Liking,
    nodes: &[(usize, &'a Node, &'a Usage)],
) -> Option<usize> {
    if let [(only, ..)] = nodes {
        return Some(*only);
    }
    let raw: Vec<Raw> = nodes
        .iter()
        .filter_map(|(_, node, usage)| {
            let machine = node.machine.as_ref()?;
            Some(Raw {
                repelled: repelled(demand, machine),
                node_affinity: node_affinity(demand, machine),
                pod_affinity: pod_affinity(liking, node),
                room: room(demand, machine, usage),
            })
        })
        .collect();
    let most_repelled = raw.iter().map(|r| r.repelled).max()?;
    let most_affine = raw.iter().map(|r| r.node_affinity).max()?;
    let company = raw.iter().map(|r| r.pod_affinity);
    let (least_liked, most_liked) = (company.clone().min()?, company.max()?);
    let score = |r: &Raw| {
        let taints = TOP - scaled(r.repelled, most_repelled);
        let affinity = scaled(r.node_affinity, most_affine);
        let company = scaled(r.pod_affinity - least_liked, most_liked - least_liked);
        TAINTS * taints + NODE_AFFINITY * affinity + POD_AFFINITY * company + r.room
    };
    let scores = raw.iter().map(score).enumerate();
    let (at, _) = scores.max_by_key(|(at, score)| (*score, std::cmp::Reverse(*at)))?;
    Some(nodes[at].0)
}

struct Raw {
    repelled: i64,
    node_affinity: i64,
    pod_affinity: i64,
    room: i64,
}

fn scaled(value: i64, most: i64) -> i64 {
    if most == 0 { 0 } else { value * TOP / most }
}

fn repelled(demand: &Demand, machine: &Machine) -> i64 {
    let advises = |effect: &str| effect.is_empty() || effect == PREFER_NO_SCHEDULE;
    let tolerations = demand.rules.tolerations();
    let tolerates = |t: &Toleration, taint| advises(&t.effect) && t.tolerates(taint);
    let taints = machine.view.taints.iter();
    taints
        .filter(|taint| taint.effect == PREFER_NO_SCHEDULE)
        .filter(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
        .map(|_| 1)
        .sum()
}

fn node_affinity(demand: &Demand, machine: &Machine) -> i64 {
    let view = &machine.view;
    let liked = demand.liked_nodes.iter();
    let liked = liked.filter(|preference| preference.matches(&view.name, &view.labels));
    liked.map(|preference| preference.weight).sum()
}

fn pod_affinity(liking: &Liking, node: &Node) -> i64 {
    let of = |(weight, key, domains): &(i64, Arc<str>, HashMap<Box<str>, usize>)| {
        let count = node.label(key).and_then(|value| domains.get(value));
        weight * count.map_or(0, |count| i64::try_from(*count).unwrap_or(i64::MAX / TOP))
    };
    liking.iter().map(of).sum()
}

/// Room left, and how evenly: 0 to 200.
fn room(demand: &Demand, machine: &Machine, usage: &Usage) -> i64 {
    let all = &machine.allocatable;
    let cpu = usage.counted.0 + demand.counted.0;
    let memory = usage.counted.1 + demand.counted.1;
    let left = |taken: i64, all: i64| TOP - share(taken, all, TOP);
    let least_allocated = i64::midpoint(left(cpu, all.cpu), left(memory, all.memory));
    let requested = &usage.requested;
    let of_cpu = share(requested.cpu + demand.requests.cpu, all.cpu, 1000);
    let of_memory = share(requested.memory + demand.requests.memory, all.memory, 1000);
    // The standard deviation of two shares is half of their difference.
    let balanced = TOP - (of_cpu - of_memory).abs() / 20;
    least_allocated + balanced
}

/// How much of all is taken, from 0 to `top`.
fn share(taken: i64, all: i64, top: i64) -> i64 {
    if taken >= all {
        return top;
    }
    let share = i128::from(taken) * i128::from(top) / i128::from(all.max(1));
    i64::try_from(share).unwrap_or(top)
}
