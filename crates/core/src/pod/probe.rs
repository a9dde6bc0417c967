//! Probes: when to ask, and what the answers mean. Asking is the agent's.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Instant;

/// A probe as the spec has it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Probe {
    /// A command in the container.
    pub exec: Option<Value>,
    /// An HTTP request.
    pub http_get: Option<Value>,
    /// A TCP connection.
    pub tcp_socket: Option<Value>,
    /// A gRPC health check.
    pub grpc: Option<Value>,
    initial_delay_seconds: u64,
    period_seconds: u64,
    timeout_seconds: u64,
    success_threshold: u32,
    failure_threshold: u32,
    /// What a container that is killed for it gets to end, instead of the pod's grace period.
    pub termination_grace_period_seconds: Option<u64>,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            exec: None,
            http_get: None,
            tcp_socket: None,
            grpc: None,
            initial_delay_seconds: 0,
            period_seconds: 10,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 3,
            termination_grace_period_seconds: None,
        }
    }
}

impl Probe {
    /// How long an answer may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.max(1))
    }

    fn period(&self) -> Duration {
        Duration::from_secs(self.period_seconds.max(1))
    }

    fn delay(&self) -> Duration {
        Duration::from_secs(self.initial_delay_seconds)
    }
}

/// Which of a container's probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Is it up?
    Startup,
    /// Must it be restarted?
    Liveness,
    /// May it be used?
    Readiness,
}

/// What is known of one probe of one run.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// What counts now.
    pub passed: bool,
    /// The last answers were not enough to decide anything: a first verdict is still out.
    pub decided: bool,
    last: Option<bool>,
    /// How many answers in a row were as the last.
    streak: u32,
    /// When to ask next.
    pub due: Instant,
}

impl Judgement {
    /// Of a run that began just now. Until the first verdict, readiness and startup have not passed, and
    /// liveness has.
    pub fn new(kind: Kind, probe: &Probe, began: Instant) -> Self {
        Self {
            passed: kind == Kind::Liveness,
            decided: false,
            last: None,
            streak: 0,
            due: began + probe.delay(),
        }
    }

    /// An answer has come.
    pub fn answered(&mut self, probe: &Probe, success: bool, now: Instant) {
        self.streak = if self.last == Some(success) {
            self.streak.saturating_add(1)
        } else {
            1
        };
        self.last = Some(success);
        let enough = if success {
            probe.success_threshold
        } else {
            probe.failure_threshold
        };
        if self.streak >= enough.max(1) {
            self.passed = success;
            self.decided = true;
        }
        self.due = now + probe.period();
    }

    /// No answer has come: that counts neither way.
    pub fn not_answered(&mut self, probe: &Probe, now: Instant) {
        self.due = now + probe.period();
    }

    /// Failed so often that something must be done.
    pub fn failed(&self) -> bool {
        self.decided && !self.passed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn probe() -> Probe {
        Probe::deserialize(&json!({"tcpSocket": {"port": 80}, "initialDelaySeconds": 5,
            "periodSeconds": 2, "successThreshold": 2, "failureThreshold": 3}))
        .unwrap()
    }

    /// What counts after these answers.
    fn check(kind: Kind, answers: &[bool], passed: bool, failed: bool) {
        let probe = probe();
        let mut judgement = Judgement::new(kind, &probe, SECOND);
        for answer in answers {
            judgement.answered(&probe, *answer, 10 * SECOND);
        }
        let found = (judgement.passed, judgement.failed());
        assert_eq!(found, (passed, failed), "{kind:?} {answers:?}");
    }

    #[test]
    fn thresholds_count_answers_in_a_row() {
        check(Kind::Readiness, &[], false, false);
        check(Kind::Readiness, &[true], false, false);
        check(Kind::Readiness, &[true, true], true, false);
        check(Kind::Readiness, &[true, false, true], false, false);
        check(Kind::Readiness, &[true, true, false, false], true, false);
        check(
            Kind::Readiness,
            &[true, true, false, false, false],
            false,
            true,
        );
        check(Kind::Liveness, &[], true, false);
        check(Kind::Liveness, &[false, false], true, false);
        check(Kind::Liveness, &[false, false, false], false, true);
    }

    #[test]
    fn the_first_question_waits_and_the_next_follow_in_step() {
        let probe = probe();
        let mut judgement = Judgement::new(Kind::Liveness, &probe, SECOND);
        assert_eq!(judgement.due, 6 * SECOND);
        judgement.answered(&probe, true, 7 * SECOND);
        assert_eq!(judgement.due, 9 * SECOND);
    }
}
