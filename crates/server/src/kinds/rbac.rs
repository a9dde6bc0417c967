//! The strategies of Role, `RoleBinding`, `ClusterRole` and `ClusterRoleBinding`.
//!
//! `admit` checks that users do not grant more than they have.

use serde_json::{Value, json};

use super::Strategy;
use super::meta::invalid_each;
use super::show::{go_struct, invalid_shown};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{at, default_to, has, list, list_mut, same, text};

/// The API group of these kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

#[derive(Debug)]
pub struct Role;

impl Strategy for Role {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        rule_list_errors(object, true)
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        self.validate_create(new)
    }
}

#[derive(Debug)]
pub struct ClusterRole;

impl Strategy for ClusterRole {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = rule_list_errors(object, false);
        errors.extend(aggregation_errors(object));
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        self.validate_create(new)
    }
}

#[derive(Debug)]
pub struct RoleBinding;

impl Strategy for RoleBinding {
    fn default(&self, object: &mut Value) {
        default_groups(object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        binding_errors(object, &["Role", "ClusterRole"])
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(role_ref_change(new, old));
        errors
    }
}

#[derive(Debug)]
pub struct ClusterRoleBinding;

impl Strategy for ClusterRoleBinding {
    fn default(&self, object: &mut Value) {
        default_groups(object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        binding_errors(object, &["ClusterRole"])
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(role_ref_change(new, old));
        errors
    }
}

fn rule_list_errors(object: &Value, namespaced: bool) -> Vec<FieldError> {
    let path = Path::new("rules");
    list(object, "rules")
        .iter()
        .enumerate()
        .flat_map(|(i, rule)| rule_errors(rule, namespaced, &path.index(i)))
        .collect()
}

fn rule_errors(rule: &Value, namespaced: bool, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given = |field: &str| !list(rule, field).is_empty();
    if !given("verbs") {
        let words = "verbs must contain at least one value";
        errors.push(FieldError::required(&path.child("verbs"), words));
    }
    if given("nonResourceURLs") {
        let path = path.child("nonResourceURLs");
        let urls = at(rule, "nonResourceURLs");
        if namespaced {
            let words = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(&path, urls, words));
        }
        if given("apiGroups") || given("resources") || given("resourceNames") {
            let words = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&path, urls, words));
        }
        return errors;
    }
    if !given("apiGroups") {
        let words = "resource rules must supply at least one api group";
        errors.push(FieldError::required(&path.child("apiGroups"), words));
    }
    if !given("resources") {
        let words = "resource rules must supply at least one resource";
        errors.push(FieldError::required(&path.child("resources"), words));
    }
    errors
}

fn aggregation_errors(object: &Value) -> Vec<FieldError> {
    let path = Path::new("aggregationRule").child("clusterRoleSelectors");
    let selectors = list(object, "aggregationRule.clusterRoleSelectors");
    if has(object, "aggregationRule") && selectors.is_empty() {
        let words = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        return vec![FieldError::required(&path, words)];
    }
    selectors
        .iter()
        .enumerate()
        .flat_map(|(i, selector)| super::selector::validate(selector, &path.index(i), false))
        .collect()
}

/// Users and groups are names in this API group; service accounts are objects of the core group.
fn default_groups(object: &mut Value) {
    default_to(object, "roleRef.apiGroup", GROUP);
    for subject in list_mut(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default_to(subject, "apiGroup", GROUP);
        }
    }
}

fn binding_errors(object: &Value, roles: &[&str]) -> Vec<FieldError> {
    let path = Path::new("roleRef");
    let mut errors = Vec::new();
    let group = text(object, "roleRef.apiGroup");
    if group != GROUP {
        let path = path.child("apiGroup");
        errors.push(FieldError::not_supported(&path, &json!(group), &[GROUP]));
    }
    let kind = text(object, "roleRef.kind");
    if !roles.contains(&kind) {
        errors.push(FieldError::not_supported(
            &path.child("kind"),
            &json!(kind),
            roles,
        ));
    }
    let name = text(object, "roleRef.name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let wrong = names::path_segment_name(name);
    errors.extend(invalid_each(&path.child("name"), &json!(name), wrong));
    let namespaced = roles.contains(&"Role");
    for (i, subject) in list(object, "subjects").iter().enumerate() {
        let path = Path::new("subjects").index(i);
        errors.extend(subject_errors(subject, namespaced, &path));
    }
    errors
}

fn subject_errors(subject: &Value, namespaced: bool, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    let at_name = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&at_name, ""));
    }
    let wrong_group =
        |right: &str| FieldError::not_supported(&path.child("apiGroup"), &json!(group), &[right]);
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let wrong = names::dns1123_subdomain(name);
                errors.extend(invalid_each(&at_name, &json!(name), wrong));
            }
            if !group.is_empty() {
                errors.push(wrong_group(""));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        kind @ ("User" | "Group") => {
            if name.is_empty() {
                let words = format!("{} name cannot be empty", kind.to_lowercase());
                errors.push(FieldError::invalid(&at_name, &json!(""), &words));
            }
            if group != GROUP {
                errors.push(wrong_group(GROUP));
            }
        }
        kind => {
            let known = ["ServiceAccount", "User", "Group"];
            let path = path.child("kind");
            errors.push(FieldError::not_supported(&path, &json!(kind), &known));
        }
    }
    errors
}

/// `roleRef` is immutable.
fn role_ref_change(new: &Value, old: &Value) -> Option<FieldError> {
    if same(at(new, "roleRef"), at(old, "roleRef")) {
        return None;
    }
    let field = |name: &str| json!(text(at(new, "roleRef"), name));
    let shown = go_struct(&[
        ("APIGroup", &field("apiGroup")),
        ("Kind", &field("kind")),
        ("Name", &field("name")),
    ]);
    Some(invalid_shown(
        &Path::new("roleRef"),
        &shown,
        "cannot change roleRef",
    ))
}

#[cfg(test)]
mod tests;
