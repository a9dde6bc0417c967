//! When to probe a run, and what the results mean. The agent executes the probes.

use kennel_types::{Monotonic, Probe, ProbeKind};

/// The state of one probe of one run.
#[derive(Clone, Copy, Debug)]
pub struct ProbeState {
    pub passed: bool,
    /// A success or failure threshold has been reached; before that, `passed` is the initial value.
    pub decided: bool,
    last: Option<bool>,
    /// How many results in a row were equal to the last.
    streak: u32,
    /// When to probe next.
    pub due: Monotonic,
}

impl ProbeState {
    /// Of a run that started at `started`. Before the first threshold is reached, startup and readiness have not
    /// passed, and liveness has.
    pub fn new(kind: ProbeKind, probe: &Probe, started: Monotonic) -> Self {
        Self {
            passed: kind == ProbeKind::Liveness,
            decided: false,
            last: None,
            streak: 0,
            due: started + probe.initial_delay(),
        }
    }

    pub fn record(&mut self, probe: &Probe, success: bool, now: Monotonic) {
        self.streak = if self.last == Some(success) {
            self.streak.saturating_add(1)
        } else {
            1
        };
        self.last = Some(success);
        let threshold = if success {
            probe.success_threshold
        } else {
            probe.failure_threshold
        };
        if self.streak >= threshold.max(1) {
            self.passed = success;
            self.decided = true;
        }
        self.due = now + probe.period();
    }

    /// The probe could not be executed, which counts neither as success nor as failure.
    pub fn record_unknown(&mut self, probe: &Probe, now: Monotonic) {
        self.due = now + probe.period();
    }

    /// Whether the failure threshold has been reached.
    pub fn failed(&self) -> bool {
        self.decided && !self.passed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(seconds))
    }

    fn probe() -> Probe {
        Probe::deserialize(&json!({"tcpSocket": {"port": 80}, "initialDelaySeconds": 5,
            "periodSeconds": 2, "successThreshold": 2, "failureThreshold": 3}))
        .unwrap()
    }

    /// Checks the state after these results.
    fn check(kind: ProbeKind, results: &[bool], passed: bool, failed: bool) {
        let probe = probe();
        let mut state = ProbeState::new(kind, &probe, at(1));
        for result in results {
            state.record(&probe, *result, at(10));
        }
        let found = (state.passed, state.failed());
        assert_eq!(found, (passed, failed), "{kind:?} {results:?}");
    }

    #[test]
    fn thresholds_count_results_in_a_row() {
        check(ProbeKind::Readiness, &[], false, false);
        check(ProbeKind::Readiness, &[true], false, false);
        check(ProbeKind::Readiness, &[true, true], true, false);
        check(ProbeKind::Readiness, &[true, false, true], false, false);
        check(
            ProbeKind::Readiness,
            &[true, true, false, false],
            true,
            false,
        );
        check(
            ProbeKind::Readiness,
            &[true, true, false, false, false],
            false,
            true,
        );
        check(ProbeKind::Liveness, &[], true, false);
        check(ProbeKind::Liveness, &[false, false], true, false);
        check(ProbeKind::Liveness, &[false, false, false], false, true);
    }

    #[test]
    fn the_first_probe_waits_for_the_delay_and_the_next_for_the_period() {
        let probe = probe();
        let mut state = ProbeState::new(ProbeKind::Liveness, &probe, at(1));
        assert_eq!(state.due, at(6));
        state.record(&probe, true, at(7));
        assert_eq!(state.due, at(9));
    }
}
