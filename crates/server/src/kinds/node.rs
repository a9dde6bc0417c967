//! The strategy of Node.
//!
//! Nodes register themselves with their status, so create keeps it. As upstream, errors of taints
//! have a path below `metadata`.

use std::collections::BTreeSet;

use kennel_types::TaintEffect;
use serde_json::{Value, json};

use super::Strategy;
use super::amount::check_amount;
use super::check::{choice, form_each, label_name};
use super::show::{go_struct, whole_object};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::names;
use crate::tree;
use crate::tree::{at, copy_from_old, default_to, has, list, map, remove, same, set, text, texts};

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

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        check_taints(&mut errors, object);
        check_amounts(&mut errors, object);
        check_pod_cidrs(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        check_amounts(&mut errors, new);
        check_addresses(&mut errors, new);
        check_assigned_once(&mut errors, new, old);
        check_taints(&mut errors, new);
        if !same(&protected(new), &protected(old)) {
            let words = "node updates may only change labels, taints, or capacity";
            errors.forbidden(&whole_object(), words);
        }
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Errors {
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

fn check_pod_cidrs(errors: &mut Errors, object: &Value) {
    let before = errors.len();
    form_each(
        errors,
        object,
        &Path::default(),
        "spec.podCIDRs",
        names::cidr,
    );
    let blocks: Vec<&str> = texts(object, "spec.podCIDRs").collect();
    let families: BTreeSet<bool> = blocks
        .iter()
        .filter_map(|block| names::parse_cidr(block))
        .map(|(address, _)| address.is_ipv4())
        .collect();
    if errors.len() == before && families.len() < blocks.len() {
        let words = "may specify no more than one CIDR for each IP family";
        errors.invalid(&Path::new("spec.podCIDRs"), blocks, words);
    }
}

fn check_amounts(errors: &mut Errors, object: &Value) {
    for field in ["status.capacity", "status.allocatable"] {
        let path = Path::new(field);
        for (name, value) in map(object, field) {
            check_amount(errors, name, value, &path.child(name.clone()));
        }
    }
}

fn check_addresses(errors: &mut Errors, object: &Value) {
    let addresses = list(object, "status.addresses");
    for (i, address) in addresses.iter().enumerate() {
        if addresses[..i].contains(address) {
            let shown = go_struct(&[
                ("Type", at(address, "type")),
                ("Address", at(address, "address")),
            ]);
            let path = Path::new("status.addresses").index(i);
            errors.push(FieldError::duplicate_shown(&path, shown, ""));
        }
    }
}

/// `podCIDRs` and `providerID` can be set once.
fn check_assigned_once(errors: &mut Errors, new: &Value, old: &Value) {
    let spec = Path::new("spec");
    let blocks: Vec<&str> = texts(old, "spec.podCIDRs").collect();
    if !blocks.is_empty() && !blocks.iter().copied().eq(texts(new, "spec.podCIDRs")) {
        let words = "node updates may not change podCIDR except from \"\" to valid";
        errors.forbidden(&spec.child("podCIDRs"), words);
    }
    let id = text(old, "spec.providerID");
    if !id.is_empty() && id != text(new, "spec.providerID") {
        let words = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden(&spec.child("providerID"), words);
    }
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

fn check_taints(errors: &mut Errors, object: &Value) {
    let path = Path::new("metadata.taints");
    let taints = list(object, "spec.taints");
    for (i, taint) in taints.iter().enumerate() {
        let path = path.index(i);
        let (key, value) = (text(taint, "key"), text(taint, "value"));
        label_name(errors, &path, "key", key);
        let wrong = names::label_value(value).join(";");
        if !wrong.is_empty() {
            errors.invalid(&path.child("value"), value, &wrong);
        }
        choice(errors, taint, &path, "effect", &TaintEffect::NAMES);
        let twin = |other: &Value| {
            text(other, "key") == key && text(other, "effect") == text(taint, "effect")
        };
        if taints[..i].iter().any(twin) {
            let words = "taints must be unique by key and effect pair";
            errors.push(FieldError::duplicate_shown(
                &path,
                shown_taint(taint),
                words,
            ));
        }
    }
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
