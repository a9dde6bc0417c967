//! Commands (R6): annotations that people or the CLI put on a DaemonSet, each for one revision.

use std::collections::BTreeMap;

use super::PREFIX;

/// The keys of commands, without their prefix.
pub const KEYS: [&str; 5] = ["abort", "freeze", "pause", "promote", "retry"];

pub fn is_command(key: &str) -> bool {
    KEYS.contains(&key)
}

/// How far `promote` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Past this stage, counted from 1.
    Stage(usize),
    /// Past all stages.
    Full,
}

/// A command that acts once on one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Promote {
        hash: String,
        extent: Extent,
    },
    Abort {
        hash: String,
    },
    Retry {
        hash: String,
        attempt: u32,
    },
    /// It cannot be read, and does nothing.
    Unreadable,
}

impl Command {
    /// Whether it names this revision.
    pub fn names(&self, revision: &str) -> bool {
        match self {
            Self::Promote { hash, .. } | Self::Abort { hash } | Self::Retry { hash, .. } => {
                hash == revision
            }
            Self::Unreadable => false,
        }
    }

    /// Whether it could be for a rollout of this revision: it names no other.
    pub fn is_for(&self, revision: &str) -> bool {
        *self == Self::Unreadable || self.names(revision)
    }
}

/// The commands on a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// `promote`, `abort` and `retry`, each with its key and value as written.
    pub once: Vec<(&'static str, String, Command)>,
    /// The reason of `pause`.
    pub pause: Option<String>,
    /// The reason of `freeze`.
    pub freeze: Option<String>,
}

impl Commands {
    /// Whether a command that acts once is there.
    pub fn has(&self, key: &str, value: &str) -> bool {
        let mut once = self.once.iter();
        once.any(|(found, text, _)| *found == key && text == value)
    }

    pub fn parse(annotations: &BTreeMap<String, String>) -> Self {
        let value = |key: &str| annotations.get(&format!("{PREFIX}{key}")).cloned();
        let once = ["abort", "retry", "promote"].into_iter();
        let once = once.filter_map(|key| {
            let value = value(key)?;
            let command = parse(key, value.trim()).unwrap_or(Command::Unreadable);
            Some((key, value, command))
        });
        Self {
            once: once.collect(),
            pause: value("pause"),
            freeze: value("freeze"),
        }
    }
}

fn parse(key: &str, value: &str) -> Option<Command> {
    if key == "abort" {
        let hash = value.to_owned();
        return (!value.is_empty() && !value.contains('/')).then_some(Command::Abort { hash });
    }
    let (hash, rest) = value.split_once('/')?;
    let hash = Some(hash.to_owned()).filter(|hash| !hash.is_empty())?;
    match (key, rest) {
        ("promote", "full") => Some(Command::Promote {
            hash,
            extent: Extent::Full,
        }),
        ("promote", stage) => {
            let stage = stage.parse().ok().filter(|stage| *stage > 0)?;
            let extent = Extent::Stage(stage);
            Some(Command::Promote { hash, extent })
        }
        (_, attempt) => {
            let attempt = attempt.parse().ok()?;
            Some(Command::Retry { hash, attempt })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(entries: &[(&str, &str)]) -> Commands {
        let own = |(key, value): &(&str, &str)| (format!("{PREFIX}{key}"), (*value).to_owned());
        Commands::parse(&entries.iter().map(own).collect())
    }

    fn once(key: &str, value: &str) -> Command {
        parsed(&[(key, value)]).once.remove(0).2
    }

    #[test]
    fn r6_each_command_names_its_revision() {
        let hash = || "5d8b".to_owned();
        assert_eq!(once("abort", "5d8b"), Command::Abort { hash: hash() });
        let promote = |extent| Command::Promote {
            hash: hash(),
            extent,
        };
        assert_eq!(once("promote", "5d8b/2"), promote(Extent::Stage(2)));
        assert_eq!(once("promote", "5d8b/full"), promote(Extent::Full));
        let retry = Command::Retry {
            hash: hash(),
            attempt: 3,
        };
        assert_eq!(once("retry", " 5d8b/3 "), retry);
    }

    #[test]
    fn r6_1_an_unreadable_command_does_nothing() {
        for (key, value) in [
            ("promote", "5d8b"),
            ("promote", "5d8b/0"),
            ("promote", "/2"),
            ("promote", "5d8b/two"),
            ("abort", ""),
            ("abort", "5d8b/1"),
            ("retry", "5d8b"),
            ("retry", "5d8b/-1"),
        ] {
            assert_eq!(once(key, value), Command::Unreadable, "{key}: {value}");
        }
    }

    #[test]
    fn r6_3_pause_and_freeze_take_any_reason() {
        let found = parsed(&[("pause", "night"), ("freeze", "")]);
        assert_eq!(found.pause.as_deref(), Some("night"));
        assert_eq!(found.freeze.as_deref(), Some(""));
        assert_eq!(parsed(&[]), Commands::default());
    }
}
