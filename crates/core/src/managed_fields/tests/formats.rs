//! `fieldsV1`, `metadata.managedFields` and the text of paths.

use serde_json::{Value, json};

use super::super::fixture::OBJECT;
use super::super::{FieldSet, Managers, Ownership, PathElement};

fn set(fields: &Value) -> FieldSet {
    FieldSet::from_fields_v1(fields).unwrap()
}

#[test]
fn fields_are_read_and_written_in_order() {
    for text in [
        "{}",
        r#"{"f:spec":{}}"#,
        r#"{"f:a":{".":{},"f:b":{}},"f:c":{}}"#,
        r#"{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":100}":{}}}"#,
        r#"{"f:finalizers":{"v:\"a/b\"":{},"v:\"c\"":{}}}"#,
        r#"{"f:list":{"i:2":{},"i:10":{}}}"#,
        r#"{"f:data":{"f:a<b":{},"f:quote\"d":{}}}"#,
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(set(&value).to_fields_v1(), text);
    }
}

#[test]
fn values_in_keys_are_escaped_as_go_escapes_them() {
    let element = PathElement::Value(json!("a<b&c>"));
    assert_eq!(element.to_key(), r#"v:"a\u003cb\u0026c\u003e""#);
    assert_eq!(PathElement::parse(&element.to_key()).unwrap(), element);
}

#[test]
fn an_object_without_elements_is_a_member() {
    let fields = set(&json!({"f:a": {".": {}}, "f:b": {"x:future": {}}}));
    assert_eq!(fields.to_fields_v1(), r#"{"f:a":{},"f:b":{}}"#);
}

#[test]
fn malformed_elements_are_refused() {
    for (fields, expected) in [
        (json!({"f": {}}), "key must be 2 characters long"),
        (json!({"spec": {}}), "missing colon: spec"),
        (json!({"v:{": {}}), "EOF while parsing"),
        (json!({"k:[]": {}}), "invalid type"),
        (json!({"i:x": {}}), "invalid digit"),
        (json!({"f:a": []}), "expected an object"),
        (json!([]), "expected an object"),
    ] {
        let error = FieldSet::from_fields_v1(&fields).unwrap_err().to_string();
        assert!(error.contains(expected), "{fields}: {error}");
    }
}

#[test]
fn paths_read_as_upstream_prints_them() {
    let fields = set(&json!({"f:spec": {
        "f:containers": {"k:{\"name\":\"c\",\"port\":80}": {"f:image": {}}},
        "f:finalizers": {"v:\"x\"": {}}, "f:list": {"i:0": {}},
    }}));
    let paths: Vec<String> = fields
        .paths()
        .iter()
        .map(|path| path.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(
        paths,
        [
            r#".spec.containers[name="c",port=80].image"#,
            r#".spec.finalizers[="x"]"#,
            ".spec.list[0]",
        ]
    );
}

#[test]
fn entries_are_sorted_by_operation_time_and_name() {
    let entry = |manager: &str, operation: &str, time: &str| {
        json!({
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}},
            "manager": manager, "operation": operation, "time": time,
        })
    };
    let sorted = json!([
        entry("z", "Apply", "2026-01-01T00:00:00Z"),
        entry("a", "Apply", "2026-01-01T00:00:01Z"),
        entry("b", "Update", "2026-01-01T00:00:00Z"),
        entry("c", "Update", "2026-01-01T00:00:00Z"),
    ]);
    let mut shuffled = sorted.clone();
    shuffled.as_array_mut().unwrap().reverse();
    assert_eq!(Managers::from_value(&shuffled).unwrap().to_value(), sorted);
}

#[test]
fn unusable_entries_are_refused() {
    let entry = json!({
        "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}, "operation": "Update",
    });
    for (field, value, expected) in [
        (
            "operation",
            json!("Delete"),
            "operation must be `Apply` or `Update`",
        ),
        ("apiVersion", json!(""), "apiVersion must not be empty"),
        (
            "fieldsType",
            json!(null),
            "missing fieldsType in managed fields entry 0",
        ),
        (
            "fieldsType",
            json!("V2"),
            "invalid fieldsType \"V2\" in managed fields entry 0",
        ),
        ("fieldsV1", json!({"x": {}}), "error decoding set: "),
    ] {
        let mut entry = entry.clone();
        entry[field] = value;
        let error = Managers::from_value(&json!([entry]))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn an_empty_list_or_one_empty_entry_resets() {
    for (value, expected) in [
        (json!([]), true),
        (json!([{}]), true),
        (json!([{"manager": ""}]), true),
        (json!([{"manager": "m"}]), false),
        (json!([{}, {}]), false),
        (json!(null), false),
    ] {
        assert_eq!(Managers::is_reset(&value), expected, "{value}");
    }
}

#[test]
fn managers_are_stored_relative_to_their_object() {
    let object = json!({
        "metadata": {"name": "n", "labels": {"a": "1"}},
        "spec": {"count": 1, "args": ["a"], "items": [{"name": "x", "image": "i"}]},
        "status": {"ready": 1, "address": "10.0.0.1"},
    });
    let entries = json!([
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "creator", "operation": "Update",
            "time": "1970-01-01T00:00:05Z",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {"f:count": {}, "f:items": {".": {}, "k:{\"name\":\"x\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}},
            },
        },
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "kubelet", "operation": "Update",
            "subresource": "status", "time": "1970-01-01T00:00:07Z",
            "fieldsV1": {"f:status": {"f:address": {}, "f:ready": {}}},
        },
    ]);
    let managers = Managers::from_value(&entries).unwrap();
    let relative = Ownership::Listed(managers.clone()).relative_to(&OBJECT, "v1", &object);
    let mut text = Vec::new();
    relative.write(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(
        text,
        r#"[["creator",0,"v1","",5,{"f:metadata":5,"f:spec":{"*":1,"f:args":0}}],["kubelet",0,"v1","status",7,{"f:status":5}]]"#
    );
    let stored = Ownership::from_stored(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(stored.list(&OBJECT, "v1", &object), managers);
}
