//! The strategies of `CSINode` and `CSIDriver`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Strategy;
use super::meta::{first_generation, immutable, invalid_each, next_generation};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{at, default_to, has, int, list, number, remove, same, set, text, texts};

const DRIVER_NAME_LENGTH_MAX: usize = 63;
const NODE_ID_LENGTH_MAX: usize = 192;
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const UPDATE_PERIOD_SECONDS_MIN: i64 = 10;
const FS_GROUP_POLICIES: [&str; 3] = ["ReadWriteOnceWithFSType", "File", "None"];
const LIFECYCLE_MODES: [&str; 2] = ["Persistent", "Ephemeral"];

#[derive(Debug)]
pub struct CsiNode;

impl Strategy for CsiNode {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec").child("drivers");
        let mut seen = BTreeSet::new();
        let mut errors = Vec::new();
        for (i, driver) in list(object, "spec.drivers").iter().enumerate() {
            let path = path.index(i);
            errors.extend(node_driver_errors(driver, &path));
            let name = text(driver, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), &json!(name)));
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        for before in list(old, "spec.drivers") {
            let after = list(new, "spec.drivers")
                .iter()
                .find(|driver| text(driver, "name") == text(before, "name"));
            if let Some(after) = after.filter(|after| !same_driver(before, after)) {
                let path = Path::new("CSINodeDriver");
                errors.push(FieldError::invalid(&path, after, super::meta::IMMUTABLE));
            }
        }
        errors
    }
}

/// The entry of a driver is immutable except for its allocatable count.
fn same_driver(before: &Value, after: &Value) -> bool {
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        remove(&mut driver, "allocatable.count");
        driver
    };
    same(&fixed(before), &fixed(after))
}

fn node_driver_errors(driver: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = driver_name_errors(text(driver, "name"), &path.child("name"));
    let id = text(driver, "nodeID");
    let at_id = path.child("nodeID");
    if id.is_empty() {
        errors.push(FieldError::required(&at_id, ""));
    } else if id.len() > NODE_ID_LENGTH_MAX {
        let words = format!("must be {NODE_ID_LENGTH_MAX} characters or less");
        errors.push(FieldError::invalid(&at_id, &json!(id), &words));
    }
    if let Some(count) = int(driver, "allocatable.count").filter(|count| *count < 0) {
        let path = path.child("allocatable").child("count");
        let words = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path, &json!(count), words));
    }
    let mut seen = BTreeSet::new();
    for key in texts(driver, "topologyKeys") {
        let path = path.child("topologyKeys");
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&path, &json!(key)));
        }
        errors.extend(invalid_each(&path, &json!(key), names::qualified_name(key)));
    }
    errors
}

/// Validates the name of a driver.
pub fn driver_name_errors(name: &str, path: &Path) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    if name.len() > DRIVER_NAME_LENGTH_MAX {
        errors.push(FieldError::too_long(path, DRIVER_NAME_LENGTH_MAX));
    }
    let wrong = names::dns1123_subdomain(&name.to_lowercase());
    errors.extend(invalid_each(path, &json!(name), wrong));
    errors
}

#[derive(Debug)]
pub struct CsiDriver;

impl Strategy for CsiDriver {
    fn default(&self, object: &mut Value) {
        default_to(object, "spec.attachRequired", true);
        default_to(object, "spec.podInfoOnMount", false);
        default_to(object, "spec.storageCapacity", false);
        default_to(object, "spec.fsGroupPolicy", FS_GROUP_POLICIES[0]);
        if list(object, "spec.volumeLifecycleModes").is_empty() {
            let modes = json!([LIFECYCLE_MODES[0]]);
            set(object, "spec.volumeLifecycleModes", modes);
        }
        default_to(object, "spec.requiresRepublish", false);
        default_to(object, "spec.seLinuxMount", false);
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        next_generation(new, old, &["spec"]);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let at_name = Path::new("metadata").child("name");
        let mut errors = driver_name_errors(text(object, "metadata.name"), &at_name);
        errors.extend(driver_spec_errors(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let spec = Path::new("spec");
        let mut errors = self.validate_create(new);
        // Upstream misspells this one.
        let path = spec.child("attachedRequired");
        errors.extend(immutable(new, old, "spec.attachRequired", &path));
        let path = spec.child("volumeLifecycleModes");
        errors.extend(immutable(new, old, "spec.volumeLifecycleModes", &path));
        errors
    }
}

fn driver_spec_errors(object: &Value) -> Vec<FieldError> {
    let spec = Path::new("spec");
    let mut errors = Vec::new();
    let policy = text(object, "spec.fsGroupPolicy");
    if !FS_GROUP_POLICIES.contains(&policy) {
        let path = spec.child("fsGroupPolicy");
        errors.push(FieldError::not_supported(
            &path,
            &json!(policy),
            &FS_GROUP_POLICIES,
        ));
    }
    errors.extend(token_errors(object, &spec.child("tokenRequests")));
    for (i, mode) in texts(object, "spec.volumeLifecycleModes").enumerate() {
        if !LIFECYCLE_MODES.contains(&mode) {
            let path = spec.child("volumeLifecycleModes").index(i);
            errors.push(FieldError::not_supported(
                &path,
                &json!(mode),
                &LIFECYCLE_MODES,
            ));
        }
    }
    let period = int(object, "spec.nodeAllocatableUpdatePeriodSeconds");
    if let Some(period) = period.filter(|period| *period < UPDATE_PERIOD_SECONDS_MIN) {
        let path = spec.child("nodeAllocatableUpdatePeriodSeconds");
        let words = format!("must be greater than or equal to {UPDATE_PERIOD_SECONDS_MIN} seconds");
        errors.push(FieldError::invalid(&path, &json!(period), &words));
    }
    errors
}

fn token_errors(object: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, request) in list(object, "spec.tokenRequests").iter().enumerate() {
        let path = path.index(i);
        let audience = text(request, "audience");
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(
                &path.child("audience"),
                &json!(audience),
            ));
        }
        if !has(request, "expirationSeconds") {
            continue;
        }
        let value = at(request, "expirationSeconds");
        let seconds = number(request, "expirationSeconds");
        let path = path.child("expirationSeconds");
        if seconds < TOKEN_SECONDS_MIN {
            let words = "may not specify a duration less than 10 minutes";
            errors.push(FieldError::invalid(&path, value, words));
        }
        if seconds > TOKEN_SECONDS_MAX {
            let words = "may not specify a duration larger than 2^32 seconds";
            errors.push(FieldError::invalid(&path, value, words));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, check_update, created, updated};
    use super::*;

    fn node(drivers: &Value) -> Value {
        json!({"spec": {"drivers": drivers}})
    }

    #[test]
    fn drivers_of_a_node() {
        let good = json!({"name": "a.b", "nodeID": "n", "topologyKeys": ["x/y"]});
        check_create(&CsiNode, &node(&json!([good])), &[]);
        check_create(
            &CsiNode,
            &node(&json!([good, {"name": "a.b", "nodeID": "", "allocatable": {"count": -1}}])),
            &[
                "spec.drivers[1].nodeID: Required value",
                "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or \
                 equal to 0",
                "spec.drivers[1].name: Duplicate value: \"a.b\"",
            ],
        );
    }

    #[test]
    fn a_driver_of_a_node_stays() {
        let old = node(&json!([{"name": "a", "nodeID": "n", "allocatable": {"count": 1}}]));
        let moved = node(&json!([{"name": "a", "nodeID": "n", "allocatable": {"count": 2}}]));
        check_update(&CsiNode, &moved, &old, &[]);
        check_update(&CsiNode, &node(&json!([])), &old, &[]);
        check_update(
            &CsiNode,
            &node(&json!([{"name": "a", "nodeID": "m"}])),
            &old,
            &[
                "CSINodeDriver: Invalid value: {\"name\":\"a\",\"nodeID\":\"m\"}: field is \
               immutable",
            ],
        );
    }

    #[test]
    fn driver_defaults_and_generation() {
        let old = created(&CsiDriver, &json!({"metadata": {"name": "a"}}));
        assert_eq!(
            old,
            json!({"metadata": {"name": "a", "generation": 1}, "spec": {
                "attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
                "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
                "requiresRepublish": false, "seLinuxMount": false}})
        );
        let mut new = old.clone();
        new["spec"]["requiresRepublish"] = json!(true);
        assert_eq!(updated(&CsiDriver, &new, &old)["metadata"]["generation"], 2);
    }

    #[test]
    fn driver_rules() {
        let driver = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
        check_create(
            &CsiDriver,
            &driver(
                json!({"fsGroupPolicy": "All", "volumeLifecycleModes": ["Odd"],
                "tokenRequests": [{"audience": "x", "expirationSeconds": 1}, {"audience": "x"}]}),
            ),
            &[
                "spec.fsGroupPolicy: Unsupported value: \"All\": supported values: \
                 \"ReadWriteOnceWithFSType\", \"File\", \"None\"",
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a \
                 duration less than 10 minutes",
                "spec.tokenRequests[1].audience: Duplicate value: \"x\"",
                "spec.volumeLifecycleModes[0]: Unsupported value: \"Odd\": supported values: \
                 \"Persistent\", \"Ephemeral\"",
            ],
        );
        check_update(
            &CsiDriver,
            &driver(json!({"attachRequired": false})),
            &driver(json!({})),
            &["spec.attachedRequired: Invalid value: false: field is immutable"],
        );
    }
}
