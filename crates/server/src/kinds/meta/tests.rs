//! Tables of metadata, good and bad.

use serde_json::{Value, json};

use super::*;
use crate::kinds::check::ANNOTATIONS_SIZE_MAX;

#[track_caller]
fn check(errors: &[FieldError], expected: &[&str]) {
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected);
}

#[track_caller]
fn create(meta: &Value, expected: &[&str]) {
    let path = Path::new("metadata");
    check(
        &validate_create(meta, true, NameRule::Subdomain, &path),
        expected,
    );
}

#[test]
fn names_and_namespaces() {
    create(&json!({"name": "a", "namespace": "n"}), &[]);
    create(
        &json!({"name": "a-x", "generateName": "a-", "namespace": "n"}),
        &[],
    );
    create(
        &json!({}),
        &[
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
        ],
    );
    create(
        &json!({"name": "Agent", "namespace": "a.b"}),
        &[
            "metadata.name: Invalid value: \"Agent\": a lowercase RFC 1123 subdomain must consist \
             of lower case alphanumeric characters, '-' or '.', and must start and end with an \
             alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            "metadata.namespace: Invalid value: \"a.b\": must not contain dots",
        ],
    );
    let path = Path::new("metadata");
    let meta = json!({"name": "a", "namespace": "n"});
    check(
        &validate_create(&meta, false, NameRule::Label, &path),
        &["metadata.namespace: Forbidden: not allowed on this type"],
    );
    let meta = json!({"name": "system:a%b", "generateName": "system:"});
    check(
        &validate_create(&meta, false, NameRule::PathSegment, &path),
        &["metadata.name: Invalid value: \"system:a%b\": may not contain '%'"],
    );
}

#[test]
fn a_service_name_may_begin_with_a_digit() {
    let meta = json!({"name": "9web", "namespace": "n"});
    let path = Path::new("metadata");
    check(&validate_create(&meta, true, NameRule::Label, &path), &[]);
}

#[test]
fn labels_are_reported_at_the_map() {
    create(
        &json!({"name": "a", "namespace": "n", "labels": {"k": "not ok!"}}),
        &[
            "metadata.labels: Invalid value: \"not ok!\": a valid label must be an empty string \
             or consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
             an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
    );
    create(
        &json!({"name": "a", "namespace": "n", "labels": {"/k": "v"}}),
        &["metadata.labels: Invalid value: \"/k\": prefix part must be non-empty"],
    );
}

#[test]
fn annotations_have_a_size() {
    let big = "x".repeat(ANNOTATIONS_SIZE_MAX);
    create(
        &json!({"name": "a", "namespace": "n", "annotations": {"Example.com/K": big}}),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn owners() {
    let owner = |kind: &str, controller: bool| json!({"apiVersion": "v1", "kind": kind, "name": "x", "uid": "u", "controller": controller});
    let meta = |owners: Value| json!({"name": "a", "namespace": "n", "ownerReferences": owners});
    create(&meta(json!([owner("A", true), owner("B", false)])), &[]);
    create(
        &meta(json!([{"apiVersion": "", "kind": "", "name": "", "uid": ""}])),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    let shared_errors = |references| {
        let mut errors = Errors::new();
        check_shared(&mut errors, &meta(references), &Path::new("metadata"));
        errors
    };
    let errors = shared_errors(json!([owner("A", true), owner("B", true)]));
    assert!(errors[0].message.ends_with(
        "Only one reference can have Controller set to true. Found \"true\" in references for \
         A/x and B/x"
    ));
    let errors = shared_errors(json!([owner("Event", false)]));
    assert!(
        errors[0]
            .message
            .ends_with("/v1, Kind=Event is disallowed from being an owner"),
        "{errors:?}"
    );
}

#[test]
fn finalizers_say_whose_they_are() {
    let meta = |names: Value| json!({"name": "a", "namespace": "n", "finalizers": names});
    create(&meta(json!(["example.com/keep", "orphan"])), &[]);
    create(
        &meta(json!(["keep"])),
        &[
            "metadata.finalizers[0]: Invalid value: \"keep\": name is neither a standard finalizer \
             name nor is it fully qualified",
        ],
    );
    create(
        &meta(json!(["orphan", "foregroundDeletion"])),
        &[
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer \
             orphan and foregroundDeletion cannot be both set",
        ],
    );
}

#[test]
fn managed_fields_have_an_operation() {
    let errors = managed_fields(&json!({"managedFields": [
        {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"},
        {"manager": "m\n", "operation": "", "fieldsType": "V2"},
    ]}));
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "metadata.managedFields[1].operation: Invalid value: \"\": must be `Apply` or `Update`",
            "metadata.managedFields[1].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
            "metadata.managedFields[1].manager: Invalid value: \"m\\n\": invalid character U+000A \
             (at position 1)",
        ],
    );
}

#[test]
fn identity_does_not_change() {
    let old = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2});
    let mut new = json!({"labels": {"a": "b"}, "resourceVersion": "1", "generation": 7});
    copy_omitted(&mut new, &old);
    check(&validate_update(&new, &old), &[]);
    assert_eq!(new["generation"], 2);
    let new = json!({"name": "b", "namespace": "n", "uid": "v", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z"});
    check(
        &validate_update(&new, &old),
        &[
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.uid: Invalid value: \"v\": field is immutable",
            "metadata.deletionTimestamp: Invalid value: \"2026-01-02T00:00:00Z\": field is \
             immutable",
        ],
    );
}

#[test]
fn no_finalizer_is_added_to_what_is_being_deleted() {
    let old = json!({"name": "a", "resourceVersion": "1", "finalizers": ["e.com/a"],
        "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let mut new = json!({"resourceVersion": "1", "finalizers": ["e.com/c", "e.com/b"]});
    copy_omitted(&mut new, &old);
    check(
        &validate_update(&new, &old),
        &[
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
             being deleted, found new finalizers []string{\"e.com/b\", \"e.com/c\"}",
        ],
    );
    new["finalizers"] = json!([]);
    check(&validate_update(&new, &old), &[]);
}

#[test]
fn the_generation_counts_changes_of_the_spec() {
    let old = json!({"metadata": {"generation": 3}, "spec": {"a": 1}});
    let mut new = json!({"metadata": {"generation": 9}, "spec": {"a": 1}, "status": {}});
    next_generation(&mut new, &old, &["spec"]);
    assert_eq!(new["metadata"]["generation"], 3);
    new["spec"]["a"] = json!(2);
    next_generation(&mut new, &old, &["spec"]);
    assert_eq!(new["metadata"]["generation"], 4);
}
