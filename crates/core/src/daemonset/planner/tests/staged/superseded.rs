//! Nodes on earlier targets (R5.7), and ways back that nothing but a freeze holds up (R1.2).

use super::cluster::Cluster;
use super::{FAILED, PROGRESSING};
use crate::rollout::state::{Phase, Verdict};

const CANARY: (&str, &str) = ("stages", "nodes(pool=canary) 1h, 100%");

/// Six nodes, two of them on template 1, whose rollout goes on. Then the first stage of any rollout is one other node.
fn two_on_one() -> (Cluster, Vec<String>) {
    let mut cluster = Cluster::new(6, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let (two, canary) = (cluster.on(1), cluster.on(0)[0].clone());
    assert_eq!(two.len(), 2);
    cluster.label(&canary, "pool", "canary");
    (cluster, two)
}

#[test]
fn r5_7_nodes_on_a_superseded_revision_are_left_while_they_are_available() {
    let (mut cluster, two) = two_on_one();
    cluster.annotate(&[CANARY]);
    cluster.roll_out(2);
    assert_eq!(cluster.phase(1).0, Some(Verdict::Superseded));
    assert_eq!(cluster.phase(2), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(600);
    assert_eq!(cluster.on(1), two);
    assert_eq!(cluster.counts(), [(0, 3), (1, 2), (2, 1)].into());
    // One loses its pod, and the other's is available no longer: both go to stable.
    cluster.remove_pods(&two[0]);
    cluster.sick.insert(two[1].clone());
    cluster.edit_pods(&two[1], |pod| pod.ready_since = None);
    cluster.run();
    for node in &two {
        assert_eq!(cluster.hashes_on(node), [cluster.hash(0).unwrap()]);
    }
    // All others wait for their turn, and get it.
    cluster.sick.clear();
    cluster.run();
    cluster.advance(3_000);
    assert_eq!(cluster.counts(), [(2, 6)].into());
}

#[test]
fn r5_7_nodes_on_a_superseded_revision_get_the_newer_target_in_their_turn() {
    let (mut cluster, two) = two_on_one();
    cluster.annotate(&[CANARY]);
    cluster.roll_out(2);
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(2, 6)].into());
    assert!(two.iter().all(|node| cluster.on(2).contains(node)));
}

#[test]
fn r5_7_nodes_on_a_failed_revision_always_go_to_stable() {
    let (mut cluster, two) = two_on_one();
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    while cluster.phase(1).0 != FAILED {
        cluster.go_on();
    }
    assert_eq!(cluster.on(1), two);
    cluster.annotate(&[CANARY]);
    cluster.roll_out(2);
    assert_eq!(cluster.phase(1).0, FAILED, "failed, and not superseded");
    assert_eq!(cluster.phase(2), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.counts(), [(0, 5), (2, 1)].into());
}

#[test]
fn r1_2_a_way_back_goes_on_while_the_policy_is_unreadable() {
    for restarts in [true, false] {
        let (mut cluster, _) = two_on_one();
        let hash = cluster.hash(1).unwrap();
        cluster.annotate(&[("abort", &hash)]);
        while cluster.phase(1).0 != FAILED {
            cluster.go_on();
        }
        assert_eq!(cluster.on(1).len(), 2);
        cluster.annotate(&[("stages", "lots")]);
        if restarts {
            cluster.restart();
        }
        cluster.run();
        assert_eq!(cluster.told("PolicyInvalid"), 1);
        assert_eq!(cluster.counts(), [(0, 6)].into());
        assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    }
}
