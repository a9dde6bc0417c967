//! Matching of taints and tolerations.

pub use kennel_types::{Taint, TaintEffect};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The taint's key; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Exists`, or `Equal`, which is the default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// For `Equal`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The taint's effect; empty for any.
    #[serde(skip_serializing_if = "TaintEffect::is_empty")]
    pub effect: TaintEffect,
    /// How long a `NoExecute` taint is tolerated; forever when absent. Not part of the matching.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// Numeric operators never match: their feature gate is off by default.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let any_or = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        (self.effect.is_empty() || self.effect == taint.effect)
            && any_or(&self.key, &taint.key)
            && match self.operator.as_str() {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                _ => false,
            }
    }

    /// Whether they differ at most in `toleration_seconds`.
    pub fn same_rule(&self, other: &Self) -> bool {
        (&self.key, &self.operator, &self.value, &self.effect)
            == (&other.key, &other.operator, &other.value, &other.effect)
    }
}

/// The first taint with such an effect that no toleration matches.
pub fn first_untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effect: impl Fn(&TaintEffect) -> bool,
) -> Option<&'a Taint> {
    taints
        .iter()
        .find(|taint| effect(&taint.effect) && !tolerations.iter().any(|t| t.tolerates(taint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, operator: &str, value: &str, effect: &str, expected: bool) {
        let taint = Taint {
            value: "a100".into(),
            ..Taint::new("gpu", TaintEffect::NoSchedule)
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
