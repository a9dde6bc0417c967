//! What nodes may write: their own `Node`, `Lease` and `CSINode`, the pods bound to them, mirror pods of
//! their own, tokens for their pods. In upstream's words.
//!
//! Authorisation has let the request pass without knowing its body; here the rest is refused. Narrower
//! than upstream in one respect: a node writes only events that say that they come from it.

mod labels;
mod node;
mod pod;
mod request;

use serde_json::Value;

pub(crate) use self::pod::check_eviction;
pub(crate) use self::request::check_token;

use crate::authorize::node::{LEASES, node_of};
use crate::kinds::tree::{same, text};
use crate::object::Stored;
use crate::registry::Resource;
use crate::request::User;
use crate::status::{ApiError, Result};

use crate::api::Api;

/// A write by a node.
#[derive(Clone, Copy)]
struct Write<'a> {
    /// The node's name.
    node: &'a str,
    row: &'static Resource,
    namespace: &'a str,
    /// The name of what is written.
    name: &'a str,
}

impl Write<'_> {
    fn refuse(&self, why: &str) -> Result<()> {
        Err(ApiError::forbidden(self.row, self.name, why))
    }

    /// `Lease` and `CSINode`: the one that has the node's name.
    fn check_own(&self, what: &str) -> Result<()> {
        if self.name == self.node {
            return Ok(());
        }
        self.refuse(&format!(
            "can only access {what} with the same name as the requesting node"
        ))
    }

    fn check_lease(&self) -> Result<()> {
        if self.namespace != LEASES {
            return self.refuse(&format!(
                "can only access leases in the \"{LEASES}\" system namespace"
            ));
        }
        self.check_own("node lease")
    }

    /// An event says where it comes from, in one of two fields.
    fn check_event(&self, event: &Value) -> Result<()> {
        let places = [text(event, "source.host"), text(event, "reportingInstance")];
        let others = places.iter().any(|p| !p.is_empty() && *p != self.node);
        if places.contains(&self.node) && !others {
            return Ok(());
        }
        self.refuse(&format!(
            "node {:?} can only write events with source.host or reportingInstance set to itself",
            self.node
        ))
    }
}

/// The node behind a write, if there is one.
fn writer<'a>(
    user: &'a User,
    row: &'static Resource,
    namespace: Option<&'a str>,
    name: &'a str,
) -> Result<Option<Write<'a>>> {
    let Some(node) = node_of(user) else {
        return Ok(None);
    };
    let write = Write {
        node,
        row,
        namespace: namespace.unwrap_or_default(),
        name,
    };
    if node.is_empty() {
        write.refuse(&format!(
            "could not determine node from user {:?}",
            user.name
        ))?;
    }
    Ok(Some(write))
}

/// Checks what a node creates.
pub(super) fn create(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    tree: &Value,
) -> Result<()> {
    let name = text(tree, "metadata.name");
    let Some(write) = writer(user, row, namespace, name)? else {
        return Ok(());
    };
    match row.kind {
        "Pod" => pod::check_create(api, write, tree),
        "Node" => node::check_create(write, tree),
        "Lease" => write.check_lease(),
        "CSINode" => write.check_own("CSINode"),
        "CertificateSigningRequest" => request::check_signing(write, tree),
        "PersistentVolumeClaim" => write.refuse("may only update PVC status"),
        "Event" => write.check_event(tree),
        _ => Ok(()),
    }
}

/// Checks what a node changes; `subresource` is empty for the object itself.
pub(crate) fn update(
    user: &User,
    row: &'static Resource,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> Result<()> {
    let (namespace, name) = (text(old, "metadata.namespace"), text(old, "metadata.name"));
    let Some(write) = writer(user, row, Some(namespace), name)? else {
        return Ok(());
    };
    match row.kind {
        "Pod" => pod::check_update(write, subresource, new, old),
        "Node" => node::check_update(write, new, old),
        "Lease" => write.check_lease(),
        "CSINode" => write.check_own("CSINode"),
        "PersistentVolumeClaim" => check_claim(write, subresource, new, old),
        "Event" => write.check_event(old).and_then(|()| write.check_event(new)),
        _ => Ok(()),
    }
}

/// Checks what a node deletes.
pub(super) fn delete(user: &User, row: &'static Resource, stored: &Stored) -> Result<()> {
    let head = &stored.head;
    let Some(write) = writer(user, row, Some(&head.namespace), &head.name)? else {
        return Ok(());
    };
    match row.kind {
        "Pod" => pod::check_delete(write, stored),
        "Node" => node::check_name(write),
        "Lease" => write.check_lease(),
        "CSINode" => write.check_own("CSINode"),
        "PersistentVolumeClaim" => write.refuse("may only update PVC status"),
        _ => Ok(()),
    }
}

/// A node tells how large a volume has become, and nothing else.
fn check_claim(write: Write<'_>, subresource: &str, new: &Value, old: &Value) -> Result<()> {
    if subresource != "status" {
        return write.refuse("may only update PVC status");
    }
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        for field in [
            "capacity",
            "conditions",
            "allocatedResources",
            "allocatedResourceStatuses",
        ] {
            claim["status"][field] = Value::Null;
        }
        claim["metadata"]["resourceVersion"] = Value::Null;
        claim["metadata"]["managedFields"] = Value::Null;
        claim
    };
    if same(&rest(new), &rest(old)) {
        return Ok(());
    }
    write.refuse(&format!(
        "node {:?} is not allowed to update fields other than status.capacity and status.conditions",
        write.node
    ))
}
