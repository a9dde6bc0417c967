//! The strategy of Endpoints.

use serde_json::{Value, json};

use super::Strategy;
use super::meta::{invalid_each, label_name};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{at, default_to, has, list, list_mut, number, same, text};

/// The protocols of ports, in the order upstream lists them.
pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

#[derive(Debug)]
pub struct Endpoints;

impl Strategy for Endpoints {
    fn default(&self, object: &mut Value) {
        for subset in list_mut(object, "subsets") {
            for port in list_mut(subset, "ports") {
                default_to(port, "protocol", "TCP");
            }
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("subsets");
        list(object, "subsets")
            .iter()
            .enumerate()
            .flat_map(|(i, subset)| subset_errors(subset, &path.index(i)))
            .collect()
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        if same(at(new, "subsets"), at(old, "subsets")) {
            return Vec::new();
        }
        self.validate_create(new)
    }

    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".into()]
    }
}

fn subset_errors(subset: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
        let words = "must specify `addresses` or `notReadyAddresses`";
        errors.push(FieldError::required(path, words));
    }
    for field in ["addresses", "notReadyAddresses"] {
        for (i, address) in list(subset, field).iter().enumerate() {
            errors.extend(address_errors(address, &path.child(field).index(i)));
        }
    }
    let ports = list(subset, "ports");
    for (i, port) in ports.iter().enumerate() {
        errors.extend(port_errors(
            port,
            ports.len() > 1,
            &path.child("ports").index(i),
        ));
    }
    errors
}

fn address_errors(address: &Value, path: &Path) -> Vec<FieldError> {
    let ip = text(address, "ip");
    let mut errors = invalid_each(&path.child("ip"), &json!(ip), names::ip(ip));
    let hostname = text(address, "hostname");
    if !hostname.is_empty() {
        let wrong = names::dns1123_label(hostname);
        errors.extend(invalid_each(
            &path.child("hostname"),
            &json!(hostname),
            wrong,
        ));
    }
    if has(address, "nodeName") {
        let node = text(address, "nodeName");
        let wrong = names::dns1123_subdomain(node);
        errors.extend(invalid_each(&path.child("nodeName"), &json!(node), wrong));
    }
    if errors.is_empty() {
        errors = invalid_each(&path.child("ip"), &json!(ip), names::special_ip(ip));
    }
    errors
}

fn port_errors(port: &Value, name_required: bool, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(port, "name");
    if name.is_empty() && name_required {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !name.is_empty() {
        let wrong = names::dns1123_label(name);
        errors.extend(invalid_each(&path.child("name"), &json!(name), wrong));
    }
    let value = number(port, "port");
    let wrong = names::is_valid_port_num(value);
    errors.extend(invalid_each(&path.child("port"), &json!(value), wrong));
    errors.extend(protocol_error(port, path));
    errors.extend(app_protocol_errors(port, path));
    errors
}

/// Validates the `protocol` of a port.
pub fn protocol_error(port: &Value, path: &Path) -> Option<FieldError> {
    let path = path.child("protocol");
    match text(port, "protocol") {
        "" => Some(FieldError::required(&path, "")),
        protocol if PROTOCOLS.contains(&protocol) => None,
        protocol => Some(FieldError::not_supported(
            &path,
            &json!(protocol),
            &PROTOCOLS,
        )),
    }
}

/// Validates the `appProtocol` of a port.
pub fn app_protocol_errors(port: &Value, path: &Path) -> Vec<FieldError> {
    if !has(port, "appProtocol") {
        return Vec::new();
    }
    label_name(text(port, "appProtocol"), &path.child("appProtocol"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, check_update};
    use super::*;

    fn endpoints(address: &Value, ports: &Value) -> Value {
        json!({"subsets": [{"addresses": [address], "ports": ports}]})
    }

    #[test]
    fn subsets() {
        let good = json!({"ip": "10.0.0.1", "nodeName": "n", "hostname": "h"});
        check_create(&Endpoints, &endpoints(&good, &json!([{"port": 80}])), &[]);
        check_create(
            &Endpoints,
            &json!({"subsets": [{}]}),
            &["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
        );
        check_create(
            &Endpoints,
            &endpoints(
                &json!({"ip": "127.0.0.1"}),
                &json!([{"port": 0, "protocol": "X"}, {"name": "a", "port": 80}]),
            ),
            &[
                "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the \
                 loopback range (127.0.0.0/8, ::1/128)",
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, \
                 inclusive",
                "subsets[0].ports[0].protocol: Unsupported value: \"X\": supported values: \
                 \"SCTP\", \"TCP\", \"UDP\"",
            ],
        );
        check_create(
            &Endpoints,
            &endpoints(&json!({"ip": "x"}), &json!([])),
            &[
                "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address, \
               (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        );
    }

    #[test]
    fn what_does_not_change_is_not_judged_again() {
        let bad = json!({"subsets": [{}]});
        check_update(&Endpoints, &bad, &bad, &[]);
    }
}
