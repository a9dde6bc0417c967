//! Bodies that are no protobuf, or not the object they should be.

use http::{Method, header};
use serde_json::json;

use super::encoder::{Style, body, put_bytes};
use super::{request, type_named};
use crate::fixture::{MAPS, PODS, TestServer, map};

/// An envelope around any bytes.
fn around(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut names = Vec::new();
    put_bytes(&mut names, 1, version.as_bytes());
    put_bytes(&mut names, 2, kind.as_bytes());
    let mut out = b"k8s\0".to_vec();
    put_bytes(&mut out, 1, &names);
    put_bytes(&mut out, 2, raw);
    out
}

#[tokio::test]
async fn what_is_no_protobuf_is_a_bad_request() {
    let server = TestServer::new().await;
    let no_object = "the object provided is unrecognized (must be of type ConfigMap): ";
    let no_map = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ";
    let in_v1 = |raw: &[u8]| around("v1", "ConfigMap", raw);
    for (sent, words) in [
        (b"".to_vec(), format!("{no_object}empty data (<empty>)")),
        (
            b"{}".to_vec(),
            format!(
                "{no_object}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({{}})"
            ),
        ),
        (
            b"k8s\0".to_vec(),
            format!("{no_object}empty body (6b387300)"),
        ),
        (
            b"k8s\0\x0a\xff".to_vec(),
            format!("{no_object}unexpected EOF (6b3873000aff)"),
        ),
        (in_v1(b"\x0a\x05\x0a"), format!("{no_map}unexpected EOF")),
        (
            in_v1(b"\x08\x01"),
            format!("{no_map}proto: wrong wireType = 0 for field Metadata"),
        ),
        (in_v1(b"\x0b"), format!("{no_map}proto: illegal wireType 3")),
        (
            in_v1(b"\x00\x00"),
            format!("{no_map}proto: illegal tag 0 (wire type 0)"),
        ),
        (
            in_v1(&[0xff; 12]),
            format!("{no_map}proto: integer overflow"),
        ),
        (
            in_v1(b"\x0a\x04\x0a\x02\xff\xfe"),
            format!("{no_map}proto: field name contains invalid UTF-8"),
        ),
    ] {
        let answer = server.send(request(Method::POST, MAPS, sent)).await;
        answer.says(400, "BadRequest", &words);
    }
}

#[tokio::test]
async fn compressed_or_foreign_objects_are_not_guessed_at() {
    let server = TestServer::new().await;
    for (number, value) in [(3, "gzip"), (4, "application/json")] {
        let mut sent = around("v1", "ConfigMap", b"");
        put_bytes(&mut sent, number, value.as_bytes());
        let status = server
            .send(request(Method::POST, MAPS, sent))
            .await
            .fails(400, "BadRequest");
        let words = status["message"].as_str().unwrap();
        assert!(
            words.contains(&format!("{value:?} is not supported")),
            "{words}"
        );
    }
}

#[tokio::test]
async fn an_object_of_another_kind_is_refused_as_in_json() {
    let server = TestServer::new().await;
    for (version, kind) in [
        ("v1", "Secret"),
        ("v2", "ConfigMap"),
        ("apps/v1", "DaemonSet"),
        ("", "Pod"),
    ] {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
        let told = server.post(MAPS, &object).await.fails(400, "BadRequest");
        let sent = around(version, kind, b"\x0a\x03\x0a\x01a");
        let status = server
            .send(request(Method::POST, MAPS, sent))
            .await
            .fails(400, "BadRequest");
        assert_eq!(status, told);
    }
    // One that does not say what it is is taken for what it should be.
    let sent = around("", "", b"\x0a\x03\x0a\x01a");
    server.send(request(Method::POST, MAPS, sent)).await.is(201);
}

#[tokio::test]
async fn small_bodies_of_another_kind_are_refused() {
    let server = TestServer::new().await;
    server.pod("p", "").await;
    let map = body(
        type_named("core.v1.ConfigMap"),
        &map("p", &json!({})),
        Style::Go,
    );
    for (method, path) in [
        (Method::DELETE, format!("{PODS}/p")),
        (Method::POST, format!("{PODS}/p/binding")),
        (Method::POST, format!("{PODS}/p/eviction")),
    ] {
        let answer = server.send(request(method, &path, map.clone())).await;
        answer.fails(400, "BadRequest");
    }
    server.get(&format!("{PODS}/p")).await.ok();
}

#[tokio::test]
async fn patches_are_never_in_protobuf() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let patch = body(
        type_named("core.v1.ConfigMap"),
        &map("a", &json!({})),
        Style::Go,
    );
    let answer = server
        .send(request(Method::PATCH, &format!("{MAPS}/a"), patch))
        .await;
    answer.fails(415, "UnsupportedMediaType");
}

#[tokio::test]
async fn a_refused_format_names_those_that_are_not() {
    let server = TestServer::new().await;
    let mut post = request(Method::POST, MAPS, b"{}".to_vec());
    let kind = "application/cbor".parse().unwrap();
    post.headers_mut().insert(header::CONTENT_TYPE, kind);
    let words = "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/vnd.kubernetes.protobuf";
    server
        .send(post)
        .await
        .says(415, "UnsupportedMediaType", words);
}

#[tokio::test]
async fn raw_json_is_bounded_like_any() {
    let server = TestServer::new().await;
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let nested = |levels: usize| "{\"a\":".repeat(levels) + "{}" + &"}".repeat(levels);
    for (json, expected) in [
        (nested(90), 201),
        (nested(99), 400),
        (nested(100_000), 400),
        ("{".to_owned(), 400),
        ("{} {}".to_owned(), 400),
    ] {
        let (mut data, mut raw) = (Vec::new(), b"\x0a\x03\x0a\x01r\x18\x01".to_vec());
        put_bytes(&mut data, 1, json.as_bytes());
        put_bytes(&mut raw, 2, &data);
        let sent = around("apps/v1", "ControllerRevision", &raw);
        let answer = server.send(request(Method::POST, path, sent)).await;
        assert_eq!(answer.code, expected, "{}", answer.text());
    }
    server.get(&format!("{path}/r")).await.ok();
}

#[tokio::test]
async fn a_small_body_cannot_make_a_large_object() {
    let server = TestServer::new().await;
    // Half a megabyte of what JSON has to escape.
    let mut metadata = b"\x0a\x01a".to_vec();
    put_bytes(&mut metadata, 5, &vec![1; 600_000]);
    let mut raw = Vec::new();
    put_bytes(&mut raw, 1, &metadata);
    let sent = around("v1", "ConfigMap", &raw);
    let answer = server.send(request(Method::POST, MAPS, sent)).await;
    answer.says(
        413,
        "RequestEntityTooLarge",
        "Request entity too large: limit is 3145728",
    );
    // A million owners with nothing in them.
    let mut metadata = b"\x0a\x01a".to_vec();
    metadata.extend([0x6a, 0].repeat(1_000_000));
    let mut raw = Vec::new();
    put_bytes(&mut raw, 1, &metadata);
    let sent = around("v1", "ConfigMap", &raw);
    let status = server
        .send(request(Method::POST, MAPS, sent))
        .await
        .fails(400, "BadRequest");
    let words = status["message"].as_str().unwrap();
    assert!(
        words.ends_with("more objects than a body may hold"),
        "{words}"
    );
}
