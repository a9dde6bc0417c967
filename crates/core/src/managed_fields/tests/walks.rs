//! Comparing, merging, removing and checking values by their schema.

use serde_json::{Value, json};

use super::super::fixture::OBJECT;
use super::super::{Duplicates, FieldSet, compare, field_set_of, merge, remove, validate};

fn show(set: &FieldSet) -> String {
    let paths = set.paths().into_iter();
    let paths = paths.map(|path| path.iter().map(ToString::to_string).collect::<String>());
    paths.collect::<Vec<_>>().join(" ")
}

#[test]
fn sets_of_values() {
    for (value, expected) in [
        (json!({"metadata": {"labels": {}}}), ".metadata.labels"),
        (
            json!({"metadata": {"labels": {"a": "1"}}}),
            ".metadata.labels.a",
        ),
        (json!({"metadata": {"labels": null}}), ".metadata.labels"),
        (
            json!({"metadata": {"finalizers": ["b", "a"]}}),
            r#".metadata.finalizers[="a"] .metadata.finalizers[="b"]"#,
        ),
        (json!({"metadata": {"finalizers": []}}), ""),
        (
            json!({"spec": {"args": ["a"], "selector": {"a": "b"}, "raw": {"x": [1]}}}),
            ".spec.args .spec.raw .spec.selector",
        ),
        (
            json!({"spec": {"items": [{"name": "x", "ports": [{"port": 80}]}]}}),
            r#".spec.items[name="x"] .spec.items[name="x"].name .spec.items[name="x"].ports[port=80,protocol="TCP"] .spec.items[name="x"].ports[port=80,protocol="TCP"].port"#,
        ),
        // Of duplicates only the item itself is owned.
        (
            json!({"spec": {"items": [{"name": "x", "image": "a"}, {"name": "x"}]}}),
            r#".spec.items[name="x"]"#,
        ),
    ] {
        let set = field_set_of(&OBJECT, &value).unwrap();
        assert_eq!(show(&set), expected, "{value}");
    }
}

#[test]
fn comparisons() {
    let item = |image: &str| json!({"spec": {"items": [{"name": "x", "image": image}]}});
    for (old, new, expected) in [
        (
            json!({"spec": {"count": 1}}),
            json!({"spec": {"count": 1.0}}),
            ["", "", ""],
        ),
        (
            json!({"spec": {"count": 1}}),
            json!({"spec": {"count": 2}}),
            ["", ".spec.count", ""],
        ),
        (
            json!({}),
            json!({"spec": {"count": 2}}),
            ["", "", ".spec.count"],
        ),
        // Held by value: `spec` is there even if it is absent, `strategy` is not.
        (
            json!({}),
            json!({"spec": {"strategy": {"type": "a"}}}),
            ["", "", ".spec.strategy .spec.strategy.type"],
        ),
        (
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {}}),
            [".metadata.labels .metadata.labels.a", "", ""],
        ),
        (
            json!({"spec": {"args": ["a"]}}),
            json!({"spec": {"args": ["b"]}}),
            ["", ".spec.args", ""],
        ),
        (
            item("a"),
            item("b"),
            ["", r#".spec.items[name="x"].image"#, ""],
        ),
        (
            json!({}),
            item("a"),
            [
                "",
                "",
                r#".spec.items .spec.items[name="x"] .spec.items[name="x"].image .spec.items[name="x"].name .spec.items[name="x"].resources"#,
            ],
        ),
        (
            json!({"spec": {"items": [{"name": "x", "image": "a"}, {"name": "x"}]}}),
            json!({"spec": {"items": [{"name": "x", "image": "b"}, {"name": "x"}]}}),
            ["", r#".spec.items[name="x"]"#, ""],
        ),
        (
            json!({"metadata": {"labels": {}}}),
            json!({"metadata": {"labels": null}}),
            ["", ".metadata.labels", ""],
        ),
    ] {
        let found = compare(&OBJECT, &old, &new).unwrap();
        let shown = [&found.removed, &found.modified, &found.added].map(show);
        assert_eq!(shown, expected, "{old} {new}");
    }
}

#[test]
fn merges_keep_the_live_order_and_follow_the_order_of_shared_items() {
    let list = |names: &[&str]| -> Value {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"items": items}})
    };
    for (live, config, expected) in [
        (&["a", "b"][..], &["c"][..], &["a", "b", "c"][..]),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
        (&["a", "b", "c"], &["b", "x"], &["a", "b", "c", "x"]),
        (&["a", "c"], &["a", "b", "c"], &["a", "b", "c"]),
        (&[], &["a"], &["a"]),
        (&["a"], &[], &["a"]),
    ] {
        let merged = merge(&OBJECT, Some(&list(live)), Some(&list(config))).unwrap();
        assert_eq!(merged, Some(list(expected)), "{live:?} {config:?}");
    }
}

#[test]
fn merges_take_leaves_from_the_configuration() {
    for (live, config, expected) in [
        (
            json!({"spec": {"args": ["a", "b"]}}),
            json!({"spec": {"args": ["c"]}}),
            json!({"spec": {"args": ["c"]}}),
        ),
        (
            json!({"spec": {"selector": {"a": "1"}}}),
            json!({"spec": {"selector": null}}),
            json!({"spec": {"selector": null}}),
        ),
        (
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"b": "2"}}}),
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
        ),
        // Null does not remove what is merged one by one.
        (
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": null}}),
            json!({"metadata": {"labels": {"a": "1"}}}),
        ),
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["c", "a"]}}),
            json!({"metadata": {"finalizers": ["c", "a", "b"]}}),
        ),
    ] {
        let merged = merge(&OBJECT, Some(&live), Some(&config)).unwrap();
        assert_eq!(merged, Some(expected), "{live} {config}");
    }
}

#[test]
fn removal_leaves_null_where_nothing_is_left() {
    let value = json!({"metadata": {"labels": {"a": "1"}, "name": "n"}, "spec": {"items": [{"name": "x"}]}});
    let fields = json!({
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:items": {"k:{\"name\":\"x\"}": {}}},
    });
    let fields = FieldSet::from_fields_v1(&fields).unwrap();
    let left = json!({"metadata": {"labels": null, "name": "n"}, "spec": {"items": null}});
    assert_eq!(remove(&OBJECT, &value, &fields), left);
}

#[test]
fn values_of_the_wrong_type_are_named() {
    for (value, expected) in [
        (
            json!({"spec": {"count": "soon"}}),
            ".spec.count: expected numeric (int or float), got string",
        ),
        (
            json!({"spec": {"args": {"a": 1}}}),
            ".spec.args: expected list, got &{map[a:1]}",
        ),
        (json!({"spec": []}), ".spec: expected map, got &{[]}"),
        (
            json!({"metadata": {"name": 7}}),
            ".metadata.name: expected string, got &value.valueUnstructured{Value:7}",
        ),
        (
            json!({"spec": {"unknown": 1}}),
            ".spec.unknown: field not declared in schema",
        ),
        (
            json!({"spec": {"items": [{"name": "c"}, {"name": "c"}]}}),
            ".spec.items: duplicate entries for key [name=\"c\"]",
        ),
        (
            json!({"spec": {"items": [{"image": "c"}]}}),
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"spec": {"items": ["c"]}}),
            ".spec.items: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({"metadata": {"finalizers": ["a", "a"]}}),
            ".metadata.finalizers: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({"metadata": {"finalizers": [null]}}),
            ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"spec": {"args": [1], "count": "x"}}),
            "errors:\n  .spec.args[0]: expected string, got &value.valueUnstructured{Value:1}\n  .spec.count: expected numeric (int or float), got string",
        ),
    ] {
        let error = validate(&OBJECT, &value, Duplicates::Refuse).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let twice = json!({"metadata": {"finalizers": ["a", "a"]}});
    validate(&OBJECT, &twice, Duplicates::Allow).unwrap();
}
