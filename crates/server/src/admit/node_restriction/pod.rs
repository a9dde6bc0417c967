//! A node's writes of pods: it creates its own mirror pods, and updates the status of, deletes and evicts
//! the pods bound to it.

use kennel_core::pod::references::{PROJECTED, VOLUMES};
use kennel_types::pod::MIRROR_ANNOTATION;
use kennel_types::pod::references::{PodReferences, ReferencedKind};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Api, NodeRestriction, NodeWrite, node_write};
use crate::object::Stored;
use crate::registry::{self, Part};
use crate::request::User;
use crate::status::Result;
use crate::tree::{at, flag, has, list, map, same, text};

/// Mirror pods, and the pods bound to the node.
pub(crate) struct PodRule;

impl NodeRestriction for PodRule {
    fn create(&self, api: &Api, write: NodeWrite<'_>, pod: &Value) -> Result<()> {
        check_create(api, write, pod)
    }

    fn update(&self, write: NodeWrite<'_>, part: Part, new: &Value, old: &Value) -> Result<()> {
        check_update(write, part.subresource(), new, old)
    }

    fn delete(&self, write: NodeWrite<'_>, pod: &Stored) -> Result<()> {
        if is_bound_to(write, pod) {
            return Ok(());
        }
        write.refuse(&format!(
            "node {:?} can only delete pods with spec.nodeName set to itself",
            write.node
        ))
    }
}

fn check_create(api: &Api, write: NodeWrite<'_>, pod: &Value) -> Result<()> {
    let node = write.node;
    if !map(pod, "metadata.annotations").contains_key(MIRROR_ANNOTATION) {
        return write.refuse(&format!(
            "pod does not have {MIRROR_ANNOTATION:?} annotation, node {node:?} can only create mirror pods"
        ));
    }
    if text(pod, "spec.nodeName") != node {
        return write.refuse(&format!(
            "node {node:?} can only create pods with spec.nodeName set to itself"
        ));
    }
    check_owner(api, write, pod)?;
    match referenced(pod) {
        Some(what) => write.refuse(&format!(
            "node {node:?} can not create pods that reference {what}"
        )),
        None => Ok(()),
    }
}

/// A mirror pod is owned by its node, so that the garbage collector deletes it with the node.
fn check_owner(api: &Api, write: NodeWrite<'_>, pod: &Value) -> Result<()> {
    let node = write.node;
    let [owner] = list(pod, "metadata.ownerReferences") else {
        let how_many = list(pod, "metadata.ownerReferences").len();
        let what = if how_many > 1 { "a single" } else { "an" };
        return write.refuse(&format!(
            "node {node:?} can only create pods with {what} owner reference set to itself"
        ));
    };
    let named = ["apiVersion", "kind", "name"].map(|field| text(owner, field));
    if named != ["v1", "Node", node] {
        return write.refuse(&format!(
            "node {node:?} can only create pods with an owner reference set to itself"
        ));
    }
    if !flag(owner, "controller") {
        return write.refuse(&format!(
            "node {node:?} can only create pods with a controller owner reference set to itself"
        ));
    }
    if flag(owner, "blockOwnerDeletion") {
        return write.refuse(&format!(
            "node {node:?} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let row = registry::core("nodes");
    let actual = api.stored(row, None, node)?;
    let (given, actual) = (text(owner, "uid"), &actual.head.uid);
    if *given == **actual {
        return Ok(());
    }
    write.refuse(&format!(
        "node {node} UID mismatch: expected {given} got {actual}"
    ))
}

/// The plural of the first other object that the pod references, if any.
fn referenced(pod: &Value) -> Option<&'static str> {
    let (mut secrets, mut maps, mut account) = (false, false, false);
    let references = PodReferences::deserialize(pod).unwrap_or_default();
    references.for_each(&mut |kind, _| match kind {
        ReferencedKind::ServiceAccount => account = true,
        ReferencedKind::Secret => secrets = true,
        ReferencedKind::ConfigMap => maps = true,
        ReferencedKind::PersistentVolumeClaim => {}
    });
    let first = [
        (account, "serviceaccounts"),
        (secrets, "secrets"),
        (maps, "configmaps"),
        (
            !list(pod, "spec.resourceClaims").is_empty(),
            "resourceclaims",
        ),
    ];
    if let Some((_, what)) = first.into_iter().find(|(there, _)| *there) {
        return Some(what);
    }
    let volumes = list(pod, "spec.volumes").iter();
    volumes.into_iter().find_map(|volume| {
        let sources = list(volume, "projected.sources").iter();
        let mut sources = sources.map(|source| (source, &PROJECTED[..]));
        let itself = known(volume, &VOLUMES);
        itself.or_else(|| sources.find_map(|(source, table)| known(source, table)))
    })
}

fn known(tree: &Value, table: &[(&str, &'static str)]) -> Option<&'static str> {
    let row = table.iter().find(|(field, _)| has(tree, field));
    row.map(|(_, what)| *what)
}

fn check_update(write: NodeWrite<'_>, subresource: &str, new: &Value, old: &Value) -> Result<()> {
    let node = write.node;
    match subresource {
        "status" => {}
        "" => {
            return write.refuse(&format!(
                "unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"
            ));
        }
        other => {
            return write.refuse(&format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            ));
        }
    }
    if text(old, "spec.nodeName") != node {
        return write.refuse(&format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    let changes = |field: &str| !same(at(new, field), at(old, field));
    for (field, what) in [
        ("metadata.labels", "cannot update labels through pod status"),
        (
            "status.resourceClaimStatuses",
            "cannot update resource claim statues",
        ),
        (
            "status.extendedResourceClaimStatus",
            "cannot update extended resource claim status",
        ),
    ] {
        if changes(field) {
            return write.refuse(&format!("node {node:?} {what}"));
        }
    }
    Ok(())
}

fn is_bound_to(write: NodeWrite<'_>, pod: &Stored) -> bool {
    pod.head.field(write.row, "spec.nodeName") == Some(write.node)
}

/// Checks an eviction by a node.
pub(crate) fn check_eviction(
    user: &User,
    row: &'static registry::Resource,
    pod: &Stored,
) -> Result<()> {
    let head = &pod.head;
    let Some(write) = node_write(user, row, Some(&head.namespace), &head.name)? else {
        return Ok(());
    };
    if is_bound_to(write, pod) {
        return Ok(());
    }
    write.refuse(&format!(
        "node {} can only evict pods with spec.nodeName set to itself",
        write.node
    ))
}
