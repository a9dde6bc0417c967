//! JSON patches (RFC 6902): a list of operations, which succeed or fail together.
//!
//! The size and number of operations are bounded: a few copies could otherwise double a document
//! repeatedly.

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::{decode, go};

const OPERATIONS_MAX: usize = 10_000;
/// Of all copies of one patch together.
const COPIED_BYTES_MAX: usize = 3 << 20;
/// The maximum depth of the document: the JSON decoder must be able to read it back from the store.
const DEPTH_MAX: usize = 127;

/// Applies a JSON patch. On failure the document may be half changed; callers work on a copy.
pub fn apply(doc: &mut Value, patch: &[u8]) -> Result<(), PatchError> {
    let operations = decode_operations(patch)?;
    let mut copied = 0;
    for operation in operations {
        operation.apply(doc, &mut copied)?;
    }
    Ok(())
}

fn decode_operations(patch: &[u8]) -> Result<Vec<Operation>, PatchError> {
    let parsed = decode::parse(patch).map_err(|error| PatchError::Malformed(error.to_string()))?;
    let Value::Array(items) = parsed.value else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
            go::json_type(&parsed.value)
        )));
    };
    if items.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            items.len()
        )));
    }
    items.into_iter().map(Operation::decode).collect()
}

/// One operation. A missing member fails only when the operation runs.
struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

impl Operation {
    fn decode(item: Value) -> Result<Self, PatchError> {
        let Value::Object(mut members) = item else {
            return Err(PatchError::Malformed(format!(
                "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
                go::json_type(&item)
            )));
        };
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (op, path, from) = (text("op"), text("path"), text("from"));
        Ok(Self {
            op: op.unwrap_or_else(|| "unknown".to_owned()),
            path,
            from,
            value: members.remove("value"),
        })
    }

    fn apply(self, doc: &mut Value, copied: &mut usize) -> Result<(), PatchError> {
        let op = self.op.as_str();
        let path = match &self.path {
            Some(path) => {
                Pointer::parse(path).ok_or_else(|| does_not_apply(op, &missing_path(path)))?
            }
            None => return Err(does_not_apply(op, "missing path")),
        };
        let from = || match &self.from {
            Some(from) => {
                Pointer::parse(from).ok_or_else(|| PatchError::Rejected(missing_path(from)))
            }
            None => Err(does_not_apply(op, "missing from")),
        };
        let value = || self.value.clone().unwrap_or(Value::Null);
        match op {
            "add" => path.add(doc, value(), op),
            "remove" => path.remove(doc, op).map(drop),
            "replace" => path.replace(doc, value()),
            "move" => {
                let from = from()?;
                if from.is_parent_of(&path) {
                    return Err(does_not_apply(op, "into itself"));
                }
                let value = from.remove(doc, op)?;
                path.add(doc, value, op)
            }
            "copy" => {
                let value = from()?.get(doc, op)?.clone();
                charge(copied, &value)?;
                path.add(doc, value, op)
            }
            "test" => path.test(doc, &value()),
            other => Err(PatchError::Rejected(format!("Unexpected kind: {other}"))),
        }
    }
}

fn charge(copied: &mut usize, value: &Value) -> Result<(), PatchError> {
    *copied += value.to_string().len();
    if *copied <= COPIED_BYTES_MAX {
        return Ok(());
    }
    Err(PatchError::Rejected(format!(
        "Unable to complete the copy, the accumulated size increase of copy operations is {copied}, exceeding the limit {COPIED_BYTES_MAX}"
    )))
}

fn does_not_apply(op: &str, why: &str) -> PatchError {
    PatchError::Rejected(format!("{op} operation does not apply: {why}"))
}

/// A JSON pointer (RFC 6901).
struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        parts.next().filter(|first| first.is_empty())?;
        Some(Self {
            text: text.to_owned(),
            tokens: parts
                .map(|token| token.replace("~1", "/").replace("~0", "~"))
                .collect(),
        })
    }

    fn is_parent_of(&self, other: &Self) -> bool {
        self.tokens.len() < other.tokens.len() && other.tokens.starts_with(&self.tokens)
    }

    fn missing(&self, op: &str) -> PatchError {
        does_not_apply(op, &missing_path(&self.text))
    }

    fn get<'d>(&self, doc: &'d Value, op: &str) -> Result<&'d Value, PatchError> {
        let found = self
            .tokens
            .iter()
            .try_fold(doc, |value, token| match value {
                Value::Object(members) => members.get(token),
                Value::Array(items) => items.get(existing_index(token, items.len())?),
                _ => None,
            });
        found.ok_or_else(|| self.missing(op))
    }

    fn get_mut<'d>(&self, doc: &'d mut Value, op: &str) -> Result<&'d mut Value, PatchError> {
        resolve_mut(doc, &self.tokens).ok_or_else(|| self.missing(op))
    }

    /// The container that holds what this points at, and the last token.
    fn parent<'d, 'p>(
        &'p self,
        doc: &'d mut Value,
        op: &str,
    ) -> Result<Option<(&'d mut Value, &'p str)>, PatchError> {
        let Some((last, tokens)) = self.tokens.split_last() else {
            return Ok(None);
        };
        let container = resolve_mut(doc, tokens).ok_or_else(|| self.missing(op))?;
        Ok(Some((container, last)))
    }

    fn add(&self, doc: &mut Value, value: Value, op: &str) -> Result<(), PatchError> {
        if self.tokens.len() + depth(&value) > DEPTH_MAX {
            return Err(does_not_apply(op, "exceeded max depth"));
        }
        match self.parent(doc, op)? {
            None => *doc = value,
            Some((Value::Object(members), key)) => {
                members.insert(key.to_owned(), value);
            }
            Some((Value::Array(items), token)) => {
                let index = match token {
                    "-" => items.len(),
                    // One past the end is where an item may be added.
                    token => existing_index(token, items.len() + 1)
                        .ok_or_else(|| invalid_index(token))?,
                };
                items.insert(index, value);
            }
            Some(_) => return Err(self.missing(op)),
        }
        Ok(())
    }

    fn remove(&self, doc: &mut Value, op: &str) -> Result<Value, PatchError> {
        match self.parent(doc, op)? {
            None => Ok(std::mem::replace(doc, Value::Object(Map::new()))),
            Some((Value::Object(members), key)) => {
                members.remove(key).ok_or_else(|| self.missing(op))
            }
            Some((Value::Array(items), token)) => match existing_index(token, items.len()) {
                Some(index) => Ok(items.remove(index)),
                None => Err(invalid_index(token)),
            },
            Some(_) => Err(self.missing(op)),
        }
    }

    fn replace(&self, doc: &mut Value, value: Value) -> Result<(), PatchError> {
        if self.tokens.len() + depth(&value) > DEPTH_MAX {
            return Err(does_not_apply("replace", "exceeded max depth"));
        }
        *self.get_mut(doc, "replace")? = value;
        Ok(())
    }

    /// A missing value equals null.
    fn test(&self, doc: &Value, expected: &Value) -> Result<(), PatchError> {
        let actual = self.get(doc, "test").unwrap_or(&Value::Null);
        if same(actual, expected) {
            return Ok(());
        }
        let why = format!("testing value {} failed: test failed", self.text);
        Err(PatchError::Rejected(why))
    }
}

fn resolve_mut<'d>(doc: &'d mut Value, tokens: &[String]) -> Option<&'d mut Value> {
    tokens.iter().try_fold(doc, |value, token| match value {
        Value::Object(members) => members.get_mut(token),
        Value::Array(items) => {
            let index = existing_index(token, items.len())?;
            items.get_mut(index)
        }
        _ => None,
    })
}

/// An index below `length`: digits without a leading zero.
fn existing_index(token: &str, length: usize) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with(['0', '+']);
    let index: usize = token.parse().ok().filter(|_| canonical)?;
    (index < length).then_some(index)
}

fn invalid_index(token: &str) -> PatchError {
    let why = format!("Unable to access invalid index: {token}: invalid index referenced");
    PatchError::Rejected(why)
}

fn missing_path(text: &str) -> String {
    format!("doc is missing path: {text:?}: missing value")
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Equality of RFC 6902: numbers are equal by value, whatever their spelling.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
