//! The labels of all nodes, and which of them a template may have misspelt.

use std::collections::BTreeMap;

use super::resemblance::{closest, key_distance};
use super::snapshot::NodeSnapshot;

/// How many values of a label a note lists.
const VALUES_MAX: usize = 5;

/// A label as it was probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SuggestedLabel {
    pub(super) key: String,
    pub(super) value: String,
}

impl SuggestedLabel {
    pub(super) fn text(&self) -> String {
        match self.value.as_str() {
            "" => self.key.clone(),
            value => format!("{}={value}", self.key),
        }
    }
}

pub(super) enum Lookup {
    /// Some node has it.
    Present,
    Typo(SuggestedLabel),
    Absent,
}

/// The labels of all nodes: by key and value, the nodes that have them.
pub(super) struct LabelIndex<'a>(BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a str>>>);

impl<'a> LabelIndex<'a> {
    pub(super) fn of(nodes: &'a [NodeSnapshot]) -> Self {
        let mut index: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for node in nodes {
            for (key, value) in &node.view.labels {
                let values = index.entry(key).or_default();
                values.entry(value).or_default().push(&node.view.name);
            }
        }
        Self(index)
    }

    /// Looks for a label with this key and one of these values, any if there are none.
    pub(super) fn find(&self, key: &str, wanted: &[&str]) -> Lookup {
        if let Some(values) = self.0.get(key) {
            if wanted.is_empty() || wanted.iter().any(|value| values.contains_key(value)) {
                return Lookup::Present;
            }
            let similar = wanted
                .iter()
                .find_map(|value| closest(value, values.keys().copied()));
            return similar.map_or(Lookup::Absent, |value| Lookup::Typo(meant(key, value)));
        }
        let rated = self.0.iter().filter_map(|(found, values)| {
            let distance = key_distance(key, found)?;
            let value = wanted.iter().find(|value| values.contains_key(*value));
            Some((value.is_none(), distance, *found, value))
        });
        let best = rated.min_by_key(|(other_value, distance, ..)| (*other_value, *distance));
        best.map_or(Lookup::Absent, |(_, _, found, value)| {
            Lookup::Typo(meant(found, value.copied().unwrap_or_default()))
        })
    }

    /// `, as on n1 and 2 more`.
    pub(super) fn nodes_text(&self, meant: &SuggestedLabel) -> String {
        let values = self.0.get(meant.key.as_str());
        let nodes = values.into_iter().flatten();
        let with_value =
            |(value, _): &(&&str, &Vec<&str>)| meant.value.is_empty() || **value == meant.value;
        let all: Vec<&str> = nodes
            .filter(with_value)
            .flat_map(|(_, nodes)| nodes.iter().copied())
            .collect();
        match all.as_slice() {
            [] => String::new(),
            [one] => format!(", as on {one}"),
            [first, rest @ ..] => format!(", as on {first} and {} more", rest.len()),
        }
    }

    /// `; the values of disk are hdd, ssd`.
    pub(super) fn values_text(&self, key: &str) -> String {
        let Some(values) = self.0.get(key) else {
            return String::new();
        };
        let shown: Vec<&str> = values.keys().copied().take(VALUES_MAX).collect();
        let more = if values.len() > shown.len() {
            " …"
        } else {
            ""
        };
        format!("; the values of {key} are {}{more}", shown.join(", "))
    }
}

fn meant(key: &str, value: &str) -> SuggestedLabel {
    SuggestedLabel {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}
