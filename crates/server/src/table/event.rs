//! The printers of events. Both API groups have the same columns; the names of their fields differ.

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, integer, text as column, wide, widened};
use super::duration::since;
use crate::tree::{at, number, text, text_or, time};

pub(super) const COLUMNS: &[Column] = &[
    Column {
        name: "Last Seen",
        description: "How long ago it happened last.",
        ..AGE
    },
    column("Type", "Normal or Warning."),
    column("Reason", "The reason, in one word."),
    column("Object", "The object that the event is about."),
    wide(
        "Subobject",
        "The part of the object that the event is about.",
    ),
    wide("Source", "The component that reported the event."),
    column("Message", "What happened."),
    wide("First Seen", "How long ago it happened first."),
    widened(integer("Count", "How often it happened.")),
    widened(NAME),
];

/// The paths that differ between the two groups.
struct Fields {
    object: &'static str,
    message: &'static str,
    component: &'static str,
    host: &'static str,
    reporter: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

const CORE: Fields = Fields {
    object: "involvedObject",
    message: "message",
    component: "source.component",
    host: "source.host",
    reporter: "reportingComponent",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
};

const EVENTS: Fields = Fields {
    object: "regarding",
    message: "note",
    component: "deprecatedSource.component",
    host: "deprecatedSource.host",
    reporter: "reportingController",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
};

pub(super) fn core(event: &Value, now: Timestamp) -> Vec<Value> {
    cells(event, &CORE, now)
}

pub(super) fn events(event: &Value, now: Timestamp) -> Vec<Value> {
    cells(event, &EVENTS, now)
}

fn cells(event: &Value, fields: &Fields, now: Timestamp) -> Vec<Value> {
    let object = at(event, fields.object);
    let first = time(event, fields.first).or_else(|| time(event, "eventTime"));
    let mut last = time(event, fields.last).or(first);
    // A single event of events.k8s.io has no count.
    let mut count = number(event, fields.count).max(1);
    if let Some(series) = event.get("series").filter(|s| s.is_object()) {
        last = time(series, "lastObservedTime");
        count = number(series, "count");
    }
    vec![
        json!(since(last, now)),
        json!(text(event, "type")),
        json!(text(event, "reason")),
        json!(target(object)),
        json!(text(object, "fieldPath")),
        json!(source(event, fields)),
        json!(text(event, fields.message).trim()),
        json!(since(first, now)),
        json!(count),
        json!(text(event, "metadata.name")),
    ]
}

fn target(object: &Value) -> String {
    let kind = text(object, "kind").to_lowercase();
    match text(object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value, fields: &Fields) -> String {
    let component = text_or(event, fields.component, text(event, fields.reporter));
    let instance = text_or(event, fields.host, text(event, "reportingInstance"));
    if instance.is_empty() {
        return component.to_owned();
    }
    format!("{component}, {instance}")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_in};
    use serde_json::json;

    #[test]
    fn core_events() {
        check(
            "events",
            json!({
                "metadata": {"name": "p.1"}, "type": "Normal", "reason": "Pulled", "message": " done \n", "count": 4,
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}"},
                "source": {"component": "kubelet", "host": "n1"},
                "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:59:00Z",
            }),
            json!([
                "60s",
                "Normal",
                "Pulled",
                "pod/p",
                "spec.containers{a}",
                "kubelet, n1",
                "done",
                "60m",
                4,
                "p.1"
            ]),
        );
    }

    #[test]
    fn events_without_times_fall_back_step_by_step() {
        check(
            "events",
            json!({"metadata": {"name": "e"}, "type": "Warning", "reason": "R", "message": "m",
                   "involvedObject": {"kind": "Node"}, "eventTime": "2026-01-01T00:59:30.000000Z",
                   "reportingComponent": "kennel", "firstTimestamp": null, "lastTimestamp": null}),
            json!([
                "30s", "Warning", "R", "node", "", "kennel", "m", "30s", 1, "e"
            ]),
        );
        check(
            "events",
            json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "n"}}),
            json!([
                "<unknown>",
                "",
                "",
                "node/n",
                "",
                "",
                "",
                "<unknown>",
                1,
                "e"
            ]),
        );
    }

    #[test]
    fn newer_events_print_the_same_columns() {
        check_in(
            "events.k8s.io",
            "events",
            json!({
                "metadata": {"name": "e"}, "type": "Normal", "reason": "Scheduled", "note": "bound",
                "regarding": {"kind": "Pod", "name": "p"}, "reportingController": "scheduler",
                "reportingInstance": "host-1", "eventTime": "2026-01-01T00:50:00.000000Z",
                "series": {"count": 9, "lastObservedTime": "2026-01-01T00:59:55.000000Z"},
            }),
            json!([
                "5s",
                "Normal",
                "Scheduled",
                "pod/p",
                "",
                "scheduler, host-1",
                "bound",
                "10m",
                9,
                "e"
            ]),
        );
    }
}
