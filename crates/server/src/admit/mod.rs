//! Admission: what depends on other objects. It fills in what a cluster decides for its users
//! (priorities, tolerations, service accounts, cluster IPs, new nodes' taints) and refuses what the rest of the
//! cluster does not allow. It reads the store and never writes it.

mod escalation;
mod namespace;
mod node;
pub(crate) mod noderestriction;
pub mod pod;
mod priority;
pub mod service;
pub(crate) mod signing;

use serde_json::Value;
use tokio::sync::MutexGuard;

use crate::api::Api;
use crate::kinds;
use crate::object::Stored;
use crate::registry::Resource;
use crate::request::User;
use crate::status::Result;

/// Writes that must come one after the other (cluster IPs are unique) hold this meanwhile.
pub(crate) async fn hold<'a>(api: &'a Api, row: &Resource) -> Option<MutexGuard<'a, ()>> {
    if row.kind == "Service" {
        Some(api.services.lock().await)
    } else {
        None
    }
}

/// Admits a new object, before it is validated.
pub(crate) fn create(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    tree: &mut Value,
) -> Result<()> {
    if let Some(namespace) = namespace {
        namespace::check_open(api, row, namespace, tree)?;
    }
    noderestriction::create(api, user, row, namespace, tree)?;
    match row.kind {
        "Pod" => pod::admit(api, row, namespace.unwrap_or_default(), tree),
        "Node" => {
            node::admit(tree);
            Ok(())
        }
        "PriorityClass" => priority::check_one_default(api, row, tree),
        "CertificateSigningRequest" => {
            kinds::csr::stamp_requester(tree, user);
            signing::ask(row, tree)
        }
        _ if row.group == kinds::rbac::GROUP => escalation::check(api, user, row, tree, None),
        _ => Ok(()),
    }
}

/// Adds to a list, which is made when there is none.
fn append(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = vec![item].into(),
    }
}

/// Admits a new version of an object, before it is validated.
pub(crate) fn update(
    api: &Api,
    user: &User,
    row: &'static Resource,
    new: &Value,
    old: &Value,
) -> Result<()> {
    match row.kind {
        "PriorityClass" => priority::check_one_default(api, row, new),
        _ if row.group == kinds::rbac::GROUP => escalation::check(api, user, row, new, Some(old)),
        _ => Ok(()),
    }
}

/// Gives a valid object what only one object may have. `old` is absent on create.
pub(crate) fn allocate(
    api: &Api,
    row: &'static Resource,
    tree: &mut Value,
    old: Option<&Value>,
) -> Result<()> {
    match row.kind {
        "Service" => service::allocate(api, row, tree, old),
        _ => Ok(()),
    }
}

/// Admits a deletion.
pub(crate) fn delete(user: &User, row: &'static Resource, stored: &Stored) -> Result<()> {
    noderestriction::delete(user, row, stored)?;
    if row.kind == "Namespace" {
        namespace::check_deletable(row, &stored.head.name)
    } else {
        Ok(())
    }
}
