//! Validates regular, init and ephemeral containers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::aggregate::is_sidecar;
use super::mounts::Volumes;
use super::resources::{Claims, Scope, requirements};
use super::volumes::PULL_POLICIES;
use super::{env, mounts, ports, probes, security};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, each, forbid, one_of, require_text, required_form};
use crate::names;
use crate::tree::{list, opt_text, text};

const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RESTART_ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
/// The fields that ephemeral containers may not have.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// What the check of containers needs to know about the pod.
pub(super) struct PodContext<'a> {
    pub volumes: Volumes<'a>,
    pub claims: Claims<'a>,
    pub grace_seconds: Option<i64>,
    pub restart_policy: &'a str,
    pub host_users: bool,
}

/// Visits all containers of a pod with their paths, in upstream's order.
pub(crate) fn each_container(spec: &Value, at: &Path, mut visit: impl FnMut(&Value, &Path)) {
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        for (container, at) in each(spec, at, kind) {
            visit(container, &at);
        }
    }
}

pub(super) fn regular(errors: &mut Errors, spec: &Value, at: &Path, pod: &PodContext<'_>) {
    let containers = list(spec, "containers");
    let at = at.child("containers");
    if containers.is_empty() {
        errors.required(&at, "");
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let at = at.index(i);
        common(errors, container, &at, pod);
        unique_name(errors, text(container, "name"), &at, &mut seen);
        probes::container(errors, container, &at, pod.grace_seconds);
        restart_policy(errors, container, &at);
    }
    ports::host_conflicts(errors, containers, &at);
}

/// Init containers run one at a time, so their ports do not conflict.
pub(super) fn init(errors: &mut Errors, spec: &Value, at: &Path, pod: &PodContext<'_>) {
    let containers = list(spec, "initContainers");
    if containers.is_empty() {
        return;
    }
    let at = at.child("initContainers");
    let regular = list(spec, "containers").iter();
    let mut seen: BTreeSet<&str> = regular.map(|container| text(container, "name")).collect();
    for (i, container) in containers.iter().enumerate() {
        let list_at = &at;
        let at = at.index(i);
        common(errors, container, &at, pod);
        restart_policy(errors, container, &at);
        let name = text(container, "name");
        if !name.is_empty() || seen.contains("") {
            unique_name(errors, name, &at, &mut seen);
        }
        ports::host_conflicts(errors, std::slice::from_ref(container), list_at);
        if is_sidecar(container) {
            probes::container(errors, container, &at, pod.grace_seconds);
        } else {
            for key in [
                "lifecycle",
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
            ] {
                if container.get(key).is_some() {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    forbid(errors, &at, key, why);
                }
            }
        }
    }
}

pub(super) fn ephemeral(errors: &mut Errors, spec: &Value, at: &Path, pod: &PodContext<'_>) {
    if list(spec, "ephemeralContainers").is_empty() {
        return;
    }
    let others = list(spec, "containers")
        .iter()
        .chain(list(spec, "initContainers"));
    let others: BTreeSet<&str> = others.map(|container| text(container, "name")).collect();
    let mut seen = others.clone();
    for (container, at) in each(spec, at, "ephemeralContainers") {
        common(errors, container, &at, pod);
        untrimmed_image(errors, container, &at);
        unique_name(errors, text(container, "name"), &at, &mut seen);
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&at.child("targetContainerName"), target);
        }
        for key in NOT_EPHEMERAL {
            if container.get(key).is_some_and(|value| !is_empty(value)) {
                forbid(errors, &at, key, EPHEMERAL);
            }
        }
        for (m, mount) in list(container, "volumeMounts").iter().enumerate() {
            for key in ["subPath", "subPathExpr"] {
                if !text(mount, key).is_empty() {
                    forbid(errors, &at.child("volumeMounts").index(m), key, EPHEMERAL);
                }
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn unique_name<'a>(errors: &mut Errors, name: &'a str, at: &Path, seen: &mut BTreeSet<&'a str>) {
    if !seen.insert(name) {
        errors.duplicate(&at.child("name"), name);
    }
}

/// The rules of all types of containers.
fn common(errors: &mut Errors, container: &Value, at: &Path, pod: &PodContext<'_>) {
    required_form(errors, container, at, "name", names::dns1123_label);
    require_text(errors, container, at, "image");
    let (policy, known) = ("terminationMessagePolicy", &MESSAGE_POLICIES);
    choice(errors, container, at, policy, known);
    ports::container(errors, container, at);
    env::container(errors, container, at);
    mounts::container(errors, container, at, &pod.volumes);
    choice(errors, container, at, "imagePullPolicy", &PULL_POLICIES);
    if let Some(resources) = container.get("resources")
        && !is_empty(resources)
    {
        let at = at.child("resources");
        requirements(errors, resources, &at, Scope::Container, &pod.claims);
    }
    resize_policy(errors, container, at, pod.restart_policy);
    security::container(errors, container, at, pod.host_users);
}

/// As upstream, errors of a resize policy have the path of the list.
fn choice_at(errors: &mut Errors, at: &Path, value: &str, supported: &[&str]) {
    if value.is_empty() {
        errors.required(at, "");
    } else {
        one_of(errors, at, value, supported);
    }
}

fn resize_policy(errors: &mut Errors, container: &Value, at: &Path, restart_policy: &str) {
    let policies = list(container, "resizePolicy");
    if policies.is_empty() {
        return;
    }
    let at = at.child("resizePolicy");
    let mut seen = BTreeSet::new();
    for (i, policy) in policies.iter().enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(resource) {
            errors.duplicate(&at.index(i), resource);
        }
        choice_at(errors, &at, resource, &["cpu", "memory"]);
        choice_at(errors, &at, restart, &["NotRequired", "RestartContainer"]);
        if restart_policy == "Never" && restart != "NotRequired" {
            let why = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.invalid(&at, restart, why);
        }
    }
}

/// Checks the container's own restart policy and restart rules.
fn restart_policy(errors: &mut Errors, container: &Value, at: &Path) {
    let rules = list(container, "restartPolicyRules");
    let policy_at = at.child("restartPolicy");
    match opt_text(container, "restartPolicy") {
        Some(policy) => one_of(errors, &policy_at, policy, &RESTART_POLICIES),
        None if rules.is_empty() => return,
        None => {
            let why = "must specify restartPolicy when restart rules are used";
            errors.required(&policy_at, why);
        }
    }
    if rules.len() > RESTART_RULES_MAX {
        let at = at.child("restartPolicyRules");
        errors.too_many(&at, rules.len(), RESTART_RULES_MAX);
    }
    for (rule, at) in each(container, at, "restartPolicyRules") {
        let action = text(rule, "action");
        one_of(errors, &at.child("action"), action, &RESTART_ACTIONS);
        let Some(codes) = rule.get("exitCodes") else {
            let why = "must be specified";
            errors.required(&at.child("exitCodes"), why);
            continue;
        };
        let at = at.child("exitCodes");
        let operator = text(codes, "operator");
        one_of(errors, &at.child("operator"), operator, &["In", "NotIn"]);
        let count = list(codes, "values").len();
        if count > EXIT_CODES_MAX {
            errors.too_many(&at.child("values"), count, EXIT_CODES_MAX);
        }
    }
}

/// Images of pods, unlike those of templates, may not have leading or trailing spaces.
pub(super) fn untrimmed_images(errors: &mut Errors, spec: &Value, at: &Path) {
    for kind in ["containers", "initContainers"] {
        for (i, container) in list(spec, kind).iter().enumerate() {
            if text(container, "image").trim() != text(container, "image") {
                untrimmed_image(errors, container, &at.child(kind).index(i));
            }
        }
    }
}

fn untrimmed_image(errors: &mut Errors, container: &Value, at: &Path) {
    let image = text(container, "image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        errors.invalid(&at.child("image"), image, why);
    }
}
