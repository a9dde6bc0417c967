//! Tables of events in both forms.

use super::super::testing::{check, check_create};
use super::*;

fn new_style() -> Value {
    json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "e", "namespace": "n"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "n"}, "note": "hello",
        "reason": "Started", "action": "Start", "type": "Normal",
        "reportingController": "example.com/c", "reportingInstance": "c-1"})
}

#[test]
fn the_forms_are_two_views_of_one_event() {
    let stored = json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "p"},
        "message": "m", "source": {"component": "c"}, "firstTimestamp": "a",
        "lastTimestamp": "b", "count": 2, "reportingComponent": "r", "reportingInstance": "i",
        "series": {"count": 2}, "type": "Normal"});
    let mut event = stored.clone();
    from_core(&mut event);
    assert_eq!(
        event,
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"name": "p"},
            "note": "m", "deprecatedSource": {"component": "c"}, "deprecatedFirstTimestamp": "a",
            "deprecatedLastTimestamp": "b", "deprecatedCount": 2, "reportingController": "r",
            "reportingInstance": "i", "series": {"count": 2}, "type": "Normal"})
    );
    to_core(&mut event);
    assert_eq!(event, stored);
    to_core(&mut event);
    assert_eq!(event, stored);
}

#[test]
fn an_old_event_lives_where_its_object_does() {
    let event = |namespace: &str, about: &str| json!({"metadata": {"namespace": namespace}, "involvedObject": {"namespace": about}});
    check_create(&CoreEvent, &event("a", "a"), &[]);
    check_create(&CoreEvent, &event("default", ""), &[]);
    check_create(
        &CoreEvent,
        &event("a", "b"),
        &["involvedObject.namespace: Invalid value: \"b\": does not match event.namespace"],
    );
    check_create(
        &CoreEvent,
        &event("a", ""),
        &["involvedObject.namespace: Invalid value: \"\": does not match event.namespace"],
    );
}

#[test]
fn a_new_event_says_who_reports_what() {
    check_create(&Event, &new_style(), &[]);
    let mut event = new_style();
    event["reportingController"] = json!("");
    event["action"] = json!("");
    event["reason"] = json!("x".repeat(129));
    event["note"] = json!("x".repeat(1025));
    let shown: Vec<String> = Event
        .validate_create(&event)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown[0], "reportingController: Required value");
    assert_eq!(
        shown[3..],
        [
            "action: Required value",
            "reason: Invalid value: \"\": can have at most 128 characters",
            "message: Invalid value: \"\": can have at most 1024 characters",
        ]
    );
    to_core(&mut event);
    let errors = CoreEvent.validate_create(&event);
    assert_eq!(errors[0].to_string(), "reportingComponent: Required value");
}

#[test]
fn the_new_form_refuses_what_is_deprecated() {
    let event = json!({"metadata": {"namespace": "n"}, "regarding": {"namespace": "n"},
        "deprecatedCount": 1, "deprecatedFirstTimestamp": "t", "deprecatedLastTimestamp": "t",
        "deprecatedSource": {"component": "c"}, "type": "Odd", "series": {"count": 1}});
    check_create(
        &Event,
        &event,
        &[
            "series.count: Invalid value: \"\": should be at least 2",
            "series.lastObservedTime: Required value",
            "eventTime: Required value",
            "type: Invalid value: \"\": has invalid value: Odd",
            "firstTimestamp: Invalid value: \"\": needs to be unset",
            "lastTimestamp: Invalid value: \"\": needs to be unset",
            "count: Invalid value: \"\": needs to be unset",
            "source: Invalid value: \"\": needs to be unset",
        ],
    );
}

#[test]
fn an_update_of_the_new_form_changes_the_series_alone() {
    let mut old = new_style();
    to_core(&mut old);
    let mut new = new_style();
    new["series"] = json!({"count": 3, "lastObservedTime": "t"});
    check(&Event.validate_update(&new, &old), &[]);
    new["note"] = json!("other");
    check(
        &Event.validate_update(&new, &old),
        &["message: Invalid value: \"other\": field is immutable"],
    );
    check(&CoreEvent.validate_update(&core_form(&new), &old), &[]);
}
