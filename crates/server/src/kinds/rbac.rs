//! The strategies of Role, `RoleBinding`, `ClusterRole` and `ClusterRoleBinding`.
//!
//! `admit` checks that users do not grant more than they have.

use serde_json::{Value, json};

use super::Strategy;
use super::check::{each, one_of, optional_form, require_text};
use super::selector;
use super::show::go_struct;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{at, default_to, has, list, list_mut, same, text};

/// The API group of these kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";
pub const ROLE: &str = "Role";
pub const CLUSTER_ROLE: &str = "ClusterRole";
pub const ROLE_KINDS: [&str; 2] = [ROLE, CLUSTER_ROLE];

#[derive(Debug)]
pub struct Role;

impl Strategy for Role {
    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        check_rules(&mut errors, object, true);
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }
}

#[derive(Debug)]
pub struct ClusterRole;

impl Strategy for ClusterRole {
    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        check_rules(&mut errors, object, false);
        check_aggregation(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }
}

/// A `RoleBinding` or `ClusterRoleBinding`.
#[derive(Debug)]
pub struct Binding {
    /// The kinds of roles it can refer to.
    roles: &'static [&'static str],
}

pub static ROLE_BINDING: Binding = Binding { roles: &ROLE_KINDS };
pub static CLUSTER_ROLE_BINDING: Binding = Binding {
    roles: &[CLUSTER_ROLE],
};

impl Strategy for Binding {
    /// Users and groups are names in this API group; service accounts are objects of the core group.
    fn default(&self, object: &mut Value) {
        default_to(object, "roleRef.apiGroup", GROUP);
        for subject in list_mut(object, "subjects") {
            if matches!(text(subject, "kind"), "User" | "Group") {
                default_to(subject, "apiGroup", GROUP);
            }
        }
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let (role, path) = (at(object, "roleRef"), Path::new("roleRef"));
        let mut errors = Errors::new();
        let group = text(role, "apiGroup");
        one_of(&mut errors, &path.child("apiGroup"), group, &[GROUP]);
        let kind = text(role, "kind");
        one_of(&mut errors, &path.child("kind"), kind, self.roles);
        require_text(&mut errors, role, &path, "name");
        let name = text(role, "name");
        errors.invalid_each(&path.child("name"), name, names::path_segment_name(name));
        let namespaced = self.roles.contains(&ROLE);
        for (subject, path) in each(object, &Path::default(), "subjects") {
            check_subject(&mut errors, subject, namespaced, &path);
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        check_role_ref_change(&mut errors, new, old);
        errors
    }
}

fn check_rules(errors: &mut Errors, object: &Value, namespaced: bool) {
    for (rule, path) in each(object, &Path::default(), "rules") {
        check_rule(errors, rule, namespaced, &path);
    }
}

fn check_rule(errors: &mut Errors, rule: &Value, namespaced: bool, path: &Path) {
    let given = |field: &str| !list(rule, field).is_empty();
    if !given("verbs") {
        let words = "verbs must contain at least one value";
        errors.required(&path.child("verbs"), words);
    }
    if given("nonResourceURLs") {
        let path = path.child("nonResourceURLs");
        let urls = at(rule, "nonResourceURLs");
        if namespaced {
            let words = "namespaced rules cannot apply to non-resource URLs";
            errors.invalid(&path, urls, words);
        }
        if given("apiGroups") || given("resources") || given("resourceNames") {
            let words = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(&path, urls, words);
        }
        return;
    }
    if !given("apiGroups") {
        let words = "resource rules must supply at least one api group";
        errors.required(&path.child("apiGroups"), words);
    }
    if !given("resources") {
        let words = "resource rules must supply at least one resource";
        errors.required(&path.child("resources"), words);
    }
}

fn check_aggregation(errors: &mut Errors, object: &Value) {
    let field = "aggregationRule.clusterRoleSelectors";
    if has(object, "aggregationRule") && list(object, field).is_empty() {
        let words = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&Path::new(field), words);
    }
    for (selector, path) in each(object, &Path::default(), field) {
        selector::collect(errors, selector, &path, false);
    }
}

fn check_subject(errors: &mut Errors, subject: &Value, namespaced: bool, path: &Path) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    let at_group = path.child("apiGroup");
    require_text(errors, subject, path, "name");
    match text(subject, "kind") {
        "ServiceAccount" => {
            optional_form(errors, subject, path, "name", names::dns1123_subdomain);
            one_of(errors, &at_group, group, &[""]);
            if !namespaced {
                require_text(errors, subject, path, "namespace");
            }
        }
        kind @ ("User" | "Group") => {
            if name.is_empty() {
                let words = format!("{} name cannot be empty", kind.to_lowercase());
                errors.invalid(&path.child("name"), "", &words);
            }
            one_of(errors, &at_group, group, &[GROUP]);
        }
        kind => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.not_supported(&path.child("kind"), kind, &known);
        }
    }
}

/// `roleRef` is immutable.
fn check_role_ref_change(errors: &mut Errors, new: &Value, old: &Value) {
    if same(at(new, "roleRef"), at(old, "roleRef")) {
        return;
    }
    let field = |name: &str| json!(text(at(new, "roleRef"), name));
    let shown = go_struct(&[
        ("APIGroup", &field("apiGroup")),
        ("Kind", &field("kind")),
        ("Name", &field("name")),
    ]);
    errors.invalid_shown(&Path::new("roleRef"), shown, "cannot change roleRef");
}

#[cfg(test)]
mod tests;
