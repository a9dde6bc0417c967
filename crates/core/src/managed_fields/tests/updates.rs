//! Updates: every other write than apply.

use serde_json::json;

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
