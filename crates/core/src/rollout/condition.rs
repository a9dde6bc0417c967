//! The conditions of a DaemonSet with a rollout policy (R9.1).

use std::collections::BTreeMap;

/// By type: `Progressing`, `Stalled` and `Reconciling`. Empty without a policy and without a held target.
pub type Conditions = BTreeMap<String, Condition>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub status: bool,
    pub reason: String,
    pub message: String,
}

/// The condition of a rollout that needs a person.
pub const STALLED: &str = "Stalled";
/// The types of our conditions.
pub const TYPES: [&str; 3] = ["Progressing", "Reconciling", STALLED];

/// The three conditions. Of the last two at most one is true: tools take a true `Stalled` as final.
pub fn conditions(progressing: bool, stalled: bool, reason: &str, message: &str) -> Conditions {
    debug_assert!(
        !(progressing && stalled),
        "what is stalled makes no progress"
    );
    let [progress, reconcile, stall] = TYPES;
    let condition = |status: bool| Condition {
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    let all = [
        (progress, condition(progressing)),
        (reconcile, condition(progressing)),
        (stall, condition(stalled)),
    ];
    all.map(|(kind, condition)| (kind.to_owned(), condition))
        .into()
}
