//! `fieldsV1`: the JSON form of a set of fields.
//!
//! Each element is a key, with an object for what is below it. A path that is a member and has members below
//! has the key `.` in that object; a member with nothing below is an empty object.

use serde_json::{Map, Value};
use thiserror::Error;

use super::field_set::FieldSet;
use super::path_element::{ElementError, PathElement};

/// Why a value is no set of fields.
#[derive(Debug, Error)]
pub enum FieldsError {
    #[error("parsing key as path element: {0}")]
    Element(#[from] ElementError),
    #[error("managedFields parsing: expected an object")]
    NotAnObject,
}

/// The key of an object's own membership.
const SELF: &str = ".";

impl FieldSet {
    /// Reads `fieldsV1`. Ignores elements of unknown kinds.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        let members = match fields {
            Value::Null => return Ok(Self::default()),
            Value::Object(members) => members,
            _ => return Err(FieldsError::NotAnObject),
        };
        read(members).map(|(set, _)| set)
    }

    /// Writes `fieldsV1`, in the order of the elements.
    pub fn write_fields_v1(&self, out: &mut String) {
        out.push('{');
        self.write_members(out, true);
        out.push('}');
    }

    /// `fieldsV1` as text.
    pub fn to_fields_v1(&self) -> String {
        let mut out = String::new();
        self.write_fields_v1(&mut out);
        out
    }

    fn write_members(&self, out: &mut String, mut is_first: bool) {
        for node in self.nodes() {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
            write_key(out, &node.element);
            out.push_str(":{");
            let is_both = node.is_member && !node.below.is_empty();
            if is_both {
                out.push_str("\".\":{}");
            }
            node.below.write_members(out, !is_both);
            out.push('}');
        }
    }
}

/// The set below an object, and whether the object is a member itself.
fn read(members: &Map<String, Value>) -> Result<(FieldSet, bool), FieldsError> {
    let mut set = FieldSet::default();
    let mut is_member = false;
    for (key, value) in members {
        if key == SELF {
            is_member = true;
            continue;
        }
        let element = match PathElement::parse(key) {
            Ok(element) => element,
            Err(ElementError::Unknown) => continue,
            Err(error) => return Err(error.into()),
        };
        let Value::Object(below) = value else {
            return Err(FieldsError::NotAnObject);
        };
        let (below, child_is_member) = read(below)?;
        set.add(element, child_is_member, below);
    }
    // An object without elements stands for itself.
    let is_member = is_member || set.is_empty();
    Ok((set, is_member))
}

fn write_key(out: &mut String, element: &PathElement) {
    match element {
        // Most are, and there are many.
        PathElement::Field(name) if is_plain(name) => {
            out.push_str("\"f:");
            out.push_str(name);
            out.push('"');
        }
        other => out.push_str(&Value::from(other.to_key()).to_string()),
    }
}

/// Whether a text is the same in JSON.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    text.bytes().all(is_plain)
}
