//! Taints of nodes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::meta::{deserialize_from_str, null_as_default};
use crate::text_enum::text_enum;
use crate::time::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub value: String,
    pub effect: TaintEffect,
    /// When it was added; not set by every client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Timestamp>,
}

impl Taint {
    /// A taint without a value and a time.
    pub fn new(key: &str, effect: impl Into<TaintEffect>) -> Self {
        Self {
            key: key.to_owned(),
            effect: effect.into(),
            ..Self::default()
        }
    }

    /// Without the time, for readers that compare taints.
    #[must_use]
    pub fn without_time(&self) -> Self {
        Self {
            time_added: None,
            ..self.clone()
        }
    }
}

text_enum! {
    /// The effect of a taint. An effect that Kubernetes does not define keeps its text, so that a controller that writes
    /// a node's taints does not change it. In tolerations, the empty text stands for any effect.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TaintEffect, else Other(Box<str>) {
        NoSchedule = "NoSchedule",
        PreferNoSchedule = "PreferNoSchedule",
        /// Also evicts running pods.
        NoExecute = "NoExecute",
    }
}

impl TaintEffect {
    /// The texts of the effects that Kubernetes defines.
    pub const NAMES: [&'static str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

    /// `None` for an effect that Kubernetes does not define.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.contains(&text).then(|| text.into())
    }

    /// Whether pods that do not tolerate it do not start on the node.
    pub fn repels(&self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }

    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

deserialize_from_str!(TaintEffect);

impl Serialize for TaintEffect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_taint_is_written_as_it_was_read() {
        let check = |taint: Value| {
            let read: Taint = serde_json::from_value(taint.clone()).unwrap();
            assert_eq!(json!(read), taint);
        };
        check(json!({"key": "a", "effect": "NoSchedule"}));
        let added = "2026-01-02T03:04:05Z";
        check(json!({"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": added}));
        check(json!({"key": "a", "effect": "NoAdmit"}));
    }

    #[test]
    fn only_defined_effects_parse_and_repel() {
        for name in TaintEffect::NAMES {
            let effect = TaintEffect::parse(name).unwrap();
            assert_eq!(effect.as_str(), name);
            assert_eq!(effect.repels(), name != "PreferNoSchedule");
        }
        assert_eq!(TaintEffect::parse("NoAdmit"), None);
        assert_eq!(TaintEffect::parse(""), None);
        assert!(!TaintEffect::from("NoAdmit").repels());
        assert!(TaintEffect::default().is_empty());
    }
}
