//! The table of all events: which component emits them on which kind, and when.
//!
//! The reference documentation is generated from this table. Debug builds, and so all tests, assert that every emitted
//! event is in it. Reasons and components are upstream's.

mod table;

use super::Note;

pub use table::ALL;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// `source.component`.
    pub component: &'static str,
    /// The kind of the involved object; empty for any.
    pub about: &'static str,
    /// A reason that ends in `…` is a prefix.
    pub reason: &'static str,
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// For the reference documentation.
    pub when: &'static str,
}

/// Whether the table has this event.
pub fn is_listed(component: &str, about: &str, note: &Note) -> bool {
    ALL.iter().any(|known| {
        known.component == component
            && (known.about == about || known.about.is_empty())
            && known.warning == note.warning
            && known.has_reason(&note.reason)
    })
}

impl Known {
    pub fn has_reason(&self, reason: &str) -> bool {
        match self.reason.strip_suffix('…') {
            Some(prefix) => reason.starts_with(prefix),
            None => self.reason == reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::table::{AGENT, COLLECTOR, SCHEDULER};
    use super::*;

    fn check(component: &str, about: &str, warning: bool, reason: &'static str, expected: bool) {
        let message = String::new();
        let note = Note {
            warning,
            reason: reason.into(),
            message,
            once: false,
        };
        assert_eq!(is_listed(component, about, &note), expected, "{reason}");
    }

    #[test]
    fn an_event_is_listed_by_component_kind_type_and_reason() {
        check(AGENT, "Pod", true, "BackOff", true);
        check(AGENT, "Pod", false, "BackOff", true);
        check(AGENT, "Node", true, "BackOff", false);
        check(AGENT, "Pod", true, "Started", false);
        check(SCHEDULER, "Pod", false, "Started", false);
        check(AGENT, "Pod", true, "OutOfexample.com/gpu", true);
        check(
            COLLECTOR,
            "ConfigMap",
            true,
            "OwnerRefInvalidNamespace",
            true,
        );
    }

    #[test]
    fn nothing_is_listed_twice() {
        for (at, one) in ALL.iter().enumerate() {
            let same = |other: &&Known| {
                let key =
                    |known: &Known| (known.component, known.about, known.reason, known.warning);
                key(one) == key(other)
            };
            assert!(!ALL[..at].iter().any(|other| same(&other)), "{one:?}");
        }
    }
}
