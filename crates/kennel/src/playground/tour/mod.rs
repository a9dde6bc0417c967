//! The guided tour: a DaemonSet's life in a dozen steps, with real commands on a real cluster.
//!
//! ```text
//!  steps (data) ─▶ walk ─▶ command ─▶ kubectl
//!                    │                   ▼
//!                    └── promise ◀── seen (the API)      screen, table ─▶ stdout
//! ```
//!
//! It never does behind the curtain what it could show.

mod command;
mod keys;
mod manifest;
mod promise;
mod screen;
mod seen;
mod steps;
mod table;
mod walk;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::stage::Stage;
use screen::{Screen, Style};
use walk::{Walk, Way};

/// How the walk goes on from one step to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Before each step it waits for Enter on stdin; `q` leaves the tour.
    Step,
    /// It goes through without asking.
    Auto,
}

/// What happens to simulated pods, as a scenario (docs/reference/simulation.md): without it they would be
/// ready at once, and nothing could break.
pub(crate) const SCENARIO: &str = "\
pods:
- image: log-shipper:3.*
  start: 200ms
  exits: {after: 0s, code: 127}
- start: 300ms-600ms
  stop: 100ms-300ms
";

/// Walks through all steps; told to stop, it ends at once. Where a step does not show what it promises,
/// [`Pace::Auto`] fails, and [`Pace::Step`] says so and leaves the tour.
pub(crate) async fn walk(
    stage: &Stage,
    pace: Pace,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let screen = Screen::new();
    let way = Way::new(stage, pace)?;
    let walked = tokio::select! {
        walked = Walk::new(&way, screen).all() => walked,
        () = stop.cancelled() => return Ok(()),
    };
    match walked {
        Err(error) if pace == Pace::Step => {
            screen.gap()?;
            screen.line(Style::Red, &format!("The tour ends here: {error:#}"))?;
            Ok(())
        }
        walked => walked.context("the tour failed"),
    }
}

#[cfg(test)]
mod tests {
    use kennel_node::scenario::Scenario;

    use super::*;

    #[test]
    fn the_scenario_breaks_the_version_that_the_tour_calls_broken() {
        Scenario::parse(SCENARIO).unwrap();
        let major = manifest::BROKEN.split('.').next().unwrap();
        assert!(SCENARIO.contains(&format!("{}:{major}.*", manifest::NAME)));
    }
}
