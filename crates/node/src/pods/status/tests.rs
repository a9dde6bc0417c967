//! Which request comes next for a pod.

use serde_json::json;

use super::entry::{Entry, Request};
use super::*;
use crate::pods::Origin;

fn pod(origin: Origin) -> Pod {
    let object = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u"}, "spec": {}});
    Pod::parse(object, origin).unwrap()
}

fn status(phase: &str, ready: &str) -> Value {
    json!({"phase": phase, "podIPs": [{"ip": "10.0.0.1"}], "conditions": [
        {"type": "Ready", "status": ready}, {"type": "Theirs", "status": "True"}]})
}

/// The next request, its method and path, and its body.
fn next(entry: &mut Entry) -> Option<(Request, String, Value)> {
    let (request, call) = entry.next()?;
    let body = serde_json::from_str(&call.body).unwrap();
    Some((request, format!("{} {}", call.method, call.path), body))
}

#[test]
fn only_the_newest_status_is_sent_and_only_once() {
    let mut entry = Entry::new(&pod(Origin::Api), None);
    assert!(next(&mut entry).is_none());
    entry.newest = Some(Arc::new(status("Pending", "False")));
    let (first, ..) = next(&mut entry).unwrap();
    assert!(next(&mut entry).is_none(), "one is under way");
    for phase in ["Pending", "Running"] {
        entry.newest = Some(Arc::new(status(phase, "True")));
    }
    entry.busy = false;
    entry.written(first);
    let (second, request, body) = next(&mut entry).unwrap();
    assert_eq!(request, "PATCH /api/v1/namespaces/ns/pods/p/status");
    assert_eq!(body["status"]["phase"], "Running");
    entry.busy = false;
    entry.written(second);
    assert!(next(&mut entry).is_none());
}

#[test]
fn patches_keep_foreign_conditions_and_replace_addresses() {
    let mut entry = Entry::new(&pod(Origin::Api), None);
    entry.newest = Some(Arc::new(status("Running", "True")));
    let (_, _, body) = next(&mut entry).unwrap();
    let ready = json!({"type": "Ready", "status": "True", "reason": null, "message": null});
    assert_eq!(body["status"]["conditions"], json!([ready]));
    let addresses = json!([{"ip": "10.0.0.1"}, {"$patch": "replace"}]);
    assert_eq!(body["status"]["podIPs"], addresses);
    assert_eq!(body["metadata"], json!({"uid": "u"}));
}

#[test]
fn a_pod_is_deleted_after_its_last_status_is_written() {
    let mut entry = Entry::new(&pod(Origin::Api), None);
    entry.newest = Some(Arc::new(status("Succeeded", "False")));
    entry.delete = true;
    let (first, ..) = next(&mut entry).unwrap();
    assert!(!first.is_deletion());
    entry.busy = false;
    entry.written(first);
    let (second, request, body) = next(&mut entry).unwrap();
    assert_eq!(request, "DELETE /api/v1/namespaces/ns/pods/p");
    assert_eq!(body["gracePeriodSeconds"], 0);
    assert_eq!(body["preconditions"], json!({"uid": "u"}));
    entry.busy = false;
    entry.written(second);
    assert!(next(&mut entry).is_none());
}

#[test]
fn an_overwritten_status_is_written_again() {
    let mut entry = Entry::new(&pod(Origin::Api), None);
    entry.newest = Some(Arc::new(status("Running", "True")));
    let (first, ..) = next(&mut entry).unwrap();
    entry.resend_if_overwritten(&status("Running", "False"));
    entry.busy = false;
    entry.written(first);
    entry.resend_if_overwritten(&status("Running", "True"));
    assert!(next(&mut entry).is_none());
    entry.resend_if_overwritten(&status("Running", "False"));
    assert!(next(&mut entry).is_some());
}

#[test]
fn a_static_pods_status_is_written_once_it_has_a_mirror() {
    let mut entry = Entry::new(&pod(Origin::File), None);
    entry.newest = Some(Arc::new(status("Running", "True")));
    assert!(next(&mut entry).is_none());
    entry.set_target(Some("mirror".to_owned()));
    let (first, _, body) = next(&mut entry).unwrap();
    assert_eq!(body["metadata"], json!({"uid": "mirror"}));
    entry.busy = false;
    entry.written(first);
    assert!(next(&mut entry).is_none());
    entry.set_target(Some("another".to_owned()));
    assert!(next(&mut entry).is_some());
}
