//! Where rollouts stand, as metrics show it (R9.3).

use std::time::Duration;

use super::super::super::super::view::Readiness;
use super::super::super::NodesByState;
use super::Cluster;
use crate::rollout::state::Phase;

/// The one rollout: phase, stage, seconds in the phase, nodes.
fn progress(cluster: &Cluster) -> (Option<Phase>, usize, u64, NodesByState) {
    let all: Vec<_> = cluster.planner.rollouts().collect();
    let [only] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(&*only.daemon_set.name, "ds");
    (only.phase, only.stage, only.in_phase.as_secs(), only.nodes)
}

#[test]
fn r9_3_progress_has_phase_stage_time_and_each_node_once() {
    let mut cluster = Cluster::new(10, &[("stages", "3 5m, 100%")]);
    let all_healthy = NodesByState {
        healthy: 10,
        ..NodesByState::default()
    };
    let (phase, stage, _, nodes) = progress(&cluster);
    assert_eq!(
        (phase, stage, nodes),
        (Some(Phase::Complete), 0, all_healthy)
    );
    cluster.roll_out(1);
    cluster.advance(100);
    let (phase, stage, seconds, nodes) = progress(&cluster);
    assert_eq!((phase, stage, seconds), (Some(Phase::Baking), 1, 100));
    let expected = NodesByState {
        waiting: 7,
        healthy: 3,
        ..NodesByState::default()
    };
    assert_eq!(nodes, expected);
    cluster.advance(200);
    let (phase, stage, _, nodes) = progress(&cluster);
    assert_eq!(
        (phase, stage, nodes),
        (Some(Phase::Complete), 2, all_healthy)
    );
}

#[test]
fn r9_3_progress_names_why_a_rollout_stands_still() {
    let mut cluster = Cluster::new(4, &[("stages", "2, 100%")]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(600);
    {
        let only = cluster.planner.rollouts().next().unwrap();
        assert_eq!(only.phase, Some(Phase::Paused));
        assert_eq!(only.reason, Some("NotAvailable"));
        assert_eq!(only.stalled, Some("PausedOnFailure"));
        assert_eq!((only.attempt, only.stages), (1, 2));
        let nodes = NodesByState {
            waiting: 2,
            updating: 1,
            failed: 1,
            ..NodesByState::default()
        };
        assert_eq!(only.nodes, nodes);
    }
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    let only = cluster.planner.rollouts().next().unwrap();
    assert_eq!(only.phase, Some(Phase::Held));
    assert_eq!(only.reason, Some("Aborted"));
    assert_eq!(only.stalled, Some("RolledBack"));
    assert_eq!(only.nodes.waiting, 4);
}

#[test]
fn r9_3_nodes_that_are_down_are_counted_as_skipped() {
    let mut cluster = Cluster::new(4, &[("stages", "100% 1h")]);
    for name in ["node-0", "node-1"] {
        cluster.edit_node(name, |node| node.ready = Readiness::Unknown);
    }
    cluster.run();
    cluster.roll_out(1);
    cluster.advance(1);
    let (_, _, _, nodes) = progress(&cluster);
    let expected = NodesByState {
        healthy: 2,
        skipped: 2,
        ..NodesByState::default()
    };
    assert_eq!(nodes, expected);
}

#[test]
fn r9_3_without_a_policy_there_is_nothing_to_show() {
    let mut cluster = Cluster::new(2, &[]);
    assert_eq!(cluster.planner.rollouts().count(), 0);
    cluster.annotate(&[("pause", "night")]);
    cluster.run();
    assert_eq!(cluster.planner.rollouts().count(), 0);
    cluster.annotate(&[("stages", "1")]);
    cluster.run();
    let only = cluster.planner.rollouts().next().unwrap();
    assert!(only.in_phase < Duration::from_secs(1), "{only:?}");
}
