//! Headers, media types, limits, and paths outside the resource API.

use bytes::Bytes;
use http::{Method, Request, header};
use kennel_server::request::User;
use serde_json::json;

use crate::fixture::{MAPS, NODES, TestServer, map, request};

fn with_type(method: Method, path: &str, kind: &str, body: &str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::from(body.to_owned()));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let kind = kind.parse().unwrap();
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    request
}

#[tokio::test]
async fn without_content_type_and_accept_everything_is_json() {
    let server = TestServer::new().await;
    let mut post = request(Method::POST, MAPS, Some(&map("a", &json!({}))));
    post.headers_mut().clear();
    let answer = server.send(post).await;
    assert_eq!(answer.is(201)["kind"], "ConfigMap");
    assert_eq!(answer.header(header::CONTENT_TYPE), "application/json");
    assert_eq!(answer.header(header::CACHE_CONTROL), "no-cache, private");
}

#[tokio::test]
async fn json_may_say_its_charset() {
    let server = TestServer::new().await;
    let body = map("a", &json!({})).to_string();
    let post = with_type(Method::POST, MAPS, "application/json; charset=utf-8", &body);
    server.send(post).await.is(201);
}

#[tokio::test]
async fn bodies_in_unknown_formats_are_refused() {
    let server = TestServer::new().await;
    for kind in [
        "application/cbor",
        "text/plain",
        "application/merge-patch+json",
    ] {
        let post = with_type(Method::POST, MAPS, kind, "{}");
        let status = server.send(post).await.fails(415, "UnsupportedMediaType");
        let words = status["message"].as_str().unwrap();
        assert!(
            words.starts_with("the body of the request was in an unknown format"),
            "{words}"
        );
    }
}

#[tokio::test]
async fn unacceptable_media_types_get_406() {
    let server = TestServer::new().await;
    for accept in ["application/cbor", "text/html", "image/png"] {
        server
            .get_as(MAPS, accept)
            .await
            .fails(406, "NotAcceptable");
    }
    for accept in [
        "*/*",
        "application/*",
        "application/cbor, application/json;q=0.5",
    ] {
        server.get_as(MAPS, accept).await.ok();
    }
}

#[tokio::test]
async fn a_cached_document_is_not_sent_again() {
    let server = TestServer::new().await;
    let first = server.get("/apis/apps/v1").await;
    let tag = first.header(header::ETAG).to_owned();
    assert!(!tag.is_empty());
    let mut again = request(Method::GET, "/apis/apps/v1", None);
    again
        .headers_mut()
        .insert(header::IF_NONE_MATCH, tag.parse().unwrap());
    let again = server.send(again).await;
    assert_eq!((again.code, again.body.len()), (304, 0));
    assert_eq!(again.header(header::CONTENT_TYPE), "");
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused() {
    let server = TestServer::new().await;
    let body = map("a", &json!({"k": "x".repeat(3 * 1024 * 1024)}));
    let status = server
        .post(MAPS, &body)
        .await
        .fails(413, "RequestEntityTooLarge");
    assert_eq!(
        status["message"],
        "Request entity too large: limit is 3145728"
    );
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = TestServer::new().await;
    for (path, code) in [(MAPS.to_owned(), 200), (format!("{MAPS}/none"), 404)] {
        let answer = server.send(request(Method::HEAD, &path, None)).await;
        assert_eq!((answer.code, answer.body.len()), (code, 0), "{path}");
        assert_eq!(answer.header(header::CONTENT_TYPE), "application/json");
    }
}

#[tokio::test]
async fn browsers_and_curl_get_indented_json() {
    let server = TestServer::new().await;
    let path = format!("{NODES}?pretty=true");
    assert!(
        server
            .get("/api/v1/namespaces/default")
            .await
            .text()
            .lines()
            .count()
            == 1
    );
    let shown = server.get("/api/v1/namespaces/default?pretty=true").await;
    assert!(
        shown.text().contains("\n  \"metadata\": {"),
        "{}",
        shown.text()
    );
    server.get(&path).await.ok();
}

#[tokio::test]
async fn health_and_version_are_for_everybody() {
    let server = TestServer::new().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        let answer = server
            .send_as(request(Method::GET, path, None), User::anonymous())
            .await;
        assert_eq!((answer.code, answer.text()), (200, "ok"), "{path}");
    }
    let verbose = server.get("/livez?verbose").await;
    let expected = "[+]ping ok\n[+]store ok\nlivez check passed\n";
    assert_eq!((verbose.code, verbose.text()), (200, expected));
    for check in ["/readyz/disk", "/livez/etcd", "/readyz?exclude=disk"] {
        assert_eq!(server.get(check).await.code, 200, "{check}");
    }
    assert_eq!(server.get("/livez/disk").await.code, 404);
    for path in ["/version", "/version/"] {
        let answer = server
            .send_as(request(Method::GET, path, None), User::anonymous())
            .await;
        let version = answer.ok()["gitVersion"].as_str().unwrap().to_owned();
        assert!(version.starts_with("v1.36."), "{version}");
    }
    for path in [MAPS, "/apis", "/metrics", "/openapi/v3", "/"] {
        let answer = server
            .send_as(request(Method::GET, path, None), User::anonymous())
            .await;
        answer.says(401, "Unauthorized", "Unauthorized");
    }
}

#[tokio::test]
async fn paths_that_name_nothing_are_not_found() {
    let server = TestServer::new().await;
    for path in [
        "/nothing",
        "/api/v2",
        "/apis/none.example/v1",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/p",
        "/api/v1/namespaces/default/pods/p/widgets",
    ] {
        let words = "the server could not find the requested resource";
        let status = server.get(path).await.says(404, "NotFound", words);
        assert_eq!(status["details"], json!({}), "{path}");
    }
}

/// kubectl and other clients show the message to their users.
#[tokio::test]
async fn a_resource_that_is_not_served_leads_to_what_is() {
    let server = TestServer::new().await;
    let missing = "the server could not find the requested resource";
    let list = "docs/reference/api.md lists the resources that";
    for (path, words) in [
        ("/api/v1/widgets", format!("{list} Kennel has")),
        (
            "/api/v1/namespaces/default/widgets",
            format!("{list} Kennel has"),
        ),
        (
            "/apis/example.com/v1/namespaces/default/widgets/one",
            format!("Kennel has no custom resources; {list} it has"),
        ),
    ] {
        let answer = server.get(path).await;
        let status = answer.says(404, "NotFound", &format!("{missing}: {words}"));
        assert_eq!(status["details"], json!({}), "{path}");
    }
    let old = server.get("/apis/apps/v1beta1/daemonsets").await;
    let words = format!("{missing}: daemonsets are served as apps/v1");
    let status = old.says(404, "NotFound", &words);
    assert_eq!(status["details"], json!({}));
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}});
    let job = server
        .post("/apis/batch/v1/namespaces/default/jobs", &job)
        .await;
    let words = "Kennel runs DaemonSets and single Pods; a Pod with restartPolicy Never or OnFailure runs to its end";
    job.says(404, "NotFound", &format!("{missing}: {words}"));
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    let deployment = server
        .post("/apis/apps/v1/namespaces/default/deployments", &body)
        .await;
    let words = "create is not supported on resources of kind \"deployments.apps\": Kennel runs DaemonSets, \
        one pod on each node, and single Pods; docs/guides/daemonsets.md shows how to make a DaemonSet of a Deployment";
    deployment.says(405, "MethodNotAllowed", words);
}

#[tokio::test]
async fn methods_that_do_not_fit_the_path_are_refused() {
    let server = TestServer::new().await;
    let body = map("a", &json!({}));
    let cases = [
        (Method::POST, "/api/v1/configmaps"),
        (Method::POST, "/api/v1/namespaces/default/configmaps/a"),
        (Method::PUT, MAPS),
        (Method::PATCH, MAPS),
        (Method::DELETE, "/api/v1/configmaps"),
        (Method::DELETE, "/api/v1/namespaces"),
        (Method::DELETE, "/api/v1/namespaces/default/pods/p/status"),
        (Method::GET, "/api/v1/namespaces/default/pods/p/binding"),
        (Method::POST, "/version"),
        (Method::POST, "/apis/apps/v1/namespaces/default/replicasets"),
        (Method::OPTIONS, MAPS),
    ];
    for (method, path) in cases {
        let answer = server
            .send(request(method.clone(), path, Some(&body)))
            .await;
        assert_eq!(answer.code, 405, "{method} {path}: {}", answer.text());
        answer.fails(405, "MethodNotAllowed");
    }
    let words = "deletecollection is not supported on resources of kind \"namespaces\"";
    server
        .delete("/api/v1/namespaces")
        .await
        .says(405, "MethodNotAllowed", words);
}
