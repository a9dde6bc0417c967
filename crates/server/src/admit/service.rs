//! Cluster IPs and node ports: unique over all services, handed out here.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::api::Api;
use crate::field::{FieldError, Path};
use crate::object;
use crate::registry::{self, Resource};
use crate::status::{ApiError, Result};

/// The range of node ports, as upstream has it.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: u32,
    prefix: u8,
}

impl std::str::FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an IPv4 range such as 10.96.0.0/16");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        // Room for the API's own address and some more; and no more than a private range has.
        if !(8..=28).contains(&prefix) {
            return Err(wrong());
        }
        let network = u32::from(address) & (u32::MAX << (32 - prefix));
        Ok(Self { network, prefix })
    }
}

impl Cidr {
    fn size(self) -> u32 {
        1 << (32 - self.prefix)
    }

    /// The first usable address: that of the API itself.
    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1)
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network);
        offset > 0 && offset < self.size() - 1
    }

    /// The first free address from a place that the service's name decides.
    fn free(self, used: &BTreeSet<Ipv4Addr>, seed: &str) -> Option<Ipv4Addr> {
        let usable = self.size() - 2;
        let start = hash(seed) % usable;
        (0..usable)
            .map(|step| Ipv4Addr::from(self.network + 1 + (start + step) % usable))
            .find(|address| !used.contains(address) && *address != self.first())
    }
}

/// FNV-1a: the same service gets the same address again, where that is free.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |h, b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    })
}

/// What other services hold.
#[derive(Default)]
struct Used {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<u16>,
}

fn used(api: &Api, row: &Resource, except_uid: &str) -> Used {
    let mut used = Used::default();
    for stored in api
        .store
        .range(&object::prefix(row, None), None, None)
        .records
    {
        if &*stored.head.uid == except_uid {
            continue;
        }
        let address: Option<Ipv4Addr> = stored
            .head
            .field(row, "spec.clusterIP")
            .and_then(|a| a.parse().ok());
        used.addresses.extend(address);
        // Only these types have node ports worth a look at the bytes.
        if matches!(
            stored.head.field(row, "spec.type"),
            Some("NodePort" | "LoadBalancer")
        ) {
            let service: Value = serde_json::from_slice(&stored.value).unwrap_or_default();
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            let ports = ports.filter_map(|p| p["nodePort"].as_u64());
            used.ports
                .extend(ports.filter_map(|p| u16::try_from(p).ok()));
        }
    }
    used
}

/// Gives a service its cluster IP and node ports, or says why it cannot have those it asks for.
pub(super) fn allocate(
    api: &Api,
    row: &'static Resource,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<()> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let kind = text(&service["spec"]["type"]);
    let name = text(&service["metadata"]["name"]);
    if kind == "ExternalName" {
        return Ok(());
    }
    keep_old(service, old);
    let used = used(
        api,
        row,
        service["metadata"]["uid"].as_str().unwrap_or_default(),
    );
    let mut errors = Vec::new();
    address(api, service, &used, &name, &mut errors);
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        node_ports(service, used.ports, &mut errors);
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(registry::stored_row(row), &name, &errors))
}

/// An update that leaves the address out keeps the old one.
fn keep_old(service: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    let was_external = old["spec"]["type"] == "ExternalName";
    if !was_external
        && service["spec"]["clusterIP"]
            .as_str()
            .unwrap_or_default()
            .is_empty()
    {
        for field in ["clusterIP", "clusterIPs"] {
            if !old["spec"][field].is_null() {
                service["spec"][field] = old["spec"][field].clone();
            }
        }
    }
}

fn address(api: &Api, service: &mut Value, used: &Used, name: &str, errors: &mut Vec<FieldError>) {
    let cidr = api.settings.service_cidr;
    let given = service["spec"]["clusterIP"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let path = Path::new("spec");
    let path = path.child("clusterIPs");
    if given == "None" {
        service["spec"]["clusterIPs"] = json!(["None"]);
        return;
    }
    let chosen = if given.is_empty() {
        let namespace = service["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default();
        match cidr.free(&used.addresses, &format!("{namespace}/{name}")) {
            Some(address) => address,
            None => {
                let words = "failed to allocate IP: range is full";
                return errors.push(FieldError::invalid(&path, &json!([]), words));
            }
        }
    } else {
        // Validation has its own words for what is no address.
        let Ok(address) = given.parse::<Ipv4Addr>() else {
            return;
        };
        let held = service["metadata"]["name"] == "kubernetes" && address == cidr.first();
        if !cidr.contains(address) && !held {
            let words = format!(
                "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of valid IPs is {}/{}",
                Ipv4Addr::from(cidr.network),
                cidr.prefix
            );
            return errors.push(FieldError::invalid(&path, &json!([given]), &words));
        }
        if used.addresses.contains(&address) {
            let words =
                format!("failed to allocate IP {address}: provided IP is already allocated");
            return errors.push(FieldError::invalid(&path, &json!([given]), &words));
        }
        address
    };
    service["spec"]["clusterIP"] = chosen.to_string().into();
    service["spec"]["clusterIPs"] = json!([chosen.to_string()]);
}

fn node_ports(service: &mut Value, mut used: BTreeSet<u16>, errors: &mut Vec<FieldError>) {
    let spec_path = Path::new("spec");
    let ports_path = spec_path.child("ports");
    for (index, port) in service["spec"]["ports"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let item = ports_path.index(index);
        let path = item.child("nodePort");
        let given = port["nodePort"].as_u64().unwrap_or(0);
        if given == 0 {
            match NODE_PORTS.clone().find(|p| !used.contains(p)) {
                Some(free) => {
                    used.insert(free);
                    port["nodePort"] = free.into();
                }
                None => errors.push(FieldError::invalid(
                    &path,
                    &json!(0),
                    "provided port range is full",
                )),
            }
            continue;
        }
        let words = match u16::try_from(given) {
            Ok(wanted) if NODE_PORTS.contains(&wanted) => {
                if used.insert(wanted) {
                    continue;
                }
                "provided port is already allocated".to_owned()
            }
            _ => "provided port is not in the valid range. The range of valid ports is 30000-32767"
                .to_owned(),
        };
        errors.push(FieldError::invalid(&path, &json!(given), &words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_bounded() {
        let cidr: Cidr = "10.96.7.7/16".parse().unwrap();
        assert_eq!(cidr.first(), Ipv4Addr::new(10, 96, 0, 1));
        for wrong in [
            "10.96.0.0",
            "10.96.0.0/33",
            "10.96.0.0/4",
            "x/16",
            "fd00::/64",
        ] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_address_is_handed_out_once_and_the_first_never() {
        let cidr: Cidr = "10.0.0.0/28".parse().unwrap();
        let mut used = BTreeSet::new();
        while let Some(address) = cidr.free(&used, &format!("default/{}", used.len())) {
            assert!(cidr.contains(address) && address != cidr.first());
            assert!(used.insert(address));
        }
        assert_eq!(used.len(), 13);
    }
}
