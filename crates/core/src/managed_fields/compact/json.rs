//! The JSON form of sets relative to an object.
//!
//! A set is an object with a member for each element that is named. An element without named ones below is a number: 0
//! if it is no member, 1 if it is one, 2 if it is one whenever the object has it, and 3 more if everything below it is a
//! member. Other elements are objects: the members below, `.` if the element itself is a member (1) or none (0) whatever the
//! object has, and `*` if everything that is not named is one.

use std::io::Write as _;

use serde_json::Value;

use super::set::{CompactNode, CompactSet, Membership};
use crate::managed_fields::fields_v1::FieldsError;
use crate::managed_fields::path_element::PathElement;

/// What is added to the number of an element if everything below it is a member.
const EVERYTHING_BELOW: u64 = 3;

/// Writes a prefix and a text together as one JSON string.
pub(super) fn write_text(out: &mut Vec<u8>, prefix: &str, text: &str) {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().any(is_escaped) {
        let text = Value::from(format!("{prefix}{text}"));
        write!(out, "{text}").expect("writing to memory does not fail");
        return;
    }
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

pub(super) fn write_number(out: &mut Vec<u8>, number: impl std::fmt::Display) {
    write!(out, "{number}").expect("writing to memory does not fail");
}

impl CompactSet {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_members(out, true);
        out.push(b'}');
    }

    fn write_members(&self, out: &mut Vec<u8>, mut is_first: bool) {
        let mut comma = |out: &mut Vec<u8>| {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
        };
        if self.others {
            comma(out);
            out.extend_from_slice(b"\"*\":1");
        }
        for node in &self.nodes {
            comma(out);
            match &node.element {
                PathElement::Field(name) => write_text(out, "f:", name),
                other => write_text(out, "", &other.to_key()),
            }
            out.push(b':');
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
    fn write_value(&self, out: &mut Vec<u8>) {
        if self.below.nodes.is_empty() {
            let below = if self.below.others {
                EVERYTHING_BELOW
            } else {
                0
            };
            let number = self.membership as u64 + below;
            write_number(out, number);
            return;
        }
        out.push(b'{');
        match self.membership {
            Membership::No => out.extend_from_slice(b"\".\":0"),
            Membership::Yes => out.extend_from_slice(b"\".\":1"),
            Membership::IfPresent => {}
        }
        let is_first = self.membership == Membership::IfPresent;
        self.below.write_members(out, is_first);
        out.push(b'}');
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
