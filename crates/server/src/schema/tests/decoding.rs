//! What decoding makes of bodies.

use super::*;

fn check_duplicates(text: &str, value: &Value, paths: &[&str]) {
    let parsed = parse(text.as_bytes()).unwrap();
    let expected: Vec<String> = paths
        .iter()
        .map(|p| format!("duplicate field \"{p}\""))
        .collect();
    assert_eq!(parsed.value, *value, "{text}");
    assert_eq!(parsed.duplicates, expected, "{text}");
}

#[test]
fn of_two_members_the_last_wins_and_both_are_reported() {
    check_duplicates(r#"{"a": 1, "b": 2}"#, &json!({"a": 1, "b": 2}), &[]);
    check_duplicates(r#"{"a": 1, "a": 2}"#, &json!({"a": 2}), &["a"]);
    check_duplicates(r#"{"a": 1, "a": 2, "a": 3}"#, &json!({"a": 3}), &["a"]);
    check_duplicates(
        r#"{"spec": {"containers": [{}, {"image": "x", "image": "y"}]}}"#,
        &json!({"spec": {"containers": [{}, {"image": "y"}]}}),
        &["spec.containers[1].image"],
    );
    // A member before what it contains, as it is read.
    check_duplicates(
        r#"{"a": {"x": 1, "x": 2}, "a": {"y": 1, "y": 2}}"#,
        &json!({"a": {"y": 2}}),
        &["a.x", "a", "a.y"],
    );
}

#[test]
fn findings_are_bounded() {
    let members: Vec<String> = (0..150)
        .map(|n| format!("\"k{n}\": 1, \"k{n}\": 1"))
        .collect();
    let parsed = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
    assert_eq!(parsed.duplicates.len(), 100);
}

#[test]
fn numbers_keep_what_they_can() {
    let text = "[9223372036854775807, -9223372036854775808, 18446744073709551615, 0.1, 1e400]";
    assert!(
        parse(text.as_bytes()).is_err(),
        "1e400 is not a number we could hold"
    );
    let text = "[9223372036854775807, -9223372036854775808, 18446744073709551615, 0.1]";
    assert_eq!(
        parse(text.as_bytes()).unwrap().value.to_string(),
        text.replace(' ', "")
    );
}

#[test]
fn broken_bodies_are_explained() {
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    for (body, expected) in [
        (&b""[..], "unexpected end of JSON input"),
        (
            b"{\"a\": 1} x",
            "invalid character 'x' after top-level value",
        ),
        (
            b"apiVersion: v1",
            "invalid character 'a' looking for beginning of value",
        ),
        (b"{\"a\": \"\xff\"}", "invalid UTF-8 in JSON"),
        (deep.as_bytes(), "exceeded max depth"),
    ] {
        assert_eq!(parse(body).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_raw_member_keeps_every_byte() {
    let body = br#"{"kind": "X", "data": {"b": "\u003c&", "a":  1.0}, "revision": 1}"#;
    let raw = raw_member(body, "data");
    assert_eq!(raw, Some(r#"{"b": "\u003c&", "a":  1.0}"#));
    assert_eq!(raw_member(body, "nope"), None);
    assert_eq!(raw_member(br#"{"data": 1, "data": 2}"#, "data"), Some("2"));
    assert_eq!(raw_member(b"[1]", "data"), None);
    assert_eq!(raw_member(b"{\"data\": ", "data"), None);
}
