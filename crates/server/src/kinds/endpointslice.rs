//! The strategy of EndpointSlice.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Strategy;
use super::endpoints::{app_protocol_errors, protocol_error};
use super::meta::{first_generation, immutable, invalid_each, labels, next_generation};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{at, default_to, has, list, list_mut, map, text, texts};

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const TOPOLOGY_LABELS_MAX: usize = 16;
const HINTS_MAX: usize = 8;

#[derive(Debug)]
pub struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn default(&self, object: &mut Value) {
        for port in list_mut(object, "ports") {
            default_to(port, "name", "");
            default_to(port, "protocol", "TCP");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        let counted = ["addressType", "endpoints", "ports", "metadata.labels"];
        next_generation(new, old, &counted);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = address_type_error(object).into_iter().collect();
        errors.extend(endpoint_list_errors(object));
        errors.extend(port_list_errors(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let path = Path::new("addressType");
        errors.extend(immutable(new, old, "addressType", &path));
        errors
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        if text(object, "addressType") == "FQDN" {
            return vec!["addressType: FQDN endpoints are deprecated".to_owned()];
        }
        Vec::new()
    }
}

fn address_type_error(object: &Value) -> Option<FieldError> {
    let path = Path::new("addressType");
    match text(object, "addressType") {
        "" => Some(FieldError::required(&path, "")),
        known if ADDRESS_TYPES.contains(&known) => None,
        other => Some(FieldError::not_supported(
            &path,
            &json!(other),
            &ADDRESS_TYPES,
        )),
    }
}

fn endpoint_list_errors(object: &Value) -> Vec<FieldError> {
    let path = Path::new("endpoints");
    let endpoints = list(object, "endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        return vec![FieldError::too_many(&path, endpoints.len(), ENDPOINTS_MAX)];
    }
    let family = text(object, "addressType");
    endpoints
        .iter()
        .enumerate()
        .flat_map(|(i, endpoint)| endpoint_errors(endpoint, family, &path.index(i)))
        .collect()
}

fn endpoint_errors(endpoint: &Value, family: &str, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let addresses: Vec<&str> = texts(endpoint, "addresses").collect();
    let at_addresses = path.child("addresses");
    if addresses.is_empty() {
        let words = "must contain at least 1 address";
        errors.push(FieldError::required(&at_addresses, words));
    } else if addresses.len() > ADDRESSES_MAX {
        errors.push(FieldError::too_many(
            &at_addresses,
            addresses.len(),
            ADDRESSES_MAX,
        ));
    }
    for (i, address) in addresses.iter().enumerate() {
        let wrong = address_words(address, family);
        errors.extend(invalid_each(&at_addresses.index(i), &json!(address), wrong));
    }
    if has(endpoint, "nodeName") {
        let node = text(endpoint, "nodeName");
        let wrong = names::dns1123_subdomain(node);
        errors.extend(invalid_each(&path.child("nodeName"), &json!(node), wrong));
    }
    errors.extend(topology_errors(endpoint, path));
    if has(endpoint, "hostname") {
        let hostname = text(endpoint, "hostname");
        let wrong = names::dns1123_label(hostname);
        errors.extend(invalid_each(
            &path.child("hostname"),
            &json!(hostname),
            wrong,
        ));
    }
    errors.extend(hint_errors(endpoint, "forZones", &path.child("hints")));
    errors.extend(hint_errors(endpoint, "forNodes", &path.child("hints")));
    errors
}

fn address_words(address: &str, family: &str) -> Vec<String> {
    let mut wrong = match family {
        "IPv4" => names::ipv4(address),
        "IPv6" => names::ipv6(address),
        "FQDN" => return names::fully_qualified_domain_name(address),
        _ => return Vec::new(),
    };
    wrong.extend(names::special_ip(address));
    wrong
}

fn topology_errors(endpoint: &Value, path: &Path) -> Vec<FieldError> {
    let path = path.child("deprecatedTopology");
    let count = map(endpoint, "deprecatedTopology").len();
    let mut errors = Vec::new();
    if count > TOPOLOGY_LABELS_MAX {
        errors.push(FieldError::too_many(&path, count, TOPOLOGY_LABELS_MAX));
    }
    errors.extend(labels(at(endpoint, "deprecatedTopology"), &path));
    errors
}

/// A hint names a zone or node; no more than eight, and each once.
fn hint_errors(endpoint: &Value, field: &'static str, path: &Path) -> Vec<FieldError> {
    let path = path.child(field);
    let hints = list(endpoint, &format!("hints.{field}"));
    let mut errors = Vec::new();
    if hints.len() > HINTS_MAX {
        errors.push(FieldError::too_many(&path, hints.len(), HINTS_MAX));
        return errors;
    }
    let mut seen = BTreeSet::new();
    for (i, hint) in hints.iter().enumerate() {
        let name = text(hint, "name");
        let path = path.index(i).child("name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, &json!(name)));
        }
        let wrong = if field == "forZones" {
            names::label_value(name)
        } else {
            names::dns1123_subdomain(name)
        };
        errors.extend(invalid_each(&path, &json!(name), wrong));
    }
    errors
}

fn port_list_errors(object: &Value) -> Vec<FieldError> {
    let path = Path::new("ports");
    let ports = list(object, "ports");
    if ports.len() > PORTS_MAX {
        return vec![FieldError::too_many(&path, ports.len(), PORTS_MAX)];
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = text(port, "name");
        let at_name = path.child("name");
        if !name.is_empty() {
            errors.extend(invalid_each(
                &at_name,
                &json!(name),
                names::dns1123_label(name),
            ));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at_name, &json!(name)));
        }
        errors.extend(protocol_error(port, &path));
        errors.extend(app_protocol_errors(port, &path));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, check_update, created, updated};
    use super::*;

    fn slice(endpoint: &Value) -> Value {
        json!({"addressType": "IPv4", "endpoints": [endpoint]})
    }

    #[test]
    fn defaults_and_generation() {
        let old = created(
            &EndpointSlice,
            &json!({"addressType": "IPv4", "ports": [{"port": 1}]}),
        );
        assert_eq!(
            old["ports"],
            json!([{"name": "", "port": 1, "protocol": "TCP"}])
        );
        assert_eq!(old["metadata"]["generation"], 1);
        let mut new = old.clone();
        new["metadata"]["annotations"] = json!({"a": "b"});
        assert_eq!(
            updated(&EndpointSlice, &new, &old)["metadata"]["generation"],
            1
        );
        new["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(
            updated(&EndpointSlice, &new, &old)["metadata"]["generation"],
            2
        );
    }

    #[test]
    fn addresses_fit_their_type() {
        check_create(
            &EndpointSlice,
            &slice(&json!({"addresses": ["10.0.0.1"]})),
            &[],
        );
        check_create(
            &EndpointSlice,
            &slice(&json!({"addresses": []})),
            &["endpoints[0].addresses: Required value: must contain at least 1 address"],
        );
        check_create(
            &EndpointSlice,
            &slice(&json!({"addresses": ["::1"], "hostname": "A.b"})),
            &[
                "endpoints[0].addresses[0]: Invalid value: \"::1\": must be a valid IPv4 address",
                "endpoints[0].addresses[0]: Invalid value: \"::1\": may not be in the loopback \
                 range (127.0.0.0/8, ::1/128)",
                "endpoints[0].hostname: Invalid value: \"A.b\": a lowercase RFC 1123 label must \
                 consist of lower case alphanumeric characters or '-', and must start and end \
                 with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ],
        );
        check_create(
            &EndpointSlice,
            &json!({"addressType": "IP"}),
            &[
                "addressType: Unsupported value: \"IP\": supported values: \"FQDN\", \"IPv4\", \
               \"IPv6\"",
            ],
        );
    }

    #[test]
    fn limits() {
        let endpoint = json!({"addresses": ["10.0.0.1"]});
        let many = vec![endpoint; ENDPOINTS_MAX + 1];
        check_create(
            &EndpointSlice,
            &json!({"addressType": "IPv4", "endpoints": many}),
            &["endpoints: Too many: 1001: must have at most 1000 items"],
        );
        let ports = json!([{"name": "a"}, {"name": "a"}]);
        check_create(
            &EndpointSlice,
            &json!({"addressType": "IPv4", "ports": ports}),
            &["ports[1].name: Duplicate value: \"a\""],
        );
    }

    #[test]
    fn the_address_type_stays() {
        check_update(
            &EndpointSlice,
            &json!({"addressType": "IPv6"}),
            &json!({"addressType": "IPv4"}),
            &["addressType: Invalid value: \"IPv6\": field is immutable"],
        );
    }
}
