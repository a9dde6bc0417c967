//! Validates environment variables and their sources.

use serde_json::Value;

use super::downward::{field_ref, resource_ref};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{form, require, require_text, required_form, unreserved_path};
use crate::names;
use crate::tree::{list, text};

/// The fields of the pod that variables can refer to, in the order in which errors list them.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const ENV_SOURCES_MISSING: &str =
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
const TOO_MANY_SOURCES: &str = "may not have more than one field specified at a time";

/// Checks `env` and `envFrom` of one container.
pub(super) fn container(errors: &mut Errors, container: &Value, at: &Path) {
    let vars = list(container, "env");
    if !vars.is_empty() {
        let at = at.child("env");
        for (i, var) in vars.iter().enumerate() {
            variable(errors, var, &at, i);
        }
    }
    let sources = list(container, "envFrom");
    if !sources.is_empty() {
        let at = at.child("envFrom");
        for (i, source) in sources.iter().enumerate() {
            env_from(errors, source, &at, i);
        }
    }
}

fn variable(errors: &mut Errors, var: &Value, list: &Path, i: usize) {
    let name = text(var, "name");
    let mistakes = names::env_var_name(name);
    if name.is_empty() {
        require(errors, &list.index(i), "name");
    } else if !mistakes.is_empty() {
        form(errors, &list.index(i), "name", name, mistakes);
    }
    if let Some(source) = var.get("valueFrom") {
        let at = list.index(i).child("valueFrom");
        value_from(errors, source, !text(var, "value").is_empty(), &at);
    }
}

fn value_from(errors: &mut Errors, source: &Value, has_value: bool, at: &Path) {
    let mut sources = 0;
    if let Some(reference) = source.get("fieldRef") {
        sources += 1;
        field_ref(errors, reference, &at.child("fieldRef"), &ENV_FIELDS);
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        sources += 1;
        resource_ref(errors, reference, &at.child("resourceFieldRef"), false);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.get(name) {
            sources += 1;
            key_ref(errors, reference, &at.child(name));
        }
    }
    if let Some(reference) = source.get("fileKeyRef") {
        sources += 1;
        file_ref(errors, reference, &at.child("fileKeyRef"));
    }
    let detail = match sources {
        0 => ENV_SOURCES_MISSING,
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => TOO_MANY_SOURCES,
    };
    errors.invalid(at, "", detail);
}

fn key_ref(errors: &mut Errors, reference: &Value, at: &Path) {
    let name = text(reference, "name");
    form(errors, at, "name", name, names::dns1123_subdomain(name));
    required_form(errors, reference, at, "key", names::config_map_key);
}

fn file_ref(errors: &mut Errors, reference: &Value, at: &Path) {
    required_form(errors, reference, at, "key", names::env_var_name);
    require_text(errors, reference, at, "volumeName");
    let path = text(reference, "path");
    if path.is_empty() {
        require(errors, at, "path");
    } else {
        unreserved_path(errors, &at.child("path"), path);
    }
}

fn env_from(errors: &mut Errors, source: &Value, list: &Path, i: usize) {
    let prefix = text(source, "prefix");
    if !prefix.is_empty() {
        let mistakes = names::env_var_name(prefix);
        if !mistakes.is_empty() {
            form(errors, &list.index(i), "prefix", prefix, mistakes);
        }
    }
    let mut sources = 0;
    for kind in ["configMapRef", "secretRef"] {
        let Some(reference) = source.get(kind) else {
            continue;
        };
        sources += 1;
        let name = text(reference, "name");
        let at = list.index(i).child(kind);
        if name.is_empty() {
            require(errors, &at, "name");
        } else {
            let judged = names::mask_trailing_dash(name);
            form(errors, &at, "name", name, names::dns1123_subdomain(&judged));
        }
    }
    let detail = match sources {
        0 => "must specify one of: `configMapRef` or `secretRef`",
        1 => return,
        _ => TOO_MANY_SOURCES,
    };
    errors.invalid(list, "", detail);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(var: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        container(&mut errors, &json!({"env": [var]}), &Path::new("c"));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{var}");
    }

    fn from(source: &Value) -> Value {
        json!({"name": "A", "valueFrom": source})
    }

    #[test]
    fn field_references_name_fields_that_variables_may_show() {
        let field =
            |path: &str| from(&json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}}));
        check(&field("spec.nodeName"), &[]);
        check(&field("metadata.labels['app.kubernetes.io/name']"), &[]);
        check(
            &field("spec.restartPolicy"),
            &[
                "c.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"spec.restartPolicy\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
            ],
        );
        check(
            &field("spec.nope"),
            &[
                "c.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.nope\": error converting fieldPath: field label not supported: spec.nope",
            ],
        );
        check(
            &field("metadata.name['a']"),
            &[
                "c.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
            ],
        );
    }

    #[test]
    fn resource_references_name_resources_and_fitting_divisors() {
        let resource = |name: &str, divisor: &str| {
            from(&json!({"resourceFieldRef": {"resource": name, "divisor": divisor}}))
        };
        check(&resource("limits.cpu", "1m"), &[]);
        check(&resource("limits.hugepages-2Mi", "1Mi"), &[]);
        check(
            &resource("limits.cpu", "2"),
            &[
                "c.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource",
            ],
        );
        check(
            &resource("limits.gpu", "0"),
            &[
                "c.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: \"limits.gpu\": supported values: \"limits.cpu\", \"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", \"requests.memory\"",
            ],
        );
    }

    #[test]
    fn a_value_has_one_source() {
        check(
            &from(&json!({})),
            &[
                "c.env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
            ],
        );
        check(
            &from(
                &json!({"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "s", "key": "k"}}),
            ),
            &[
                "c.env[0].valueFrom: Invalid value: \"\": may not have more than one field specified at a time",
            ],
        );
        check(
            &from(&json!({"secretKeyRef": {"name": "s"}})),
            &["c.env[0].valueFrom.secretKeyRef.key: Required value"],
        );
    }

    #[test]
    fn env_from_needs_one_source() {
        let mut errors = Errors::new();
        container(
            &mut errors,
            &json!({"envFrom": [{"prefix": "P_"}]}),
            &Path::new("c"),
        );
        assert_eq!(
            errors[0].to_string(),
            "c.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"
        );
    }
}
