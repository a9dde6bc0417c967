//! Wall clocks that jump by hours: while the controller lives, everything runs by the monotonic clock; bakes and deadlines
//! run by the state's timestamps across restarts.

use std::sync::Arc;

use super::super::super::super::event::{Action, Event, Write};
use super::super::super::super::view::{Phase as PodPhase, Readiness};
use super::cluster::Cluster;
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::state::Phase;

const HOURS: [i64; 2] = [5 * 3_600, -5 * 3_600];

#[test]
fn r3_5_a_clock_that_jumps_neither_ends_a_bake_nor_prolongs_it() {
    for jump in HOURS {
        let mut cluster = Cluster::new(6, &[("stages", "2 1h, 4 1h, 100%")]);
        cluster.roll_out(1);
        cluster.advance(1_800);
        cluster.jump(jump);
        cluster.advance(1_799);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
        cluster.advance(1);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Baking))));
        cluster.advance(3_599);
        assert_eq!(cluster.counts(), [(0, 2), (1, 4)].into(), "{jump}");
        cluster.advance(1);
        assert_eq!(cluster.phase(1).0, STABLE, "{jump}");
    }
}

#[test]
fn r5_1_a_clock_that_jumps_moves_no_deadline_of_a_node() {
    for jump in HOURS {
        for before in [true, false] {
            let mut cluster = Cluster::new(4, &[("stages", "2, 100%"), ("on-failure", "rollback")]);
            cluster.broken.insert(1);
            if before {
                cluster.jump(jump);
            }
            cluster.roll_out(1);
            cluster.advance(300);
            if !before {
                cluster.jump(jump);
            }
            cluster.advance(299);
            assert_eq!(cluster.phase(1).0, PROGRESSING, "{jump} {before}");
            cluster.advance(1);
            assert_eq!(cluster.phase(1).0, FAILED, "{jump} {before}");
        }
    }
}

#[test]
fn r5_1_after_a_clock_was_set_back_failed_requests_are_repeated_in_time() {
    let mut cluster = Cluster::new(4, &[("stages", "100%")]);
    cluster.refused = (0..4).map(|number| format!("node-{number}")).collect();
    cluster.roll_out(1);
    cluster.jump(-5 * 3_600);
    cluster.refused.clear();
    cluster.advance(10);
    assert_eq!(cluster.phase(1).0, STABLE, "{:?}", cluster.counts());
}

#[test]
fn r4_2_a_clock_that_jumps_neither_blames_nor_excuses_a_node() {
    for jump in HOURS {
        // Five minutes after its new pod, and twenty.
        for (age, verdict) in [(300, FAILED), (1_200, PROGRESSING)] {
            let policy = [("stages", "2 1h, 100%"), ("on-failure", "rollback")];
            let mut cluster = Cluster::new(6, &policy);
            cluster.roll_out(1);
            let victim = cluster.on(1)[0].clone();
            cluster.advance(age);
            cluster.jump(jump);
            cluster.set_ready(&[victim], Readiness::NotReady);
            cluster.advance(120);
            assert_eq!(cluster.phase(1).0, verdict, "{jump} {age}");
        }
    }
}

#[test]
fn r5_2_a_clock_that_jumps_does_not_use_up_the_progress_deadline() {
    for jump in HOURS {
        let policy = [("stages", "100%"), ("healthy-deadline", "3h")];
        let mut cluster = Cluster::new(4, &policy);
        cluster.broken.insert(1);
        cluster.roll_out(1);
        cluster.advance(900);
        cluster.jump(jump);
        cluster.advance(899);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
        cluster.advance(1);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    }
}

#[test]
fn r8_1_across_a_restart_the_timestamps_of_the_state_count() {
    let baking = || {
        let mut cluster = Cluster::new(6, &[("stages", "2 1h, 100%")]);
        cluster.roll_out(1);
        cluster.advance(600);
        cluster
    };
    // As much time has passed as the clock says.
    let mut cluster = baking();
    cluster.jump(2_990);
    cluster.restart();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(11);
    assert_eq!(cluster.phase(1).0, STABLE);
    // By a clock that was set back the bake has only begun: it is not cut short.
    let mut cluster = baking();
    cluster.jump(-5 * 3_600);
    cluster.restart();
    cluster.advance(3_599);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, STABLE);
}

/// The pod of a node.
fn pod_on(cluster: &Cluster, node: &str) -> Option<Arc<str>> {
    let mut pods = cluster.fake.pods.values();
    let found = pods.find(|pod| pod.target().is_some_and(|name| **name == *node));
    found.map(|pod| pod.uid.clone())
}

#[test]
fn s3_5_1_a_clock_that_jumps_does_not_move_the_replacement_of_a_failed_daemon() {
    // How long it takes until a daemon that fails is replaced.
    let replaced = |cluster: &mut Cluster, jump: i64| {
        let failed = pod_on(cluster, "node-1");
        cluster.edit_pods("node-1", |pod| pod.phase = PodPhase::Failed);
        cluster.run();
        cluster.jump(jump);
        let mut waited = 0_u32;
        while pod_on(cluster, "node-1") == failed && waited < 600 {
            cluster.advance(1);
            waited += 1;
        }
        waited
    };
    let seconds = |jump: i64| {
        let mut cluster = Cluster::new(2, &[]);
        // The backoff grows.
        for _ in 0..6 {
            replaced(&mut cluster, 0);
        }
        replaced(&mut cluster, jump)
    };
    let expected = seconds(0);
    assert!((10..600).contains(&expected), "{expected}");
    assert_eq!(HOURS.map(seconds), [expected; 2]);
}

#[test]
fn s3_8_1_a_clock_that_jumps_does_not_end_an_expectation() {
    let creations = |cluster: &mut Cluster| {
        let actions = cluster.planner.take_actions().into_iter();
        let create = |action: &Action| {
            matches!(
                action,
                Action::Write {
                    write: Write::CreatePod { .. },
                    ..
                }
            )
        };
        actions.filter(create).count()
    };
    for jump in HOURS {
        let mut cluster = Cluster::new(3, &[]);
        let pod = pod_on(&cluster, "node-1").unwrap();
        cluster.fake.remove_pod(&pod, false);
        cluster.step();
        assert_eq!(creations(&mut cluster), 1);
        // The request is under way.
        cluster.jump(jump);
        cluster.apply(Event::Tick);
        assert_eq!(creations(&mut cluster), 0, "{jump}");
    }
}

#[test]
fn s5_3_1_a_clock_that_jumps_does_not_shorten_or_prolong_min_ready_seconds() {
    for jump in HOURS {
        let mut cluster = Cluster::new(3, &[]);
        let uid = cluster.uid.clone();
        cluster
            .fake
            .edit_set(&uid, |set| set.min_ready_seconds = 60);
        cluster.run();
        cluster.advance(61);
        cluster.jump(jump);
        let pod = pod_on(&cluster, "node-1").unwrap();
        cluster.fake.remove_pod(&pod, false);
        cluster.run();
        let available = |cluster: &Cluster| cluster.fake.sets[&uid].status.available;
        cluster.advance(59);
        assert_eq!(available(&cluster), 2, "{jump}");
        cluster.advance(1);
        assert_eq!(available(&cluster), 3, "{jump}");
    }
}
