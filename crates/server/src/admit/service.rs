//! Admission of services: allocates cluster IPs and node ports that no other service has.

use serde_json::Value;
use tokio::sync::Mutex;

use super::{Admission, Write};
use crate::api::Api;
use crate::kinds::service::allocate::{self, Taken};
use crate::object;
use crate::service_allocations::Allocations;
use crate::status::{ApiError, Result};

/// The admission of services.
pub(crate) struct ServiceAdmission;

impl Admission for ServiceAdmission {
    fn lock<'a>(&self, api: &'a Api) -> Option<&'a Mutex<()>> {
        Some(&api.services)
    }

    fn allocations<'a>(&self, api: &'a Api) -> Option<&'a Allocations> {
        Some(&api.allocations)
    }

    fn allocate(&self, write: Write<'_>, service: &mut Value, old: Option<&Value>) -> Result<()> {
        allocate(write, service, old)
    }
}

/// Gives a service its cluster IP and node ports, or says why it cannot have those it asks for.
///
/// Reads every service: they are few, and their bytes are in memory.
fn allocate(write: Write<'_>, service: &mut Value, old: Option<&Value>) -> Result<()> {
    let Write { api, row, .. } = write;
    let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
    let mut taken = Taken::default();
    for stored in api.all(row) {
        if &*stored.head.uid != uid {
            taken.add(&serde_json::from_slice(&stored.value).unwrap_or_default());
        }
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let own = object::key(row, write.namespace, name);
    for value in api.allocations.others(&*api.store, &own) {
        taken.add(&serde_json::from_slice(&value).unwrap_or_default());
    }
    let ranges = &api.settings.service_cidr.0;
    let errors = allocate::allocate(service, old, &taken, ranges);
    if !errors.is_empty() {
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        return Err(ApiError::invalid(row, name, &errors));
    }
    let allocated = allocate::allocate_health_check_port(service, old, &taken, ranges);
    allocated.map_err(ApiError::internal)
}
