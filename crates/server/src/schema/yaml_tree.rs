//! A YAML document as a JSON tree, as go-yaml and `sigs.k8s.io/yaml` make one of it: keys become strings, whole numbers
//! become integers however they are written, and keys that occur twice are noted.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use thiserror::Error;

use super::go;

/// A node of a document.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) value: Value,
    /// The keys below it that occur twice, in the order in which go-yaml notices them.
    pub(super) duplicates: Vec<Duplicate>,
    /// The first key below it that JSON cannot have. Its member is left out.
    pub(super) bad_key: Option<KeyError>,
}

/// A key that JSON cannot have, in upstream's words.
#[derive(Clone, Debug, Error)]
pub enum KeyError {
    /// A null, and the value behind it.
    #[error("unsupported map key of type: %!s(<nil>), key: <nil>, value: {}", literal(.0))]
    Null(Value),
    /// A list or a map.
    #[error("yaml: invalid map key: {}", literal(.0))]
    Nested(Value),
}

/// A key that its map has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    /// As Go shows it.
    pub(super) key: String,
    /// Where it is, counted from 1.
    pub(super) line: u64,
    pub(super) is_null: bool,
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }
}

/// A number as Go writes it into JSON: without a fraction if there is none.
pub(super) fn number(float: f64) -> Value {
    // Both bounds are powers of two, so that they are exact.
    let is_integer = float.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&float);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "integers within the bounds"
    )]
    let integer = is_integer.then_some(float as i64);
    match integer {
        Some(integer) => integer.into(),
        None => Number::from_f64(float).map_or(Value::Null, Value::Number),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML node")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Value::Null.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Value::from(value).into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Value::from(value).into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Value::from(value).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(number(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Value::from(value).into())
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Value::from(value).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let (mut tree, mut items) = (Tree::default(), Vec::new());
        while let Some(item) = list.next_element::<Tree>()? {
            items.push(tree.take(item));
        }
        tree.value = items.into();
        Ok(tree)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let (mut tree, mut members, mut seen) = (Tree::default(), Map::new(), HashSet::new());
        // Values have no spans: reading those takes much of the stack.
        while let Some(key) = map.next_key::<Spanned<Key>>()? {
            let line = key.referenced.line();
            let value = tree.take(map.next_value()?);
            let (name, key) = match key.value.0 {
                Value::String(name) => {
                    let key = go::quote(&name);
                    (name, key)
                }
                key @ (Value::Bool(_) | Value::Number(_)) => (key.to_string(), key.to_string()),
                Value::Null => {
                    tree.bad_key.get_or_insert(KeyError::Null(value));
                    continue;
                }
                key @ (Value::Array(_) | Value::Object(_)) => {
                    tree.bad_key.get_or_insert(KeyError::Nested(key));
                    continue;
                }
            };
            if !seen.insert(key.clone()) {
                let is_null = value.is_null();
                tree.duplicates.push(Duplicate { key, line, is_null });
            }
            members.insert(name, value);
        }
        tree.value = members.into();
        Ok(tree)
    }
}

/// A key. What is in a list or a map that is one is read as it is.
struct Key(Value);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let value = match value.as_f64().filter(|_| value.is_f64()) {
            Some(float) => number(float),
            None => value,
        };
        Ok(Self(value))
    }
}

impl Tree {
    /// The value of a node below this one, whose findings are added.
    fn take(&mut self, below: Self) -> Value {
        self.duplicates.extend(below.duplicates);
        if self.bad_key.is_none() {
            self.bad_key = below.bad_key;
        }
        below.value
    }
}

/// A node as Go's `%#v` shows it.
fn literal(value: &Value) -> String {
    go::literal(value, "interface {}")
}
