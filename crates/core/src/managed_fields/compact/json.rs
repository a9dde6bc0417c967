//! The JSON form of sets relative to an object.
//!
//! A set is an object with a member for each element that is named. An element without named ones below is a number: 0
//! if it is no member, 1 if it is one, 2 if it is one whenever the object has it, and 3 more if everything below it is a
//! member. Other elements are objects: the members below, `.` if the element itself is a member (1) or none (0) whatever the
//! object has, and `*` if everything that is not named is one.

use std::fmt::Write as _;

use serde_json::Value;

use super::set::{CompactNode, CompactSet, Membership};
use crate::managed_fields::fields_v1::FieldsError;
use crate::managed_fields::path_element::PathElement;

/// What is added to the number of an element if everything below it is a member.
const EVERYTHING_BELOW: u64 = 3;

impl CompactSet {
    pub(super) fn write(&self, out: &mut String) {
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

    pub(super) fn read(value: &Value) -> Result<Self, FieldsError> {
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
        if self.below.nodes.is_empty() {
            let below = if self.below.others {
                EVERYTHING_BELOW
            } else {
                0
            };
            let number = self.membership as u64 + below;
            write!(out, "{number}").expect("writing to a String does not fail");
            return;
        }
        out.push('{');
        match self.membership {
            Membership::No => out.push_str("\".\":0"),
            Membership::Yes => out.push_str("\".\":1"),
            Membership::IfPresent => {}
        }
        let is_first = self.membership == Membership::IfPresent;
        self.below.write_members(out, is_first);
        out.push('}');
    }

    fn read(element: PathElement, value: &Value) -> Result<Self, FieldsError> {
        let membership = |number: Option<u64>| match number {
            Some(0) => Membership::No,
            Some(1) => Membership::Yes,
            _ => Membership::IfPresent,
        };
        if let Some(number) = value.as_u64() {
            let is_all = number >= EVERYTHING_BELOW;
            return Ok(Self {
                element,
                membership: membership(Some(number % EVERYTHING_BELOW)),
                below: if is_all {
                    CompactSet::ALL
                } else {
                    CompactSet::default()
                },
            });
        }
        Ok(Self {
            element,
            membership: membership(value.get(".").and_then(Value::as_u64)),
            below: CompactSet::read(value)?,
        })
    }
}
