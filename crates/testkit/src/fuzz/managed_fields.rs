//! Server-side apply and managed fields.

use kennel_core::managed_fields::{FieldManager, FieldSet, Managers, Ownership};
use kennel_server::registry::{RESOURCES, Resource};
use kennel_server::schema::{self, Structure};
use serde_json::{Value, json as tree};

use super::{USUAL_KINDS, split, type_of};

/// Some time: an entry without one is stored as one of 1970.
const NOW: jiff::Timestamp = jiff::Timestamp::constant(1_767_322_845, 0);

/// Server-side apply. The input is `object`, a line of three dashes, and the configuration, in YAML; or a
/// configuration.
pub fn apply(input: &[u8]) {
    let (object, config) = split(input);
    let (Ok(object), Ok(config)) = (schema::parse_yaml(object), schema::parse_yaml(config)) else {
        return;
    };
    let (object, config) = (object.value, config.value);
    for row in RESOURCES
        .iter()
        .filter(|row| USUAL_KINDS.contains(&row.kind))
    {
        apply_twice(row, &object, &config);
    }
}

/// Applying the same again succeeds and changes nothing.
fn apply_twice(row: &Resource, object: &Value, config: &Value) {
    let fields = FieldManager {
        schema: Structure::Object(type_of(row)),
        manager: "fuzz",
        api_version: &row.api_version(),
        subresource: "",
        is_version: &|_| true,
        ignored: &FieldSet::default(),
        now: NOW,
    };
    let Ok(first) = fields.apply(Some(object), config, Managers::default(), true) else {
        return;
    };
    let listed = Ownership::Listed(first.managers.clone());
    let stored = listed.relative_to(fields.schema, fields.api_version, &first.object);
    let managers = stored.list(fields.schema, fields.api_version, &first.object);
    assert_eq!(managers, first.managers, "what is stored is what was");
    if let Ok(second) = fields.apply(Some(&first.object), config, first.managers.clone(), false) {
        assert_eq!(
            second.object, first.object,
            "applying twice is applying once"
        );
        assert_eq!(second.managers, first.managers);
    }
}

/// The fields of a manager. The input is `object`, a line of three dashes, and its `fieldsV1`; or `fieldsV1`.
pub fn fields_v1(input: &[u8]) {
    let (object, fields) = split(input);
    let (Ok(object), Ok(fields)) = (schema::parse(object), schema::parse(fields)) else {
        return;
    };
    let (object, fields) = (object.value, fields.value);
    let _unusable = Managers::from_value(&fields);
    let _unusable = Ownership::from_stored(&fields);
    let Ok(set) = FieldSet::from_fields_v1(&fields) else {
        return;
    };
    let written = serde_json::from_str(&set.to_fields_v1()).expect("fields are JSON");
    let again = FieldSet::from_fields_v1(&written).expect("our own fields can be read");
    assert_eq!(again, set);
    for path in set.paths() {
        assert!(set.has(&path), "{path:?} of {written}");
    }
    assert_eq!(set.clone().union(&again), set, "a union with itself");
    assert_eq!(set.intersection(&again), set, "what it shares with itself");
    let rest = set.clone().difference(&again);
    assert!(rest.is_empty() && set.is_subset_of(&again), "{written}");
    // A manager without fields is none.
    if set.is_empty() {
        return;
    }
    for row in RESOURCES
        .iter()
        .filter(|row| USUAL_KINDS.contains(&row.kind))
    {
        managers_are_kept(row, &object, &fields);
    }
}

/// A manager of these fields is the same after it was written, and after it was stored beside its object.
fn managers_are_kept(row: &Resource, object: &Value, fields: &Value) {
    let version = row.api_version();
    let entry = tree!([{
        "manager": "fuzz", "operation": "Update", "apiVersion": version,
        "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
    }]);
    let managers = Managers::from_value(&entry).expect("an entry of readable fields is one");
    let again = Managers::from_value(&managers.to_value()).expect("our own entries can be read");
    assert_eq!(again, managers);
    let schema = Structure::Object(type_of(row));
    let stored = Ownership::Listed(managers.clone()).relative_to(schema, &version, object);
    let listed = stored.list(schema, &version, object);
    assert_eq!(listed, managers, "what is stored is what was");
}
