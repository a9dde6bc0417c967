//! Scores feasible nodes with upstream's plugins and weights: `PreferNoSchedule` taints, preferred node affinity, the pod's
//! own preferred pod affinity, least allocated and balanced allocation.

use std::collections::HashMap;
use std::sync::Arc;

use super::node::{Node, NodeId, NodeInfo, Usage};
use super::requirements::PodRequirements;
use crate::taint::{TaintEffect, Toleration};

const MAX_SCORE: i64 = 100;
const TAINTS: i64 = 3;
const NODE_AFFINITY: i64 = 2;
const POD_AFFINITY: i64 = 2;

/// Per preferred pod affinity term: its weight, its topology key, and the number of matching pods by domain.
pub(super) type PreferredDomains = Vec<(i64, Arc<str>, HashMap<Box<str>, usize>)>;

/// The first of the nodes with the highest score.
pub(super) fn best<'a>(
    requirements: &PodRequirements,
    preferred_domains: &PreferredDomains,
    nodes: &[(NodeId, &'a Node, &'a Usage)],
) -> Option<NodeId> {
    if let [(only, ..)] = nodes {
        return Some(*only);
    }
    let raw: Vec<Raw> = nodes
        .iter()
        .filter_map(|(_, node, usage)| {
            let info = node.info.as_ref()?;
            Some(Raw {
                untolerated: untolerated(requirements, info),
                node_affinity: node_affinity(requirements, info),
                pod_affinity: pod_affinity(preferred_domains, node),
                allocation: allocation(requirements, info, usage),
            })
        })
        .collect();
    let most_untolerated = raw.iter().map(|r| r.untolerated).max()?;
    let most_affine = raw.iter().map(|r| r.node_affinity).max()?;
    let pod_affinity = raw.iter().map(|r| r.pod_affinity);
    let (least_preferred, most_preferred) = (pod_affinity.clone().min()?, pod_affinity.max()?);
    let score = |r: &Raw| {
        let taints = MAX_SCORE - scaled(r.untolerated, most_untolerated);
        let affinity = scaled(r.node_affinity, most_affine);
        let pod_affinity = scaled(
            r.pod_affinity - least_preferred,
            most_preferred - least_preferred,
        );
        TAINTS * taints + NODE_AFFINITY * affinity + POD_AFFINITY * pod_affinity + r.allocation
    };
    let scores = raw.iter().map(score).enumerate();
    let (at, _) = scores.max_by_key(|(at, score)| (*score, std::cmp::Reverse(*at)))?;
    Some(nodes[at].0)
}

struct Raw {
    untolerated: i64,
    node_affinity: i64,
    pod_affinity: i64,
    allocation: i64,
}

fn scaled(value: i64, most: i64) -> i64 {
    if most == 0 {
        0
    } else {
        value * MAX_SCORE / most
    }
}

fn untolerated(requirements: &PodRequirements, info: &NodeInfo) -> i64 {
    let advises =
        |effect: &TaintEffect| effect.is_empty() || *effect == TaintEffect::PreferNoSchedule;
    let tolerations = requirements.rules.tolerations();
    let tolerates = |t: &Toleration, taint| advises(&t.effect) && t.tolerates(taint);
    let taints = info.view.taints.iter();
    taints
        .filter(|taint| taint.effect == TaintEffect::PreferNoSchedule)
        .filter(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
        .map(|_| 1)
        .sum()
}

fn node_affinity(requirements: &PodRequirements, info: &NodeInfo) -> i64 {
    let view = &info.view;
    let preferred = requirements.preferred_nodes.iter();
    let preferred = preferred.filter(|preference| preference.matches(&view.name, &view.labels));
    preferred.map(|preference| preference.weight).sum()
}

fn pod_affinity(preferred_domains: &PreferredDomains, node: &Node) -> i64 {
    let of = |(weight, key, domains): &(i64, Arc<str>, HashMap<Box<str>, usize>)| {
        let count = node.label(key).and_then(|value| domains.get(value));
        weight
            * count.map_or(0, |count| {
                i64::try_from(*count).unwrap_or(i64::MAX / MAX_SCORE)
            })
    };
    preferred_domains.iter().map(of).sum()
}

/// Least allocated plus balanced allocation: 0 to 200.
fn allocation(requirements: &PodRequirements, info: &NodeInfo, usage: &Usage) -> i64 {
    let all = &info.allocatable;
    let cpu = usage.scored.0 + requirements.scored.0;
    let memory = usage.scored.1 + requirements.scored.1;
    let left = |taken: i64, all: i64| MAX_SCORE - share(taken, all, MAX_SCORE);
    let least_allocated = i64::midpoint(left(cpu, all.cpu), left(memory, all.memory));
    let requested = &usage.requested;
    let of_cpu = share(requested.cpu + requirements.requests.cpu, all.cpu, 1000);
    let of_memory = share(
        requested.memory + requirements.requests.memory,
        all.memory,
        1000,
    );
    // The standard deviation of two fractions is half of their difference.
    let balanced = MAX_SCORE - (of_cpu - of_memory).abs() / 20;
    least_allocated + balanced
}

/// The allocated fraction, scaled to 0..=`top`.
fn share(taken: i64, all: i64, top: i64) -> i64 {
    if taken >= all {
        return top;
    }
    let share = i128::from(taken) * i128::from(top) / i128::from(all.max(1));
    i64::try_from(share).unwrap_or(top)
}
