//! DaemonSets, as far as readers of their status need them. The controller reads the whole spec itself, since
//! the pod template is kept as the API gave it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::condition::{self, Condition, ConditionType};

/// The kind that owner references name.
pub const KIND: &str = "DaemonSet";
/// The reason of the condition `Stalled` when every node is back on the revision before.
pub const ROLLED_BACK: &str = "RolledBack";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DaemonSet {
    #[serde(deserialize_with = "crate::meta::metadata")]
    pub metadata: ObjectMeta,
    pub status: DaemonSetStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonSetStatus {
    pub observed_generation: i64,
    pub desired_number_scheduled: i64,
    pub current_number_scheduled: i64,
    pub updated_number_scheduled: i64,
    pub number_ready: i64,
    pub number_available: i64,
    pub number_unavailable: i64,
    pub number_misscheduled: i64,
    #[serde(deserialize_with = "crate::meta::null_as_default")]
    pub conditions: Vec<Condition>,
}

impl DaemonSet {
    /// Whether every eligible node runs an available pod of the newest template, and no other node does.
    pub fn is_rolled_out(&self) -> bool {
        let status = &self.status;
        let desired = status.desired_number_scheduled;
        Some(status.observed_generation) == self.metadata.generation
            && status.updated_number_scheduled == desired
            && status.number_available == desired
            && status.number_misscheduled == 0
    }

    /// Whether the newest template has failed, and every node is back on the one before.
    pub fn is_rolled_back(&self) -> bool {
        let stalled = condition::find(&self.status.conditions, &ConditionType::Stalled);
        Some(self.status.observed_generation) == self.metadata.generation
            && stalled.is_some_and(|stalled| stalled.is_true() && stalled.reason == ROLLED_BACK)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rollout_is_done_when_every_count_agrees() {
        let check = |observed: i64, updated: i64, available: i64, misscheduled: i64, done: bool| {
            let set: DaemonSet = serde_json::from_value(json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": observed, "desiredNumberScheduled": 3,
                    "updatedNumberScheduled": updated, "numberAvailable": available,
                    "numberMisscheduled": misscheduled}}))
            .unwrap();
            assert_eq!(set.is_rolled_out(), done);
        };
        check(2, 3, 3, 0, true);
        check(1, 3, 3, 0, false);
        check(2, 2, 3, 0, false);
        check(2, 3, 2, 0, false);
        check(2, 3, 3, 1, false);
    }

    #[test]
    fn a_rollout_has_gone_back_when_the_condition_is_about_the_newest_template() {
        let check = |observed: i64, status: &str, reason: &str, back: bool| {
            let set: DaemonSet = serde_json::from_value(json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": observed, "conditions": [
                    {"type": "Progressing", "status": "False", "reason": "RolledBack"},
                    {"type": "Stalled", "status": status, "reason": reason}]}}))
            .unwrap();
            assert_eq!(set.is_rolled_back(), back);
        };
        check(2, "True", "RolledBack", true);
        check(1, "True", "RolledBack", false);
        check(2, "False", "RolledBack", false);
        check(2, "True", "PausedOnFailure", false);
    }
}
