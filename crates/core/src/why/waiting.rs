//! Nodes that wait for required DaemonSets (R12.5).

use super::snapshot::Snapshot;
use crate::daemonset::NodeView;
use crate::daemonset::required::{TAINT, is_missing, waits};

/// What a node waits for, if it does.
pub(super) fn remark(snapshot: &Snapshot, node: &NodeView) -> Option<String> {
    if !waits(node) {
        return None;
    }
    let required = snapshot.required.iter();
    let missing = required.filter(|set| is_missing(&set.daemon_set, &set.pods, node, snapshot.now));
    let own = &snapshot.daemon_set.uid;
    let names = missing.map(|set| match &set.daemon_set {
        set if set.uid == *own => "this DaemonSet".to_owned(),
        set => format!("{}/{}", set.namespace, set.name),
    });
    let names: Vec<String> = names.collect();
    Some(if names.is_empty() {
        format!(
            "the node has the taint {TAINT}, which the controller removes unless a required DaemonSet is missing"
        )
    } else {
        let names = names.join(" and ");
        format!("the node waits for {names}: until then, other pods are not placed there ({TAINT})")
    })
}
