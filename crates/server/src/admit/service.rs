//! Admission of services: allocates cluster IPs and node ports that no other service has.

use std::str::FromStr;

use serde_json::Value;
use tokio::sync::Mutex;

use super::{Admission, Write};
use crate::api::Api;
use crate::kinds::service::allocate::{self, NODE_PORTS, Ranges, Taken};
use crate::registry::Resource;
use crate::status::{ApiError, Result};

/// The range that cluster IPs are allocated from.
#[derive(Clone, Debug)]
pub struct Cidr(pub(crate) Ranges);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IPv4 range such as 10.96.0.0/16")]
pub struct CidrError(String);

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let ranges = Ranges::new(text, NODE_PORTS);
        ranges.map(Self).ok_or_else(|| CidrError(text.to_owned()))
    }
}

/// The admission of services.
pub(crate) struct ServiceAdmission;

impl Admission for ServiceAdmission {
    fn lock<'a>(&self, api: &'a Api) -> Option<&'a Mutex<()>> {
        Some(&api.services)
    }

    fn allocate(&self, write: Write<'_>, service: &mut Value, old: Option<&Value>) -> Result<()> {
        allocate(write.api, write.row, service, old)
    }
}

/// Gives a service its cluster IP and node ports, or says why it cannot have those it asks for.
///
/// Reads every service: they are few, and their bytes are in memory.
fn allocate(api: &Api, row: &Resource, service: &mut Value, old: Option<&Value>) -> Result<()> {
    let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
    let mut taken = Taken::default();
    for stored in api.all(row) {
        if &*stored.head.uid != uid {
            taken.add(&serde_json::from_slice(&stored.value).unwrap_or_default());
        }
    }
    let errors = allocate::allocate(service, old, &taken, &api.settings.service_cidr.0);
    if errors.is_empty() {
        return Ok(());
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    Err(ApiError::invalid(row, name, &errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_the_command_line() {
        assert_eq!(
            "10.96.7.7/16"
                .parse::<Cidr>()
                .unwrap()
                .0
                .first()
                .to_string(),
            "10.96.0.1"
        );
        for wrong in ["10.96.0.0", "10.96.0.0/33", "x/16", "fd00::/64"] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }
}
