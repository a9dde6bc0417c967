//! What kubectl 1.32 sent, byte for byte, and the object it meant.
//!
//! Each line of `recorded.jsonl` is a command, the path and the body it sent to a server that only
//! listened, and the object as `--dry-run=client -o json` shows it (as it must be, for commands that
//! have no dry run).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Method;
use kennel_server::protobuf::{Envelope, transcode};
use kennel_server::schema;
use serde_json::Value;

use super::encoder::{self, Style};
use super::{request, type_of, without_empty};
use crate::fixture::TestServer;

fn recordings() -> impl Iterator<Item = (Value, Vec<u8>)> {
    include_str!("recorded.jsonl").lines().map(|line| {
        let recording: Value = serde_json::from_str(line).unwrap();
        let body = BASE64_STANDARD.decode(recording["body"].as_str().unwrap());
        (recording, body.unwrap())
    })
}

#[test]
fn recorded_bodies_mean_what_kubectl_meant() {
    assert!(recordings().count() >= 20);
    for (recording, body) in recordings() {
        let command = &recording["command"];
        let meant = &recording["object"];
        let ty = type_of(meant);
        let envelope = Envelope::open(&body).unwrap();
        assert_eq!(meant["kind"], envelope.kind, "{command}");
        assert_eq!(meant["apiVersion"], envelope.api_version, "{command}");
        let mut found = transcode(ty, envelope.raw).unwrap();
        schema::conform(ty, &mut found, &mut Vec::new()).unwrap();
        let mut expected = meant.clone();
        let members = expected.as_object_mut().unwrap();
        members.retain(|name, _| !matches!(name.as_str(), "kind" | "apiVersion"));
        schema::conform(ty, &mut expected, &mut Vec::new()).unwrap();
        assert_eq!(found, expected, "{command}");
    }
}

/// The encoder of the other tests writes what Go writes.
#[test]
fn recorded_bodies_are_what_our_encoder_writes() {
    for (recording, body) in recordings() {
        let meant = &recording["object"];
        let written = encoder::body(type_of(meant), meant, Style::Go);
        let command = &recording["command"];
        assert_eq!(
            written.escape_ascii().to_string(),
            body.escape_ascii().to_string(),
            "{command}"
        );
    }
}

#[tokio::test]
async fn recorded_bodies_make_what_their_json_makes() {
    let server = TestServer::new().await;
    let mut made = 0;
    for (recording, body) in recordings() {
        let path = recording["path"].as_str().unwrap();
        if path.ends_with("/token") {
            continue;
        }
        let join = if path.contains('?') { '&' } else { '?' };
        let dry = format!("{path}{join}dryRun=All");
        let answer = server.send(request(Method::POST, &dry, body)).await;
        let told = server.post(&dry, &recording["object"]).await;
        assert_eq!(answer.code, told.code, "{}", answer.text());
        if told.code == 201 {
            assert_eq!(settled(answer.json()), settled(told.json()), "{recording}");
            made += 1;
        }
    }
    assert!(made >= 20, "only {made} were made");
}

/// An answer without what differs between any two.
fn settled(mut answer: Value) -> Value {
    for name in ["uid", "creationTimestamp", "resourceVersion"] {
        answer["metadata"].as_object_mut().unwrap().remove(name);
    }
    without_empty(&answer)
}
