//! The scopes of a quota, which select the pods that count for it.

use serde_json::Value;

use super::measure::Measured;
use crate::tree::{list, text, texts};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Terminating,
    NotTerminating,
    BestEffort,
    NotBestEffort,
    CrossNamespacePodAffinity,
    PriorityClass(Operator),
    /// One that selects no pods, such as `VolumeAttributesClass`.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Exists,
    DoesNotExist,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Scope {
    /// `scopes` and `scopeSelector` of a quota's spec: an object must match all of them.
    pub(super) fn all_of(spec: &Value) -> Vec<Self> {
        let plain = texts(spec, "scopes").map(|name| Self::new(name, Operator::Exists));
        let terms = list(spec, "scopeSelector.matchExpressions");
        let selected = terms.iter().map(|term| {
            let values = texts(term, "values").map(str::to_owned).collect();
            let operator = match text(term, "operator") {
                "In" => Operator::In(values),
                "NotIn" => Operator::NotIn(values),
                "DoesNotExist" => Operator::DoesNotExist,
                _ => Operator::Exists,
            };
            Self::new(text(term, "scopeName"), operator)
        });
        plain.chain(selected).collect()
    }

    fn new(name: &str, operator: Operator) -> Self {
        match name {
            "Terminating" => Self::Terminating,
            "NotTerminating" => Self::NotTerminating,
            "BestEffort" => Self::BestEffort,
            "NotBestEffort" => Self::NotBestEffort,
            "CrossNamespacePodAffinity" => Self::CrossNamespacePodAffinity,
            "PriorityClass" => Self::PriorityClass(operator),
            _ => Self::Other,
        }
    }

    /// Objects other than pods match no scope.
    pub(super) fn matches(&self, object: &Measured) -> bool {
        let Some(pod) = &object.pod else { return false };
        let class = &pod.priority_class;
        match self {
            Self::Terminating => pod.has_deadline,
            Self::NotTerminating => !pod.has_deadline,
            Self::BestEffort => pod.is_best_effort,
            Self::NotBestEffort => !pod.is_best_effort,
            Self::CrossNamespacePodAffinity => pod.crosses_namespaces,
            Self::PriorityClass(Operator::Exists) => !class.is_empty(),
            Self::PriorityClass(Operator::DoesNotExist) => class.is_empty(),
            Self::PriorityClass(Operator::In(values)) => values.contains(class),
            Self::PriorityClass(Operator::NotIn(values)) => !values.contains(class),
            Self::Other => false,
        }
    }
}
