//! Sets of fields relative to an object: how managers are stored.
//!
//! Most managers own everything below some field of an object: its creator the spec, the kubelet the status.
//! A [`CompactSet`] says so in a word instead of listing the fields, which are the object's own. It stays the
//! same while such a manager adds and removes fields there, so that most writes need not look at it closely.
//!
//! In JSON a set is an object with a member for each element that is named: `0` is not a member and has none
//! below, `1` is a member, `2` is one with everything below it, `3` is not one and everything below it is. An object
//! has the members below, `.` if the element itself is one, and `*` if everything that it does not name is one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::entry::{EntryError, Manager, Managers, Operation, Owned};
use super::field_set::{FieldSet, Node};
use super::fields_v1::FieldsError;
use super::path_element::PathElement;

/// A set of fields relative to all fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CompactSet {
    /// Whether what is not in `nodes` is a member, with everything below it.
    others: bool,
    /// Sorted by element.
    nodes: Vec<CompactNode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CompactNode {
    element: PathElement,
    is_member: bool,
    below: CompactSet,
}

impl CompactSet {
    const ALL: Self = Self {
        others: true,
        nodes: Vec::new(),
    };

    /// The shorter of two forms: the members by name, or everything with exceptions.
    pub(super) fn of(set: &FieldSet, full: &FieldSet) -> Self {
        let is_complete = |node: &Node| set.node(&node.element) == Some(node);
        let complete = full.nodes().iter().filter(|node| is_complete(node)).count();
        let others = complete > full.nodes().len() - complete;
        let mut nodes = Vec::new();
        // What the object has,
        for node in full.nodes() {
            match set.node(&node.element) {
                Some(_) if is_complete(node) && others => {}
                Some(_) if is_complete(node) => nodes.push(CompactNode {
                    element: node.element.clone(),
                    is_member: node.is_member,
                    below: if node.below.is_empty() {
                        Self::default()
                    } else {
                        Self::ALL
                    },
                }),
                Some(owned) => nodes.push(CompactNode {
                    element: node.element.clone(),
                    is_member: owned.is_member,
                    below: Self::of(&owned.below, &node.below),
                }),
                None if others => nodes.push(CompactNode {
                    element: node.element.clone(),
                    is_member: false,
                    below: Self::default(),
                }),
                None => {}
            }
        }
        // and what it does not have.
        for owned in set.nodes() {
            if full.node(&owned.element).is_none() {
                nodes.push(CompactNode {
                    element: owned.element.clone(),
                    is_member: owned.is_member,
                    below: Self::of(&owned.below, &FieldSet::default()),
                });
            }
        }
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        Self { others, nodes }
    }

    /// The set for an object with these fields.
    pub(super) fn expand(&self, full: &FieldSet) -> FieldSet {
        let mut set = FieldSet::default();
        let none = FieldSet::default();
        if self.others {
            for node in full.nodes() {
                if self.node(&node.element).is_none() {
                    set.add(node.element.clone(), node.is_member, node.below.clone());
                }
            }
        }
        for node in &self.nodes {
            let below = full.node(&node.element).map_or(&none, |node| &node.below);
            set.add(
                node.element.clone(),
                node.is_member,
                node.below.expand(below),
            );
        }
        set
    }

    fn node(&self, element: &PathElement) -> Option<&CompactNode> {
        let found = self
            .nodes
            .binary_search_by(|node| node.element.cmp(element));
        found.ok().map(|at| &self.nodes[at])
    }

    /// Whether some of the fields are members.
    pub(super) fn touches(&self, fields: &FieldSet) -> bool {
        fields
            .nodes()
            .iter()
            .any(|field| match self.node(&field.element) {
                Some(node) => {
                    (node.is_member && field.is_member) || node.below.touches(&field.below)
                }
                None => self.others,
            })
    }

    /// Whether all of the fields are members and stay so when they come and go: they are below something of
    /// which everything is a member.
    pub(super) fn contains_freely(&self, fields: &FieldSet) -> bool {
        fields
            .nodes()
            .iter()
            .all(|field| match self.node(&field.element) {
                Some(node) => !field.is_member && node.below.contains_freely(&field.below),
                None => self.others,
            })
    }

    /// Whether all of the fields are members.
    pub(super) fn contains(&self, fields: &FieldSet) -> bool {
        fields
            .nodes()
            .iter()
            .all(|field| match self.node(&field.element) {
                Some(node) => {
                    (node.is_member || !field.is_member) && node.below.contains(&field.below)
                }
                None => self.others,
            })
    }

    fn write(&self, out: &mut String) {
        out.push('{');
        self.write_members(out, true);
        out.push('}');
    }

    fn write_members(&self, out: &mut String, mut is_first: bool) {
        let mut comma = |out: &mut String| {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
        };
        if self.others {
            comma(out);
            out.push_str("\"*\":1");
        }
        for node in &self.nodes {
            comma(out);
            let key = Value::from(node.element.to_key());
            write!(out, "{key}:").expect("writing to a String does not fail");
            node.write_value(out);
        }
    }

    fn read(value: &Value) -> Result<Self, FieldsError> {
        let Value::Object(members) = value else {
            return Err(FieldsError::NotAnObject);
        };
        let mut set = Self::default();
        for (key, value) in members {
            match key.as_str() {
                "*" => set.others = true,
                "." => {}
                key => {
                    let element = PathElement::parse(key)?;
                    set.nodes.push(CompactNode::read(element, value)?);
                }
            }
        }
        // The order of keys is not that of elements.
        set.nodes.sort_by(|a, b| a.element.cmp(&b.element));
        Ok(set)
    }
}

impl CompactNode {
    fn write_value(&self, out: &mut String) {
        let is_bare = self.below.nodes.is_empty();
        match (is_bare, self.below.others, self.is_member) {
            (true, false, false) => out.push('0'),
            (true, false, true) => out.push('1'),
            (true, true, true) => out.push('2'),
            (true, true, false) => out.push('3'),
            (false, _, is_member) => {
                out.push('{');
                if is_member {
                    out.push_str("\".\":1");
                }
                self.below.write_members(out, !is_member);
                out.push('}');
            }
        }
    }

    fn read(element: PathElement, value: &Value) -> Result<Self, FieldsError> {
        let (is_member, below) = match value.as_u64() {
            Some(0) => (false, CompactSet::default()),
            Some(1) => (true, CompactSet::default()),
            Some(2) => (true, CompactSet::ALL),
            Some(3) => (false, CompactSet::ALL),
            _ => (value.get(".").is_some(), CompactSet::read(value)?),
        };
        Ok(Self {
            element,
            is_member,
            below,
        })
    }
}

/// The managers of an object, in the form in which they are stored with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactManagers(pub(super) BTreeMap<Manager, CompactOwned>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompactOwned {
    pub(super) fields: CompactSet,
    pub(super) api_version: String,
    /// In seconds; 0 for none.
    pub(super) time: i64,
}

impl CompactManagers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stored form of managers of an object with these fields. Sets of another version are not relative.
    pub(super) fn of(managers: &Managers, full: &FieldSet, api_version: &str) -> Self {
        let none = FieldSet::default();
        let entries = managers.0.iter().map(|(manager, owned)| {
            let full = if owned.api_version == api_version {
                full
            } else {
                &none
            };
            let owned = CompactOwned {
                fields: CompactSet::of(&owned.fields, full),
                api_version: owned.api_version.clone(),
                time: owned.time.map_or(0, jiff::Timestamp::as_second),
            };
            (manager.clone(), owned)
        });
        Self(entries.collect())
    }

    pub(super) fn expand(&self, full: &FieldSet, api_version: &str) -> Managers {
        let none = FieldSet::default();
        let entries = self.0.iter().map(|(manager, owned)| {
            let full = if owned.api_version == api_version {
                full
            } else {
                &none
            };
            let time = Some(owned.time).filter(|time| *time != 0);
            let owned = Owned {
                fields: owned.fields.expand(full),
                api_version: owned.api_version.clone(),
                time: time.and_then(|time| jiff::Timestamp::from_second(time).ok()),
            };
            (manager.clone(), owned)
        });
        // A manager of everything where nothing is left is none.
        let entries = entries.filter(|(_, owned)| !owned.fields.is_empty());
        Managers(entries.collect())
    }

    pub(super) fn same_but_times(&self, other: &Self) -> bool {
        let same =
            |((a, of_a), (b, of_b)): ((&Manager, &CompactOwned), (&Manager, &CompactOwned))| {
                a == b && of_a.api_version == of_b.api_version && of_a.fields == of_b.fields
            };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }

    /// Writes the stored form: for each manager a list of name, operation, version, subresource, time and
    /// fields.
    pub fn write(&self, out: &mut String) {
        out.push('[');
        for (at, (manager, owned)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            let operation = u8::from(manager.operation == Operation::Apply);
            let [name, version, subresource] =
                [&manager.name, &owned.api_version, &manager.subresource]
                    .map(|text| Value::from(text.as_str()));
            let time = owned.time;
            write!(out, "[{name},{operation},{version},{subresource},{time},")
                .expect("writing to a String does not fail");
            owned.fields.write(out);
            out.push(']');
        }
        out.push(']');
    }

    /// Reads the stored form.
    pub fn from_value(value: &Value) -> Result<Self, EntryError> {
        let entries = value.as_array().ok_or(EntryError::NotAList)?;
        let entries = entries.iter().map(|entry| {
            let [name, operation, version, subresource, time, fields] =
                entry.as_array().map(Vec::as_slice).unwrap_or_default()
            else {
                return Err(EntryError::NotAList);
            };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let is_apply = operation.as_u64() == Some(1);
            let manager = Manager {
                name: text(name),
                operation: if is_apply {
                    Operation::Apply
                } else {
                    Operation::Update
                },
                api_version: if is_apply {
                    String::new()
                } else {
                    text(version)
                },
                subresource: text(subresource),
            };
            let owned = CompactOwned {
                fields: CompactSet::read(fields)?,
                api_version: text(version),
                time: time.as_i64().unwrap_or_default(),
            };
            Ok((manager, owned))
        });
        entries.collect::<Result<_, _>>().map(Self)
    }
}
