//! `ControllerRevision.data` is compared as bytes by its controller: it must come back as it went in.

use bytes::Bytes;
use http::{Method, header};
use serde_json::json;

use crate::fixture::{MERGE, STRATEGIC, TestServer, request, version};

const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
/// Keys out of order, Go's escapes of `&<>`, numbers in several spellings.
const DATA: &str = r#"{"spec":{"template":{"$patch":"replace","z":"a \u0026\u0026 b \u003cc\u003e","a":[1.0,1e3,"é"]}}}"#;

fn post(name: &str) -> http::Request<Bytes> {
    let body = format!(
        r#"{{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{{"name":"{name}"}},"data":{DATA},"revision":1}}"#
    );
    let mut post = request(Method::POST, REVISIONS, None).map(|_| Bytes::from(body));
    let json = "application/json".parse().unwrap();
    post.headers_mut().insert(header::CONTENT_TYPE, json);
    post
}

#[track_caller]
fn holds(text: &str) {
    assert!(text.contains(&format!("\"data\":{DATA}")), "{text}");
}

#[tokio::test]
async fn data_comes_back_byte_for_byte_whichever_way_it_is_read() {
    let server = TestServer::new().await;
    let made = server.send(post("r")).await;
    holds(made.text());
    let one = format!("{REVISIONS}/r");
    holds(server.get(&one).await.text());
    holds(server.get(REVISIONS).await.text());
    let mut watch = server.watch(REVISIONS).await;
    holds(&String::from_utf8(watch.next_line().await.unwrap()).unwrap());
    for (kind, patch) in [
        (MERGE, json!({"metadata": {"labels": {"a": "b"}}})),
        (STRATEGIC, json!({"metadata": {"labels": {"c": "d"}}})),
        (MERGE, json!({"revision": 2})),
    ] {
        holds(server.patch(kind, &one, &patch).await.text());
        holds(&String::from_utf8(watch.next_line().await.unwrap()).unwrap());
    }
    let server = server.reopen().await;
    holds(server.get(&one).await.text());
}

#[tokio::test]
async fn data_comes_back_byte_for_byte_from_dry_runs_and_unfinished_deletions() {
    let server = TestServer::new().await;
    server.send(post("r")).await.is(201);
    let one = format!("{REVISIONS}/r");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let dry = format!("{one}?dryRun=All");
    holds(server.patch(MERGE, &dry, &labels).await.text());
    let kept = json!({"metadata": {"finalizers": ["example.com/kept"]}});
    server.patch(MERGE, &one, &kept).await.ok();
    holds(server.delete(&one).await.text());
}

#[tokio::test]
async fn a_put_of_what_was_read_is_no_change() {
    let server = TestServer::new().await;
    let made = server.send(post("r")).await;
    let mut put = request(Method::PUT, &format!("{REVISIONS}/r"), None).map(|_| made.body.clone());
    let json = "application/json".parse().unwrap();
    put.headers_mut().insert(header::CONTENT_TYPE, json);
    let again = server.send(put).await;
    assert_eq!(version(&again.ok()), version(&made.is(201)));
    holds(again.text());
}
