//! What events say about the node itself, in upstream's words. Pure; `kubectl describe node` shows them.

use kennel_client::events::Note;
use serde_json::Value;

use super::node::{self, Condition};

fn normal(reason: &'static str, message: String) -> Note {
    Note {
        warning: false,
        reason: reason.into(),
        message,
    }
}

fn status(name: &str, reason: &'static str) -> Note {
    normal(reason, format!("Node {name} status is now: {reason}"))
}

/// The agent has begun.
pub(super) fn started() -> Note {
    normal("Starting", "Starting kubelet.".to_owned())
}

/// Conditions that are not, or not yet, as `stored` shows them.
pub(super) fn of_conditions(name: &str, conditions: &[Condition], stored: &Value) -> Vec<Note> {
    let word = |(kind, holds)| match (kind, holds) {
        ("MemoryPressure", true) => Some("NodeHasInsufficientMemory"),
        ("MemoryPressure", false) => Some("NodeHasSufficientMemory"),
        ("DiskPressure", true) => Some("NodeHasDiskPressure"),
        ("DiskPressure", false) => Some("NodeHasNoDiskPressure"),
        ("PIDPressure", true) => Some("NodeHasInsufficientPID"),
        ("PIDPressure", false) => Some("NodeHasSufficientPID"),
        ("Ready", true) => Some("NodeReady"),
        ("Ready", false) => Some("NodeNotReady"),
        _ => None,
    };
    let words = node::changed(conditions, stored).filter_map(word);
    words.map(|word| status(name, word)).collect()
}

/// The machine was started anew since it last reported.
pub(super) fn of_boot(name: &str, boot_id: &str, stored: &Value) -> Vec<Note> {
    let before = stored["status"]["nodeInfo"]["bootID"].as_str();
    let booted = before.is_some_and(|before| !before.is_empty() && before != boot_id);
    let note = || Note {
        warning: true,
        reason: "Rebooted".into(),
        message: format!("Node {name} has been rebooted, boot id: {boot_id}"),
    };
    booted.then(note).into_iter().collect()
}

/// Somebody has cordoned it, or has ended that.
pub(super) fn of_cordon(name: &str, before: &Value, after: &Value) -> Vec<Note> {
    let cordoned = |object: &Value| object["spec"]["unschedulable"] == true;
    let word = match (cordoned(before), cordoned(after)) {
        (false, true) => "NodeNotSchedulable",
        (true, false) => "NodeSchedulable",
        _ => return Vec::new(),
    };
    vec![status(name, word)]
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

    fn well() -> Vec<Condition> {
        node::conditions(&Health::default(), Pressures::default())
    }

    fn shown(conditions: &[Condition]) -> Value {
        json!({"status": {"conditions": node::written(conditions, &Value::Null, "then")}})
    }

    #[test]
    fn a_new_node_says_all_of_how_it_is() {
        let notes = of_conditions("n", &well(), &Value::Null);
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
    fn only_what_has_changed_is_said() {
        assert!(of_conditions("n", &well(), &shown(&well())).is_empty());
        let full = Pressures {
            memory: true,
            disk: true,
            pids: true,
        };
        let gone = Health {
            runtime: Some("gone".to_owned()),
            network: None,
        };
        let ill = node::conditions(&gone, full);
        let expected = [
            "NodeHasInsufficientMemory",
            "NodeHasDiskPressure",
            "NodeHasInsufficientPID",
            "NodeNotReady",
        ];
        let notes = of_conditions("n", &ill, &shown(&well()));
        assert_eq!(reasons(&notes), expected);
        // Why it is not ready may change without its being news.
        let otherwise = Health {
            runtime: Some("gone for good".to_owned()),
            network: None,
        };
        let otherwise = node::conditions(&otherwise, full);
        assert!(of_conditions("n", &otherwise, &shown(&ill)).is_empty());
    }

    #[test]
    fn a_boot_is_told_once_the_machine_was_known() {
        let known = |id: &str| json!({"status": {"nodeInfo": {"bootID": id}}});
        let check = |stored: Value, expected: usize| {
            assert_eq!(of_boot("n", "b", &stored).len(), expected, "{stored}");
        };
        check(Value::Null, 0);
        check(known(""), 0);
        check(known("b"), 0);
        check(known("a"), 1);
        let notes = of_boot("n", "b", &known("a"));
        assert_eq!(notes[0].message, "Node n has been rebooted, boot id: b");
        assert!(notes[0].warning);
    }

    #[test]
    fn cordons_are_told() {
        let node = |cordoned: bool| json!({"spec": {"unschedulable": cordoned}});
        let check = |before: Value, after: Value, expected: &[&str]| {
            assert_eq!(reasons(&of_cordon("n", &before, &after)), expected);
        };
        check(Value::Null, node(false), &[]);
        check(node(false), node(true), &["NodeNotSchedulable"]);
        check(node(true), node(true), &[]);
        check(node(true), json!({"spec": {}}), &["NodeSchedulable"]);
    }
}
