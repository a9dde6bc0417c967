//! Warnings about accepted pods and pod templates.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD, annotation};
use super::containers::each_container;
use super::warnings_placement as placement;
use super::warnings_ports as ports;
use crate::field::Path;
use crate::tree::{int, list, map, text};

const SECCOMP_GONE: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
static DEPRECATED_VOLUMES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];

/// The warnings for a pod, or for the template at `at`.
pub(crate) fn of(pod: &Value, at: &Path, is_template: bool) -> Vec<String> {
    let nothing = Value::Null;
    let spec = pod.get("spec").unwrap_or(&nothing);
    let metadata = pod.get("metadata").unwrap_or(&nothing);
    let spec_at = at.child("spec");
    let notes_at = at.child("metadata").child("annotations");
    let mut found = Vec::new();
    placement::node_labels(&mut found, spec, &spec_at);
    for (key, why) in DEPRECATED_ANNOTATIONS {
        if annotation(metadata, key).is_some() {
            found.push(format!("{}: {why}", notes_at.key(key)));
        }
    }
    volumes(&mut found, spec, &spec_at);
    duplicates(&mut found, spec, &spec_at, "hostAliases", "ip");
    duplicates(&mut found, spec, &spec_at, "imagePullSecrets", "name");
    for (i, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            let at = spec_at.child("imagePullSecrets").index(i).child("name");
            found.push(format!("{at}: invalid empty name \"\""));
        }
    }
    fractions(&mut found, spec, "overhead", &spec_at);
    if !has_profile(spec, "seccompProfile") && annotation(metadata, SECCOMP_POD).is_some() {
        found.push(format!("{}: {SECCOMP_GONE}", notes_at.key(SECCOMP_POD)));
    }
    let pod_armored = has_profile(spec, "appArmorProfile");
    each_container(spec, &spec_at, |container, at| {
        profiles(
            &mut found,
            container,
            metadata,
            &notes_at,
            is_template && !pod_armored,
        );
        if let Some(resources) = container.get("resources") {
            fractions(&mut found, resources, "limits", &at.child("resources"));
            fractions(&mut found, resources, "requests", &at.child("resources"));
        }
        hidden_variables(&mut found, container, at);
    });
    ports::overlapping(&mut found, spec, &spec_at);
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let at = spec_at.child("terminationGracePeriodSeconds");
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        found.push(format!("{at}: {why}"));
    }
    placement::pod_affinity(&mut found, spec, &spec_at);
    found
}

fn has_profile(owner: &Value, profile: &str) -> bool {
    let context = owner.get("securityContext");
    context.is_some_and(|context| context.get(profile).is_some())
}

fn volumes(found: &mut Vec<String>, spec: &Value, at: &Path) {
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        for (key, shown, why) in &DEPRECATED_VOLUMES {
            if volume.get(key).is_some() {
                let at = at.child("volumes").index(i).child(*shown);
                found.push(format!("{at}: {why}"));
            }
        }
    }
    placement::token_paths(found, spec, at);
}

fn duplicates(
    found: &mut Vec<String>,
    spec: &Value,
    at: &Path,
    field: &'static str,
    key: &'static str,
) {
    let items = list(spec, field);
    for (i, item) in items.iter().enumerate() {
        let value = text(item, key);
        if items[..i].iter().any(|other| text(other, key) == value) {
            let at = at.child(field).index(i).child(key);
            found.push(format!("{at}: duplicate {key} {}", Value::from(value)));
        }
    }
}

/// Warns about fractions of bytes.
fn fractions(found: &mut Vec<String>, owner: &Value, field: &'static str, at: &Path) {
    let amounts = map(owner, field);
    for name in ["memory", "ephemeral-storage"] {
        let Some(amount) = amounts.get(name).map(Quantity::read) else {
            continue;
        };
        if amount.milli_value() % 1000 != 0 {
            let at = at.child(field).key(name);
            let why = "is invalid, must be an integer";
            found.push(format!("{at}: fractional byte value \"{amount}\" {why}"));
        }
    }
}

fn profiles(
    found: &mut Vec<String>,
    container: &Value,
    metadata: &Value,
    notes_at: &Path,
    armor: bool,
) {
    if metadata.get("annotations").is_none() {
        return;
    }
    let name = text(container, "name");
    let key = format!("{SECCOMP_CONTAINER}{name}");
    if !has_profile(container, "seccompProfile") && annotation(metadata, &key).is_some() {
        found.push(format!("{}: {SECCOMP_GONE}", notes_at.key(&key)));
    }
    let key = format!("{APP_ARMOR}{name}");
    if armor && !has_profile(container, "appArmorProfile") && annotation(metadata, &key).is_some() {
        let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        found.push(format!("{}: {why}", notes_at.key(&key)));
    }
}

/// Warns about duplicate variables, unless the second value refers to the first.
fn hidden_variables(found: &mut Vec<String>, container: &Value, at: &Path) {
    let vars = list(container, "env");
    for (i, var) in vars.iter().enumerate() {
        let name = text(var, "name");
        if !vars[..i].iter().any(|other| text(other, "name") == name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = text(var, "value");
        let extends = value.contains(&reference) && value != reference;
        if var.get("valueFrom").is_some() || !extends {
            let at = at.child("env").index(i);
            let why = "which may be dropped when using apply";
            let name = Value::from(name);
            found.push(format!("{at}: hides previous definition of {name}, {why}"));
        }
    }
}

pub(super) fn keys<'a>(owner: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    map(owner, field).keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: &Value, expected: &[&str]) {
        let pod = json!({"metadata": {}, "spec": spec});
        let at = Path::new("spec").child("template");
        assert_eq!(of(&pod, &at, true), expected, "{pod}");
    }

    #[test]
    fn variables_that_hide_others_are_told() {
        check(
            &json!({"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]}),
            &[
                "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            ],
        );
        check(
            &json!({"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}]}),
            &[],
        );
    }

    #[test]
    fn deprecated_labels_are_told() {
        check(
            &json!({"nodeSelector": {"beta.kubernetes.io/os": "linux"}}),
            &[
                "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
            ],
        );
    }

    #[test]
    fn ports_defined_twice_are_told() {
        check(
            &json!({"containers": [
                {"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                {"name": "b", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            ]}),
            &[
                "spec.template.spec.containers[1].ports[0]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
            ],
        );
    }

    #[test]
    fn fractions_of_bytes_are_told() {
        check(
            &json!({"containers": [{"name": "c", "resources": {"limits": {"memory": "100m"}}}]}),
            &[
                "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer",
            ],
        );
    }
}
