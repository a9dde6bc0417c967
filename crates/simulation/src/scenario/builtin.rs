//! Scenarios that have a name instead of a file.

use super::{InvalidScenario, Scenario};

const ALL: [(&str, &str); 1] = [("bad-release", include_str!("bad-release.yaml"))];

pub const BUILTIN_NAMES: [&str; ALL.len()] = ["bad-release"];

/// The built-in scenario of this name.
pub fn builtin(name: &str) -> Option<Result<Scenario, InvalidScenario>> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| Scenario::parse(text))
}
