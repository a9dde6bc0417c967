//! Bodies that are not quite what they should be: other kinds, broken JSON, unknown fields.

use bytes::Bytes;
use http::{Method, header};
use serde_json::{Value, json};

use crate::fixture::{
    Answer, DAEMONSETS, MAPS, MERGE, STRATEGIC, TestServer, daemonset, map, request,
};

async fn post_text(server: &TestServer, path: &str, body: &str) -> Answer {
    let mut post = request(Method::POST, path, None).map(|_| Bytes::from(body.to_owned()));
    let json = "application/json".parse().unwrap();
    post.headers_mut().insert(header::CONTENT_TYPE, json);
    server.send(post).await
}

#[tokio::test]
async fn a_body_without_kind_is_taken_for_what_the_url_says() {
    let server = TestServer::new().await;
    let made = server
        .post(MAPS, &json!({"metadata": {"name": "a"}}))
        .await
        .is(201);
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
}

#[tokio::test]
async fn a_body_of_another_kind_is_refused_in_upstreams_words() {
    let server = TestServer::new().await;
    let cases = [
        (
            DAEMONSETS,
            json!({"apiVersion": "v1", "kind": "Pod"}),
            "Pod in version \"v1\" cannot be handled as a DaemonSet: converting (v1.Pod) to (apps.DaemonSet): unknown conversion",
        ),
        (
            MAPS,
            json!({"apiVersion": "v1", "kind": "Secret"}),
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            DAEMONSETS,
            json!({"kind": "DaemonSett"}),
            "DaemonSett in version \"v1\" cannot be handled as a DaemonSet: no kind \"DaemonSett\" is registered for version \"apps/v1\"",
        ),
        (
            DAEMONSETS,
            json!({"apiVersion": "extensions/v1beta1", "kind": "DaemonSet"}),
            "DaemonSet in version \"v1beta1\" cannot be handled as a DaemonSet: no kind \"DaemonSet\" is registered for version \"extensions/v1beta1\"",
        ),
        (
            "/api/v1/namespaces/default/events",
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"}),
            "the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)",
        ),
    ];
    for (path, body, words) in cases {
        server
            .post(path, &body)
            .await
            .says(400, "BadRequest", words);
    }
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_in_upstreams_words() {
    let server = TestServer::new().await;
    let into = "into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let cases = [
        ("", "unexpected end of JSON input (<empty>)".to_owned()),
        ("[]", format!("json: cannot unmarshal array {into} (5b5d)")),
        ("{\"a\"", "unexpected end of JSON input ({\"a\")".to_owned()),
        (
            "\u{feff}{}",
            "invalid character 'ï' looking for beginning of value (efbbbf7b7d)".to_owned(),
        ),
        (
            "{\"kind\":7}",
            "json: cannot unmarshal number into Go struct field .kind of type string ({\"kind\":7})"
                .to_owned(),
        ),
    ];
    for (body, why) in cases {
        let words = format!(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: {why}"
        );
        post_text(&server, MAPS, body)
            .await
            .says(400, "BadRequest", &words);
    }
}

#[tokio::test]
async fn deep_nesting_is_refused_and_harms_nobody() {
    let server = TestServer::new().await;
    for depth in [200, 100_000] {
        let body = format!("{{\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        post_text(&server, MAPS, &body)
            .await
            .fails(400, "BadRequest");
        server
            .patch_text(MERGE, &format!("{MAPS}/kube-root-ca.crt"), &body)
            .await
            .fails(400, "BadRequest");
    }
    server.map("after", &json!({})).await;
}

#[tokio::test]
async fn a_field_of_the_wrong_type_is_refused_in_gos_words() {
    let server = TestServer::new().await;
    let words = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
    server
        .post(MAPS, &map("a", &json!({"k": 7})))
        .await
        .says(400, "BadRequest", words);
}

fn with_unknown(name: &str) -> Value {
    let mut ds = daemonset(name);
    ds["spec"]["foo"] = 1.into();
    ds["bar"] = "x".into();
    ds
}

#[tokio::test]
async fn unknown_fields_are_dropped_with_warnings() {
    let server = TestServer::new().await;
    for query in ["", "?fieldValidation=Warn"] {
        let name = format!("a{}", query.len());
        let answer = server
            .post(&format!("{DAEMONSETS}{query}"), &with_unknown(&name))
            .await;
        let made = answer.is(201);
        assert!(
            made["spec"]["foo"].is_null() && made["bar"].is_null(),
            "{made}"
        );
        assert_eq!(
            answer.warnings(),
            [
                r#"299 - "unknown field \"bar\"""#,
                r#"299 - "unknown field \"spec.foo\"""#
            ]
        );
    }
    let path = format!("{DAEMONSETS}?fieldValidation=Ignore");
    let answer = server.post(&path, &with_unknown("b")).await;
    assert!(answer.is(201)["bar"].is_null());
    assert!(answer.warnings().is_empty());
}

#[tokio::test]
async fn warnings_keep_letters_of_any_script() {
    let server = TestServer::new().await;
    let body = json!({"metadata": {"name": "a"}, "größe": 1});
    let answer = server.post(MAPS, &body).await;
    answer.is(201);
    let warning = answer.headers.get(header::WARNING).expect("a warning");
    let text = std::str::from_utf8(warning.as_bytes()).unwrap();
    assert_eq!(text, r#"299 - "unknown field \"größe\"""#);
}

#[tokio::test]
async fn strict_validation_refuses_unknown_and_duplicate_fields() {
    let server = TestServer::new().await;
    let strict = format!("{DAEMONSETS}?fieldValidation=Strict");
    let words = "DaemonSet in version \"v1\" cannot be handled as a DaemonSet: strict decoding error: unknown field \"bar\", unknown field \"spec.foo\"";
    server
        .post(&strict, &with_unknown("a"))
        .await
        .says(400, "BadRequest", words);
    let twice = r#"{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#;
    let words = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \"data.k\"";
    let strict = format!("{MAPS}?fieldValidation=Strict");
    post_text(&server, &strict, twice)
        .await
        .says(400, "BadRequest", words);
    let answer = post_text(&server, MAPS, twice).await;
    assert_eq!(answer.is(201)["data"]["k"], "2");
    assert_eq!(answer.warnings(), [r#"299 - "duplicate field \"data.k\"""#]);
}

#[tokio::test]
async fn strict_validation_holds_for_patches_too() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a?fieldValidation=Strict");
    for kind in [MERGE, STRATEGIC] {
        let status = server
            .patch(kind, &path, &json!({"nope": 1}))
            .await
            .fails(422, "Invalid");
        let words = status["message"].as_str().unwrap();
        assert!(
            words.starts_with(" \"\" is invalid: patch: Invalid value: "),
            "{words}"
        );
        assert!(
            words.ends_with("strict decoding error: unknown field \"nope\""),
            "{words}"
        );
        let twice = r#"{"data":{"a":"1","a":"2"}}"#;
        let status = server
            .patch_text(kind, &path, twice)
            .await
            .fails(422, "Invalid");
        assert!(
            status["message"]
                .as_str()
                .unwrap()
                .contains("duplicate field \"data.a\"")
        );
    }
    let answer = server
        .patch(MERGE, &format!("{MAPS}/a"), &json!({"nope": 1}))
        .await;
    answer.ok();
    assert_eq!(answer.warnings(), [r#"299 - "unknown field \"nope\"""#]);
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    let server = TestServer::new().await;
    let long = "m".repeat(129);
    for (query, field) in [
        ("dryRun=Some", "dryRun"),
        ("fieldValidation=Maybe", "fieldValidation"),
        (&*format!("fieldManager={long}"), "fieldManager"),
    ] {
        let answer = server
            .post(&format!("{MAPS}?{query}"), &map("a", &json!({})))
            .await;
        let status = answer.fails(422, "Invalid");
        assert_eq!(status["details"]["kind"], "CreateOptions", "{status}");
        assert_eq!(status["details"]["causes"][0]["field"], field, "{status}");
        assert!(status["details"].get("name").is_none(), "{status}");
    }
    server
        .get(&format!("{MAPS}/a"))
        .await
        .fails(404, "NotFound");
}
