//! Applying: conflicts, shared fields, and fields that the last owner no longer lists.

use serde_json::{Value, json};

use super::super::fixture::Store;

fn labels(labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Object", "metadata": {"name": "n", "labels": labels}})
}

fn items(items: &Value) -> Value {
    json!({"spec": {"items": items}})
}

#[test]
fn a_manager_owns_what_it_applies() {
    let mut store = Store::default();
    store.apply("alice", &labels(&json!({"a": "1"}))).unwrap();
    assert_eq!(store.entries(), ["alice Apply: .metadata.labels.a"]);
    assert_eq!(
        store.object.as_ref().unwrap()["metadata"]["labels"]["a"],
        "1"
    );
}

#[test]
fn another_value_conflicts_and_the_same_value_is_shared() {
    let mut store = Store::default();
    store
        .apply("alice", &labels(&json!({"a": "1", "b": "1"})))
        .unwrap();
    let error = store.apply("bob", &labels(&json!({"a": "2"}))).unwrap_err();
    assert_eq!(
        error,
        "Apply failed with 1 conflict: conflict with \"alice\": .metadata.labels.a"
    );
    store.apply("bob", &labels(&json!({"a": "1"}))).unwrap();
    let error = store
        .apply("carol", &labels(&json!({"a": "2", "b": "2"})))
        .unwrap_err();
    assert_eq!(
        error,
        "Apply failed with 3 conflicts: conflicts with \"alice\":\n- .metadata.labels.a\n\
         - .metadata.labels.b\nconflicts with \"bob\":\n- .metadata.labels.a"
    );
    store.force("carol", &labels(&json!({"a": "2"})));
    assert_eq!(
        store.entries(),
        [
            "alice Apply: .metadata.labels.b",
            "carol Apply: .metadata.labels.a"
        ]
    );
}

#[test]
fn a_field_goes_when_its_last_owner_lets_go() {
    let mut store = Store::default();
    store
        .apply("alice", &labels(&json!({"a": "1", "b": "1"})))
        .unwrap();
    store.apply("bob", &labels(&json!({"a": "1"}))).unwrap();
    store.apply("alice", &labels(&json!({"b": "1"}))).unwrap();
    let left = |store: &Store| store.object.as_ref().unwrap()["metadata"]["labels"].clone();
    assert_eq!(left(&store), json!({"a": "1", "b": "1"}));
    store.apply("bob", &labels(&json!({}))).unwrap();
    assert_eq!(left(&store), json!({"b": "1"}));
}

#[test]
fn an_item_of_a_keyed_list_goes_with_what_its_owner_set() {
    let mut store = Store::default();
    store
        .apply("alice", &items(&json!([{"name": "a", "image": "1"}])))
        .unwrap();
    let two = json!([{"name": "b", "image": "1", "ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}]);
    store.apply("bob", &items(&two)).unwrap();
    store
        .apply(
            "bob",
            &items(
                &json!([{"name": "b", "image": "1", "ports": [{"port": 80, "protocol": "UDP"}]}]),
            ),
        )
        .unwrap();
    assert_eq!(
        store.object.as_ref().unwrap()["spec"]["items"],
        json!([
            {"name": "a", "image": "1"},
            {"name": "b", "image": "1", "ports": [{"port": 80, "protocol": "UDP"}]},
        ])
    );
    store.apply("bob", &json!({})).unwrap();
    assert_eq!(
        store.object.as_ref().unwrap()["spec"]["items"],
        json!([{"name": "a", "image": "1"}])
    );
    assert_eq!(
        store.entries(),
        [
            r#"alice Apply: .spec.items[name="a"] .spec.items[name="a"].image .spec.items[name="a"].name"#
        ]
    );
}

#[test]
fn a_field_that_an_update_added_below_an_applied_item_goes_with_it() {
    let mut store = Store::default();
    store
        .apply("alice", &items(&json!([{"name": "a", "image": "1"}])))
        .unwrap();
    let mut object = store.object.clone().unwrap();
    object["spec"]["items"][0]["ports"] = json!([{"port": 1}]);
    store.update("bob", object);
    store.apply("alice", &json!({})).unwrap();
    assert_eq!(
        store.object,
        Some(json!({})),
        "bob owns a port, and not the item"
    );
    assert!(store.entries().is_empty());
}

#[test]
fn atomic_lists_and_maps_conflict_as_a_whole() {
    let spec = |spec: Value| json!({"spec": spec});
    let mut store = Store::default();
    store
        .apply(
            "alice",
            &spec(json!({"args": ["a"], "selector": {"a": "1"}})),
        )
        .unwrap();
    let other = spec(json!({"args": ["a", "b"], "selector": {"b": "1"}}));
    let error = store.apply("bob", &other).unwrap_err();
    assert!(
        error.ends_with("\"alice\":\n- .spec.args\n- .spec.selector"),
        "{error}"
    );
}

#[test]
fn the_status_of_a_configuration_is_nobodys() {
    let mut store = Store::default();
    store
        .apply(
            "alice",
            &json!({"spec": {"count": 1}, "status": {"ready": 1}}),
        )
        .unwrap();
    assert_eq!(store.entries(), ["alice Apply: .spec.count"]);
}

#[test]
fn the_first_apply_meets_what_was_there_before() {
    let mut store = Store::holding(labels(&json!({"a": "1", "b": "1"})));
    let error = store
        .apply("alice", &labels(&json!({"a": "2"})))
        .unwrap_err();
    assert_eq!(
        error,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .metadata.labels.a"
    );
    store.force("alice", &labels(&json!({"a": "2"})));
    assert_eq!(
        store.entries(),
        [
            "alice Apply: .metadata.labels.a",
            "before-first-apply Update: .metadata.labels .metadata.labels.b",
        ]
    );
}

#[test]
fn kubectl_takes_over_what_client_side_apply_set() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let applied = json!({"apiVersion": "v1", "metadata": {"name": "n"}, "spec": {"count": 1}});
    let mut object = applied.clone();
    object["metadata"]["annotations"] = json!({annotation: applied.to_string()});
    let mut store = Store::default();
    store.update("kubectl-client-side-apply", object);
    let mut config = applied;
    config["spec"]["count"] = json!(2);
    assert!(store.apply("alice", &config).is_err());
    store.apply("kubectl", &config).unwrap();
    let object = store.object.as_ref().unwrap();
    assert_eq!(object["spec"]["count"], 2);
    let refreshed = object["metadata"]["annotations"][annotation]
        .as_str()
        .unwrap();
    assert_eq!(
        refreshed,
        format!("{config}\n"),
        "client-side apply can take over again"
    );
}

#[test]
fn an_apply_that_changes_nothing_keeps_its_time() {
    let mut store = Store::default();
    store.apply("alice", &labels(&json!({"a": "1"}))).unwrap();
    let before = store.clone();
    store.apply("alice", &labels(&json!({"a": "1"}))).unwrap();
    assert_eq!(store.managers, before.managers);
}
