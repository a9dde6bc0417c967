//! The `NodeRestriction` admission plugin: a node may write its own `Node`, `Lease` and `CSINode`, the pods
//! bound to it, mirror pods of its own, and tokens for its pods. The refusals have upstream's wording.
//!
//! Authorisation admits requests without reading their bodies; this plugin checks the bodies. It is stricter
//! than upstream in one respect: a node may write only events that name it as their source.

mod labels;
mod node;
mod pod;
mod request;

use serde_json::Value;

pub(crate) use self::node::NodeRule;
pub(crate) use self::pod::{PodRule, check_eviction};
pub(crate) use self::request::{SigningRule, check_token};

use super::Write;
use crate::api::Api;
use crate::authorize::node::{LEASES, node_of};
use crate::object::Stored;
use crate::registry::{Part, Resource};
use crate::request::User;
use crate::status::{ApiError, Result};
use crate::tree::{same, text};

/// What a node may write of one resource. The defaults leave everything to authorisation.
pub(crate) trait NodeRestriction: Sync {
    /// The rule of writes that have none of their own below.
    fn write(&self, _write: NodeWrite<'_>) -> Result<()> {
        Ok(())
    }

    fn create(&self, _api: &Api, write: NodeWrite<'_>, _object: &Value) -> Result<()> {
        self.write(write)
    }

    fn update(&self, write: NodeWrite<'_>, _: Part, _new: &Value, _old: &Value) -> Result<()> {
        self.write(write)
    }

    fn delete(&self, write: NodeWrite<'_>, _stored: &Stored) -> Result<()> {
        self.write(write)
    }
}

/// The rule of resources that `NodeRestriction` does not know.
pub(crate) struct Unrestricted;

impl NodeRestriction for Unrestricted {}

/// A write by a node.
#[derive(Clone, Copy)]
pub(crate) struct NodeWrite<'a> {
    /// The node's name.
    node: &'a str,
    row: &'static Resource,
    namespace: &'a str,
    /// The name of the object.
    name: &'a str,
}

impl NodeWrite<'_> {
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

    /// An event names its source in one of two fields.
    fn check_event(&self, event: &Value) -> Result<()> {
        let sources = [text(event, "source.host"), text(event, "reportingInstance")];
        let others = sources.iter().any(|s| !s.is_empty() && *s != self.node);
        if sources.contains(&self.node) && !others {
            return Ok(());
        }
        self.refuse(&format!(
            "node {:?} can only write events with source.host or reportingInstance set to itself",
            self.node
        ))
    }
}

/// The node's own lease.
pub(crate) struct LeaseRule;

impl NodeRestriction for LeaseRule {
    fn write(&self, write: NodeWrite<'_>) -> Result<()> {
        if write.namespace != LEASES {
            return write.refuse(&format!(
                "can only access leases in the \"{LEASES}\" system namespace"
            ));
        }
        write.check_own("node lease")
    }
}

/// The node's own `CSINode`.
pub(crate) struct CsiNodeRule;

impl NodeRestriction for CsiNodeRule {
    fn write(&self, write: NodeWrite<'_>) -> Result<()> {
        write.check_own("CSINode")
    }
}

/// The status of claims: a node reports how large a volume has become, and nothing else.
pub(crate) struct ClaimRule;

impl NodeRestriction for ClaimRule {
    fn write(&self, write: NodeWrite<'_>) -> Result<()> {
        write.refuse("may only update PVC status")
    }

    fn update(&self, write: NodeWrite<'_>, part: Part, new: &Value, old: &Value) -> Result<()> {
        if part != Part::Status {
            return self.write(write);
        }
        if same(&without_size(new), &without_size(old)) {
            return Ok(());
        }
        write.refuse(&format!(
            "node {:?} is not allowed to update fields other than status.capacity and status.conditions",
            write.node
        ))
    }
}

/// A claim without the fields that a node may write.
fn without_size(claim: &Value) -> Value {
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
}

/// Events that name the node as their source.
pub(crate) struct EventRule;

impl NodeRestriction for EventRule {
    fn create(&self, _: &Api, write: NodeWrite<'_>, event: &Value) -> Result<()> {
        write.check_event(event)
    }

    fn update(&self, write: NodeWrite<'_>, _: Part, new: &Value, old: &Value) -> Result<()> {
        write.check_event(old).and_then(|()| write.check_event(new))
    }
}

/// The write as that of a node, if the user is one.
fn node_write<'a>(
    user: &'a User,
    row: &'static Resource,
    namespace: Option<&'a str>,
    name: &'a str,
) -> Result<Option<NodeWrite<'a>>> {
    let Some(node) = node_of(user) else {
        return Ok(None);
    };
    let write = NodeWrite {
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

/// Checks a create by a node.
pub(super) fn create(write: Write<'_>, object: &Value) -> Result<()> {
    let Write { api, row, .. } = write;
    let name = text(object, "metadata.name");
    match node_write(write.user, row, write.namespace, name)? {
        Some(write) => row.node_restriction.create(api, write, object),
        None => Ok(()),
    }
}

/// Checks an update by a node.
pub(crate) fn update(
    user: &User,
    row: &'static Resource,
    part: Part,
    new: &Value,
    old: &Value,
) -> Result<()> {
    let (namespace, name) = (text(old, "metadata.namespace"), text(old, "metadata.name"));
    match node_write(user, row, Some(namespace), name)? {
        Some(write) => row.node_restriction.update(write, part, new, old),
        None => Ok(()),
    }
}

/// Checks a deletion by a node.
pub(super) fn delete(user: &User, row: &'static Resource, stored: &Stored) -> Result<()> {
    let head = &stored.head;
    match node_write(user, row, Some(&head.namespace), &head.name)? {
        Some(write) => row.node_restriction.delete(write, stored),
        None => Ok(()),
    }
}
