//! Test fixtures: small DaemonSets, nodes and pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::Timestamp;
use serde_json::json;

use super::status::Counters;
use super::view::{DaemonSetView, Health, NodeView, Phase, PodView, Readiness, Strategy};
use crate::selector::Selector;

/// A DaemonSet that selects `app=<name>` and runs everywhere. Its uid is `uid-<name>`.
pub(super) fn daemon_set(name: &str) -> DaemonSetView {
    DaemonSetView {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        generation: 1,
        template_generation: Some(1),
        terminating: false,
        selector: Selector::parse(&format!("app={name}")).unwrap(),
        template: Arc::new(json!({"metadata": {"labels": {"app": name}}, "spec": {}})),
        min_ready_seconds: 0,
        collision_count: None,
        status: Counters::default(),
        conditions: Arc::default(),
        strategy: Strategy::parse(&json!({})),
        revision_history_limit: 10,
        annotations: Arc::default(),
        version: 0,
    }
}

/// A node without labels and taints.
pub(super) fn node(name: &str) -> NodeView {
    NodeView {
        name: name.into(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        unschedulable: false,
        ready: Readiness::Ready,
        ready_changed: None,
    }
}

/// A pod of a DaemonSet, bound to a node, not ready. Its uid is `uid-<name>`.
pub(super) fn pod(name: &str, daemon_set: &str, node: &str) -> PodView {
    PodView {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        controller: Some(format!("uid-{daemon_set}").into()),
        labels: Arc::new([("app".to_owned(), daemon_set.to_owned())].into()),
        bound_to: Some(node.into()),
        pinned_to: None,
        created: Timestamp::EPOCH,
        terminating: false,
        phase: Phase::Active,
        ready_since: None,
        health: Health::default(),
    }
}
