//! The rules for nodes that need only the request, in upstream's words.

use kennel_types::Verb;

use super::{LEASES, Refusal, ResourceAttributes, refuse};

/// What every node may do with objects that belong to no node.
const ANY_NODE: [(&str, &str, &[Verb<'static>]); 7] = [
    // The kubelet API authenticates and authorises its clients with these.
    ("authentication.k8s.io", "tokenreviews", &[Verb::Create]),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        &[Verb::Create],
    ),
    (
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        &[Verb::Create],
    ),
    // For the service environment variables of pods.
    ("", "services", &[Verb::Get, Verb::List, Verb::Watch]),
    ("", "events", &[Verb::Create, Verb::Update, Verb::Patch]),
    (
        "storage.k8s.io",
        "csidrivers",
        &[Verb::Get, Verb::List, Verb::Watch],
    ),
    (
        "node.k8s.io",
        "runtimeclasses",
        &[Verb::Get, Verb::List, Verb::Watch],
    ),
];

pub(super) fn any_node(asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
    let allows = |(group, resource, verbs): &(&str, &str, &[Verb<'_>])| {
        *group == asked.group && *resource == asked.resource && verbs.contains(&asked.verb)
    };
    if asked.subresource.is_empty() && ANY_NODE.iter().any(allows) {
        return Ok(());
    }
    Err(Refusal::SILENT)
}

/// Only reads of single objects.
pub(super) fn one_by_one(asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
    if asked.verb != Verb::Get {
        return refuse("can only get individual resources of this type");
    }
    if !asked.subresource.is_empty() {
        return refuse("cannot get subresource");
    }
    Ok(())
}

/// Reads of objects that must be related to the node.
pub(super) fn relation(
    node: &str,
    asked: &ResourceAttributes<'_>,
    related: bool,
) -> Result<(), Refusal> {
    if asked.name.is_empty() {
        return refuse("No Object name found");
    }
    if related {
        return Ok(());
    }
    refuse(format!(
        "no relationship found between node '{node}' and this object"
    ))
}

/// A node may read and write its own Node object. Admission checks the name in the body.
pub(super) fn own_node(node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
    match (asked.verb, asked.subresource) {
        (Verb::Create | Verb::Update | Verb::Patch, "")
        | (Verb::Update | Verb::Patch, "status") => Ok(()),
        (Verb::Get | Verb::List | Verb::Watch, "") => match asked.name {
            name if name == node => Ok(()),
            "" => refuse(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            other => refuse(format!(
                "node '{node}' cannot read '{other}', only its own Node object"
            )),
        },
        _ => Err(Refusal::SILENT),
    }
}

/// Access to the one object that has the node's name.
fn own_object(node: &str, asked: &ResourceAttributes<'_>, what: &str) -> Result<(), Refusal> {
    if !matches!(
        asked.verb,
        Verb::Get | Verb::Create | Verb::Update | Verb::Patch | Verb::Delete
    ) {
        return refuse(format!(
            "can only get, create, update, patch, or delete a {what}"
        ));
    }
    // A create has the name in its body; admission checks it.
    if asked.verb != Verb::Create && asked.name != node {
        return refuse(format!(
            "can only access {what} with the same name as the requesting node"
        ));
    }
    Ok(())
}

pub(super) fn lease(node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
    if asked.namespace != LEASES {
        return refuse(format!(
            "can only access leases in the \"{LEASES}\" system namespace"
        ));
    }
    own_object(node, asked, "node lease")
}

pub(super) fn csi_node(node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
    if !asked.subresource.is_empty() {
        return refuse("cannot authorize CSINode subresources");
    }
    own_object(node, asked, "CSINode")
}

/// Resource slices. None are served; a kubelet must be able to find that out.
pub(super) fn slices(node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
    let narrowed = asked.fields.and_then(|f| f.required("spec.nodeName"));
    match asked.verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection if narrowed == Some(node) => Ok(()),
        _ => refuse(
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
    }
}
