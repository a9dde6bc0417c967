//! The strategy of Pod, and of the pod templates in other kinds.
//!
//! ```text
//!  defaults (in core): defaults of pods and templates; defaults_pod: defaults of pods alone
//!  create, update, status, ephemeral_containers, bind: what the server sets and checks at each write
//!  spec ─▶ volumes, containers, affinity, …: validation of a pod spec, one module per topic
//!  template: validation of a pod template
//! ```
//!
//! Errors have upstream's order, words and mistakes: tools compare them.

mod affinity;
mod aggregate;
mod annotations;
mod bind;
mod claim_template;
mod containers;
mod create;
mod defaults_pod;
mod disks;
mod downward;
mod env;
mod ephemeral_containers;
mod files;
mod gated;
mod mounts;
mod network;
mod os;
mod ports;
mod probes;
mod ratcheting;
mod resource_claims;
pub(in crate::kinds) mod resources;
mod resources_pod;
mod security;
mod spec;
mod spread;
mod status;
pub(crate) mod template;
mod tolerations;
mod update;
mod volumes;
pub(crate) mod warnings;
mod warnings_placement;
mod warnings_ports;
mod windows;

#[cfg(test)]
mod tests;

use kennel_types::PodPhase;
use serde_json::Value;

pub use bind::{BindError, bind};
pub(crate) use kennel_core::pod::defaults;

use super::Strategy;
use crate::field::{Errors, Path};
use crate::names;
use crate::registry::Part;
use crate::tree;

#[derive(Debug)]
pub struct Pod;

impl Strategy for Pod {
    fn reset_fields(&self, part: Part) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ],
            Part::EphemeralContainers => ephemeral_containers::RESET_FIELDS,
            _ => &[&["status"]],
        }
    }

    fn default(&self, object: &mut Value) {
        if !tree::has(object, "spec") {
            tree::set(object, "spec", serde_json::json!({}));
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            defaults::pod_spec(spec);
            defaults::pod(spec);
            defaults_pod::pod_requests(spec);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        create::prepare(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        update::prepare(new, old);
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        status::prepare(new, old);
    }

    fn adds_to_status(&self, new: &Value, old: &Value) -> bool {
        status::adds_fields(new, old)
    }

    fn validate_create(&self, object: &Value) -> Errors {
        create::validate(object)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        update::validate(new, old)
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Errors {
        status::validate(new, old)
    }

    fn prepare_subresource_update(&self, new: &mut Value, old: &Value, _now: &str) {
        ephemeral_containers::prepare(new, old);
    }

    fn validate_subresource_update(&self, new: &Value, old: &Value) -> Errors {
        ephemeral_containers::validate(new, old)
    }

    fn grace_seconds(&self, pod: &Value, asked: Option<i64>) -> i64 {
        let unbound = tree::text(pod, "spec.nodeName").is_empty();
        let phase = tree::text(pod, "status.phase");
        if unbound || PodPhase::from(phase).is_terminal() {
            return 0;
        }
        let own = || pod["spec"]["terminationGracePeriodSeconds"].as_i64();
        match asked.or_else(own).unwrap_or(0) {
            // Upstream's reading of a negative grace period: as soon as possible, but gracefully.
            negative if negative < 0 => 1,
            seconds => seconds,
        }
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() {
            // Updates of pods come from controllers, and no one reads their warnings.
            return Vec::new();
        }
        let name = tree::text(object, "metadata.name");
        let mistakes = names::dns1123_label(name);
        let mut found = Vec::new();
        if !mistakes.is_empty() {
            let why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
            found.push(format!("metadata.name: {why}: [{}]", mistakes.join(" ")));
        }
        found.extend(warnings::of(object, &Path::default(), false));
        found
    }
}
