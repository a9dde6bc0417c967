//! Preparation and validation of writes through `pods/ephemeralcontainers`: ephemeral containers are only added.

use kennel_types::pod::MIRROR_ANNOTATION;
use serde_json::Value;

use super::create::metadata_and_spec;
use super::ratcheting::Ratcheting;
use super::{annotations, update};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::meta;
use crate::schema::semantic_eq as same;
use crate::tree::{self, list, text};

/// The metadata that a write of this part does not change.
const KEPT_METADATA: [&str; 6] = [
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.labels",
    "metadata.annotations",
    "metadata.finalizers",
    "metadata.ownerReferences",
];

/// What a write of this part does not change: everything but the ephemeral containers. Nobody owns it through this part.
pub(super) const RESET_FIELDS: &[&[&str]] = &[
    &["metadata"],
    &["status"],
    &["spec", "activeDeadlineSeconds"],
    &["spec", "affinity"],
    &["spec", "automountServiceAccountToken"],
    &["spec", "containers"],
    &["spec", "dnsConfig"],
    &["spec", "dnsPolicy"],
    &["spec", "enableServiceLinks"],
    &["spec", "hostAliases"],
    &["spec", "hostIPC"],
    &["spec", "hostNetwork"],
    &["spec", "hostPID"],
    &["spec", "hostUsers"],
    &["spec", "hostname"],
    &["spec", "hostnameOverride"],
    &["spec", "imagePullSecrets"],
    &["spec", "initContainers"],
    &["spec", "nodeName"],
    &["spec", "nodeSelector"],
    &["spec", "os"],
    &["spec", "overhead"],
    &["spec", "preemptionPolicy"],
    &["spec", "priority"],
    &["spec", "priorityClassName"],
    &["spec", "readinessGates"],
    &["spec", "resourceClaims"],
    &["spec", "resources"],
    &["spec", "restartPolicy"],
    &["spec", "runtimeClassName"],
    &["spec", "schedulerName"],
    &["spec", "schedulingGates"],
    &["spec", "schedulingGroup"],
    &["spec", "securityContext"],
    &["spec", "serviceAccount"],
    &["spec", "serviceAccountName"],
    &["spec", "setHostnameAsFQDN"],
    &["spec", "shareProcessNamespace"],
    &["spec", "subdomain"],
    &["spec", "terminationGracePeriodSeconds"],
    &["spec", "tolerations"],
    &["spec", "topologySpreadConstraints"],
    &["spec", "volumes"],
];

/// Copies everything but the ephemeral containers from `old`, and increments the generation if they changed.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    let containers = tree::remove(new, "spec.ephemeralContainers");
    tree::copy_from_old(new, old, "spec");
    tree::copy_from_old(new, old, "status");
    for field in KEPT_METADATA {
        tree::copy_from_old(new, old, field);
    }
    match containers {
        Some(containers) => tree::set(new, "spec.ephemeralContainers", containers),
        None => drop(tree::remove(new, "spec.ephemeralContainers")),
    }
    update::count_changes(new, old);
}

/// Validates the ephemeral containers of `new` after those of `old`.
pub(super) fn validate(new: &Value, old: &Value) -> Errors {
    let (new_metadata, old_metadata) = (tree::at(new, "metadata"), tree::at(old, "metadata"));
    if tree::map(old_metadata, "annotations").contains_key(MIRROR_ANNOTATION) {
        let mut errors = Errors::new();
        // As upstream: it has no path, which is shown so.
        let why = "static pods do not support ephemeral containers";
        errors.forbidden(&Path::default().key(""), why);
        return errors;
    }
    let mut errors = meta::validate_update(new_metadata, old_metadata);
    let ratcheting = Ratcheting::towards(tree::at(old, "spec"));
    let any_cost = annotations::has_bad_cost(old_metadata);
    metadata_and_spec(&mut errors, new, ratcheting, any_cost);
    only_added(&mut errors, tree::at(new, "spec"), tree::at(old, "spec"));
    errors
}

/// Patches do not keep the order, so containers are compared by name.
fn only_added(errors: &mut Errors, new: &Value, old: &Value) {
    const FIELD: &str = "ephemeralContainers";
    let at = Path::new("spec").child(FIELD);
    for before in list(old, FIELD) {
        let name = text(before, "name");
        let mut all = list(new, FIELD).iter().rev();
        match all.find(|after| text(after, "name") == name) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.forbidden(&at, &why);
            }
            Some(after) if !same(after, before) => {
                let mut why =
                    format!("existing ephemeral containers {name:?} may not be changed\n");
                update::difference(&mut why, FIELD, before, after);
                errors.forbidden(&at, &why);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn all_of_the_spec_but_the_ephemeral_containers_is_reset() {
        let spec = schema::find("core.v1.PodSpec").unwrap();
        let names = spec.fields.iter().map(|field| field.name);
        let others = names.filter(|name| *name != "ephemeralContainers");
        let expected: Vec<Vec<&str>> = others.map(|name| vec!["spec", name]).collect();
        let of_spec = RESET_FIELDS.iter().filter(|path| path[0] == "spec");
        let reset: Vec<Vec<&str>> = of_spec.map(|path| path.to_vec()).collect();
        assert_eq!(reset, expected);
    }
}
