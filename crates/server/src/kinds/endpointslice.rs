//! The strategy of EndpointSlice.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Strategy;
use super::check::{PROTOCOLS, choice, each, given_form, labels, optional_form};
use super::endpoints::{check_app_protocol, check_node_name};
use super::meta::{first_generation, immutable, next_generation};
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{default_to, list, list_mut, map, text, texts};

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

    fn validate_create(&self, object: &Value) -> Errors {
        let (mut errors, root) = (Errors::new(), Path::default());
        choice(&mut errors, object, &root, "addressType", &ADDRESS_TYPES);
        check_endpoints(&mut errors, object);
        check_ports(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        immutable(&mut errors, new, old, "addressType");
        errors
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        if text(object, "addressType") == "FQDN" {
            return vec!["addressType: FQDN endpoints are deprecated".to_owned()];
        }
        Vec::new()
    }
}

/// Whether a list has no more than `max` elements. Reports one that has.
fn fits(errors: &mut Errors, owner: &Value, path: &Path, name: &'static str, max: usize) -> bool {
    let count = list(owner, name).len();
    if count > max {
        errors.too_many(&path.child(name), count, max);
    }
    count <= max
}

fn check_endpoints(errors: &mut Errors, object: &Value) {
    let root = Path::default();
    if !fits(errors, object, &root, "endpoints", ENDPOINTS_MAX) {
        return;
    }
    let family = text(object, "addressType");
    for (endpoint, path) in each(object, &root, "endpoints") {
        check_endpoint(errors, endpoint, family, &path);
    }
}

fn check_endpoint(errors: &mut Errors, endpoint: &Value, family: &str, path: &Path) {
    let at_addresses = path.child("addresses");
    if list(endpoint, "addresses").is_empty() {
        errors.required(&at_addresses, "must contain at least 1 address");
    }
    fits(errors, endpoint, path, "addresses", ADDRESSES_MAX);
    for (i, address) in texts(endpoint, "addresses").enumerate() {
        let wrong = address_words(address, family);
        errors.invalid_each(&at_addresses.index(i), address, wrong);
    }
    check_node_name(errors, endpoint, path);
    let topology = map(endpoint, "deprecatedTopology").len();
    if topology > TOPOLOGY_LABELS_MAX {
        let path = path.child("deprecatedTopology");
        errors.too_many(&path, topology, TOPOLOGY_LABELS_MAX);
    }
    labels(errors, path, "deprecatedTopology", endpoint);
    given_form(errors, endpoint, path, "hostname", names::dns1123_label);
    check_hints(errors, endpoint, "hints.forZones", path);
    check_hints(errors, endpoint, "hints.forNodes", path);
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

/// A hint names a zone or node; no more than eight, and each once.
fn check_hints(errors: &mut Errors, endpoint: &Value, field: &'static str, path: &Path) {
    if !fits(errors, endpoint, path, field, HINTS_MAX) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (hint, path) in each(endpoint, path, field) {
        let name = text(hint, "name");
        let path = path.child("name");
        if !seen.insert(name) {
            errors.duplicate(&path, name);
        }
        let wrong = if field == "hints.forZones" {
            names::label_value(name)
        } else {
            names::dns1123_subdomain(name)
        };
        errors.invalid_each(&path, name, wrong);
    }
}

fn check_ports(errors: &mut Errors, object: &Value) {
    let root = Path::default();
    if !fits(errors, object, &root, "ports", PORTS_MAX) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (port, path) in each(object, &root, "ports") {
        optional_form(errors, port, &path, "name", names::dns1123_label);
        let name = text(port, "name");
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        choice(errors, port, &path, "protocol", &PROTOCOLS);
        check_app_protocol(errors, port, &path);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
