//! What a scrape shows of rollouts that go on, fail and go back.

use kennel_core::daemonset::event::Identity;

use super::*;

struct Example {
    identity: Arc<Identity>,
    target: Arc<str>,
    rollouts: Rollouts,
}

impl Example {
    fn new() -> Self {
        let identity = Identity {
            namespace: "monitoring".into(),
            name: "agent".into(),
            uid: "u".into(),
        };
        Self {
            identity: Arc::new(identity),
            target: "5d8b".into(),
            rollouts: Rollouts::default(),
        }
    }

    fn update(&self, attempt: u32, phase: Phase, reason: Option<&str>) {
        let stalled = matches!(phase, Phase::Paused | Phase::Held).then_some("PausedOnFailure");
        let progress = Progress {
            daemon_set: &self.identity,
            target: &self.target,
            attempt,
            phase: Some(phase),
            in_phase: Duration::from_secs(90),
            stage: 2,
            stages: 4,
            nodes: NodesByState {
                waiting: 5,
                healthy: 3,
                failed: 1,
                ..NodesByState::default()
            },
            reason,
            stalled,
        };
        self.rollouts.update([progress].into_iter());
    }

    #[track_caller]
    fn shows(&self, lines: &[&str]) {
        let page = Page::of([&self.rollouts as &dyn Observed]);
        for line in lines {
            assert!(page.lines().any(|l| l == *line), "{line} in\n{page}");
        }
    }

    #[track_caller]
    fn lacks(&self, text: &str) {
        let page = Page::of([&self.rollouts as &dyn Observed]);
        let rows = page.lines().filter(|line| !line.starts_with('#'));
        let found: Vec<&str> = rows.filter(|line| line.contains(text)).collect();
        assert_eq!(found, Vec::<&str>::new());
    }
}

impl Example {
    /// Every counter is there, and none counts anything.
    #[track_caller]
    fn counted_nothing(&self) {
        let page = Page::of([&self.rollouts as &dyn Observed]);
        for name in ["failures_total", "rollbacks_total"] {
            let name = format!("kennel_rollout_{name}{{");
            let rows = page.lines().filter(|line| line.starts_with(&name));
            let rows: Vec<&str> = rows.collect();
            assert_eq!(rows.len(), FAILURE_REASONS.len(), "{page}");
            assert!(rows.iter().all(|row| row.ends_with(" 0")), "{page}");
        }
    }
}

const AGENT: &str = "namespace=\"monitoring\",daemonset=\"agent\"";

#[test]
fn r9_3_a_rollout_has_phase_stage_time_and_nodes_by_state() {
    let example = Example::new();
    example.update(1, Phase::Updating, None);
    example.shows(&[
        &format!("kennel_rollout_phase{{{AGENT},phase=\"Updating\"}} 1"),
        &format!("kennel_rollout_phase{{{AGENT},phase=\"Starting\"}} 0"),
        &format!("kennel_rollout_phase{{{AGENT},phase=\"Held\"}} 0"),
        &format!("kennel_rollout_stage{{{AGENT}}} 2"),
        &format!("kennel_rollout_stages{{{AGENT}}} 4"),
        &format!("kennel_rollout_nodes{{{AGENT},state=\"waiting\"}} 5"),
        &format!("kennel_rollout_nodes{{{AGENT},state=\"healthy\"}} 3"),
        &format!("kennel_rollout_nodes{{{AGENT},state=\"failed\"}} 1"),
        &format!("kennel_rollout_nodes{{{AGENT},state=\"returning\"}} 0"),
    ]);
    let page = Page::of([&example.rollouts as &dyn Observed]);
    let name = format!("kennel_rollout_phase_seconds{{{AGENT}}} ");
    let seconds = page.lines().find_map(|line| line.strip_prefix(&name));
    let seconds: f64 = seconds.unwrap().parse().unwrap();
    assert!((90.0..600.0).contains(&seconds), "{seconds}");
    example.lacks("stalled");
    example.counted_nothing();
}

#[test]
fn r9_3_failures_and_rollbacks_are_counted_once_by_reason() {
    let example = Example::new();
    let failures = |reason: &str, count: u64| {
        format!("kennel_rollout_failures_total{{{AGENT},reason=\"{reason}\"}} {count}")
    };
    let rollbacks = |reason: &str, count: u64| {
        format!("kennel_rollout_rollbacks_total{{{AGENT},reason=\"{reason}\"}} {count}")
    };
    example.update(1, Phase::Updating, None);
    example.update(1, Phase::Paused, Some("NotAvailable"));
    example.update(1, Phase::Paused, Some("NotAvailable"));
    example.shows(&[
        &failures("NotAvailable", 1),
        &format!("kennel_rollout_stalled{{{AGENT},reason=\"PausedOnFailure\"}} 1"),
    ]);
    example.shows(&[&rollbacks("NotAvailable", 0)]);
    // A person aborts what has failed already: one failure, and a way back.
    example.update(1, Phase::RollingBack, Some("Aborted"));
    example.update(1, Phase::Held, Some("Aborted"));
    example.shows(&[&failures("NotAvailable", 1), &rollbacks("Aborted", 1)]);
    example.shows(&[&failures("Aborted", 0)]);
    example.update(2, Phase::Updating, None);
    example.update(2, Phase::RollingBack, Some("NotAvailable"));
    example.shows(&[&failures("NotAvailable", 2), &rollbacks("NotAvailable", 1)]);
    example.rollouts.update(std::iter::empty());
    example.lacks("agent");
}

#[test]
fn r9_3_a_new_controller_does_not_count_an_old_failure() {
    let example = Example::new();
    example.update(1, Phase::Held, Some("NotAvailable"));
    example.update(1, Phase::Held, Some("NotAvailable"));
    example.counted_nothing();
}
