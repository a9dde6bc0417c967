//! The conditions of a node that the node lifecycle controller reads, and those it sets when a node stops reporting.

use kennel_types::{ConditionStatus, ConditionType};

/// The conditions that decide about taints.
const ALL: [ConditionType; 5] = [
    ConditionType::Ready,
    ConditionType::MemoryPressure,
    ConditionType::DiskPressure,
    ConditionType::PidPressure,
    ConditionType::NetworkUnavailable,
];
/// The kubelet reports all of them but the last, which the network plugin sets.
const REPORTED_BY_KUBELET: usize = 4;

/// The statuses of a node's conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions([Option<ConditionStatus>; ALL.len()]);

impl Conditions {
    /// None if the node does not have the condition.
    pub fn get(&self, r#type: &ConditionType) -> Option<ConditionStatus> {
        let index = ALL.iter().position(|known| known == r#type)?;
        self.0[index]
    }

    pub fn ready(&self) -> Option<ConditionStatus> {
        self.get(&ConditionType::Ready)
    }

    /// Ignores conditions that no rule reads.
    pub fn set(&mut self, r#type: &ConditionType, status: ConditionStatus) {
        if let Some(index) = ALL.iter().position(|known| known == r#type) {
            self.0[index] = Some(status);
        }
    }
}

/// A condition that becomes `Unknown` because the node stopped reporting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCondition {
    pub r#type: ConditionType,
    /// The node has never reported it.
    pub never_reported: bool,
}

impl UnknownCondition {
    pub fn reason(&self) -> &'static str {
        if self.never_reported {
            "NodeStatusNeverUpdated"
        } else {
            "NodeStatusUnknown"
        }
    }

    pub fn message(&self) -> &'static str {
        if self.never_reported {
            "Kubelet never posted node status."
        } else {
            "Kubelet stopped posting node status."
        }
    }
}

/// The conditions to set to `Unknown` on a node that stopped reporting; none if that has been done.
pub fn unknown_conditions(conditions: &Conditions) -> Vec<UnknownCondition> {
    if conditions.ready() == Some(ConditionStatus::Unknown) {
        return Vec::new();
    }
    let known = |r#type: &&ConditionType| conditions.get(r#type) != Some(ConditionStatus::Unknown);
    let reported = ALL[..REPORTED_BY_KUBELET].iter().filter(known);
    reported
        .map(|r#type| UnknownCondition {
            r#type: r#type.clone(),
            never_reported: conditions.get(r#type).is_none(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(ConditionType, &str)], expected: &[(&str, &str)]) {
        let mut conditions = Conditions::default();
        for (r#type, status) in given {
            conditions.set(r#type, (*status).into());
        }
        let unknown = unknown_conditions(&conditions);
        let found: Vec<_> = unknown
            .iter()
            .map(|condition| (condition.r#type.as_str(), condition.reason()))
            .collect();
        assert_eq!(found, expected, "{given:?}");
    }

    #[test]
    fn the_last_statuses_of_a_node_that_stopped_reporting_become_unknown() {
        check(
            &[
                (ConditionType::Ready, "True"),
                (ConditionType::MemoryPressure, "False"),
                (ConditionType::DiskPressure, "Unknown"),
                (ConditionType::NetworkUnavailable, "True"),
            ],
            &[
                ("Ready", "NodeStatusUnknown"),
                ("MemoryPressure", "NodeStatusUnknown"),
                ("PIDPressure", "NodeStatusNeverUpdated"),
            ],
        );
        check(
            &[
                (ConditionType::Ready, "Unknown"),
                (ConditionType::MemoryPressure, "False"),
            ],
            &[],
        );
        let never = "NodeStatusNeverUpdated";
        check(
            &[],
            &[
                ("Ready", never),
                ("MemoryPressure", never),
                ("DiskPressure", never),
                ("PIDPressure", never),
            ],
        );
    }

    #[test]
    fn other_conditions_are_ignored() {
        let mut conditions = Conditions::default();
        conditions.set(&"KernelDeadlock".into(), ConditionStatus::True);
        assert_eq!(conditions, Conditions::default());
    }
}
