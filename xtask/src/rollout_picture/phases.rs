//! The phases of a rollout, from watch events of ControllerRevisions. Pure.

use serde_json::Value;

use super::pod_lifetimes::TimedEvent;

/// A phase that began at a time, in seconds since the start of the update.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Began {
    pub(super) at: f64,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The nodes of this stage get the new version, from 1.
    Stage(u64),
    Baking,
    RollingBack,
    Held,
}

impl Phase {
    fn parse(state: &Value) -> Option<Self> {
        match state["phase"].as_str()? {
            "Updating" => state["stage"].as_u64().map(Self::Stage),
            "Baking" => Some(Self::Baking),
            "RollingBack" => Some(Self::RollingBack),
            "Held" => Some(Self::Held),
            _ => None,
        }
    }

    /// What the picture calls it.
    pub(super) fn label(self) -> String {
        match self {
            Self::Stage(stage) => format!("stage {stage}"),
            Self::Baking => "bakes".to_owned(),
            Self::RollingBack => "failed: goes back".to_owned(),
            Self::Held => "held".to_owned(),
        }
    }
}

/// The phases that began after the start of the update, in order.
pub(super) fn of(events: &[TimedEvent]) -> Vec<Began> {
    let mut all: Vec<Began> = Vec::new();
    for (at, event) in events.iter().filter(|(at, _)| *at >= 0.0) {
        let annotations = &event["object"]["metadata"]["annotations"];
        let state = annotations["rollout.kennel.dev/state"].as_str();
        let state = serde_json::from_str(state.unwrap_or_default()).unwrap_or_default();
        let phase = Phase::parse(&state);
        let last = all.last().map(|began| began.phase);
        if let Some(phase) = phase.filter(|phase| Some(*phase) != last) {
            all.push(Began { at: *at, phase });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phases_follow_from_the_states_of_revisions() {
        let event = |state: &str| {
            let annotations = json!({"rollout.kennel.dev/state": state});
            json!({"type": "MODIFIED", "object": {"metadata": {"annotations": annotations}}})
        };
        let events = [
            (-1.0, event(r#"{"phase": "Held"}"#)),
            (0.5, event(r#"{"phase": "Updating", "stage": 1}"#)),
            (0.6, event(r#"{"phase": "Updating", "stage": 1}"#)),
            (0.7, json!({"type": "ADDED", "object": {}})),
            (2.0, event(r#"{"phase": "Baking", "stage": 1}"#)),
            (3.0, event(r#"{"phase": "Updating", "stage": 2}"#)),
            (4.0, event(r#"{"phase": "RollingBack", "stage": 2}"#)),
            (5.0, event(r#"{"phase": "Held", "stage": 2}"#)),
        ];
        let labels: Vec<String> = of(&events).iter().map(|b| b.phase.label()).collect();
        let expected = ["stage 1", "bakes", "stage 2", "failed: goes back", "held"];
        assert_eq!(labels, expected);
    }
}
