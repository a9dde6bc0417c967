//! The strategies of `CSINode` and `CSIDriver`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Strategy;
use super::check::{NOT_NEGATIVE, check_token_seconds, each, one_of, require};
use super::meta::{IMMUTABLE, first_generation, immutable, immutable_at, next_generation};
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{default_to, int, list, remove, same, set, text, texts};

const DRIVER_NAME_LENGTH_MAX: usize = 63;
const NODE_ID_LENGTH_MAX: usize = 192;
const UPDATE_PERIOD_SECONDS_MIN: i64 = 10;
const FS_GROUP_POLICIES: [&str; 3] = ["ReadWriteOnceWithFSType", "File", "None"];
const LIFECYCLE_MODES: [&str; 2] = ["Persistent", "Ephemeral"];

#[derive(Debug)]
pub struct CsiNode;

impl Strategy for CsiNode {
    fn validate_create(&self, object: &Value) -> Errors {
        let mut seen = BTreeSet::new();
        let mut errors = Errors::new();
        for (driver, path) in each(object, &Path::default(), "spec.drivers") {
            check_node_driver(&mut errors, driver, &path);
            let name = text(driver, "name");
            if !seen.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        for before in list(old, "spec.drivers") {
            let after = list(new, "spec.drivers")
                .iter()
                .find(|driver| text(driver, "name") == text(before, "name"));
            if let Some(after) = after.filter(|after| !same_driver(before, after)) {
                errors.invalid(&Path::new("CSINodeDriver"), after, IMMUTABLE);
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

fn check_node_driver(errors: &mut Errors, driver: &Value, path: &Path) {
    check_driver_name(errors, text(driver, "name"), &path.child("name"));
    let id = text(driver, "nodeID");
    if id.is_empty() {
        require(errors, path, "nodeID");
    } else if id.len() > NODE_ID_LENGTH_MAX {
        let words = format!("must be {NODE_ID_LENGTH_MAX} characters or less");
        errors.invalid(&path.child("nodeID"), id, &words);
    }
    if let Some(count) = int(driver, "allocatable.count").filter(|count| *count < 0) {
        errors.invalid(&path.child("allocatable.count"), count, NOT_NEGATIVE);
    }
    let mut seen = BTreeSet::new();
    for key in texts(driver, "topologyKeys") {
        let path = path.child("topologyKeys");
        if !seen.insert(key) {
            errors.duplicate(&path, key);
        }
        errors.invalid_each(&path, key, names::qualified_name(key));
    }
}

fn check_driver_name(errors: &mut Errors, name: &str, path: &Path) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name.len() > DRIVER_NAME_LENGTH_MAX {
        errors.too_long(path, DRIVER_NAME_LENGTH_MAX);
    }
    let wrong = names::dns1123_subdomain(&name.to_lowercase());
    errors.invalid_each(path, name, wrong);
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

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let at_name = Path::new("metadata.name");
        check_driver_name(&mut errors, text(object, "metadata.name"), &at_name);
        check_driver_spec(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        // Upstream misspells this one.
        let path = Path::new("spec.attachedRequired");
        errors.extend(immutable_at(new, old, "spec.attachRequired", &path));
        immutable(&mut errors, new, old, "spec.volumeLifecycleModes");
        errors
    }
}

fn check_driver_spec(errors: &mut Errors, object: &Value) {
    let policy = text(object, "spec.fsGroupPolicy");
    let path = Path::new("spec.fsGroupPolicy");
    one_of(errors, &path, policy, &FS_GROUP_POLICIES);
    let mut seen = BTreeSet::new();
    for (request, path) in each(object, &Path::default(), "spec.tokenRequests") {
        let audience = text(request, "audience");
        if !seen.insert(audience) {
            errors.duplicate(&path.child("audience"), audience);
        }
        if let Some(seconds) = int(request, "expirationSeconds") {
            check_token_seconds(errors, &path.child("expirationSeconds"), seconds);
        }
    }
    for (i, mode) in texts(object, "spec.volumeLifecycleModes").enumerate() {
        let path = Path::new("spec.volumeLifecycleModes").index(i);
        one_of(errors, &path, mode, &LIFECYCLE_MODES);
    }
    let field = "spec.nodeAllocatableUpdatePeriodSeconds";
    let period = int(object, field);
    if let Some(period) = period.filter(|period| *period < UPDATE_PERIOD_SECONDS_MIN) {
        let words = format!("must be greater than or equal to {UPDATE_PERIOD_SECONDS_MIN} seconds");
        errors.invalid(&Path::new(field), period, &words);
    }
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
