//! The strategy of Node.
//!
//! Nodes register themselves with their status, so create keeps it. As upstream, errors of taints
//! have a path below `metadata`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Strategy;
use super::amount::resource_errors;
use super::meta::{invalid_each, label_name};
use super::show::{duplicate_shown, go_struct, whole_object};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree;
use crate::tree::{at, copy_from_old, default_to, has, list, map, remove, same, set, text, texts};

/// The effects a taint may have.
pub const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

#[derive(Debug)]
pub struct Node;

impl Strategy for Node {
    fn default(&self, object: &mut Value) {
        sync_pod_cidrs(object);
        if !has(object, "status.allocatable") && has(object, "status.capacity") {
            let capacity = at(object, "status.capacity").clone();
            set(object, "status.allocatable", capacity);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "status");
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = taint_errors(object);
        errors.extend(amount_errors(object));
        errors.extend(pod_cidr_errors(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = amount_errors(new);
        errors.extend(address_errors(new));
        errors.extend(assigned_once(new, old));
        errors.extend(taint_errors(new));
        if !same(&protected(new), &protected(old)) {
            let words = "node updates may only change labels, taints, or capacity";
            errors.push(FieldError::forbidden(&whole_object(), words));
        }
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        self.validate_update(new, old)
    }
}

/// `podCIDR` is the first of `podCIDRs`: defaults each from the other.
fn sync_pod_cidrs(object: &mut Value) {
    let one = text(object, "spec.podCIDR").to_owned();
    let first = texts(object, "spec.podCIDRs").next().map(str::to_owned);
    match first {
        Some(first) if one.is_empty() => default_to(object, "spec.podCIDR", first),
        Some(first) if first == one => {}
        _ if one.is_empty() => {}
        _ => set(object, "spec.podCIDRs", json!([one])),
    }
}

fn pod_cidr_errors(object: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("podCIDRs");
    let blocks: Vec<&str> = texts(object, "spec.podCIDRs").collect();
    let mut errors = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        errors.extend(invalid_each(
            &path.index(i),
            &json!(block),
            names::cidr(block),
        ));
    }
    let families: BTreeSet<bool> = blocks
        .iter()
        .filter_map(|block| names::parse_cidr(block))
        .map(|(address, _)| address.is_ipv4())
        .collect();
    if errors.is_empty() && families.len() < blocks.len() {
        let words = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(
            &path,
            at(object, "spec.podCIDRs"),
            words,
        ));
    }
    errors
}

fn amount_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["capacity", "allocatable"] {
        let path = Path::new("status").child(field);
        for (name, value) in map(object, &format!("status.{field}")) {
            errors.extend(resource_errors(name, value, &path.child(name.clone())));
        }
    }
    errors
}

fn address_errors(object: &Value) -> Vec<FieldError> {
    let path = Path::new("status").child("addresses");
    let addresses = list(object, "status.addresses");
    let mut errors = Vec::new();
    for (i, address) in addresses.iter().enumerate() {
        if addresses[..i].contains(address) {
            let shown = go_struct(&[
                ("Type", at(address, "type")),
                ("Address", at(address, "address")),
            ]);
            errors.push(duplicate_shown(&path.index(i), &shown, ""));
        }
    }
    errors
}

/// `podCIDRs` and `providerID` can be set once.
fn assigned_once(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = Path::new("spec");
    let blocks: Vec<&str> = texts(old, "spec.podCIDRs").collect();
    if !blocks.is_empty() && !blocks.iter().copied().eq(texts(new, "spec.podCIDRs")) {
        let words = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&spec.child("podCIDRs"), words));
    }
    let id = text(old, "spec.providerID");
    if !id.is_empty() && id != text(new, "spec.providerID") {
        let words = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&spec.child("providerID"), words));
    }
    errors
}

/// The spec without its mutable fields.
fn protected(object: &Value) -> Value {
    let mut spec = at(object, "spec").clone();
    for field in [
        "podCIDR",
        "podCIDRs",
        "providerID",
        "taints",
        "unschedulable",
    ] {
        remove(&mut spec, field);
    }
    spec
}

fn taint_errors(object: &Value) -> Vec<FieldError> {
    let path = Path::new("metadata").child("taints");
    let taints = list(object, "spec.taints");
    let mut errors = Vec::new();
    for (i, taint) in taints.iter().enumerate() {
        let path = path.index(i);
        let value = text(taint, "value");
        errors.extend(label_name(text(taint, "key"), &path.child("key")));
        let wrong = names::label_value(value).join(";");
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(
                &path.child("value"),
                &json!(value),
                &wrong,
            ));
        }
        errors.extend(effect_error(text(taint, "effect"), &path.child("effect")));
        let twin = |other: &Value| {
            text(other, "key") == text(taint, "key")
                && text(other, "effect") == text(taint, "effect")
        };
        if taints[..i].iter().any(twin) {
            let words = "taints must be unique by key and effect pair";
            errors.push(duplicate_shown(&path, &shown_taint(taint), words));
        }
    }
    errors
}

fn effect_error(effect: &str, path: &Path) -> Option<FieldError> {
    if effect.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    (!TAINT_EFFECTS.contains(&effect))
        .then(|| FieldError::not_supported(path, &json!(effect), &TAINT_EFFECTS))
}

fn shown_taint(taint: &Value) -> String {
    let field = |name: &str| json!(tree::text(taint, name));
    go_struct(&[
        ("Key", &field("key")),
        ("Value", &field("value")),
        ("Effect", &field("effect")),
        ("TimeAdded", at(taint, "timeAdded")),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_create, check_update, created};
    use super::*;

    #[test]
    fn a_new_node_keeps_its_status() {
        let node =
            json!({"spec": {"podCIDR": "10.0.0.0/24"}, "status": {"capacity": {"cpu": "1"}}});
        assert_eq!(
            created(&Node, &node),
            json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
                "status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}})
        );
        let node = created(&Node, &json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}}));
        assert_eq!(node["spec"]["podCIDR"], "10.0.0.0/24");
    }

    #[test]
    fn taints() {
        let node = |taints: Value| json!({"spec": {"taints": taints}});
        check_create(
            &Node,
            &node(json!([
                {"key": "a", "value": "b", "effect": "NoSchedule"},
                {"key": "a", "value": "b", "effect": "NoExecute"},
            ])),
            &[],
        );
        check_create(
            &Node,
            &node(json!([{"key": "a", "effect": "Never"}, {"key": "a"}])),
            &[
                "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \
                 \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                "metadata.taints[1].effect: Required value",
            ],
        );
        check_update(
            &Node,
            &node(json!([
                {"key": "a", "value": "b", "effect": "NoSchedule"},
                {"key": "a", "value": "c", "effect": "NoSchedule"},
            ])),
            &json!({}),
            &[
                "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"c\",\"Effect\":\
               \"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair",
            ],
        );
    }

    #[test]
    fn what_is_assigned_stays() {
        let old = json!({"spec": {"podCIDR": "10.0.0.0/24", "providerID": "a"}});
        check_update(&Node, &old, &json!({"spec": {}}), &[]);
        check_update(
            &Node,
            &json!({"spec": {"podCIDR": "10.0.1.0/24", "providerID": "b", "unschedulable": true}}),
            &old,
            &[
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" \
                 to valid",
                "spec.providerID: Forbidden: node updates may not change providerID except from \
                 \"\" to valid",
            ],
        );
        check_update(
            &Node,
            &json!({"spec": {"externalID": "x"}}),
            &json!({"spec": {}}),
            &["[]: Forbidden: node updates may only change labels, taints, or capacity"],
        );
    }

    #[test]
    fn blocks_and_amounts() {
        check_create(
            &Node,
            &json!({"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]},
                "status": {"capacity": {"cpu": "-1"}, "allocatable": {}}}),
            &[
                "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no \
                 more than one CIDR for each IP family",
            ],
        );
        check_create(
            &Node,
            &json!({"spec": {"podCIDR": "10.0.0.0"}}),
            &[
                "spec.podCIDRs[0]: Invalid value: \"10.0.0.0\": must be a valid CIDR value, (e.g. \
               10.9.8.0/24 or 2001:db8::/64)",
            ],
        );
    }

    #[test]
    fn a_status_write_keeps_the_spec_and_refuses_equal_addresses() {
        let old = json!({"spec": {"unschedulable": true}});
        let address = json!({"type": "InternalIP", "address": "10.0.0.1"});
        let mut new = json!({"spec": {}, "status": {"addresses": [address, address]}});
        Node.prepare_status_update(&mut new, &old);
        assert_eq!(new["spec"], old["spec"]);
        check(
            &Node.validate_status_update(&new, &old),
            &["status.addresses[1]: Duplicate value: \
               {\"Type\":\"InternalIP\",\"Address\":\"10.0.0.1\"}"],
        );
    }
}
