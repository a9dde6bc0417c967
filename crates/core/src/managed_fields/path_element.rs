//! One step of a field path, as text for people and as a key of `fieldsV1`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use super::go;
use super::value;
use crate::go::json;

/// One step of a field path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A member of an object or a map: `f:name`.
    Field(Box<str>),
    /// An item of a keyed list, by the members that identify it, sorted by name: `k:{"name":"x"}`.
    Key(Box<[(Box<str>, Value)]>),
    /// An item of a set: `v:"x"`.
    Value(Value),
    /// An item of a list by its position: `i:0`.
    Index(i64),
}

/// Why a key of `fieldsV1` is no path element.
#[derive(Debug, Error)]
pub enum ElementError {
    #[error("key must be 2 characters long")]
    TooShort,
    #[error("missing colon: {0}")]
    NoColon(String),
    /// A kind of element that a later version may know; readers ignore it.
    #[error("unknown path element type")]
    Unknown,
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Index(#[from] std::num::ParseIntError),
}

impl PathElement {
    /// The member of this name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Reads a key of `fieldsV1`.
    pub fn parse(text: &str) -> Result<Self, ElementError> {
        if text.len() < 2 {
            return Err(ElementError::TooShort);
        }
        if text.as_bytes()[1] != b':' {
            return Err(ElementError::NoColon(text.to_owned()));
        }
        let (kind, content) = (text.as_bytes()[0], &text[2..]);
        match kind {
            b'f' => Ok(Self::field(content)),
            b'v' => Ok(Self::Value(serde_json::from_str(content)?)),
            b'k' => {
                // The map is sorted by name.
                let members: Map<String, Value> = serde_json::from_str(content)?;
                let members = members.into_iter();
                Ok(Self::Key(
                    members.map(|(name, value)| (name.into(), value)).collect(),
                ))
            }
            b'i' => Ok(Self::Index(content.parse()?)),
            _ => Err(ElementError::Unknown),
        }
    }

    /// The key of `fieldsV1`, before it is quoted as a JSON string.
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(value) => format!("v:{}", json::to_string(value)),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(members) => {
                let members = members.iter().map(|(name, value)| {
                    let name = Value::from(&**name);
                    format!("{name}:{}", json::to_string(value))
                });
                format!("k:{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Fields come first, then keys, values and indices.
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// By members in the order of their names; a prefix comes first.
fn compare_keys(a: &[(Box<str>, Value)], b: &[(Box<str>, Value)]) -> Ordering {
    let pairs = a.iter().zip(b);
    let first_difference = pairs
        .map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| value::compare(a, b)))
        .find(|order| order.is_ne());
    first_difference.unwrap_or_else(|| a.len().cmp(&b.len()))
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// As error messages show it: `.name`, `[name="x",port=80]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Value(value) => write!(f, "[={}]", go::in_path(value)),
            Self::Key(members) => {
                f.write_str("[")?;
                for (at, (name, value)) in members.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", go::in_path(value))?;
                }
                f.write_str("]")
            }
        }
    }
}
