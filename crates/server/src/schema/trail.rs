//! Where a walk through a tree stands, kept on the stack and spelled out only when something is
//! wrong.

use std::fmt;

/// One step down a tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// Into a member that the table knows.
    Field(&'a str),
    /// Into an entry of a map, or into a member that nobody has looked up.
    Key(&'a str),
    /// Into an item of a list.
    Index(usize),
}

/// The steps from the root to where the walk stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trail<'a> {
    parent: Option<&'a Self>,
    step: Option<Step<'a>>,
}

impl<'a> Trail<'a> {
    /// The trail one step further down.
    pub(super) fn then(&'a self, step: Step<'a>) -> Self {
        Self {
            parent: Some(self),
            step: Some(step),
        }
    }

    /// The trail as Go's decoder spells it in type errors: member names alone.
    pub(super) fn go_spelling(&self) -> String {
        let mut out = self.parent.map(Self::go_spelling).unwrap_or_default();
        if let Some(Step::Field(name)) = self.step {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(name);
        }
        out
    }
}

/// The trail as strict decoding spells it: `spec.containers[0].image`.
impl fmt::Display for Trail<'_> {
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
