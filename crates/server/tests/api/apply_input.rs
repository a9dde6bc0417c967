//! What server-side apply refuses, in upstream's words: bodies that are no YAML or no configuration, options, and values
//! that do not fit the schema.

use http::{Method, header};
use serde_json::{Value, json};

use crate::apply::{APPLY, config_map, path};
use crate::fixture::{DAEMONSETS, MAPS, MERGE, PODS, TestServer, daemonset, pod, request};

#[tokio::test]
async fn yaml_is_applied_and_its_mistakes_are_named() {
    let server = TestServer::new().await;
    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: &x '1'\n  l: *x\n";
    let made = server.patch_text(APPLY, &path("y"), yaml).await.is(201);
    assert_eq!(made["data"], json!({"k": "1", "l": "1"}));
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: '1'\n  k: '2'\n";
    let warned = server.patch_text(APPLY, &path("y"), twice).await;
    assert_eq!(warned.ok()["data"], json!({"k": "2"}));
    let warning = warned.header(header::WARNING);
    assert!(
        warning.contains("line 6: key \\\"k\\\" already set in map"),
        "{warning}"
    );
    let strict = format!("{}&fieldValidation=Strict", path("y"));
    server.patch_text(APPLY, &strict, twice).await.says(
        400,
        "BadRequest",
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"k\" already set in map",
    );
}

#[tokio::test]
async fn every_duplicate_key_is_named_with_the_line_of_its_value() {
    let server = TestServer::new().await;
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (rest, expected) in [
        (
            "data:\n  a: '1'\n  a: '2'\n  b: '1'\n  b: '2'\n  b: '3'\n",
            &[
                "line 6: key \"a\" already set in map",
                "line 8: key \"b\" already set in map",
                "line 9: key \"b\" already set in map",
            ][..],
        ),
        (
            "data:\n  a: '1'\ndata:\n\n  b: '2'\n",
            &["line 8: key \"data\" already set in map"],
        ),
        (
            "data:\n  a: |\n    1\n  a: |\n    2\n  a:\n    'three'\n",
            &[
                "line 7: key \"a\" already set in map",
                "line 10: key \"a\" already set in map",
            ],
        ),
        (
            "data: {1: a, 1: b}\nmetadata: {name: a, name: a}\n",
            &[
                "line 5: key \"name\" already set in map",
                "line 5: key \"metadata\" already set in map",
            ],
        ),
        (
            "data: {1: a, 1: b}\n",
            &["line 4: key 1 already set in map"],
        ),
        (
            "data: {yes: a, true: b}\n",
            &["line 4: key true already set in map"],
        ),
    ] {
        let body = format!("{head}{rest}");
        let strict = format!("{}&fieldValidation=Strict", path("y"));
        let words = format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
            expected.join("\n  ")
        );
        let refused = server.patch_text(APPLY, &strict, &body).await;
        refused.says(400, "BadRequest", &words);
        let warned = server.patch_text(APPLY, &path("y"), &body).await;
        assert!(warned.code < 300, "{}", warned.text());
        let warnings = warned.headers.get_all(header::WARNING).iter();
        let warnings: Vec<&str> = warnings.map(|warning| warning.to_str().unwrap()).collect();
        let expected = expected.iter().map(|words| {
            let words = words.replace('"', "\\\"");
            format!("299 - \"{words}\"")
        });
        assert_eq!(warnings, expected.collect::<Vec<_>>(), "{body}");
    }
}

#[tokio::test]
async fn keys_and_numbers_are_read_as_upstream_reads_yaml() {
    let server = TestServer::new().await;
    let body = |data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {data}\n")
    };
    let given = body("{yes: a, 010: b, 12: c, 1.5: d, off: e, 0x1F: f, 'no': g}");
    let made = server.patch_text(APPLY, &path("m"), &given).await.is(201);
    let expected =
        json!({"true": "a", "8": "b", "12": "c", "1.5": "d", "false": "e", "31": "f", "no": "g"});
    assert_eq!(made["data"], expected);
    for (data, expected) in [
        (
            "{null: a}",
            "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\"",
        ),
        (
            "{~: {a: [1, yes]}}",
            "unsupported map key of type: %!s(<nil>), key: <nil>, value: map[interface {}]interface {}{\"a\":[]interface {}{1, true}}",
        ),
        (
            "{[a, 1]: b}",
            "yaml: invalid map key: []interface {}{\"a\", 1}",
        ),
        (
            "{{a: b}: c}",
            "yaml: invalid map key: map[interface {}]interface {}{\"a\":\"b\"}",
        ),
        ("{k: .inf}", "json: unsupported value: +Inf"),
        ("{k: -.Inf}", "json: unsupported value: -Inf"),
        ("{k: .NaN}", "json: unsupported value: NaN"),
        ("&x {k: *x}", "yaml: anchor 'x' value contains itself"),
        (
            "{<<: 1}",
            "yaml: map merge requires map or sequence of maps as the value",
        ),
        (
            "{k: !!binary '***'}",
            "yaml: !!binary value contains invalid base64 data",
        ),
        ("{k: \"\u{1}\"}", "yaml: control characters are not allowed"),
    ] {
        let refused = server.patch_text(APPLY, &path("m"), &body(data)).await;
        let words = format!("error decoding YAML: error converting YAML to JSON: {expected}");
        refused.says(400, "BadRequest", &words);
    }
}

/// Upstream reads an apply as YAML even if it is JSON, and writes whole numbers without a fraction.
#[tokio::test]
async fn whole_numbers_are_integers_however_they_are_written() {
    let server = TestServer::new().await;
    let mut daemon = daemonset("d");
    daemon["apiVersion"] = "apps/v1".into();
    daemon["kind"] = "DaemonSet".into();
    daemon["spec"]["minReadySeconds"] = "SECONDS".into();
    let daemon = daemon.to_string();
    let path = format!("{DAEMONSETS}/d?fieldManager=m");
    for (number, expected) in [("5.0", 5), ("1e1", 10), ("2.5E+1", 25), ("7", 7)] {
        let body = daemon.replace("\"SECONDS\"", number);
        let applied = server.patch_text(APPLY, &path, &body).await;
        assert!(applied.code < 300, "{}", applied.text());
        assert_eq!(applied.json()["spec"]["minReadySeconds"], expected);
    }
    let half = daemon.replace("\"SECONDS\"", "1.5");
    let refused = server.patch_text(APPLY, &path, &half).await.is(500);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("cannot unmarshal number 1.5"), "{message}");
}

#[tokio::test]
async fn bodies_that_are_no_configuration_are_refused() {
    let server = TestServer::new().await;
    let ten_of = |c: char| {
        let before = char::from(c as u8 - 1);
        format!("{c}: &{c} [{}]", vec![format!("*{before}"); 10].join(","))
    };
    let lines: Vec<String> = ('b'..='k').map(ten_of).collect();
    let bomb = format!("a: &a [x,x,x,x,x,x,x,x,x,x]\n{}\n", lines.join("\n"));
    for (body, expected) in [
        (
            "{{{",
            "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content",
        ),
        (
            bomb.as_str(),
            "error decoding YAML: error converting YAML to JSON: yaml: document contains excessive aliasing",
        ),
        (
            "- a",
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("", "invalid object type: /, Kind="),
        (
            "{\"metadata\": {\"name\": \"a\"}}",
            "invalid object type: /, Kind=",
        ),
        (
            "{\"apiVersion\": \"apps/v1\", \"kind\": \"DaemonSet\"}",
            "invalid object type: apps/v1, Kind=DaemonSet",
        ),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\", \"managedFields\": []}}",
            "metadata.managedFields must be nil",
        ),
    ] {
        let status = server
            .patch_text(APPLY, &path("m"), body)
            .await
            .fails(400, "BadRequest");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{message}");
    }
}

/// A merge key stands for the members of what it names; those beside it win.
#[tokio::test]
async fn merge_keys_of_yaml_are_read() {
    let server = TestServer::new().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &base {k: '1', l: '1'}}\n\
        data: {<<: *base, l: '2'}\n";
    let made = server.patch_text(APPLY, &path("m"), yaml).await.is(201);
    assert_eq!(made["data"], json!({"k": "1", "l": "2"}));
}

#[tokio::test]
async fn options_are_checked() {
    let server = TestServer::new().await;
    let body = config_map(&json!({"k": "1"}));
    for missing in [format!("{MAPS}/a"), path("")] {
        let refused = server.patch(APPLY, &missing, &body).await;
        refused.says(
            422,
            "Invalid",
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        );
    }
    let long = "x".repeat(129);
    server.patch(APPLY, &path(&long), &body).await.says(
        422,
        "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes",
    );
    server.patch(APPLY, &path(&long[1..]), &body).await.is(201);
    // Bytes are counted, not characters.
    let wide = "%C3%BC".repeat(65);
    let refused = server.patch(APPLY, &path(&wide), &body).await;
    refused.fails(422, "Invalid");
    server.patch(APPLY, &path(&wide[6..]), &body).await.ok();
    server.patch(APPLY, &path("a%07b"), &body).await.says(
        422,
        "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\ab\": invalid character U+0007 (at position 1)",
    );
    let forced = format!("{}&force=true", path("m"));
    server.patch(MERGE, &forced, &json!({})).await.says(
        422,
        "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
    );
}

#[tokio::test]
async fn values_that_do_not_fit_the_schema_are_named() {
    let server = TestServer::new().await;
    let what = "failed to create typed patch object (default/d; apps/v1, Kind=DaemonSet): ";
    for (spec, expected) in [
        (
            json!({"minReadySeconds": "soon"}),
            ".spec.minReadySeconds: expected numeric (int or float), got string",
        ),
        (
            json!({"hostNetwerk": true}),
            ".spec.hostNetwerk: field not declared in schema",
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}}),
            ".spec.template.spec.containers: duplicate entries for key [name=\"c\"]",
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 80}]}]}}}),
            ".spec.template.spec.containers[name=\"c\"].ports: duplicate entries for key [containerPort=80,protocol=\"TCP\"]",
        ),
        (
            json!({"template": {"spec": {"containers": [{"image": "c"}]}}}),
            ".spec.template.spec.containers: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"template": {"spec": {"containers": [null]}}}),
            ".spec.template.spec.containers: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"template": {"spec": {"containers": ["c"]}}}),
            ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
    ] {
        let body = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "d", "namespace": "default"}, "spec": spec,
        });
        let status = server
            .patch(APPLY, &format!("{DAEMONSETS}/d?fieldManager=m"), &body)
            .await
            .is(500);
        assert_eq!(status["message"], format!("{what}{expected}"));
    }
}

/// As upstream, one of the keys is enough to tell an item from others; validation asks for the rest.
#[tokio::test]
async fn a_part_of_the_keys_of_an_item_is_a_key() {
    let server = TestServer::new().await;
    let path = format!("{PODS}/p?fieldManager=m");
    let body = |ports: Value| {
        let mut pod = pod("p");
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["spec"]["containers"][0]["ports"] = ports;
        pod
    };
    let one = body(json!([{"protocol": "UDP"}]));
    let refused = server.patch(APPLY, &path, &one).await;
    let message = refused.fails(422, "Invalid")["message"].clone();
    let words = "spec.containers[0].ports[0].containerPort: Required value";
    assert!(message.as_str().unwrap().ends_with(words), "{message}");
    let twice = body(json!([{"protocol": "UDP", "name": "a"}, {"protocol": "UDP", "name": "b"}]));
    let refused = server.patch(APPLY, &path, &twice).await;
    let message = refused.is(500)["message"].clone();
    let words = ".ports: duplicate entries for key [protocol=\"UDP\"]";
    assert!(message.as_str().unwrap().ends_with(words), "{message}");
}

/// The name of a pull secret has a default, which is empty: two of them without a name are the same.
#[tokio::test]
async fn keys_with_an_empty_default_may_be_absent() {
    let server = TestServer::new().await;
    let path = format!("{PODS}/p?fieldManager=m");
    let body = |secrets: Value| {
        let mut pod = pod("p");
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["spec"]["imagePullSecrets"] = secrets;
        pod
    };
    let applied = server.patch(APPLY, &path, &body(json!([{}]))).await;
    let entry = &applied.is(201)["metadata"]["managedFields"][0]["fieldsV1"];
    let secrets = &entry["f:spec"]["f:imagePullSecrets"];
    assert_eq!(*secrets, json!({"k:{\"name\":\"\"}": {}}));
    let twice = body(json!([{}, {"name": ""}]));
    let refused = server.patch(APPLY, &path, &twice).await;
    let message = refused.is(500)["message"].clone();
    let words = ".spec.imagePullSecrets: duplicate entries for key [name=\"\"]";
    assert!(message.as_str().unwrap().ends_with(words), "{message}");
}

#[tokio::test]
async fn yaml_that_cannot_be_read_is_explained_in_the_words_of_go_yaml() {
    let server = TestServer::new().await;
    let mut differences = Vec::new();
    for (body, expected) in [
        (
            "a: b: c\n",
            "mapping values are not allowed in this context",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a: b\n",
            "line 4: mapping values are not allowed in this context",
        ),
        (
            "a: 1\n b: 2\n",
            "line 2: mapping values are not allowed in this context",
        ),
        (
            "metadata:\n\tname: a\n",
            "line 2: found character that cannot start any token",
        ),
        (
            "k: v\na: @b\n",
            "line 2: found character that cannot start any token",
        ),
        (
            "k: v\na: `b`\n",
            "line 2: found character that cannot start any token",
        ),
        (
            "metadata:\n  name: a\n  foo\ndata: {}\n",
            "line 4: could not find expected ':'",
        ),
        ("a:\n  b: 1\n c: 2\n", "line 2: did not find expected key"),
        ("a: [1, 2\n", "line 1: did not find expected ',' or ']'"),
        ("a: {b: 1\n", "line 1: did not find expected ',' or '}'"),
        ("a: \"b\n", "line 2: found unexpected end of stream"),
        ("a: \"b\nc: d\n", "line 3: found unexpected end of stream"),
        ("a: *b\n", "unknown anchor 'b' referenced"),
        ("k: [*other-one]\n", "unknown anchor 'other-one' referenced"),
        (
            "k: v\na: - b\n",
            "line 2: block sequence entries are not allowed in this context",
        ),
        ("a: \"\\q\"\n", "found unknown escape character"),
    ] {
        let expected =
            format!("error decoding YAML: error converting YAML to JSON: yaml: {expected}");
        let refused = server.patch_text(APPLY, &path("m"), body).await;
        let status = refused.fails(400, "BadRequest");
        if status["message"] != expected {
            differences.push(format!("{body:?}\n- {expected}\n+ {}", status["message"]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn nesting_has_a_limit() {
    let server = TestServer::new().await;
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let body = format!("k: {}1{}\n", open.repeat(20_000), close.repeat(20_000));
        let refused = server.patch_text(APPLY, &path("m"), &body).await;
        let status = refused.fails(400, "BadRequest");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.ends_with("yaml: exceeded max depth of 64"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn only_the_first_document_of_a_body_counts() {
    let server = TestServer::new().await;
    let two = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '1'}\n---\nkind: Nothing\n";
    let made = server.patch_text(APPLY, &path("m"), two).await.is(201);
    assert_eq!(made["data"], json!({"k": "1"}));
}

#[tokio::test]
async fn sets_have_no_duplicates() {
    let server = TestServer::new().await;
    let mut body = config_map(&json!({}));
    body["metadata"]["finalizers"] = json!(["a.example.com/x", "a.example.com/x"]);
    let refused = server.patch(APPLY, &path("m"), &body).await.is(500);
    assert_eq!(
        refused["message"],
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .metadata.finalizers: duplicate entries for key [=\"a.example.com/x\"]"
    );
}

#[tokio::test]
async fn the_media_type_is_taken_without_its_parameters_and_no_other_is() {
    let server = TestServer::new().await;
    let body = config_map(&json!({"k": "1"})).to_string();
    let kind = format!("{APPLY}; charset=utf-8");
    server.patch_text(&kind, &path("m"), &body).await.is(201);
    let accepted = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
    for kind in [
        "application/apply-patch+json",
        "application/apply-patch",
        "text/yaml",
    ] {
        server.patch_text(kind, &path("m"), &body).await.says(
            415,
            "UnsupportedMediaType",
            accepted,
        );
    }
}

/// An apply is a PATCH: an object that is posted or put is no configuration.
#[tokio::test]
async fn a_configuration_is_neither_posted_nor_put() {
    let server = TestServer::new().await;
    server.map("a", &json!({"k": "1"})).await;
    let body = config_map(&json!({"k": "2"})).to_string();
    for (method, path) in [(Method::POST, MAPS.to_owned()), (Method::PUT, path("m"))] {
        let mut sent = request(method, &path, None);
        *sent.body_mut() = body.clone().into();
        let kind = header::HeaderValue::from_static(APPLY);
        sent.headers_mut().insert(header::CONTENT_TYPE, kind);
        let refused = server.send(sent).await;
        let message = refused.fails(415, "UnsupportedMediaType")["message"].clone();
        let words = "the body of the request was in an unknown format";
        assert!(message.as_str().unwrap().starts_with(words), "{message}");
    }
    let kept = server.get(&format!("{MAPS}/a")).await.ok();
    assert_eq!(kept["data"], json!({"k": "1"}));
}

#[tokio::test]
async fn managed_fields_are_not_applied() {
    let server = TestServer::new().await;
    for entries in [
        json!([]),
        json!([{}]),
        json!([{"manager": "m", "operation": "Apply"}]),
    ] {
        let mut body = config_map(&json!({"k": "1"}));
        body["metadata"]["managedFields"] = entries;
        server.patch(APPLY, &path("m"), &body).await.says(
            400,
            "BadRequest",
            "metadata.managedFields must be nil",
        );
    }
    let mut body = config_map(&json!({"k": "1"}));
    body["metadata"]["managedFields"] = json!(null);
    server.patch(APPLY, &path("m"), &body).await.is(201);
}
