//! Field errors, in upstream's words. A [`FieldError`] becomes one entry of `details.causes` of a 422.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::rc::Rc;

use kennel_core::go;
use serde::Serialize;
use serde_json::{Value, json};

/// The path of a field: `spec.containers[0].ports[1].hostPort`.
///
/// Most paths are never printed, since most objects are valid. So a path is a linked list of its segments,
/// and becomes text only for an error.
#[derive(Clone, Debug, Default)]
pub struct Path(Option<Rc<Step>>);

#[derive(Debug)]
struct Step {
    parent: Path,
    segment: Segment,
}

#[derive(Debug)]
enum Segment {
    Name(Cow<'static, str>),
    Index(usize),
    Key(Box<str>),
}

impl Path {
    /// The path of a top-level field. An empty name is the object itself.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self(None).child(name)
    }

    /// A member of the object at this path.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        if name.is_empty() {
            return self.clone();
        }
        self.step(Segment::Name(name))
    }

    /// An element of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Segment::Index(index))
    }

    /// An entry of the map at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Segment::Key(key.into()))
    }

    fn step(&self, segment: Segment) -> Self {
        let parent = self.clone();
        Self(Some(Rc::new(Step { parent, segment })))
    }

    fn write(&self, out: &mut String) {
        let Some(step) = &self.0 else { return };
        step.parent.write(out);
        match &step.segment {
            Segment::Name(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Segment::Index(index) => {
                let _ = write!(out, "[{index}]");
            }
            Segment::Key(key) => {
                out.push('[');
                out.push_str(key);
                out.push(']');
            }
        }
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Path {}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_none() {
            return f.write_str("<nil>");
        }
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    Required,
    Invalid,
    NotSupported,
    Forbidden,
    Duplicate,
    NotFound,
    TooLong,
    TooMany,
}

impl ErrorType {
    pub const ALL: [Self; 8] = [
        Self::Required,
        Self::Invalid,
        Self::NotSupported,
        Self::Forbidden,
        Self::Duplicate,
        Self::NotFound,
        Self::TooLong,
        Self::TooMany,
    ];

    /// The machine-readable reason in `details.causes`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// The beginning of its message.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub error_type: ErrorType,
    pub field: String,
    /// Everything after the path: `Invalid value: -1: must be greater than or equal to 0`.
    pub message: String,
}

/// A value as upstream prints it in an error: a string as Go's `%q` does, anything else as JSON.
fn shown(value: impl Serialize) -> String {
    match json!(value) {
        Value::String(text) => go::quote(&text),
        other => other.to_string(),
    }
}

impl FieldError {
    fn new(error_type: ErrorType, path: &Path, shown: Option<String>, detail: &str) -> Self {
        let mut message = error_type.prefix().to_owned();
        if let Some(shown) = shown {
            message.push_str(": ");
            message.push_str(&shown);
        }
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        Self {
            error_type,
            field: path.to_string(),
            message,
        }
    }

    /// The detail may be empty.
    pub fn required(path: &Path, detail: &str) -> Self {
        Self::new(ErrorType::Required, path, None, detail)
    }

    /// Shows the value as JSON.
    pub fn invalid(path: &Path, value: impl Serialize, detail: &str) -> Self {
        Self::invalid_shown(path, shown(value), detail)
    }

    /// Like [`Self::invalid`], for values that upstream does not print as JSON.
    pub fn invalid_shown(path: &Path, shown: String, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, path, Some(shown), detail)
    }

    /// Lists the supported values in the given order.
    pub fn not_supported(path: &Path, value: impl Serialize, supported: &[&str]) -> Self {
        Self::not_supported_shown(path, shown(value), supported)
    }

    /// Like [`Self::not_supported`], for values that upstream does not print as JSON.
    pub fn not_supported_shown(path: &Path, shown: String, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
        let detail = if list.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", list.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, Some(shown), &detail)
    }

    pub fn forbidden(path: &Path, detail: &str) -> Self {
        Self::new(ErrorType::Forbidden, path, None, detail)
    }

    pub fn duplicate(path: &Path, value: impl Serialize) -> Self {
        Self::duplicate_shown(path, shown(value), "")
    }

    /// Like [`Self::duplicate`], for values that upstream does not print as JSON. The detail may be empty.
    pub fn duplicate_shown(path: &Path, shown: String, detail: &str) -> Self {
        Self::new(ErrorType::Duplicate, path, Some(shown), detail)
    }

    pub fn not_found(path: &Path, value: impl Serialize) -> Self {
        Self::new(ErrorType::NotFound, path, Some(shown(value)), "")
    }

    /// `max` is in bytes.
    pub fn too_long(path: &Path, max: usize) -> Self {
        let detail = format!("may not be more than {max} bytes");
        Self::new(ErrorType::TooLong, path, None, &detail)
    }

    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} items");
        Self::new(ErrorType::TooMany, path, Some(actual.to_string()), &detail)
    }
}

/// The errors of an object, in the order in which they are found.
pub type Errors = Vec<FieldError>;

/// Adds one error to a list, as the constructor of [`FieldError`] with the same name makes it.
pub trait ErrorList {
    fn add(&mut self, error: FieldError);

    fn required(&mut self, path: &Path, detail: &str) {
        self.add(FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &Path, value: impl Serialize, detail: &str) {
        self.add(FieldError::invalid(path, value, detail));
    }

    fn invalid_shown(&mut self, path: &Path, shown: String, detail: &str) {
        self.add(FieldError::invalid_shown(path, shown, detail));
    }

    /// One error per mistake.
    fn invalid_each(&mut self, path: &Path, value: impl Serialize, mistakes: Vec<String>) {
        for mistake in mistakes {
            self.invalid(path, &value, &mistake);
        }
    }

    fn not_supported(&mut self, path: &Path, value: impl Serialize, supported: &[&str]) {
        self.add(FieldError::not_supported(path, value, supported));
    }

    fn forbidden(&mut self, path: &Path, detail: &str) {
        self.add(FieldError::forbidden(path, detail));
    }

    fn duplicate(&mut self, path: &Path, value: impl Serialize) {
        self.add(FieldError::duplicate(path, value));
    }

    fn not_found(&mut self, path: &Path, value: impl Serialize) {
        self.add(FieldError::not_found(path, value));
    }

    fn too_long(&mut self, path: &Path, max: usize) {
        self.add(FieldError::too_long(path, max));
    }

    fn too_many(&mut self, path: &Path, actual: usize, max: usize) {
        self.add(FieldError::too_many(path, actual, max));
    }
}

impl ErrorList for Errors {
    fn add(&mut self, error: FieldError) {
        self.push(error);
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_users_write_them() {
        let port = Path::new("spec")
            .child("containers")
            .index(0)
            .child("ports");
        assert_eq!(
            port.index(1).child("hostPort").to_string(),
            "spec.containers[0].ports[1].hostPort"
        );
        assert_eq!(Path::new("data").key("a.b").to_string(), "data[a.b]");
        assert_eq!(Path::new("").child("revision").to_string(), "revision");
        assert_eq!(Path::default().to_string(), "<nil>");
    }
}
