//! Validates requests, limits and resource names.

use std::collections::BTreeSet;

use kennel_core::quantity::Quantity;
use serde_json::Value;

use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::kinds::check::{NOT_NEGATIVE, each, form};
use crate::names;
use crate::tree::{list, map, text};

const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const POD_RESOURCES: [&str; 3] = ["cpu", "hugepages-", "memory"];
const HUGE_PAGES: &str = "hugepages-";
/// Standard names without a slash, including those that containers cannot request.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Containers and pods may request different resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Container,
    Pod,
}

/// What the check of a container needs to know about the pod.
#[derive(Debug, Default)]
pub(super) struct Claims<'a>(BTreeSet<&'a str>);

impl<'a> Claims<'a> {
    /// The names of a pod's resource claims.
    pub(super) fn of(spec: &'a Value) -> Self {
        let claims = list(spec, "resourceClaims").iter();
        Self(
            claims
                .map(|claim| text(claim, "name"))
                .filter(|name| !name.is_empty())
                .collect(),
        )
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

pub(crate) fn is_overcommittable(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a resource can be requested at pod level.
pub(crate) fn is_pod_level(name: &str) -> bool {
    name == "cpu" || name == "memory" || is_huge_page(name)
}

/// Checks requests, limits and claims.
pub(super) fn requirements(
    errors: &mut Errors,
    resources: &Value,
    at: &Path,
    scope: Scope,
    claims: &Claims<'_>,
) {
    let mut computes = false;
    let mut huge = false;
    for which in ["limits", "requests"] {
        for (name, amount) in map(resources, which) {
            let amount = Quantity::read(amount);
            let entry = || at.child(which).key(name);
            resource_name(errors, name, &entry, scope);
            resource_amount(errors, name, amount, &entry);
            if which == "requests" {
                within_limit(errors, resources, name, amount, at);
            }
            if is_huge_page(name) {
                huge = true;
                whole_pages(errors, name, amount, &entry);
            }
            computes |= name == "cpu" || name == "memory";
        }
    }
    if huge && !computes {
        errors.forbidden(at, "HugePages require cpu or memory");
    }
    claim_names(errors, resources, at, claims);
}

fn resource_name(errors: &mut Errors, name: &str, at: &dyn Fn() -> Path, scope: Scope) {
    if is_known(name, scope) {
        return;
    }
    let at = at();
    let before = errors.len();
    standard_name(errors, name, &at);
    let unqualified = !name.contains('/');
    let shown = Value::from(name);
    match scope {
        Scope::Pod if errors.len() == before => {
            errors.not_supported(&at, &shown, &POD_RESOURCES);
        }
        Scope::Pod => {}
        Scope::Container if unqualified => {
            errors.invalid(&at, &shown, "must be a standard resource for containers");
        }
        Scope::Container if !is_native(name) && !is_extended(name) => {
            let detail = "doesn't follow extended resource name standard";
            errors.invalid(&at, &shown, detail);
        }
        Scope::Container => {}
    }
}

/// Checks a name without a domain: it must be a standard one.
pub(in crate::kinds) fn standard_name(errors: &mut Errors, name: &str, at: &Path) {
    let before = errors.len();
    errors.invalid_each(at, name, names::qualified_name(name));
    let is_standard = STANDARD.contains(&name) || is_quota_huge_page(name);
    if errors.len() == before && !name.contains('/') && !is_standard {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid(at, name, detail);
    }
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name.strip_prefix("requests.").unwrap_or(name))
}

/// Checks the name of a resource that containers request.
pub(in crate::kinds) fn container_resource_name(errors: &mut Errors, name: &str, at: &Path) {
    resource_name(errors, name, &|| at.clone(), Scope::Container);
}

fn is_known(name: &str, scope: Scope) -> bool {
    match scope {
        Scope::Container if CONTAINER_RESOURCES.contains(&name) => true,
        Scope::Container if is_huge_page(name) => names::qualified_name(name).is_empty(),
        Scope::Container => false,
        Scope::Pod => is_pod_level(name),
    }
}

fn resource_amount(errors: &mut Errors, name: &str, amount: Quantity, at: &dyn Fn() -> Path) {
    if amount < Quantity::ZERO {
        errors.invalid(&at(), amount.to_string(), NOT_NEGATIVE);
    }
    if !is_native(name) && is_extended(name) && amount.milli_value() % 1000 != 0 {
        errors.invalid(&at(), amount.to_string(), "must be an integer");
    }
}

fn within_limit(errors: &mut Errors, resources: &Value, name: &str, request: Quantity, at: &Path) {
    let Some(limit) = map(resources, "limits").get(name).map(Quantity::read) else {
        if !is_overcommittable(name) {
            let detail = "Limit must be set for non overcommitable resources";
            errors.required(&at.child("limits"), detail);
        }
        return;
    };
    let relation = if request != limit && !is_overcommittable(name) {
        "must be equal to"
    } else if request > limit {
        "must be less than or equal to"
    } else {
        return;
    };
    let detail = format!("{relation} {name} limit of {limit}");
    errors.invalid(&at.child("requests"), request.to_string(), &detail);
}

fn whole_pages(errors: &mut Errors, name: &str, amount: Quantity, at: &dyn Fn() -> Path) {
    let size = Quantity::parse(&name[HUGE_PAGES.len()..]).map_or(0, Quantity::value);
    if size > 0 && amount.value() % size == 0 {
        return;
    }
    let detail = format!("{amount} is not positive integer multiple of {name}");
    errors.invalid(&at(), amount.to_string(), &detail);
}

fn claim_names(errors: &mut Errors, resources: &Value, at: &Path, claims: &Claims<'_>) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (claim, at) in each(resources, at, "claims") {
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.required(&at, "");
            continue;
        }
        let mut key = name.to_owned();
        if !request.is_empty() {
            form(
                errors,
                &at,
                "request",
                request,
                names::dns1123_label(request),
            );
            key = format!("{name}/{request}");
        }
        let overlaps = seen.contains(name)
            || seen.contains(&key)
            || request.is_empty() && seen.iter().any(|k| k.starts_with(&format!("{name}/")));
        if overlaps {
            errors.duplicate(&at, key.as_str());
        }
        seen.insert(key);
        if !claims.0.contains(name) {
            errors.push(unknown_claim(&at, name, claims));
        }
    }
}

fn unknown_claim(at: &Path, name: &str, claims: &Claims<'_>) -> FieldError {
    let mut error = FieldError::not_found(at, name);
    error
        .message
        .push_str(": must be one of the names in pod.spec.resourceClaims");
    if claims.0.is_empty() {
        error.message.push_str(" which is empty");
    } else {
        let names: Vec<&str> = claims.0.iter().copied().collect();
        error.message.push_str(": ");
        error.message.push_str(&names.join(", "));
    }
    error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(resources: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        let claims = Claims::default();
        requirements(
            &mut errors,
            resources,
            &Path::new("r"),
            Scope::Container,
            &claims,
        );
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{resources}");
    }

    #[test]
    fn requests_stay_within_limits() {
        check(
            &json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
            &[],
        );
        check(
            &json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
            &["r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
        );
        check(
            &json!({"requests": {"cpu": "-1"}}),
            &["r.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
        );
    }

    #[test]
    fn extended_resources_are_whole_and_not_shared_out_twice() {
        check(
            &json!({"limits": {"a.com/gpu": "1"}, "requests": {"a.com/gpu": "1"}}),
            &[],
        );
        check(
            &json!({"limits": {"a.com/gpu": "1500m"}}),
            &["r.limits[a.com/gpu]: Invalid value: \"1500m\": must be an integer"],
        );
        check(
            &json!({"requests": {"a.com/gpu": "1"}}),
            &["r.limits: Required value: Limit must be set for non overcommitable resources"],
        );
        check(
            &json!({"limits": {"a.com/gpu": "2"}, "requests": {"a.com/gpu": "1"}}),
            &["r.requests: Invalid value: \"1\": must be equal to a.com/gpu limit of 2"],
        );
    }

    #[test]
    fn huge_pages_are_whole_pages_beside_compute() {
        check(
            &json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
            &[
                "r.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
            ],
        );
        check(
            &json!({"limits": {"hugepages-2Mi": "4Mi"}}),
            &["r: Forbidden: HugePages require cpu or memory"],
        );
    }

    #[test]
    fn unknown_resources_are_told_what_they_lack() {
        check(
            &json!({"limits": {"gpu": "1"}}),
            &[
                "r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
                "r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
            ],
        );
        check(
            &json!({"limits": {"storage": "1"}}),
            &[
                "r.limits[storage]: Invalid value: \"storage\": must be a standard resource for containers",
            ],
        );
    }

    #[test]
    fn claims_name_claims_of_the_pod() {
        check(
            &json!({"claims": [{"name": "a"}]}),
            &[
                "r.claims[0]: Not found: \"a\": must be one of the names in pod.spec.resourceClaims which is empty",
            ],
        );
    }
}
