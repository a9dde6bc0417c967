//! The order of nodes and the cut (R3.1, R3.2), what is in between (R3.3), and bakes (R3.5).

use std::collections::BTreeSet;

use kennel_test_support::with_seeds;

use super::super::super::super::options::Options;
use super::super::super::super::view::{NodeView, PodView, Readiness, Strategy};
use super::cluster::Cluster;
use super::{PROGRESSING, STABLE};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::order::{Place, seed};
use crate::rollout::outline::{Input, Outline};
use crate::rollout::plan::Plan;
use crate::rollout::state::{Cut, Phase};

#[test]
fn r3_1_the_cut_moves_when_fewer_nodes_than_the_stage_takes_are_left_before_it() {
    for policy in [
        &[("stages", "3 1h, 100%")][..],
        &[("stages", "3 1h, 100%"), ("spread", "zone")],
    ] {
        let mut cluster = Cluster::new(10, policy);
        for number in 0..10 {
            let zone = ["a", "b"][number % 2];
            cluster.label(&format!("node-{number}"), "zone", zone);
        }
        cluster.run();
        cluster.roll_out(1);
        let first = cluster.on(1);
        let cut = |cluster: &Cluster| cluster.record(1).state.unwrap().cut;
        let before = cut(&cluster);
        // Others that leave do not move it, nor do those that die.
        let other = cluster.on(0)[0].clone();
        cluster.remove_node(&other);
        cluster.set_ready(&first[1..2], Readiness::Unknown);
        assert_eq!(
            (cluster.on(1), cut(&cluster)),
            (first.clone(), before.clone())
        );
        cluster.remove_node(&first[0]);
        assert_ne!(cut(&cluster), before, "{policy:?}");
        assert_eq!(cluster.on(1).len(), 3, "{policy:?}");
        assert!(cluster.on(1).contains(&first[2]));
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    }
}

#[test]
fn r3_1_nodes_that_join_before_the_cut_are_admitted_and_others_get_stable() {
    let mut cluster = Cluster::new(10, &[("stages", "3 1h, 100%")]);
    cluster.roll_out(1);
    let cut = cluster.record(1).state.unwrap().cut;
    let Cut::Node(last) = &cut else {
        panic!("{cut:?}");
    };
    for number in 10..40 {
        cluster.fake.add_node(&format!("node-{number}"));
    }
    cluster.run();
    let place = |name: &str| Place::of(seed("default/ds"), name);
    let all = (0..40).map(|number| format!("node-{number}"));
    let expected: BTreeSet<String> = all.filter(|name| place(name) <= place(last)).collect();
    assert!(expected.len() > 3, "some join before it");
    assert_eq!(cluster.on(1).into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(cluster.on(0).len(), 40 - expected.len());
    assert_eq!(cluster.record(1).state.unwrap().cut, cut);
}

/// What `kennel rollout plan` says that each stage adds. `changes`: the template is a new one.
fn plan(cluster: &Cluster, changes: bool) -> Vec<(usize, BTreeSet<String>)> {
    let fake = &cluster.fake;
    let nodes: Vec<&NodeView> = fake.nodes.values().collect();
    let pods: Vec<&PodView> = fake.pods.values().collect();
    let revisions: Vec<_> = fake.revisions.values().cloned().collect();
    let namespace = std::collections::BTreeMap::new();
    let outline = Outline::of(&Input {
        daemon_set: &fake.sets[&cluster.uid],
        namespace: &namespace,
        nodes: &nodes,
        pods: &pods,
        revisions: &revisions,
        now: fake.now,
    });
    let stages = Plan::of(&outline, changes).stages.into_iter();
    let adds = stages.map(|stage| (stage.stage, stage.nodes.into_iter().collect()));
    adds.collect()
}

/// Nodes in three zones, some of them canaries.
fn labelled_cluster(rng: &mut fastrand::Rng, nodes: usize, policy: &[(&str, &str)]) -> Cluster {
    let mut cluster = Cluster::new(nodes, policy);
    for number in 0..nodes {
        let name = format!("node-{number}");
        cluster.label(&name, "zone", ["a", "b", "c"][rng.usize(..3)]);
        if rng.u8(..4) == 0 {
            cluster.label(&name, "pool", "canary");
        }
    }
    cluster.run();
    cluster
}

/// The nodes that template 3 selects.
fn in_zone_a(cluster: &Cluster) -> BTreeSet<String> {
    let nodes = cluster.fake.nodes.values();
    let there = nodes.filter(|node| node.labels["zone"] == "a");
    there.map(|node| node.name.to_string()).collect()
}

#[test]
fn r3_2_the_plan_is_right_for_every_kind_of_stage() {
    let policies = [
        "1 manual, 50% manual, 100% manual",
        "nodes(pool=canary) manual, 2 manual, 40% manual, 100% manual",
        "30% manual, nodes(zone=a) manual, 100% manual",
        "1 manual, 1 manual, nodes(pool in (canary)) manual, 90% manual, 100% manual",
    ];
    with_seeds((0..24).chain([960_259]), |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let stages = policies[rng.usize(..policies.len())];
        let mut policy = vec![("stages", stages)];
        if rng.bool() {
            policy.push(("spread", "zone"));
        }
        let nodes = rng.usize(3..14);
        let mut cluster = labelled_cluster(&mut rng, nodes, &policy);
        // Nodes that are down have their places, too.
        let down: BTreeSet<String> = (0..rng.usize(1..4))
            .map(|_| format!("node-{}", rng.usize(..nodes)))
            .collect();
        let readiness = [Readiness::NotReady, Readiness::Unknown][rng.usize(..2)];
        cluster.set_ready(&down.iter().cloned().collect::<Vec<_>>(), readiness);
        // Where a template selects only some nodes, the others lose their pods in their turn.
        let selected = in_zone_a(&cluster);
        let template = if !selected.is_empty() && rng.bool() {
            3
        } else {
            1
        };
        let ahead = template == 1 && rng.bool();
        let planned = ahead.then(|| plan(&cluster, false));
        cluster.change_template(template);
        let planned = planned.unwrap_or_else(|| plan(&cluster, true));
        cluster.run();
        let mut reached = BTreeSet::new();
        for (stage, adds) in &planned {
            reached.extend(adds.iter().cloned());
            let Some((present, phase)) = cluster.phase(template).1 else {
                panic!("seed {seed}: no rollout");
            };
            if present != *stage {
                // It adds no node.
                let passed = present > *stage || phase == Phase::Complete;
                assert!(
                    passed && adds.is_empty(),
                    "seed {seed}: {present} of {planned:?}"
                );
                continue;
            }
            assert_eq!(phase, Phase::AwaitingPromotion, "seed {seed}: {planned:?}");
            let mut expected = reached.clone();
            expected.retain(|name| !down.contains(name));
            expected.retain(|name| template == 1 || selected.contains(name));
            let found: BTreeSet<String> = cluster.on(template).into_iter().collect();
            assert_eq!(
                found,
                expected,
                "seed {seed}: stage {stage} of {stages}, {down:?} is {readiness:?}: {planned:?} {:?}",
                cluster.record(template)
            );
            cluster.promote(template, *stage);
        }
        assert_eq!(
            cluster.phase(template).0,
            STABLE,
            "seed {seed}: {planned:?}"
        );
        // A last stage that would add nothing but nodes that are down is passed over.
        reached.extend(down);
        assert_eq!(reached.len(), nodes);
    });
}

#[test]
fn r3_3_max_surge_bounds_what_is_in_between() {
    let strategy = Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(0)),
        max_surge: Some(IntOrPercent::Int(2)),
    };
    let policy = [("stages", "5 1h, 100%")];
    let mut cluster = Cluster::with(8, &policy, strategy, Options::default());
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 3), (1, 5)].into());
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 8)].into());
    assert_eq!((cluster.most_unavailable, cluster.most_pods), (0, 10));
    // Back, too.
    cluster.forget();
    cluster.roll_out(2);
    let hash = cluster.hash(2).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 8)].into());
    assert_eq!(cluster.most_unavailable, 0);
    assert!(cluster.most_pods <= 10, "{}", cluster.most_pods);
}

#[test]
fn r3_5_a_bake_does_not_end_while_a_node_is_unhealthy_and_is_not_started_over() {
    let mut cluster = Cluster::new(6, &[("stages", "2 10m, 100%")]);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    cluster.advance(540);
    cluster.sick.insert(victim.clone());
    cluster.edit_pods(&victim, |pod| pod.ready_since = None);
    cluster.run();
    cluster.advance(180);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.counts(), [(0, 4), (1, 2)].into());
    cluster.sick.clear();
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 6)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
}
