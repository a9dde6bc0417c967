//! Formats an audit event as a line: an `audit.k8s.io/v1` Event of level Metadata.

use std::collections::BTreeMap;

use http::{HeaderValue, Method, Uri};
use kennel_types::{Timestamp, Verb};
use serde::Serialize;

use super::pending::{self, Event};
use super::rate_limit::Suppressed;
use crate::authorize::{Attributes, ResourceAttributes};
use crate::clock;
use crate::request::User;
use crate::request::path::{self, Route};
use crate::request::query::Query;

/// Longer URIs are truncated. Selectors of real clients fit.
const URI_BYTES_MAX: usize = 2048;
/// Upstream's limit.
const AGENT_BYTES_MAX: usize = 1024;
/// Valid names of objects are shorter.
const NAME_BYTES_MAX: usize = 512;
const TRUNCATED: &str = "...TRUNCATED";
const NODE_LEASE_NAMESPACE: &str = "kube-node-lease";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: &'a str,
    user: UserInfo<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<UserInfo<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Option::is_none")]
    source_ips: Option<[String; 1]>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectReference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<ResponseStatus<'a>>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

#[derive(Default, Serialize)]
struct UserInfo<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference<'a> {
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

#[derive(Serialize)]
struct ResponseStatus<'a> {
    metadata: Empty,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    code: u16,
}

/// Upstream writes the empty metadata of the Status.
#[derive(Serialize)]
struct Empty {}

pub(super) fn write(out: &mut Vec<u8>, event: &Event) {
    let (route, path) = (path::parse(event.uri.path()), event.uri.path());
    let asked = asked(event, route.as_ref(), path);
    let mut annotations: BTreeMap<_, _> = event.annotations.entries().collect();
    if let Some((allowed, why)) = &event.allowed {
        let decision = if *allowed { "allow" } else { "forbid" };
        annotations.insert("authorization.k8s.io/decision", decision.to_owned());
        annotations.insert("authorization.k8s.io/reason", why.clone());
    }
    let line = Line {
        // A stream begins with its response.
        stage: if event.is_stream {
            "ResponseStarted"
        } else {
            "ResponseComplete"
        },
        request_uri: uri(&event.uri),
        verb: match &asked {
            Attributes::Resource(asked) => asked.verb.as_str(),
            Attributes::Path { verb, .. } => verb.as_str(),
        },
        user: event.user.as_ref().map(user_info).unwrap_or_default(),
        impersonated_user: event.impersonated.as_ref().map(user_info),
        source_ips: event.address.map(|address| [address.to_string()]),
        user_agent: agent(event.agent.as_ref()),
        object_ref: match &asked {
            Attributes::Resource(asked) => Some(reference(event, asked)),
            Attributes::Path { .. } => None,
        },
        response_status: Some(ResponseStatus {
            metadata: Empty {},
            status: if event.code < 400 { "" } else { "Failure" },
            reason: &event.subject.reason,
            code: event.code,
        }),
        annotations,
        ..empty_line(&event.id, event.received, event.answered)
    };
    write_line(out, &line);
}

/// Writes the line that reports how many lines are missing before it.
pub(super) fn write_lost(out: &mut Vec<u8>, lost: u64) {
    let (id, now) = (pending::new_id(), clock::now());
    let line = Line {
        annotations: BTreeMap::from([("audit.kennel.dev/lost-lines", lost.to_string())]),
        ..empty_line(&id, now, now)
    };
    write_line(out, &line);
}

/// Writes the line that reports refused unauthenticated requests that have no lines of their own.
pub(super) fn write_suppressed(out: &mut Vec<u8>, suppressed: &Suppressed) {
    let (id, now) = (pending::new_id(), clock::now());
    let sources = suppressed.sources.iter();
    let sources: Vec<String> = sources
        .map(|(address, count)| format!("{address}: {count}"))
        .collect();
    let requests = suppressed.requests.to_string();
    let line = Line {
        annotations: BTreeMap::from([
            ("audit.kennel.dev/suppressed-requests", requests),
            ("audit.kennel.dev/suppressed-sources", sources.join(", ")),
        ]),
        ..empty_line(&id, now, now)
    };
    write_line(out, &line);
}

/// Whether this is an accepted renewal of a node's lease by the node itself or by nodes that are part of
/// this process.
pub(super) fn is_heartbeat(event: &Event) -> bool {
    let (route, path) = (path::parse(event.uri.path()), event.uri.path());
    let Attributes::Resource(asked) = asked(event, route.as_ref(), path) else {
        return false;
    };
    let user = event.user.as_ref().map_or("", |user| &user.name);
    let is_its_own = user.strip_prefix("system:node:") == Some(asked.name);
    event.code < 300
        && (asked.resource, asked.group) == ("leases", "coordination.k8s.io")
        && asked.namespace == NODE_LEASE_NAMESPACE
        && matches!(asked.verb, Verb::Update | Verb::Patch)
        && event.impersonated.is_none()
        && (is_its_own || event.address.is_none())
}

fn asked<'a>(event: &'a Event, route: Option<&'a Route>, path: &'a str) -> Attributes<'a> {
    let query = event.uri.query().filter(|_| event.method == Method::GET);
    let watching = Query::parse(query).flag("watch").unwrap_or_default();
    Attributes::of(&event.method, route, path, watching, None)
}

fn empty_line(id: &HeaderValue, received: Timestamp, answered: Timestamp) -> Line<'_> {
    Line {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: "Metadata",
        audit_id: id.to_str().unwrap_or_default(),
        stage: "ResponseComplete",
        request_uri: String::new(),
        verb: "",
        user: UserInfo::default(),
        impersonated_user: None,
        source_ips: None,
        user_agent: String::new(),
        object_ref: None,
        response_status: None,
        request_received_timestamp: received.to_rfc3339(6),
        stage_timestamp: answered.to_rfc3339(6),
        annotations: BTreeMap::new(),
    }
}

fn user_info(user: &User) -> UserInfo<'_> {
    UserInfo {
        username: &user.name,
        uid: &user.uid,
        groups: &user.groups,
        extra: Some(&user.extra).filter(|extra| !extra.is_empty()),
    }
}

fn reference<'a>(event: &'a Event, asked: &ResourceAttributes<'a>) -> ObjectReference<'a> {
    let in_response = &event.subject;
    let name = if asked.name.is_empty() {
        &in_response.name
    } else {
        asked.name
    };
    // All of these may come from the path of an unauthenticated request.
    let short = |text: &'a str| &text[..text.floor_char_boundary(NAME_BYTES_MAX)];
    ObjectReference {
        resource: short(asked.resource),
        namespace: short(asked.namespace),
        name: short(name),
        uid: &in_response.uid,
        api_group: short(asked.group),
        api_version: short(asked.version),
        subresource: short(asked.subresource),
    }
}

fn uri(uri: &Uri) -> String {
    truncate(
        uri.path_and_query().map_or("", |p| p.as_str()),
        URI_BYTES_MAX,
    )
}

fn agent(agent: Option<&HeaderValue>) -> String {
    let text = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    truncate(&text.unwrap_or_default(), AGENT_BYTES_MAX)
}

fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}{TRUNCATED}", &text[..text.floor_char_boundary(max)])
}

fn write_line(out: &mut Vec<u8>, line: &Line<'_>) {
    serde_json::to_writer(&mut *out, line).expect("writing to memory does not fail");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::response::Subject;
    use super::*;

    fn line(event: &Event) -> Value {
        let mut out = Vec::new();
        write(&mut out, event);
        assert_eq!(
            out.iter().position(|byte| *byte == b'\n'),
            Some(out.len() - 1)
        );
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_line_says_who_what_from_where_and_how_it_ended() {
        let mut event = Event::example();
        event.received = "2026-01-02T03:04:05.5Z".parse().unwrap();
        event.answered = "2026-01-02T03:04:05.500001Z".parse().unwrap();
        event.id = HeaderValue::from_static("my-id");
        event.address = Some([192, 0, 2, 7].into());
        event.agent = Some(HeaderValue::from_static("kubectl/v1.36"));
        event.uri = Uri::from_static("/apis/apps/v1/namespaces/a/daemonsets?dryRun=All");
        event.subject = Subject {
            name: "agent".into(),
            uid: "u-1".into(),
            reason: String::new(),
        };
        let expected = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": "my-id", "stage": "ResponseComplete",
            "requestURI": "/apis/apps/v1/namespaces/a/daemonsets?dryRun=All", "verb": "create",
            "user": {"username": "tester", "groups": ["system:masters", "system:authenticated"]},
            "sourceIPs": ["192.0.2.7"], "userAgent": "kubectl/v1.36",
            "objectRef": {"resource": "daemonsets", "namespace": "a", "name": "agent", "uid": "u-1",
                "apiGroup": "apps", "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": "2026-01-02T03:04:05.500000Z",
            "stageTimestamp": "2026-01-02T03:04:05.500001Z",
            "annotations": {"authorization.k8s.io/decision": "allow",
                "authorization.k8s.io/reason": "because"},
        });
        assert_eq!(line(&event), expected);
    }

    #[test]
    fn failures_and_non_resource_requests_are_logged() {
        let mut event = Event::example();
        event.method = Method::PATCH;
        event.uri = Uri::from_static("/api/v1/nodes/n1/status");
        event.code = 403;
        event.allowed = Some((false, String::new()));
        event.subject.reason = "Forbidden".into();
        event.impersonated = Some(User::service_account("a", "b"));
        let refused = line(&event);
        let status =
            json!({"metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403});
        assert_eq!(refused["responseStatus"], status);
        assert_eq!(refused["objectRef"]["subresource"], "status");
        assert_eq!(
            refused["annotations"]["authorization.k8s.io/decision"],
            "forbid"
        );
        let actor = &refused["impersonatedUser"]["username"];
        assert_eq!(actor, "system:serviceaccount:a:b");
        assert_eq!(refused.get("sourceIPs"), None);
        (event.user, event.allowed) = (None, None);
        event.method = Method::DELETE;
        event.uri = Uri::from_static("/nothing/here");
        let unknown = line(&event);
        assert_eq!(unknown["user"], json!({}));
        assert_eq!(unknown["verb"], "delete");
        assert_eq!(
            (unknown.get("objectRef"), unknown.get("annotations")),
            (None, None)
        );
    }

    #[test]
    fn watches_and_other_streams_are_logged_when_they_start() {
        let mut event = Event::example();
        event.method = Method::GET;
        event.uri = Uri::from_static("/api/v1/namespaces/a/secrets?watch=true");
        (event.code, event.is_stream) = (200, true);
        let watch = line(&event);
        assert_eq!(
            (&watch["verb"], &watch["stage"]),
            (&json!("watch"), &json!("ResponseStarted"))
        );
        event.uri = Uri::from_static("/api/v1/namespaces/a/secrets/s?watch=true");
        event.is_stream = false;
        let get = line(&event);
        assert_eq!(
            (&get["verb"], &get["stage"]),
            (&json!("get"), &json!("ResponseComplete"))
        );
    }

    #[test]
    fn long_values_are_truncated() {
        let mut event = Event::example();
        let long = "x".repeat(10_000);
        event.agent = Some(HeaderValue::from_str(&long).unwrap());
        for path in [
            format!("/api/v1/namespaces/{long}/pods/{long}?a={long}"),
            format!("/apis/{long}/{long}/namespaces/a/{long}/b/{long}"),
        ] {
            event.uri = path.parse().unwrap();
            let mut out = Vec::new();
            write(&mut out, &event);
            assert!(out.len() < 7000, "{}", out.len());
        }
    }

    #[test]
    fn heartbeats_are_accepted_renewals_of_own_leases() {
        let check = |change: &dyn Fn(&mut Event), expected| {
            let mut event = Event::example();
            let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
            (event.method, event.uri) = (Method::PUT, Uri::from_static(lease));
            event.user = Some(User::authenticated("system:node:n1", Vec::new()));
            event.address = Some([192, 0, 2, 7].into());
            event.code = 200;
            change(&mut event);
            assert_eq!(is_heartbeat(&event), expected, "{}", line(&event));
        };
        check(&|_| {}, true);
        check(&|event| event.code = 409, false);
        check(&|event| event.method = Method::DELETE, false);
        let another = || Some(User::authenticated("system:node:n2", Vec::new()));
        check(&|event| event.user = another(), false);
        check(
            &|event| (event.user, event.address) = (another(), None),
            true,
        );
        check(
            &|event| event.uri = Uri::from_static("/api/v1/nodes/n1"),
            false,
        );
    }
}
