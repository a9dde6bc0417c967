//! Validates a pod spec, in the order in which upstream reports errors.

use serde_json::Value;

use super::check::{Errors, choice, form, labels, require};
use super::containers::{self, Surroundings};
use super::leniency::Leniency;
use super::resources::{Claims, Scope, requirements};
use super::resources_pod::pod_level;
use super::volumes::{self, Owner};
use super::{
    affinity, network, os, ports, resource_claims, security, spread, tolerations, windows,
};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{int, opt_flag, opt_text, text};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

/// Checks a pod spec. `pod_name` is empty for a template.
pub(super) fn validate(
    errors: &mut Errors,
    spec: &Value,
    at: &Path,
    pod_name: Option<&str>,
    leniency: Leniency,
) {
    let grace_seconds = int(spec, "terminationGracePeriodSeconds");
    if grace_seconds.is_none() {
        require(errors, at, "terminationGracePeriodSeconds");
    }
    let owner = Owner {
        is_pod: pod_name.is_some(),
        pod_name: pod_name.unwrap_or(""),
        any_token_path: leniency.token_paths,
    };
    let volumes = volumes::all(errors, spec, at, owner);
    resource_claims::all(errors, spec, at);
    let pod = Surroundings {
        volumes,
        claims: Claims::of(spec),
        grace_seconds,
        restart_policy: text(spec, "restartPolicy"),
        host_users: opt_flag(spec, "hostUsers") != Some(false),
    };
    containers::regular(errors, spec, at, &pod);
    containers::init(errors, spec, at, &pod);
    containers::ephemeral(errors, spec, at, &pod);
    pod_level(errors, spec, at, &pod.claims);
    ports::host_network(errors, spec, at, owner.is_pod);
    let policy = pod.restart_policy;
    if !RESTART_POLICIES.contains(&policy) {
        choice(
            errors,
            &at.child("restartPolicy"),
            policy,
            &RESTART_POLICIES,
        );
    }
    placement(errors, spec, at, leniency);
    identity(errors, spec, at);
    os::os(errors, spec, at);
}

fn placement(errors: &mut Errors, spec: &Value, at: &Path, leniency: Leniency) {
    network::dns_policy(errors, spec, at);
    labels(errors, at, "nodeSelector", spec);
    security::pod(errors, spec, at);
    affinity::all(errors, spec, at, leniency);
    network::dns_config(errors, spec, at);
    network::readiness_gates(errors, spec, at);
    network::scheduling_gates(errors, spec, at);
    spread::all(errors, spec, at, leniency.spread_selectors);
    windows::host_process(errors, spec, at);
    security::host_users(errors, spec, at);
}

fn identity(errors: &mut Errors, spec: &Value, at: &Path) {
    named(errors, spec, at, "serviceAccountName");
    named(errors, spec, at, "nodeName");
    active_deadline(errors, spec, at);
    network::hostname(errors, spec, at);
    tolerations::all(errors, spec, at);
    network::host_aliases(errors, spec, at);
    named(errors, spec, at, "priorityClassName");
    if let Some(name) = opt_text(spec, "runtimeClassName") {
        form(
            errors,
            at,
            "runtimeClassName",
            name,
            names::dns1123_subdomain(name),
        );
    }
    if let Some(policy) = opt_text(spec, "preemptionPolicy") {
        let at = at.child("preemptionPolicy");
        choice(errors, &at, policy, &PREEMPTION_POLICIES);
    }
    if let Some(overhead) = spec.get("overhead") {
        let limits = serde_json::json!({"limits": overhead});
        let none = Claims::default();
        requirements(
            errors,
            &limits,
            &at.child("overhead"),
            Scope::Container,
            &none,
        );
    }
    network::hostname_override(errors, spec, at);
}

fn named(errors: &mut Errors, spec: &Value, at: &Path, field: &'static str) {
    let name = text(spec, field);
    if !name.is_empty() {
        form(errors, at, field, name, names::dns1123_subdomain(name));
    }
}

fn active_deadline(errors: &mut Errors, spec: &Value, at: &Path) {
    let Some(seconds) = int(spec, "activeDeadlineSeconds") else {
        return;
    };
    for mistake in names::in_range(seconds, 1, i64::from(i32::MAX)) {
        let at = at.child("activeDeadlineSeconds");
        errors.push(FieldError::invalid(&at, &Value::from(seconds), &mistake));
    }
}
