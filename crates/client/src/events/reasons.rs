//! Every event there is: who says it about what, and when.
//!
//! The reference is written from this table, and no event is emitted that is not in it (debug builds, and so all
//! tests, insist). Reasons and components are upstream's.

mod table;

use super::Note;

pub use table::ALL;

/// An event that may be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Who says it: the `source.component`.
    pub component: &'static str,
    /// The kind of object that it is about; empty for any.
    pub about: &'static str,
    /// Its reason. One that ends in `…` goes on with what cannot be listed.
    pub reason: &'static str,
    /// A `Warning`, not `Normal`.
    pub warning: bool,
    /// When it is said.
    pub when: &'static str,
}

/// Is there such an event?
pub fn knows(component: &str, about: &str, note: &Note) -> bool {
    ALL.iter().any(|known| {
        known.component == component
            && (known.about == about || known.about.is_empty())
            && known.warning == note.warning
            && known.says(&note.reason)
    })
}

impl Known {
    /// Is this its reason?
    pub fn says(&self, reason: &str) -> bool {
        match self.reason.strip_suffix('…') {
            Some(beginning) => reason.starts_with(beginning),
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
        };
        assert_eq!(knows(component, about, &note), expected, "{reason}");
    }

    #[test]
    fn an_event_is_known_by_who_says_it_about_what_and_how() {
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
