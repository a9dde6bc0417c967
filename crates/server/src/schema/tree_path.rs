//! The path from a tree's root to the value being checked. It lives on the stack and becomes text
//! only for an error.

use std::fmt;

#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// A member that the schema table has.
    Field(&'a str),
    /// An entry of a map, or a member that was not looked up.
    Key(&'a str),
    Index(usize),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreePath<'a> {
    parent: Option<&'a Self>,
    step: Option<Step<'a>>,
}

impl<'a> TreePath<'a> {
    pub(super) fn then(&'a self, step: Step<'a>) -> Self {
        Self {
            parent: Some(self),
            step: Some(step),
        }
    }

    /// As Go's decoder writes it in type errors: field names without indices and keys.
    pub(super) fn go_path(&self) -> String {
        let mut out = self.parent.map(Self::go_path).unwrap_or_default();
        if let Some(Step::Field(name)) = self.step {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(name);
        }
        out
    }
}

/// As strict decoding writes it: `spec.containers[0].image`.
impl fmt::Display for TreePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            None => Ok(()),
            Some(Step::Index(index)) => write!(f, "[{index}]"),
            Some(Step::Field(name) | Step::Key(name)) => {
                let first = self.parent.is_none_or(|parent| parent.step.is_none());
                write!(f, "{}{name}", if first { "" } else { "." })
            }
        }
    }
}
