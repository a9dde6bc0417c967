//! The errors of walks, in upstream's words.

use std::fmt;

use super::super::path_element::PathElement;

/// A value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// The path, such as `.spec.ports[name="x"]`; empty for the object itself.
    pub path: String,
    pub message: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Everything that is wrong with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeErrors(Vec<TypeError>);

impl TypeErrors {
    pub(super) fn one(message: impl Into<String>) -> Self {
        Self(vec![TypeError {
            path: String::new(),
            message: message.into(),
        }])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, message: impl Into<String>) {
        self.0.extend(Self::one(message).0);
    }

    /// Adds errors from below an element.
    pub(super) fn extend_below(&mut self, element: &PathElement, below: Self) {
        if below.is_empty() {
            return;
        }
        let prefix = element.to_string();
        self.0.extend(below.0.into_iter().map(|error| TypeError {
            path: format!("{prefix}{}", error.path),
            ..error
        }));
    }

    /// Errors from below an element.
    pub(super) fn below(element: &PathElement, below: Self) -> Self {
        let mut errors = Self::default();
        errors.extend_below(element, below);
        errors
    }

    /// `Ok` if there are none.
    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [error] = self.0.as_slice() {
            return error.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for TypeErrors {}
