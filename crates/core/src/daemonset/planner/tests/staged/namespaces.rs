//! Defaults on the Namespace that change in the middle of a rollout (R1.1, R1.3).

use super::super::super::super::event::Event;
use super::cluster::Cluster;
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::PREFIX;
use crate::rollout::state::Phase;

fn set_defaults(cluster: &mut Cluster, entries: &[(&str, &str)]) {
    let own = |(key, value): &(&str, &str)| (format!("{PREFIX}{key}"), (*value).to_owned());
    cluster.apply(Event::Namespace {
        name: "default".into(),
        annotations: entries.iter().map(own).collect(),
    });
    cluster.run();
}

#[test]
fn r1_1_a_default_that_changes_counts_from_then_on() {
    let mut cluster = Cluster::new(6, &[]);
    set_defaults(&mut cluster, &[("stages", "1 1h, 100%")]);
    cluster.roll_out(1);
    let first = cluster.on(1);
    assert_eq!(first.len(), 1);
    set_defaults(&mut cluster, &[("stages", "3 1h, 100%")]);
    assert_eq!(cluster.on(1).len(), 3);
    // A smaller stage takes nothing away (R1.3).
    set_defaults(&mut cluster, &[("stages", "2 1h, 100%")]);
    assert_eq!(cluster.on(1).len(), 3);
    assert!(cluster.on(1).contains(&first[0]));
    cluster.advance(3_600);
    assert_eq!(cluster.phase(1).0, STABLE);
    assert_eq!(cluster.counts(), [(1, 6)].into());
}

#[test]
fn r1_1_the_daemon_sets_own_keys_win_over_a_default_that_changes() {
    let mut cluster = Cluster::new(4, &[("stages", "1 1h, 100%")]);
    set_defaults(&mut cluster, &[("stages", "3"), ("on-failure", "rollback")]);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1).len(), 1);
    let hash = cluster.hash(1).unwrap();
    set_defaults(&mut cluster, &[("stages", "2"), ("on-failure", "pause")]);
    assert_eq!(cluster.on(1).len(), 1);
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    // The verdict outlives the defaults (R1.4).
    set_defaults(&mut cluster, &[]);
    cluster.unannotate(&["stages"]);
    cluster.run();
    assert_eq!(cluster.phase(1).0, FAILED);
    assert_eq!(cluster.counts(), [(0, 4)].into());
}

#[test]
fn r1_1_defaults_that_are_removed_leave_nothing_staged() {
    let mut cluster = Cluster::new(4, &[]);
    set_defaults(&mut cluster, &[("stages", "1 1h, 100%")]);
    cluster.roll_out(1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.counts(), [(0, 3), (1, 1)].into());
    set_defaults(&mut cluster, &[]);
    assert_eq!(cluster.counts(), [(1, 4)].into());
    assert_eq!(cluster.conditions(), []);
}

#[test]
fn r1_2_a_default_that_cannot_be_read_pauses_and_one_that_can_goes_on() {
    let mut cluster = Cluster::new(4, &[("max-failures", "1")]);
    set_defaults(&mut cluster, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    set_defaults(&mut cluster, &[("stages", "many")]);
    let stalled = ("Stalled".to_owned(), "PolicyInvalid".to_owned());
    assert_eq!(cluster.conditions(), [stalled]);
    cluster.advance(7_200);
    assert_eq!(cluster.on(1).len(), 2);
    set_defaults(&mut cluster, &[("stages", "2 1h, 100%")]);
    assert_eq!(cluster.phase(1).0, STABLE);
}
