//! What JSON patches do.

use super::*;

fn patched(mut doc: Value, patch: &Value) -> Result<Value, PatchError> {
    json_patch::apply(&mut doc, patch.to_string().as_bytes())?;
    Ok(doc)
}

fn check(doc: &Value, patch: &Value, expected: &Value) {
    let actual = patched(doc.clone(), patch);
    assert_eq!(actual.as_ref(), Ok(expected), "{doc} {patch}");
}

fn check_rejected(doc: &Value, patch: &Value, expected: &str) {
    let expected = PatchError::Rejected(expected.to_owned());
    assert_eq!(patched(doc.clone(), patch), Err(expected), "{doc} {patch}");
}

#[test]
fn operations() {
    let doc = json!({"a": {"b": 1}, "l": [1, 2]});
    for (patch, expected) in [
        (json!([]), doc.clone()),
        (
            json!([{"op": "add", "path": "/c", "value": 1}]),
            json!({"a": {"b": 1}, "l": [1, 2], "c": 1}),
        ),
        (
            json!([{"op": "add", "path": "/a/b", "value": 2}]),
            json!({"a": {"b": 2}, "l": [1, 2]}),
        ),
        (
            json!([{"op": "add", "path": "/l/0", "value": 0}]),
            json!({"a": {"b": 1}, "l": [0, 1, 2]}),
        ),
        (
            json!([{"op": "add", "path": "/l/2", "value": 3}]),
            json!({"a": {"b": 1}, "l": [1, 2, 3]}),
        ),
        (
            json!([{"op": "add", "path": "/l/-", "value": 3}]),
            json!({"a": {"b": 1}, "l": [1, 2, 3]}),
        ),
        (
            json!([{"op": "add", "path": "/n", "value": null}]),
            json!({"a": {"b": 1}, "l": [1, 2], "n": null}),
        ),
        (
            json!([{"op": "remove", "path": "/a/b"}]),
            json!({"a": {}, "l": [1, 2]}),
        ),
        (
            json!([{"op": "remove", "path": "/l/0"}]),
            json!({"a": {"b": 1}, "l": [2]}),
        ),
        (
            json!([{"op": "replace", "path": "/l/1", "value": 9}]),
            json!({"a": {"b": 1}, "l": [1, 9]}),
        ),
        (
            json!([{"op": "replace", "path": "", "value": {}}]),
            json!({}),
        ),
        (
            json!([{"op": "move", "from": "/a/b", "path": "/l/-"}]),
            json!({"a": {}, "l": [1, 2, 1]}),
        ),
        (
            json!([{"op": "copy", "from": "/l", "path": "/a/l"}]),
            json!({"a": {"b": 1, "l": [1, 2]}, "l": [1, 2]}),
        ),
        (
            json!([{"op": "test", "path": "/a", "value": {"b": 1.0}}]),
            doc.clone(),
        ),
        (
            json!([{"op": "test", "path": "/none", "value": null}]),
            doc.clone(),
        ),
    ] {
        check(&doc, &patch, &expected);
    }
}

#[test]
fn tokens_may_hold_slashes_and_tildes() {
    let doc = json!({"metadata": {"labels": {"kennel.dev/x": "1", "a~b": "2"}}});
    let patch = json!([
        {"op": "replace", "path": "/metadata/labels/kennel.dev~1x", "value": "3"},
        {"op": "remove", "path": "/metadata/labels/a~0b"},
    ]);
    check(
        &doc,
        &patch,
        &json!({"metadata": {"labels": {"kennel.dev/x": "3"}}}),
    );
}

#[test]
fn what_does_not_apply_is_rejected() {
    let doc = json!({"a": {"b": 1}, "l": [1]});
    let missing = |op: &str, path: &str| {
        format!("{op} operation does not apply: doc is missing path: \"{path}\": missing value")
    };
    for (patch, expected) in [
        (
            json!([{"op": "remove", "path": "/x"}]),
            missing("remove", "/x"),
        ),
        (
            json!([{"op": "replace", "path": "/x", "value": 1}]),
            missing("replace", "/x"),
        ),
        (
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            missing("add", "/x/y"),
        ),
        (
            json!([{"op": "add", "path": "/a/b/c", "value": 1}]),
            missing("add", "/a/b/c"),
        ),
        (
            json!([{"op": "copy", "from": "/x", "path": "/y"}]),
            missing("copy", "/x"),
        ),
        (
            json!([{"op": "move", "from": "/x", "path": "/y"}]),
            missing("move", "/x"),
        ),
        (
            json!([{"op": "add", "path": "x", "value": 1}]),
            missing("add", "x"),
        ),
        (
            json!([{"op": "test", "path": "/a/b", "value": 2}]),
            "testing value /a/b failed: test failed".to_owned(),
        ),
        (
            json!([{"op": "add", "path": "/l/2", "value": 1}]),
            "Unable to access invalid index: 2: invalid index referenced".to_owned(),
        ),
        (
            json!([{"op": "remove", "path": "/l/01"}]),
            "Unable to access invalid index: 01: invalid index referenced".to_owned(),
        ),
        (
            json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
            "move operation does not apply: into itself".to_owned(),
        ),
        (
            json!([{"op": "jump", "path": "/a"}]),
            "Unexpected kind: jump".to_owned(),
        ),
        (
            json!([{"path": "/a"}]),
            "Unexpected kind: unknown".to_owned(),
        ),
        (
            json!([{"op": "add", "value": 1}]),
            "add operation does not apply: missing path".to_owned(),
        ),
    ] {
        check_rejected(&doc, &patch, &expected);
    }
}

#[test]
fn what_is_no_patch_is_malformed() {
    for (patch, expected) in [
        (
            "{}",
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "[1]",
            "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
        ),
        ("[", "unexpected end of JSON input"),
    ] {
        let actual = json_patch::apply(&mut json!({}), patch.as_bytes());
        assert_eq!(
            actual,
            Err(PatchError::Malformed(expected.to_owned())),
            "{patch}"
        );
    }
}

#[test]
fn patches_are_bounded() {
    let test = json!({"op": "test", "path": "/a", "value": null});
    let many = Value::from(vec![test; 10_001]);
    let message = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(
        patched(json!({}), &many),
        Err(PatchError::TooLarge(message.to_owned()))
    );

    let double = json!({"op": "copy", "from": "/l", "path": "/l/-"});
    let bomb = Value::from(vec![double; 100]);
    let error = patched(json!({"l": ["x".repeat(1000)]}), &bomb).unwrap_err();
    assert!(
        error.to_string().starts_with("Unable to complete the copy"),
        "{error}"
    );

    let mut path = String::new();
    let deeper: Vec<Value> = (0..200)
        .map(|_| {
            path.push_str("/a");
            json!({"op": "add", "path": path, "value": {}})
        })
        .collect();
    check_rejected(
        &json!({}),
        &Value::from(deeper),
        "add operation does not apply: exceeded max depth",
    );
}
