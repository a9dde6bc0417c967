//! Updates: every other write than apply.

use serde_json::{Value, json};

use super::super::Managers;
use super::super::fixture::Store;

#[test]
fn a_create_owns_every_field_but_the_status() {
    let mut store = Store::default();
    store.update(
        "kubectl",
        json!({
            "apiVersion": "v1", "kind": "Object",
            "metadata": {"name": "n", "labels": {"a": "1"}},
            "spec": {"count": 1, "strategy": {"type": "x"}}, "status": {"ready": 1},
        }),
    );
    assert_eq!(
        store.entries(),
        [
            "kubectl Update: .metadata.labels .metadata.labels.a .spec.count .spec.strategy .spec.strategy.type"
        ]
    );
}

#[test]
fn an_update_takes_what_it_changes_and_leaves_the_rest() {
    let mut store = Store::default();
    store.update(
        "a",
        json!({"metadata": {"labels": {"x": "1", "y": "1"}}, "spec": {"count": 1}}),
    );
    store.update(
        "b",
        json!({"metadata": {"labels": {"x": "2"}}, "spec": {"count": 1}}),
    );
    assert_eq!(
        store.entries(),
        [
            "a Update: .metadata.labels .spec.count",
            "b Update: .metadata.labels.x"
        ]
    );
}

#[test]
fn a_subresource_has_an_entry_of_its_own() {
    let mut store = Store::default();
    store.update("a", json!({"spec": {"count": 1}}));
    store.update_part(
        "a",
        "status",
        json!({"spec": {"count": 2}, "status": {"ready": 1}}),
    );
    assert_eq!(
        store.entries(),
        ["a Update: .spec.count", "a Update status: .status.ready"]
    );
}

#[test]
fn an_object_without_managers_gets_none_by_an_update() {
    let mut store = Store::holding(json!({"spec": {"count": 1}}));
    store.update("a", json!({"spec": {"count": 2}}));
    assert!(store.entries().is_empty());
}

#[test]
fn nameless_clients_are_unknown() {
    let mut store = Store::default();
    store.update("", json!({"spec": {"count": 1}}));
    assert_eq!(store.entries(), ["unknown Update: .spec.count"]);
}

#[test]
fn the_oldest_of_more_than_ten_updaters_are_merged() {
    let mut store = Store::default();
    let mut object = json!({"metadata": {"labels": {}}});
    for index in 0..12 {
        object["metadata"]["labels"][format!("l{index:02}")] = "1".into();
        store.update(&format!("m{index:02}"), object.clone());
    }
    let entries = store.entries();
    assert_eq!(entries.len(), 10);
    assert_eq!(
        entries[0],
        "ancient-changes Update: .metadata.labels .metadata.labels.l00 .metadata.labels.l01 .metadata.labels.l02"
    );
}

#[test]
fn an_update_that_changes_nothing_keeps_its_time() {
    let mut store = Store::default();
    store.update("a", json!({"spec": {"count": 1}}));
    let before = store.managers.clone();
    store.update("a", json!({"spec": {"count": 1}}));
    assert_eq!(store.managers, before);
}

/// An object with a manager of a version that its kind does not have, and one of another that it has.
fn with_versions() -> Store {
    let object = json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"count": 1}});
    let entry = |manager: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": fields})
    };
    let managers = json!([
        entry(
            "gone",
            "gone/v1",
            json!({"f:metadata": {"f:labels": {"f:a": {}}}})
        ),
        entry(
            "old",
            "v1beta1",
            json!({"f:metadata": {"f:labels": {"f:b": {}}}})
        ),
    ]);
    let managers = Managers::from_value(&managers).unwrap();
    Store::holding(object).managed_by(managers)
}

#[test]
fn managers_of_a_version_that_the_kind_does_not_have_go_at_the_next_write() {
    let mut store = with_versions();
    assert_eq!(
        store.entries(),
        [
            "gone Apply: .metadata.labels.a",
            "old Apply: .metadata.labels.b"
        ]
    );
    let unchanged = store.object.clone().unwrap();
    store.update("a", unchanged);
    assert_eq!(store.entries(), ["old Apply: .metadata.labels.b"]);
}

#[test]
fn fields_of_a_version_that_the_kind_does_not_have_do_not_conflict() {
    let mut store = with_versions();
    let config = json!({"metadata": {"labels": {"a": "2"}}});
    store.apply("new", &config).unwrap();
    assert_eq!(
        store.entries(),
        [
            "old Apply: .metadata.labels.b",
            "new Apply: .metadata.labels.a"
        ]
    );
    // One that the kind has does.
    let config = json!({"metadata": {"labels": {"b": "2"}}});
    store.apply("new", &config).unwrap_err();
}
