//! Taints and tolerations: what a node repels, and what a pod puts up with.
//!
//! Whether a repelled pod may stay is decided by the callers; here is only the matching.

use serde::{Deserialize, Serialize};

/// Effect of a taint that keeps new pods away.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// Effect of a taint that keeps new pods away where they have a choice.
pub const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
/// Effect of a taint that also drives running pods off.
pub const NO_EXECUTE: &str = "NoExecute";

/// A mark on a node that repels pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// What the taint is about.
    pub key: String,
    /// A value that tolerations may have to equal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// What a pod puts up with.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The taint's key; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Exists`, or `Equal` (which an empty one means too).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// What the taint's value must be, for `Equal`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The taint's effect; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// How long a `NoExecute` taint is tolerated; absent is for ever. Not part of the matching.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// Does it cover this taint? Numeric operators never match: their gate is off by default.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let any_or = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        any_or(&self.effect, &taint.effect)
            && any_or(&self.key, &taint.key)
            && match self.operator.as_str() {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                _ => false,
            }
    }

    /// The same toleration but for how long it lasts.
    pub fn same_rule(&self, other: &Self) -> bool {
        (&self.key, &self.operator, &self.value, &self.effect)
            == (&other.key, &other.operator, &other.value, &other.effect)
    }
}

/// The first of these taints, among those with one of the effects, that nothing tolerates.
pub fn first_untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        effects.contains(&taint.effect.as_str()) && !tolerations.iter().any(|t| t.tolerates(taint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, operator: &str, value: &str, effect: &str, expected: bool) {
        let taint = Taint {
            key: "gpu".into(),
            value: "a100".into(),
            effect: NO_SCHEDULE.into(),
        };
        let toleration = Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
            toleration_seconds: None,
        };
        assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
    }

    #[test]
    fn s2_2_6_toleration_matching() {
        check("gpu", "Equal", "a100", "NoSchedule", true);
        check("gpu", "", "a100", "", true);
        check("gpu", "", "h100", "", false);
        check("gpu", "Exists", "", "", true);
        check("gpu", "Exists", "ignored", "NoSchedule", true);
        check("", "Exists", "", "", true);
        check("", "", "a100", "", true);
        check("gpu", "Exists", "", "NoExecute", false);
        check("tpu", "Exists", "", "", false);
        check("gpu", "Gt", "a100", "", false);
        check("gpu", "Lt", "a100", "", false);
    }
}
