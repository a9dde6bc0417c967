//! The guided tour: a DaemonSet's life step by step, with real commands on a real cluster.
//!
//! ```text
//!  steps (data) ─▶ runner ─▶ command ─▶ kubectl
//!                    │                     ▼
//!                    └── expectation ◀── observation (the API)      terminal, rollout_table ─▶ stdout
//! ```
//!
//! All changes are made with commands that the user sees.

mod command;
mod environment;
mod expectation;
mod keyboard;
mod manifest;
mod observation;
mod rollout_table;
mod runner;
mod steps;
mod terminal;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

pub(crate) use environment::Environment;
use runner::Runner;
use terminal::{Style, Terminal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Waits for Enter on stdin before each step; `q` leaves the tour.
    Step,
    /// Without pauses.
    Auto,
}

/// The scenario of simulated pods (docs/reference/simulation.md): they take time to start and stop, and the broken
/// version crashes.
pub(crate) const SCENARIO: &str = "\
pods:
- image: log-shipper:3.*
  start: 200ms
  exits: {after: 0s, code: 127}
- start: 300ms-600ms
  stop: 100ms-300ms
";

/// Runs all steps until `stop` is cancelled. If a step does not have the expected result, [`Pace::Auto`] fails, and
/// [`Pace::Step`] prints the error and ends the tour.
pub(crate) async fn run(
    environment: &Environment,
    pace: Pace,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let terminal = Terminal::stdout();
    let runner = Runner::new(environment, pace, terminal)?;
    let result = tokio::select! {
        result = runner.run() => result,
        () = stop.cancelled() => return Ok(()),
    };
    match result {
        Err(error) if pace == Pace::Step => {
            terminal.blank_line()?;
            terminal.line(Style::Red, &format!("The tour ends here: {error:#}"))?;
            Ok(())
        }
        result => result.context("the tour failed"),
    }
}

#[cfg(test)]
mod tests {
    use kennel_simulation::scenario::Scenario;

    use super::*;

    #[test]
    fn broken_versions_crash_in_the_scenario() {
        Scenario::parse(SCENARIO).unwrap();
        for version in manifest::BROKEN_VERSIONS {
            let major = version.split('.').next().unwrap();
            assert!(SCENARIO.contains(&format!("{}:{major}.*", manifest::NAME)));
        }
    }
}
