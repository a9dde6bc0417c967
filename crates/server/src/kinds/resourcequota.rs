//! The strategy of `ResourceQuota`.

use serde_json::Value;

use super::Strategy;
use super::amount::check_amount;
use super::check::each;
use super::meta::IMMUTABLE;
use super::pod::resources;
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::{at, copy_from_old, has, list, map, remove, text, texts};

/// Names without a domain that quotas know.
const RESOURCES: [&str; 18] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
];
const NODE_PORTS: &str = "services.nodeports";
const COMPUTE: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];
const EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
    ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
    ResourceQuotaScopeCrossNamespacePodAffinity";
const NO_VALUES: &str =
    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
const SOME_VALUES: &str =
    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
const CONFLICTS: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

#[derive(Debug)]
pub struct ResourceQuota;

impl Strategy for ResourceQuota {
    fn prepare_create(&self, object: &mut Value) {
        remove(object, "status");
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "status");
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let (spec, path) = (at(object, "spec"), Path::new("spec"));
        check_amounts(&mut errors, spec, "hard", &path);
        check_scopes(&mut errors, spec, &path.child("scopes"));
        if has(spec, "scopeSelector") {
            check_selector(&mut errors, spec, &path.child("scopeSelector"));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        let sorted = |object| {
            let mut scopes: Vec<&str> = texts(object, "spec.scopes").collect();
            scopes.sort_unstable();
            scopes.dedup();
            scopes
        };
        if sorted(new) != sorted(old) {
            let path = Path::new("spec").child("scopes");
            errors.invalid(&path, at(new, "spec.scopes"), IMMUTABLE);
        }
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Errors {
        let mut errors = Errors::new();
        let (status, path) = (at(new, "status"), Path::new("status"));
        check_amounts(&mut errors, status, "hard", &path);
        check_amounts(&mut errors, status, "used", &path);
        errors
    }
}

fn check_amounts(errors: &mut Errors, owner: &Value, field: &'static str, path: &Path) {
    for (name, amount) in map(owner, field) {
        let at = path.child(field).key(name);
        resources::standard_name(errors, name, &at);
        if !name.contains('/') && !is_standard(name) {
            errors.invalid(&at, name, "must be a standard resource for quota");
        }
        check_amount(errors, name, amount, &at);
    }
}

fn is_standard(name: &str) -> bool {
    let huge_pages = name.strip_prefix("requests.").unwrap_or(name);
    RESOURCES.contains(&name) || name == NODE_PORTS || huge_pages.starts_with("hugepages-")
}

fn is_scope(name: &str) -> bool {
    let pairs = CONFLICTS.iter().flatten();
    let others = [
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    ];
    pairs.chain(&others).any(|scope| *scope == name)
}

/// Whether a scope makes sense for a resource without a domain.
fn scope_fits(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ if is_scope(scope) => resource == "pods" || COMPUTE.contains(&resource),
        _ => true,
    }
}

fn misfits<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a String> {
    let names = map(spec, "hard").keys();
    names.filter(move |name| is_standard(name) && !scope_fits(scope, name))
}

fn check_conflicts(errors: &mut Errors, scopes: &[&str], shown: &Value, path: &Path) {
    for pair in CONFLICTS {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.invalid(path, shown, "conflicting scopes");
        }
    }
}

fn check_scopes(errors: &mut Errors, spec: &Value, path: &Path) {
    let (shown, scopes) = (at(spec, "scopes"), texts(spec, "scopes"));
    let scopes: Vec<&str> = scopes.collect();
    for scope in &scopes {
        if !is_scope(scope) {
            errors.invalid(path, shown, "unsupported scope");
        }
        for _ in misfits(spec, scope) {
            errors.invalid(path, shown, "unsupported scope applied to resource");
        }
    }
    check_conflicts(errors, &scopes, shown, path);
}

fn check_selector(errors: &mut Errors, spec: &Value, path: &Path) {
    let selector = at(spec, "scopeSelector");
    let path = &path.child("matchExpressions");
    let mut scopes = Vec::new();
    for (term, _) in each(selector, path, "matchExpressions") {
        let (scope, operator) = (text(term, "scopeName"), text(term, "operator"));
        if !is_scope(scope) {
            errors.invalid(&path.child("scopeName"), scope, "unsupported scope");
        }
        for _ in misfits(spec, scope) {
            errors.invalid(path, selector, "unsupported scope applied to resource");
        }
        let exists_only = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if is_scope(scope) && exists_only && operator != "Exists" {
            errors.invalid(&path.child("operator"), operator, EXISTS);
        }
        let has_values = !list(term, "values").is_empty();
        match operator {
            "In" | "NotIn" if !has_values => errors.required(&path.child("values"), SOME_VALUES),
            "Exists" | "DoesNotExist" if has_values => {
                errors.invalid(&path.child("values"), at(term, "values"), NO_VALUES);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let words = "not a valid selector operator";
                errors.invalid(&path.child("operator"), operator, words);
            }
        }
        scopes.push(scope);
    }
    check_conflicts(errors, &scopes, at(spec, "scopes"), path);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{check_create, check_update};
    use super::*;

    fn quota(spec: Value) -> Value {
        let mut object = json!({"metadata": {"name": "q", "namespace": "d"}});
        object["spec"] = spec;
        object
    }

    fn check(spec: Value, expected: &[&str]) {
        check_create(&ResourceQuota, &quota(spec), expected);
    }

    #[test]
    fn hard_limits_have_known_names_and_amounts() {
        check(
            json!({"hard": {"pods": "3", "requests.cpu": "1500m", "count/daemonsets.apps": "1",
                "services.nodeports": 0, "requests.nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}}),
            &[],
        );
        check(
            json!({"hard": {"chairs": "3", "pods": "1500m", "secrets": "-1"}}),
            &[
                "spec.hard[chairs]: Invalid value: \"chairs\": must be a standard resource type or fully qualified",
                "spec.hard[chairs]: Invalid value: \"chairs\": must be a standard resource for quota",
                "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
                "spec.hard[secrets]: Invalid value: \"-1\": must be greater than or equal to 0",
            ],
        );
    }

    #[test]
    fn scopes_fit_together_and_to_the_resources() {
        check(
            json!({"hard": {"pods": "3"}, "scopes": ["BestEffort"]}),
            &[],
        );
        check(
            json!({"hard": {"cpu": "3"}, "scopes": ["BestEffort"]}),
            &[
                "spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource",
            ],
        );
        check(
            json!({"hard": {"pods": "3"}, "scopes": ["Terminating", "NotTerminating", "Odd"]}),
            &[
                "spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\",\"Odd\"]: unsupported scope",
                "spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\",\"Odd\"]: conflicting scopes",
            ],
        );
        let selector = |term: Value| json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [term]}});
        let class = json!({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]});
        check(selector(class), &[]);
        check(
            selector(json!({"scopeName": "PriorityClass", "operator": "In"})),
            &[
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ],
        );
    }

    #[test]
    fn scopes_are_immutable_and_users_do_not_write_the_status() {
        let old = quota(json!({"hard": {"pods": "3"}, "scopes": ["BestEffort"]}));
        let new = quota(json!({"hard": {"pods": "4"}}));
        check_update(
            &ResourceQuota,
            &new,
            &old,
            &["spec.scopes: Invalid value: null: field is immutable"],
        );
    }
}
