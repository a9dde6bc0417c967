//! Decodes bytes to a JSON tree and reports duplicate members.
//!
//! It does not know the API's types: [`mod@super::conform`] checks those. It does not panic on any
//! input, and it bounds the depth of the tree, so that the callers may recurse.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::error::DecodeError;
use super::go;
use super::syntax;
use super::tree_path::{Step, TreePath};

/// The maximum number of findings in an answer.
pub(super) const FINDINGS_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The last value wins for duplicate members.
    pub value: Value,
    /// One finding per duplicate member: `duplicate field "spec.x"`.
    pub duplicates: Vec<String>,
}

pub fn parse(bytes: &[u8]) -> Result<Parsed, DecodeError> {
    // Checks the whole body once instead of each string in it.
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8)?;
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let tree = Tree {
        path: &TreePath::default(),
        duplicates: &duplicates,
    };
    let value = tree
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| explain(bytes, error))?;
    Ok(Parsed {
        value,
        duplicates: duplicates.into_inner(),
    })
}

fn explain(bytes: &[u8], error: serde_json::Error) -> DecodeError {
    if error.to_string().starts_with("recursion limit exceeded") {
        return DecodeError::TooDeep;
    }
    match syntax::first_error(bytes) {
        Some(syntax) => syntax.into(),
        None => error.into(),
    }
}

/// The bytes of one member of the object in `bytes`, unchanged: `ControllerRevision.data` must be
/// stored as it was sent, which a tree does not guarantee. The last of duplicate members wins, as
/// in [`parse`].
pub fn raw_member<'a>(bytes: &'a [u8], name: &str) -> Option<&'a str> {
    struct Member<'n>(&'n str);

    impl<'de> Visitor<'de> for Member<'_> {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(key) = map.next_key::<String>()? {
                let value = map.next_value::<&RawValue>()?;
                if key == self.0 {
                    found = Some(value);
                }
            }
            Ok(found)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let found = deserializer.deserialize_map(Member(name)).ok()?;
    found.map(RawValue::get)
}

#[derive(Clone, Copy)]
struct Tree<'a> {
    path: &'a TreePath<'a>,
    duplicates: &'a RefCell<Vec<String>>,
}

impl Tree<'_> {
    /// Inserts the finding before those inside the member: `found_before` findings precede it.
    fn report_duplicate(&self, key: &str, found_before: usize) {
        let mut findings = self.duplicates.borrow_mut();
        if found_before >= FINDINGS_MAX {
            return;
        }
        let path = self.path.then(Step::Key(key)).to_string();
        let finding = format!("duplicate field {}", go::quote(&path));
        if !findings.contains(&finding) {
            findings.insert(found_before, finding);
            findings.truncate(FINDINGS_MAX);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = self.path.then(Step::Index(list.len()));
            let tree = Tree {
                path: &path,
                duplicates: self.duplicates,
            };
            match items.next_element_seed(tree)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = self.path.then(Step::Key(&key));
            let tree = Tree {
                path: &path,
                duplicates: self.duplicates,
            };
            let found_before = self.duplicates.borrow().len();
            let value = members.next_value_seed(tree)?;
            // One lookup per member.
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    self.report_duplicate(entry.key(), found_before);
                    entry.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}
