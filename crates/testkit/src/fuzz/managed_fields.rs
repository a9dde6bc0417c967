//! Server-side apply and managed fields.

use kennel_core::managed_fields::{ApplyError, FieldManager, FieldSet, Managers, Ownership};
use kennel_server::registry::{Part, RESOURCES, Resource};
use kennel_server::schema::{self, Structure};
use kennel_types::Timestamp;
use serde_json::{Value, json as tree};

use super::{USUAL_KINDS, completed, split, split_off_end, type_of};

/// Some time: an entry without one is stored as one of 1970.
const NOW: Timestamp = Timestamp::from_secs(1_767_322_845);

/// Server-side apply. The input is `object`, a line of three dashes, the configuration, and behind a further such line the
/// `managedFields` of the object, in YAML; or the first two; or a configuration.
pub fn apply(input: &[u8]) {
    let (object, rest) = split(input);
    let (config, managers) = split_off_end(rest);
    let parsed = [object, config, managers].map(schema::parse_yaml);
    let [Ok(object), Ok(config), Ok(managers)] = parsed else {
        return;
    };
    let (object, config) = (object.value, config.value);
    let managers = Managers::from_value(&managers.value).unwrap_or_default();
    let kind = config["kind"].as_str().unwrap_or_default();
    let named = RESOURCES.iter().any(|row| row.kind == kind);
    for row in RESOURCES {
        if row.kind == kind || (!named && USUAL_KINDS.contains(&row.kind)) {
            apply_twice(row, &object, &config, &managers);
            apply_as_server(row, object.clone(), &config, &managers);
        }
    }
}

fn any_version(_: &str) -> bool {
    true
}

fn field_manager<'a>(
    row: &'static Resource,
    api_version: &'a str,
    ignored: &'a FieldSet,
) -> FieldManager<'a, Structure> {
    FieldManager {
        schema: Structure::Object(type_of(row)),
        manager: "fuzz",
        api_version,
        subresource: "",
        is_version: &any_version,
        ignored,
        now: NOW,
    }
}

/// Force changes nothing unless there is a conflict, and applying the same again succeeds and changes nothing.
fn apply_twice(row: &'static Resource, object: &Value, config: &Value, managers: &Managers) {
    let (api_version, none) = (row.api_version(), FieldSet::default());
    let fields = field_manager(row, &api_version, &none);
    let unforced = fields.apply(Some(object), config, managers.clone(), false);
    let Ok(first) = fields.apply(Some(object), config, managers.clone(), true) else {
        assert!(unforced.is_err(), "force refuses what is applied without");
        return;
    };
    match unforced {
        Ok(unforced) => {
            assert_eq!(unforced.object, first.object, "force without a conflict");
            assert_eq!(unforced.managers, first.managers);
        }
        Err(ApplyError::Conflicts(_)) => {}
        Err(other) => panic!("force applies in spite of {other}"),
    }
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

/// As the server applies to an object that it has stored: what results conforms to the type, gets its defaults and is validated.
/// Applying the same to that conflicts with nobody and changes nothing.
fn apply_as_server(row: &'static Resource, object: Value, config: &Value, managers: &Managers) {
    let Some(mut live) = completed(row, object) else {
        return;
    };
    if let Some(Value::Object(metadata)) = live.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    let (api_version, fields) = (row.api_version(), row.strategy.reset_fields(Part::Main));
    let ignored = FieldSet::of_names(fields);
    let fields = field_manager(row, &api_version, &ignored);
    let Ok(first) = fields.apply(Some(&live), config, managers.clone(), true) else {
        return;
    };
    let Some(stored) = completed(row, first.object) else {
        return;
    };
    let mut prepared = stored.clone();
    row.strategy.prepare_update(&mut prepared, &live);
    let _mistakes = row.strategy.validate_update(&prepared, &live);
    let _warnings = row.strategy.warnings(&prepared, Some(&live));
    match fields.apply(Some(&stored), config, first.managers.clone(), false) {
        Ok(second) => {
            let again = completed(row, second.object);
            assert_eq!(again.as_ref(), Some(&stored), "{config} to {live}");
            let (second, first) = (second.managers, first.managers);
            assert!(second.same_but_times(&first), "{config} to {live}");
        }
        Err(ApplyError::Conflicts(conflicts)) => {
            panic!("{config} to {live} a second time: {conflicts}")
        }
        Err(_) => {}
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
