//! What merge patches do.

use super::*;

fn check(doc: &Value, patch: &Value, expected: &Value) {
    let mut actual = doc.clone();
    merge::apply(&mut actual, patch.clone()).unwrap();
    assert_eq!(actual, *expected, "{doc} {patch}");
}

#[test]
fn the_examples_of_the_standard() {
    for (doc, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (json!(["a"]), json!({"a": "b"}), json!({"a": "b"})),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        check(&doc, &patch, &expected);
    }
}

#[test]
fn kubectl_label_and_the_collector() {
    check(
        &json!({"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x"]}}),
        &json!({"metadata": {"labels": {"a": null, "c": "3"}, "finalizers": null}}),
        &json!({"metadata": {"labels": {"b": "2", "c": "3"}}}),
    );
}

#[test]
fn a_patch_must_be_an_object() {
    let error = merge::apply(&mut json!({}), json!(["x"])).unwrap_err();
    let expected = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(error, PatchError::Malformed(expected.to_owned()));
}
