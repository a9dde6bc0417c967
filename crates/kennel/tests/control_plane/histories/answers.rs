//! What answers of the server say about ConfigMaps of the workload, and what requests about them look like.

use std::collections::BTreeMap;

use kennel_testkit::Reply;
use kennel_testkit::history::{Answer, Call, Content, Kind, Revision, Seen, Token};
use serde_json::{Value, json};

pub(super) const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Names of the workload's objects begin with it; the server has others.
pub(super) const PREFIX: &str = "history-";

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A request: method, path, type and body.
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

/// The request of a call.
pub(super) fn request(key: &str, call: &Call) -> Request {
    let path = format!("{CONFIGMAPS}/{key}");
    let ask = |method, path, content_type, body: Value| Request {
        method,
        path,
        content_type,
        body: body.to_string().into_bytes(),
    };
    let both = |token: &Token| json!({"base": token.to_string(), "last": token.to_string()});
    match call {
        Call::Create { token } => {
            let body = json!({"metadata": {"name": key}, "data": both(token)});
            ask("POST", CONFIGMAPS.to_owned(), JSON, body)
        }
        Call::Update {
            token,
            uid,
            revision,
        } => {
            let metadata =
                json!({"name": key, "uid": &**uid, "resourceVersion": revision.to_string()});
            let body = json!({"metadata": metadata, "data": both(token)});
            ask("PUT", path, JSON, body)
        }
        Call::Patch { token, revision } => {
            let mut body = json!({"data": {"last": token.to_string()}});
            if let Some(revision) = revision {
                body["metadata"] = json!({"resourceVersion": revision.to_string()});
            }
            ask("PATCH", path, MERGE_PATCH, body)
        }
        Call::Delete { uid, revision } => {
            let mut preconditions = json!({});
            if let Some(uid) = uid {
                preconditions["uid"] = json!(&**uid);
            }
            if let Some(revision) = revision {
                preconditions["resourceVersion"] = json!(revision.to_string());
            }
            ask(
                "DELETE",
                path,
                JSON,
                json!({"preconditions": preconditions}),
            )
        }
        Call::Get => Request {
            method: "GET",
            path,
            content_type: JSON,
            body: Vec::new(),
        },
    }
}

/// The answer to a call; none to a read that failed or to a write that was certainly not tried.
pub(super) fn answer(call: &Call, reply: &Reply) -> Option<Answer> {
    let body = reply.json();
    let reason = body["reason"].as_str().unwrap_or_default();
    match (reply.code, reason) {
        (200, _) if matches!(call, Call::Delete { .. }) => Some(Answer::Deleted),
        (200 | 201, _) => Some(Answer::Shown(seen(&body))),
        (404, "NotFound") => Some(Answer::NotFound),
        (409, "AlreadyExists") => Some(Answer::Exists),
        (409, "Conflict") => Some(Answer::Conflict),
        (429, _) => None,
        (500.., _) if *call == Call::Get => None,
        (500.., _) if was_not_tried(&reply.text()) => None,
        (500.., _) => Some(Answer::Unknown),
        _ => panic!("{call:?}: {} {}", reply.code, reply.text()),
    }
}

/// The server promises of these that nothing was stored.
fn was_not_tried(text: &str) -> bool {
    text.contains("etcd has not confirmed") || text.contains("cannot write:")
}

pub(super) fn revision(object: &Value) -> Revision {
    let text = object["metadata"]["resourceVersion"].as_str();
    let revision = text.and_then(|text| text.parse().ok());
    revision.unwrap_or_else(|| panic!("no resourceVersion in {object}"))
}

pub(super) fn seen(object: &Value) -> Seen {
    let token = |name: &str| {
        let token = object["data"][name].as_str();
        let token = token.and_then(|text| text.parse().ok());
        token.unwrap_or_else(|| panic!("no data.{name} in {object}"))
    };
    let uid = object["metadata"]["uid"].as_str();
    Seen {
        uid: uid.unwrap_or_else(|| panic!("no uid in {object}")).into(),
        revision: revision(object),
        content: Content {
            base: token("base"),
            last: token("last"),
        },
    }
}

/// The name of an object of the workload; none for those of the server.
pub(super) fn key(object: &Value) -> Option<String> {
    let name = object["metadata"]["name"].as_str();
    let name = name.unwrap_or_else(|| panic!("no name in {object}"));
    name.starts_with(PREFIX).then(|| name.to_owned())
}

/// The objects of a list, or of a page of one.
pub(super) fn objects(list: &Value) -> BTreeMap<String, Seen> {
    let items = list["items"].as_array();
    let items = items.unwrap_or_else(|| panic!("no items in {list}"));
    let ours = items
        .iter()
        .filter_map(|item| Some((key(item)?, seen(item))));
    ours.collect()
}

/// The kind of an event of an object.
pub(super) fn kind(word: &str) -> Option<Kind> {
    match word {
        "ADDED" => Some(Kind::Added),
        "MODIFIED" => Some(Kind::Modified),
        "DELETED" => Some(Kind::Deleted),
        _ => None,
    }
}
