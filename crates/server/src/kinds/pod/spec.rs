//! Validates a pod spec, in the order in which upstream reports errors.

use serde_json::Value;

use super::containers::{self, PodContext};
use super::ratcheting::Ratcheting;
use super::resources::{Claims, Scope, requirements};
use super::resources_pod::pod_level;
use super::volumes::{self, Owner};
use super::{
    affinity, network, os, ports, resource_claims, security, spread, tolerations, windows,
};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, given_form, labels, optional_form, require};
use crate::names;
use crate::tree::{int, opt_flag, text};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

/// Checks a pod spec. `pod_name` is empty for a template.
pub(super) fn validate(
    errors: &mut Errors,
    spec: &Value,
    at: &Path,
    pod_name: Option<&str>,
    ratcheting: Ratcheting,
) {
    let grace_seconds = int(spec, "terminationGracePeriodSeconds");
    if grace_seconds.is_none() {
        require(errors, at, "terminationGracePeriodSeconds");
    }
    let owner = Owner {
        is_pod: pod_name.is_some(),
        pod_name: pod_name.unwrap_or(""),
        any_token_path: ratcheting.token_paths,
    };
    let volumes = volumes::all(errors, spec, at, owner);
    resource_claims::all(errors, spec, at);
    let pod = PodContext {
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
    choice(errors, spec, at, "restartPolicy", &RESTART_POLICIES);
    placement(errors, spec, at, ratcheting);
    identity(errors, spec, at);
    os::os(errors, spec, at);
}

fn placement(errors: &mut Errors, spec: &Value, at: &Path, ratcheting: Ratcheting) {
    network::dns_policy(errors, spec, at);
    labels(errors, at, "nodeSelector", spec);
    security::pod(errors, spec, at);
    affinity::all(errors, spec, at, ratcheting);
    network::dns_config(errors, spec, at);
    network::readiness_gates(errors, spec, at);
    network::scheduling_gates(errors, spec, at);
    spread::all(errors, spec, at, ratcheting.spread_selectors);
    windows::host_process(errors, spec, at);
    security::host_users(errors, spec, at);
}

fn identity(errors: &mut Errors, spec: &Value, at: &Path) {
    let rule = names::dns1123_subdomain;
    optional_form(errors, spec, at, "serviceAccountName", rule);
    optional_form(errors, spec, at, "nodeName", rule);
    active_deadline(errors, spec, at);
    network::hostname(errors, spec, at);
    tolerations::all(errors, spec, at);
    network::host_aliases(errors, spec, at);
    optional_form(errors, spec, at, "priorityClassName", rule);
    given_form(errors, spec, at, "runtimeClassName", rule);
    if spec.get("preemptionPolicy").is_some() {
        choice(errors, spec, at, "preemptionPolicy", &PREEMPTION_POLICIES);
    }
    if let Some(overhead) = spec.get("overhead") {
        let limits = serde_json::json!({"limits": overhead});
        let (at, none) = (at.child("overhead"), Claims::default());
        requirements(errors, &limits, &at, Scope::Container, &none);
    }
    network::hostname_override(errors, spec, at);
}

fn active_deadline(errors: &mut Errors, spec: &Value, at: &Path) {
    let Some(seconds) = int(spec, "activeDeadlineSeconds") else {
        return;
    };
    let mistakes = names::in_range(seconds, 1, i64::from(i32::MAX));
    errors.invalid_each(&at.child("activeDeadlineSeconds"), seconds, mistakes);
}
