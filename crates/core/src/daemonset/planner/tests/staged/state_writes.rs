//! States that the API refuses (R8.1): no node changes its revision, and a person is told. States that the answer to another
//! write shows first: they count.

use std::sync::Arc;
use std::time::Duration;

use super::super::super::super::event::{Action, Event, FailureKind, Write};
use super::super::super::super::reference_model::fake_cluster::{Kind, failed};
use super::STABLE;
use super::cluster::Cluster;

const TOLD: &str = "StateNotWritten";

#[test]
fn r8_1_a_state_that_cannot_be_written_holds_the_nodes_and_is_told_of_once() {
    let mut cluster = Cluster::new(6, &[("stages", "2, 100%")]);
    cluster.refuses_states = true;
    cluster.roll_out(1);
    // Refused once or twice, it is nobody's business.
    cluster.advance(2);
    assert_eq!(cluster.told(TOLD), 0);
    cluster.advance(600);
    assert_eq!(cluster.told(TOLD), 1, "{:?}", cluster.events);
    let (_, text) = cluster.events.iter().find(|(r, _)| r == TOLD).unwrap();
    assert!(
        text.ends_with("no node changes its revision before: no"),
        "{text}"
    );
    assert_eq!(cluster.counts(), [(0, 6)].into());
    // Missing pods are still made.
    let lost: Vec<Arc<str>> = cluster.pods_on("node-1");
    cluster.fake.remove_pod(&lost[0], false);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 6)].into());
    cluster.refuses_states = false;
    cluster.advance(60);
    assert_eq!(cluster.phase(1).0, STABLE);
    assert_eq!(cluster.told(TOLD), 1);
}

/// The writes that the planner requests now.
fn writes(cluster: &mut Cluster) -> Vec<Action> {
    let mut all = cluster.planner.take_actions();
    all.retain(|action| matches!(action, Action::Write { .. }));
    all
}

/// The one write among these that `wanted` chooses.
fn only(actions: &[Action], wanted: impl Fn(&Write) -> bool) -> Action {
    let chosen = |action: &&Action| match action {
        Action::Write { write, .. } => wanted(write),
        _ => false,
    };
    let chosen: Vec<&Action> = actions.iter().filter(chosen).collect();
    assert_eq!(chosen.len(), 1, "{actions:?}");
    chosen[0].clone()
}

/// Carries a write out. Its answer is lost.
fn carry_out_unanswered(cluster: &mut Cluster, action: &Action) {
    let Action::Write {
        ticket,
        daemon_set,
        write,
    } = action
    else {
        panic!("{action:?} is not a write");
    };
    let conditions = cluster.planner.conditions(&daemon_set.uid);
    let done = cluster
        .fake
        .execute_with(daemon_set, write, None, conditions);
    assert!(done.is_ok(), "{done:?}");
    let (ticket, outcome) = (*ticket, failed(FailureKind::Unknown));
    if matches!(write, Write::CreateRevision { .. }) {
        cluster.apply(Event::WriteFinished { ticket, outcome });
    }
}

fn show(cluster: &mut Cluster, kind: Kind) {
    while let Some(event) = cluster.fake.deliver(kind) {
        cluster.apply(event);
    }
}

#[test]
fn r8_1_the_answer_to_a_repeated_creation_shows_a_written_state() {
    let creates = |write: &Write| matches!(write, Write::CreateRevision { .. });
    let mut cluster = Cluster::new(3, &[("stages", "100%")]);
    cluster.change_template(1);
    show(&mut cluster, Kind::Sets);
    let first = only(&writes(&mut cluster), creates);
    carry_out_unanswered(&mut cluster, &first);
    cluster.steady += Duration::from_secs(31);
    cluster.fake.now = cluster.fake.now + Duration::from_secs(31);
    cluster.apply(Event::Tick);
    let again = only(&writes(&mut cluster), creates);
    show(&mut cluster, Kind::Revisions);
    let state = |write: &Write| matches!(write, Write::WriteRecord { .. });
    let state = only(&writes(&mut cluster), state);
    carry_out_unanswered(&mut cluster, &state);
    // The revision has its state by now, which neither its own answer nor the watch has shown.
    cluster.perform(again);
    let lost = cluster.pods_on("node-1");
    cluster.fake.remove_pod(&lost[0], false);
    show(&mut cluster, Kind::Pods);
    let made = |write: &Write| matches!(write, Write::CreatePod { .. });
    let made = only(&writes(&mut cluster), made);
    let target = cluster.hash(1).unwrap();
    assert!(
        matches!(&made, Action::Write { write: Write::CreatePod { blueprint, .. }, .. } if *blueprint.hash() == *target),
        "the first stage has all nodes, but node-1 got {made:?}"
    );
}
