//! Validates node affinity, pod affinity and pod anti-affinity.

use serde_json::Value;

use super::ratcheting::Ratcheting;
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{each, form, form_each, label_name};
use crate::kinds::selector;
use crate::names;
use crate::tree::{at, has, list, list_mut, map, number, text, texts};

pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks `spec.affinity`.
pub(super) fn all(errors: &mut Errors, spec: &Value, at: &Path, ratcheting: Ratcheting) {
    let Some(affinity) = spec.get("affinity") else {
        return;
    };
    let at = at.child("affinity");
    if let Some(node) = affinity.get("nodeAffinity") {
        node_affinity(errors, node, &at.child("nodeAffinity"), ratcheting);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        if let Some(pod) = affinity.get(name) {
            pod_affinity(errors, pod, &at.child(name), ratcheting.selector_values);
        }
    }
}

fn node_affinity(errors: &mut Errors, affinity: &Value, at: &Path, ratcheting: Ratcheting) {
    if let Some(required) = affinity.get(REQUIRED) {
        let at = at.child(REQUIRED);
        node_selector(errors, required, &at, ratcheting.node_affinity_values);
    }
    for (term, at) in each(affinity, at, PREFERRED) {
        weight(errors, term, &at);
        if let Some(preference) = term.get("preference") {
            node_term(errors, preference, &at.child("preference"), true);
        }
    }
}

/// Checks a node selector: terms of which one must match.
pub(crate) fn node_selector(errors: &mut Errors, selector: &Value, at: &Path, any_values: bool) {
    if list(selector, "nodeSelectorTerms").is_empty() {
        let why = "must have at least one node selector term";
        errors.required(&at.child("nodeSelectorTerms"), why);
    }
    for (term, at) in each(selector, at, "nodeSelectorTerms") {
        node_term(errors, term, &at, any_values);
    }
}

fn node_term(errors: &mut Errors, term: &Value, at: &Path, any_values: bool) {
    for (requirement, at) in each(term, at, "matchExpressions") {
        label_requirement(errors, requirement, &at, any_values);
    }
    for (requirement, at) in each(term, at, "matchFields") {
        field_requirement(errors, requirement, &at);
    }
}

fn bad_operator(errors: &mut Errors, at: &Path, operator: &str) {
    let why = "not a valid selector operator";
    errors.invalid(&at.child("operator"), operator, why);
}

fn label_requirement(errors: &mut Errors, requirement: &Value, at: &Path, any_values: bool) {
    let count = list(requirement, "values").len();
    match text(requirement, "operator") {
        "In" | "NotIn" if count == 0 => errors.required(
            &at.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "Exists" | "DoesNotExist" if count > 0 => errors.forbidden(
            &at.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "Gt" | "Lt" if count != 1 => errors.required(
            &at.child("values"),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => bad_operator(errors, at, other),
    }
    label_name(errors, at, "key", text(requirement, "key"));
    if any_values {
        return;
    }
    form_each(errors, requirement, at, "values", names::label_value);
}

fn field_requirement(errors: &mut Errors, requirement: &Value, at: &Path) {
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if list(requirement, "values").len() != 1 {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.required(&at.child("values"), why);
            }
        }
        other => bad_operator(errors, at, other),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        return errors.invalid(&at.child("key"), key, "not a valid field selector key");
    }
    form_each(errors, requirement, at, "values", names::dns1123_subdomain);
}

fn weight(errors: &mut Errors, term: &Value, at: &Path) {
    let weight = number(term, "weight");
    if !(1..=100).contains(&weight) {
        errors.invalid(&at.child("weight"), weight, "must be in the range 1-100");
    }
}

fn pod_affinity(errors: &mut Errors, affinity: &Value, at: &Path, any_values: bool) {
    for (term, at) in each(affinity, at, REQUIRED) {
        pod_term(errors, term, &at, any_values);
    }
    for (term, at) in each(affinity, at, PREFERRED) {
        weight(errors, term, &at);
        let inner = "podAffinityTerm";
        pod_term(errors, &term[inner], &at.child(inner), any_values);
    }
}

fn pod_term(errors: &mut Errors, term: &Value, at: &Path, any_values: bool) {
    for name in ["labelSelector", "namespaceSelector"] {
        if let Some(labels) = term.get(name) {
            selector::collect(errors, labels, &at.child(name), any_values);
        }
    }
    for namespace in texts(term, "namespaces") {
        let mistakes = names::dns1123_label(namespace);
        form(errors, at, "namespace", namespace, mistakes);
    }
    label_keys(errors, term, at);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.required(&at.child("topologyKey"), "can not be empty");
    }
    label_name(errors, at, "topologyKey", key);
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys`, which extend the term's selector.
fn label_keys(errors: &mut Errors, term: &Value, at: &Path) {
    let labels = term.get("labelSelector");
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        if labels.is_none() && !list(term, name).is_empty() {
            let why = "must not be specified when labelSelector is not set";
            errors.forbidden(&at.child(name), why);
            continue;
        }
        form_each(errors, term, at, name, names::qualified_name);
    }
    if let Some(labels) = labels {
        duplicate_selector_keys(errors, term, labels, at);
    }
    for (i, key) in texts(term, "matchLabelKeys").enumerate() {
        if texts(term, "mismatchLabelKeys").any(|other| other == key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&at.child("matchLabelKeys").index(i), key, why);
        }
    }
}

/// The server has already added the keys to the selector, so a key that the user also gave is there
/// twice. Upstream reports the index without the list's name.
fn duplicate_selector_keys(errors: &mut Errors, term: &Value, labels: &Value, at: &Path) {
    let keys = map(labels, "matchLabels").keys();
    let mut seen: Vec<&str> = keys.map(String::as_str).collect();
    for expression in list(labels, "matchExpressions") {
        let key = text(expression, "key");
        let listed = texts(term, "matchLabelKeys").position(|listed| listed == key);
        if let Some(i) = listed
            && seen.contains(&key)
        {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.invalid(&at.index(i), key, why);
        }
        seen.push(key);
    }
}

/// Adds requirements for `matchLabelKeys` and `mismatchLabelKeys` to the selectors of a new pod's
/// affinity terms, with the values of the pod's labels.
pub(super) fn merge_label_keys(pod: &mut Value) {
    // Every new pod comes here and few have an affinity: copy no labels for the others.
    if !has(pod, "spec.affinity") || !at(pod, "metadata.labels").is_object() {
        return;
    }
    let labels = at(pod, "metadata.labels").clone();
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (list, inner) in [(REQUIRED, None), (PREFERRED, Some("podAffinityTerm"))] {
            for term in list_mut(pod, &format!("spec.affinity.{kind}.{list}")) {
                let term = match inner {
                    Some(key) => term.get_mut(key),
                    None => Some(term),
                };
                if let Some(term) = term {
                    extend_selector(term, &labels);
                }
            }
        }
    }
}

fn extend_selector(term: &mut Value, labels: &Value) {
    if !term.get("labelSelector").is_some_and(Value::is_object) {
        return;
    }
    let mut added = Vec::new();
    for (name, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in texts(term, name) {
            if let Some(value) = labels.get(key) {
                added
                    .push(serde_json::json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if added.is_empty() {
        return;
    }
    let selector = &mut term["labelSelector"];
    match selector
        .get_mut("matchExpressions")
        .and_then(Value::as_array_mut)
    {
        Some(expressions) => expressions.extend(added),
        None => selector["matchExpressions"] = Value::Array(added),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(affinity: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        let spec = json!({"affinity": affinity});
        all(&mut errors, &spec, &Path::new("s"), Ratcheting::default());
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn s1_3_15_match_fields_know_only_names() {
        let field = |requirement: &Value| json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [requirement]}]}}});
        check(
            &field(&json!({"key": "metadata.name", "operator": "In", "values": ["n1"]})),
            &[],
        );
        let at = format!("s.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0]");
        check(
            &field(&json!({"key": "metadata.name", "operator": "In", "values": ["a", "b"]})),
            &[&format!(
                "{at}.values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )],
        );
        check(
            &field(&json!({"key": "metadata.name", "operator": "Exists"})),
            &[&format!(
                "{at}.operator: Invalid value: \"Exists\": not a valid selector operator"
            )],
        );
    }

    #[test]
    fn weights_and_topology_keys_are_checked() {
        check(
            &json!({"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}}),
            &[&format!(
                "s.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100"
            )],
        );
        let at = format!("s.affinity.podAffinity.{REQUIRED}[0]");
        let mut errors = Errors::new();
        let spec = json!({"affinity": {"podAffinity": {REQUIRED: [{"namespaces": ["A"]}]}}});
        all(&mut errors, &spec, &Path::new("s"), Ratcheting::default());
        assert_eq!(errors[0].field, format!("{at}.namespace"));
        assert_eq!(
            errors[1].to_string(),
            format!("{at}.topologyKey: Required value: can not be empty")
        );
    }

    #[test]
    fn label_keys_become_expressions_of_a_new_pod() {
        let mut pod = json!({
            "metadata": {"labels": {"hash": "1"}},
            "spec": {"affinity": {"podAffinity": {REQUIRED: [{
                "labelSelector": {}, "topologyKey": "zone", "matchLabelKeys": ["hash", "none"]
            }]}}}
        });
        merge_label_keys(&mut pod);
        assert_eq!(
            pod["spec"]["affinity"]["podAffinity"][REQUIRED][0]["labelSelector"],
            json!({"matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}]})
        );
    }
}
