//! A recorder against an API that records requests.

use std::convert::Infallible;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;

use super::*;
use crate::fence::Fence;

type Written = (Method, String, Value);

/// A recorder, and what it writes. With `forget`, patches get 404.
fn recorder(forget: bool) -> (Recorder, mpsc::Receiver<Written>) {
    recorder_of(move |method| match *method {
        Method::PATCH if forget => 404,
        _ => 200,
    })
}

/// A recorder of an API that answers so, and what it writes.
fn recorder_of(
    answer: impl Fn(&Method) -> u16 + Clone + Send + Sync + 'static,
) -> (Recorder, mpsc::Receiver<Written>) {
    let (notes, written) = mpsc::channel(16);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (notes, answer) = (notes.clone(), answer.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            let code = answer(&head.method);
            notes
                .try_send((head.method, head.uri.path().to_owned(), body))
                .unwrap();
            let response = Response::builder().status(code);
            Ok::<_, Infallible>(response.body(Body::from(b"{}".to_vec())).unwrap())
        }
    });
    let writer = Writer::new(Client::new(service, "default"), Fence::open());
    let (recorder, work) = Recorder::new(writer, "daemonset-controller", CancellationToken::new());
    tokio::spawn(work);
    (recorder, written)
}

fn about() -> Reference {
    Reference {
        api_version: "apps/v1",
        kind: "DaemonSet",
        namespace: "ns".into(),
        name: "d".into(),
        uid: "u".into(),
        resource_version: "5".into(),
        field_path: "spec".into(),
    }
}

fn emit(recorder: &Recorder, message: &str) {
    recorder.emit(about(), Note::new(true, "FailedCreate", message));
}

#[tokio::test]
async fn s3_10_an_event_names_its_object_source_and_reason() {
    let (recorder, mut written) = recorder(false);
    emit(&recorder, "Error creating: no");
    let (method, path, event) = written.recv().await.unwrap();
    assert_eq!(
        (method, path.as_str()),
        (Method::POST, "/api/v1/namespaces/ns/events")
    );
    assert_eq!(
        event["involvedObject"],
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "namespace": "ns", "name": "d", "uid": "u", "resourceVersion": "5", "fieldPath": "spec"})
    );
    assert!(
        event["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("d.")
    );
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reason"], "FailedCreate");
    assert_eq!(event["message"], "Error creating: no");
    assert_eq!(
        event["source"],
        json!({"component": "daemonset-controller"})
    );
    assert_eq!(event["reportingComponent"], "daemonset-controller");
    assert_eq!(event["count"], 1);
    assert_eq!(event["firstTimestamp"], event["lastTimestamp"]);
}

#[tokio::test]
async fn s3_10_2_a_repeated_event_is_patched() {
    let (recorder, mut written) = recorder(false);
    emit(&recorder, "a");
    emit(&recorder, "a");
    let (_, _, first) = written.recv().await.unwrap();
    let (method, path, patch) = written.recv().await.unwrap();
    let name = first["metadata"]["name"].as_str().unwrap();
    assert_eq!(method, Method::PATCH);
    assert_eq!(path, format!("/api/v1/namespaces/ns/events/{name}"));
    assert_eq!(patch["count"], 2);
    assert_eq!(patch["message"], "a");
    assert!(patch["lastTimestamp"].is_string());
}

#[tokio::test]
async fn s3_10_2_an_event_that_has_expired_is_created_again_with_its_count() {
    let (recorder, mut written) = recorder(true);
    emit(&recorder, "a");
    emit(&recorder, "a");
    let (_, _, first) = written.recv().await.unwrap();
    written.recv().await.unwrap();
    let (method, _, again) = written.recv().await.unwrap();
    assert_eq!(method, Method::POST);
    assert_eq!(again["count"], 2);
    assert_eq!(again["firstTimestamp"], first["firstTimestamp"]);
}

#[tokio::test]
async fn r6_1_what_is_told_once_has_the_same_name_in_every_process() {
    let tell = |recorder: &Recorder, message: &str| {
        let note = Note::new(true, "CommandIgnored", message).once();
        recorder.emit(about(), note);
    };
    let (recorder, mut written) = recorder(false);
    tell(&recorder, "a");
    tell(&recorder, "b");
    let name = |event: &Value| event["metadata"]["name"].as_str().unwrap().to_owned();
    let (_, _, first) = written.recv().await.unwrap();
    let (_, _, other) = written.recv().await.unwrap();
    assert_ne!(name(&first), name(&other));
    // The next process is refused: the event exists.
    let (recorder, mut written) = recorder_of(|method| match *method {
        Method::POST => 409,
        _ => 200,
    });
    tell(&recorder, "a");
    let (method, _, again) = written.recv().await.unwrap();
    assert_eq!((method, name(&again)), (Method::POST, name(&first)));
    // It is told again by the same process: it was taken away and given again.
    tell(&recorder, "a");
    let (method, path, _) = written.recv().await.unwrap();
    assert_eq!(method, Method::PATCH);
    assert!(path.ends_with(&name(&first)), "{path}");
}
