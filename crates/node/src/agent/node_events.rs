//! Events about the node itself, in upstream's words. Pure.

use kennel_client::events::Note;
use kennel_types::{Condition, ConditionType};
use serde_json::Value;

use super::node;

fn status_event(name: &str, reason: &'static str) -> Note {
    let message = format!("Node {name} status is now: {reason}");
    Note::new(false, reason, message)
}

pub(super) fn agent_started() -> Note {
    Note::new(false, "Starting", "Starting kubelet.")
}

/// One event for each condition whose status differs from the stored object's.
pub(super) fn condition_events(name: &str, conditions: &[Condition], stored: &Value) -> Vec<Note> {
    let reason = |condition: &Condition| match (&condition.r#type, condition.is_true()) {
        (ConditionType::MemoryPressure, true) => Some("NodeHasInsufficientMemory"),
        (ConditionType::MemoryPressure, false) => Some("NodeHasSufficientMemory"),
        (ConditionType::DiskPressure, true) => Some("NodeHasDiskPressure"),
        (ConditionType::DiskPressure, false) => Some("NodeHasNoDiskPressure"),
        (ConditionType::PidPressure, true) => Some("NodeHasInsufficientPID"),
        (ConditionType::PidPressure, false) => Some("NodeHasSufficientPID"),
        (ConditionType::Ready, true) => Some("NodeReady"),
        (ConditionType::Ready, false) => Some("NodeNotReady"),
        _ => None,
    };
    let reasons = node::changed(conditions, stored).filter_map(reason);
    reasons.map(|reason| status_event(name, reason)).collect()
}

/// An event if the stored object has another boot id.
pub(super) fn reboot_event(name: &str, boot_id: &str, stored: &Value) -> Vec<Note> {
    let before = stored["status"]["nodeInfo"]["bootID"].as_str();
    let booted = before.is_some_and(|before| !before.is_empty() && before != boot_id);
    let message = || format!("Node {name} has been rebooted, boot id: {boot_id}");
    let note = booted.then(|| Note::new(true, "Rebooted", message()));
    note.into_iter().collect()
}

/// An event if the node was cordoned or uncordoned.
pub(super) fn cordon_event(name: &str, before: &Value, after: &Value) -> Vec<Note> {
    let cordoned = |object: &Value| object["spec"]["unschedulable"] == true;
    let reason = match (cordoned(before), cordoned(after)) {
        (false, true) => "NodeNotSchedulable",
        (true, false) => "NodeSchedulable",
        _ => return Vec::new(),
    };
    vec![status_event(name, reason)]
}

#[cfg(test)]
mod tests {
    use kennel_core::pod::eviction::Pressures;
    use serde_json::json;

    use super::*;
    use crate::runtime::Health;

    fn reasons(notes: &[Note]) -> Vec<&str> {
        notes.iter().map(|note| &*note.reason).collect()
    }

    fn healthy() -> Vec<Condition> {
        node::conditions(&Health::default(), Pressures::default(), None)
    }

    fn stored(conditions: &[Condition]) -> Value {
        json!({"status": {"conditions": node::to_api(conditions, &Value::Null, "then")}})
    }

    #[test]
    fn a_new_node_reports_all_conditions() {
        let notes = condition_events("n", &healthy(), &Value::Null);
        let expected = [
            "NodeHasSufficientMemory",
            "NodeHasNoDiskPressure",
            "NodeHasSufficientPID",
            "NodeReady",
        ];
        assert_eq!(reasons(&notes), expected);
        assert_eq!(notes[3].message, "Node n status is now: NodeReady");
    }

    #[test]
    fn only_changed_conditions_are_reported() {
        assert!(condition_events("n", &healthy(), &stored(&healthy())).is_empty());
        let full = Pressures {
            memory: true,
            disk: true,
            pids: true,
        };
        let gone = Health {
            runtime: Some("gone".to_owned()),
            network: None,
        };
        let unhealthy = node::conditions(&gone, full, None);
        let expected = [
            "NodeHasInsufficientMemory",
            "NodeHasDiskPressure",
            "NodeHasInsufficientPID",
            "NodeNotReady",
        ];
        let notes = condition_events("n", &unhealthy, &stored(&healthy()));
        assert_eq!(reasons(&notes), expected);
        // A changed message alone is no event.
        let otherwise = Health {
            runtime: Some("gone for good".to_owned()),
            network: None,
        };
        let otherwise = node::conditions(&otherwise, full, None);
        assert!(condition_events("n", &otherwise, &stored(&unhealthy)).is_empty());
    }

    #[test]
    fn a_reboot_is_reported_if_the_last_boot_is_known() {
        let known = |id: &str| json!({"status": {"nodeInfo": {"bootID": id}}});
        let check = |stored: Value, expected: usize| {
            assert_eq!(reboot_event("n", "b", &stored).len(), expected, "{stored}");
        };
        check(Value::Null, 0);
        check(known(""), 0);
        check(known("b"), 0);
        check(known("a"), 1);
        let notes = reboot_event("n", "b", &known("a"));
        assert_eq!(notes[0].message, "Node n has been rebooted, boot id: b");
        assert!(notes[0].warning);
    }

    #[test]
    fn cordons_are_reported() {
        let node = |cordoned: bool| json!({"spec": {"unschedulable": cordoned}});
        let check = |before: Value, after: Value, expected: &[&str]| {
            assert_eq!(reasons(&cordon_event("n", &before, &after)), expected);
        };
        check(Value::Null, node(false), &[]);
        check(node(false), node(true), &["NodeNotSchedulable"]);
        check(node(true), node(true), &[]);
        check(node(true), json!({"spec": {}}), &["NodeSchedulable"]);
    }
}
