//! The strategy of Endpoints.

use serde_json::Value;

use super::Strategy;
use super::check::{PROTOCOLS, choice, each, given_form, label_name, optional_form, required_form};
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{at, default_to, has, list, list_mut, number, same, text};

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

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        for (subset, path) in each(object, &Path::default(), "subsets") {
            check_subset(&mut errors, subset, &path);
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        if same(at(new, "subsets"), at(old, "subsets")) {
            return Errors::new();
        }
        self.validate_create(new)
    }

    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".into()]
    }
}

fn check_subset(errors: &mut Errors, subset: &Value, path: &Path) {
    if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
        errors.required(path, "must specify `addresses` or `notReadyAddresses`");
    }
    for field in ["addresses", "notReadyAddresses"] {
        for (address, path) in each(subset, path, field) {
            check_address(errors, address, &path);
        }
    }
    let name_required = list(subset, "ports").len() > 1;
    for (port, path) in each(subset, path, "ports") {
        check_port(errors, port, name_required, &path);
    }
}

fn check_address(errors: &mut Errors, address: &Value, path: &Path) {
    let before = errors.len();
    let (ip, at_ip) = (text(address, "ip"), path.child("ip"));
    errors.invalid_each(&at_ip, ip, names::ip(ip));
    optional_form(errors, address, path, "hostname", names::dns1123_label);
    check_node_name(errors, address, path);
    if errors.len() == before {
        errors.invalid_each(&at_ip, ip, names::special_ip(ip));
    }
}

/// Validates the `nodeName` of an endpoint.
pub(super) fn check_node_name(errors: &mut Errors, endpoint: &Value, path: &Path) {
    given_form(errors, endpoint, path, "nodeName", names::dns1123_subdomain);
}

fn check_port(errors: &mut Errors, port: &Value, name_required: bool, path: &Path) {
    let check_name = if name_required {
        required_form
    } else {
        optional_form
    };
    check_name(errors, port, path, "name", names::dns1123_label);
    check_port_number(errors, port, path);
    choice(errors, port, path, "protocol", &PROTOCOLS);
    check_app_protocol(errors, port, path);
}

/// Validates the `port` of a port.
pub(super) fn check_port_number(errors: &mut Errors, port: &Value, path: &Path) {
    let value = number(port, "port");
    errors.invalid_each(&path.child("port"), value, names::is_valid_port_num(value));
}

/// Validates the `appProtocol` of a port.
pub(super) fn check_app_protocol(errors: &mut Errors, port: &Value, path: &Path) {
    if has(port, "appProtocol") {
        label_name(errors, path, "appProtocol", text(port, "appProtocol"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
