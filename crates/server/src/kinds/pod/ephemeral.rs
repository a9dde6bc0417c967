//! The `ephemeralcontainers` subresource: adding containers to a running pod, for a look at it.

use serde_json::Value;

use super::annotations::{has_bad_cost, is_mirror};
use super::check::Errors;
use super::create::metadata_and_spec;
use super::leniency::Leniency;
use super::read::{list, text};
use super::update::count_changes;
use crate::field::{FieldError, Path};
use crate::kinds::tree;
use crate::schema::semantic_eq as same;

/// Takes everything but the ephemeral containers from `old`.
pub fn prepare_ephemeral_containers(new: &mut Value, old: &Value) {
    let containers = tree::at(new, "spec.ephemeralContainers").clone();
    tree::carry(new, old, "spec");
    tree::carry(new, old, "status");
    if containers.is_null() {
        tree::remove(new, "spec.ephemeralContainers");
    } else {
        tree::set(new, "spec.ephemeralContainers", containers);
    }
    count_changes(new, old);
}

/// What is wrong with `new` as `old` with more ephemeral containers.
pub fn validate_ephemeral_containers(new: &Value, old: &Value) -> Vec<FieldError> {
    let nothing = Value::Null;
    let metadata = old.get("metadata").unwrap_or(&nothing);
    if is_mirror(metadata) {
        let why = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden(&Path::default(), why)];
    }
    let spec = old.get("spec").unwrap_or(&nothing);
    let mut errors = Errors::new();
    metadata_and_spec(
        &mut errors,
        new,
        Leniency::towards(spec),
        has_bad_cost(metadata),
    );
    let at = Path::new("spec").child("ephemeralContainers");
    let after = tree::list(new, "spec.ephemeralContainers");
    for before in list(spec, "ephemeralContainers") {
        let name = text(before, "name");
        match after
            .iter()
            .find(|container| text(container, "name") == name)
        {
            Some(kept) if same(kept, before) => {}
            Some(_) => {
                let why = format!("existing ephemeral containers \"{name}\" may not be changed\n");
                errors.push(FieldError::forbidden(&at, &why));
            }
            None => {
                let why = format!("existing ephemeral containers \"{name}\" may not be removed\n");
                errors.push(FieldError::forbidden(&at, &why));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Strategy as _;
    use crate::kinds::pod::Pod;
    use crate::kinds::testing::{check, created};

    #[test]
    fn ephemeral_containers_are_added_and_stay() {
        let old = created(
            &Pod,
            &json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        );
        let mut new = old.clone();
        new["spec"]["hostNetwork"] = json!(true);
        new["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "i"}]);
        Pod.default(&mut new);
        prepare_ephemeral_containers(&mut new, &old);
        assert_eq!(new["spec"].get("hostNetwork"), None);
        assert_eq!(new["metadata"]["generation"], 2);
        check(&validate_ephemeral_containers(&new, &old), &[]);
        check(
            &validate_ephemeral_containers(&old, &new),
            &[
                "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"debug\" may not be removed\n",
            ],
        );
        new["spec"]["ephemeralContainers"][0]["ports"] =
            json!([{"containerPort": 1, "protocol": "TCP"}]);
        check(
            &validate_ephemeral_containers(&new, &old),
            &[
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
            ],
        );
    }
}
