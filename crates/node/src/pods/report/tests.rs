use serde_json::json;

use super::entry::{Entry, Errand};
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

/// What is sent next, with its body.
fn next(entry: &mut Entry) -> Option<(Errand, String, Value)> {
    let (errand, call) = entry.next()?;
    let body = serde_json::from_str(&call.body).unwrap();
    Some((errand, format!("{} {}", call.method, call.path), body))
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
    entry.waits = false;
    entry.did(first);
    let (second, request, body) = next(&mut entry).unwrap();
    assert_eq!(request, "PATCH /api/v1/namespaces/ns/pods/p/status");
    assert_eq!(body["status"]["phase"], "Running");
    entry.waits = false;
    entry.did(second);
    assert!(next(&mut entry).is_none());
}

#[test]
fn others_keep_their_conditions_and_addresses_do_not_pile_up() {
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
fn a_pod_goes_after_its_last_status_is_told() {
    let mut entry = Entry::new(&pod(Origin::Api), None);
    entry.newest = Some(Arc::new(status("Succeeded", "False")));
    entry.delete = true;
    let (first, ..) = next(&mut entry).unwrap();
    assert!(!first.is_deletion());
    entry.waits = false;
    entry.did(first);
    let (second, request, body) = next(&mut entry).unwrap();
    assert_eq!(request, "DELETE /api/v1/namespaces/ns/pods/p");
    assert_eq!(body["gracePeriodSeconds"], 0);
    assert_eq!(body["preconditions"], json!({"uid": "u"}));
    entry.waits = false;
    entry.did(second);
    assert!(next(&mut entry).is_none());
}

#[test]
fn what_somebody_else_has_written_over_is_said_again() {
    let mut entry = Entry::new(&pod(Origin::Api), None);
    entry.newest = Some(Arc::new(status("Running", "True")));
    let (first, ..) = next(&mut entry).unwrap();
    assert!(!entry.was_overwritten(&status("Running", "False")));
    entry.waits = false;
    entry.did(first);
    assert!(!entry.was_overwritten(&status("Running", "True")));
    assert!(next(&mut entry).is_none());
    assert!(entry.was_overwritten(&status("Running", "False")));
    assert!(next(&mut entry).is_some());
}

#[test]
fn a_static_pod_is_told_of_once_it_has_a_mirror() {
    let mut entry = Entry::new(&pod(Origin::File), None);
    entry.newest = Some(Arc::new(status("Running", "True")));
    assert!(next(&mut entry).is_none());
    entry.lead_to(Some("mirror".to_owned()));
    let (first, _, body) = next(&mut entry).unwrap();
    assert_eq!(body["metadata"], json!({"uid": "mirror"}));
    entry.waits = false;
    entry.did(first);
    assert!(next(&mut entry).is_none());
    entry.lead_to(Some("another".to_owned()));
    assert!(next(&mut entry).is_some());
}
