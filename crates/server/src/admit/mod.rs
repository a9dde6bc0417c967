//! Admission: the rules that need more than the object itself, such as other objects or the user. It
//! fills in what the cluster decides for its users (priorities, tolerations, service accounts, cluster
//! IPs, taints of new nodes) and refuses what the rest of the cluster does not allow. Admission reads the
//! store and never writes it.
//!
//! Each registry row names the [`Admission`] of its resource.

pub(crate) mod escalation;
pub(crate) mod limit_range;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod node_restriction;
pub mod pod;
pub mod pod_security;
pub(crate) mod priority;
pub(crate) mod quota;
pub mod service;
pub(crate) mod signing;

use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::api::Api;
use crate::audit_annotations::Annotations;
use crate::object::{self, Stored};
use crate::registry::{self, Part, Resource};
use crate::request::User;
use crate::service_allocations::Allocations;
use crate::status::{ApiError, Result};

/// A write that asks for admission.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) api: &'a Api,
    pub(crate) user: &'a User,
    pub(crate) row: &'static Resource,
    pub(crate) namespace: Option<&'a str>,
}

/// What the response and the audit log say about an accepted write.
#[derive(Default)]
pub(crate) struct Notes {
    /// The texts of `Warning` headers.
    pub(crate) warnings: Vec<String>,
    pub(crate) audit: Annotations,
}

impl From<Vec<String>> for Notes {
    fn from(warnings: Vec<String>) -> Self {
        Self {
            warnings,
            ..Self::default()
        }
    }
}

/// The admission of one resource. The defaults admit everything.
pub(crate) trait Admission: Sync {
    /// The lock that serialises writes of this resource, where each depends on what the others allocated.
    fn lock<'a>(&self, _api: &'a Api) -> Option<&'a Mutex<()>> {
        None
    }

    /// Where the writes of this resource note what they allocate.
    fn allocations<'a>(&self, _api: &'a Api) -> Option<&'a Allocations> {
        None
    }

    /// Completes and checks a new object, before it is validated.
    fn create(&self, _write: Write<'_>, _object: &mut Value) -> Result<()> {
        Ok(())
    }

    /// Completes and checks a new version of an object, before it is validated. Not called for subresources.
    fn update(&self, _write: Write<'_>, _new: &mut Value, _old: &Value) -> Result<()> {
        Ok(())
    }

    /// Checks a valid object, or a valid new version of one of its parts. `old` is absent on create.
    fn validate(
        &self,
        _: Write<'_>,
        _: Part,
        _new: &Value,
        _old: Option<&Value>,
        _: &mut Notes,
    ) -> Result<()> {
        Ok(())
    }

    /// Gives a valid object values that no other object may have. `old` is absent on create.
    fn allocate(&self, _: Write<'_>, _object: &mut Value, _old: Option<&Value>) -> Result<()> {
        Ok(())
    }

    /// The user whose client certificates end when an object of this name is removed.
    fn revoked_user(&self, _name: &str) -> Option<String> {
        None
    }

    /// Checks a deletion.
    fn delete(&self, _row: &'static Resource, _stored: &Stored) -> Result<()> {
        Ok(())
    }
}

/// The admission of resources that have no rules of this sort.
pub(crate) struct NoAdmission;

impl Admission for NoAdmission {}

/// How long a write waits for others of its resource: as long as the store may take for a few of them.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Waits for the lock of the resource's writes, if it has one.
pub(crate) async fn lock<'a>(api: &'a Api, row: &Resource) -> Result<Option<MutexGuard<'a, ()>>> {
    let Some(mutex) = row.admission.lock(api) else {
        return Ok(None);
    };
    let locked = tokio::time::timeout(LOCK_WAIT, mutex.lock()).await;
    let late = |_| {
        let plural = row.plural;
        ApiError::unavailable(format!(
            "earlier writes of {plural} take too long; try again"
        ))
    };
    locked.map(Some).map_err(late)
}

/// Admits a new object, before it is validated.
pub(crate) fn create(write: Write<'_>, object: &mut Value) -> Result<()> {
    if let Some(namespace) = write.namespace {
        namespace::check_open(write.api, write.row, namespace, object)?;
    }
    node_restriction::create(write, object)?;
    write.row.admission.create(write, object)
}

/// Admits a deletion.
pub(crate) fn delete(user: &User, row: &'static Resource, stored: &Stored) -> Result<()> {
    node_restriction::delete(user, row, stored)?;
    row.admission.delete(row, stored)
}

/// A stored object, if it is there.
fn lookup(
    api: &Api,
    group: &str,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Stored> {
    let row = registry::served(group, plural);
    api.store.get(&object::key(row, namespace, name))
}

fn read(stored: &Stored) -> Value {
    serde_json::from_slice(&stored.value).unwrap_or_default()
}

/// Appends to a list, which is created if it is absent.
fn append(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = vec![item].into(),
    }
}
