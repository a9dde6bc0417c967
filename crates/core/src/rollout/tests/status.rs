//! Outcome and screen of every phase.

use super::fixture::{ALL, Fixture, state};
use crate::rollout::Outcome;
use crate::rollout::state::{Accepted, Cut, Phase, Verdict};
use crate::rollout::status::Status;

fn fixture() -> Fixture {
    Fixture::new(10).annotate("stages", "1, 30% 30m, 50% manual, 100%")
}

fn status(fixture: &Fixture) -> Status {
    Status::of(&fixture.outline(), |_| {
        Some("its image cannot be pulled".to_owned())
    })
}

fn check(fixture: &Fixture, outcome: Outcome, phase: &str, message: &str) -> Status {
    let status = status(fixture);
    assert_eq!(status.message, message);
    assert_eq!(
        (status.outcome, &*status.phase.to_string()),
        (outcome, phase)
    );
    status
}

/// In stage 2, whose three nodes have the target.
fn in_stage_two(phase: Phase) -> Fixture {
    let fixture = fixture();
    let cut = Cut::Node(fixture.order()[2].clone());
    fixture.progressing(phase, 2, cut).updated(3)
}

#[test]
fn r9_4_one_screen_for_a_stage_that_bakes() {
    let expected = "\
DaemonSet default/agent: stage 2 of 4 (30% 30m) bakes, 3 of 3 nodes healthy
  target   new
  stable   old
  phase    Baking for 4m
  nodes    10, 3 admitted, 3 healthy
  ends     1970-01-12T14:12:40Z at the earliest

  STAGE  POLICY      REACHES  STATE
  1      1                 1  done
> 2      30% 30m           3  Baking, 26m left
  3      50% manual        5  ahead, then waits for a person
  4      100%             10  ahead

  kennel rollout promote ds/agent  # end the bake now
  kennel rollout abort ds/agent    # fail it and go back to old
";
    let fixture = in_stage_two(Phase::Baking);
    let status = status(&fixture);
    assert_eq!(status.text(), expected);
    assert_eq!(status.outcome, Outcome::Progressing);
}

#[test]
fn an_updating_stage_shows_what_its_nodes_wait_for() {
    let fixture = in_stage_two(Phase::Updating);
    let (slow, last) = (fixture.order()[1].clone(), fixture.order()[9].clone());
    let fixture = fixture.unpullable(&slow).down(&last);
    let message = "stage 2 of 4 (30% 30m), 2 of 3 nodes healthy";
    let status = check(&fixture, Outcome::Progressing, "Updating", message);
    assert_eq!((status.nodes.failing, status.nodes.down), (1, 1));
    let text = status.text();
    assert!(
        text.contains(&format!("\n  {slow}: its image cannot be pulled\n")),
        "{text}"
    );
    assert!(
        text.contains("nodes    10, 3 admitted, 2 healthy, 1 failing, 1 down"),
        "{text}"
    );
}

#[test]
fn r3_3_a_stage_that_waits_for_the_budget_says_which_nodes_use_it_up() {
    // One of stage 2 has not had its turn, and maxUnavailable is 1.
    let fixture = || {
        let order = in_stage_two(Phase::Updating).order();
        let fixture = in_stage_two(Phase::Updating).pod(&order[2], "old");
        (fixture, order)
    };
    let (waiting, order) = fixture();
    let last = order[9].clone();
    let message = format!(
        "stage 2 of 4 (30% 30m), 2 of 3 nodes healthy; \
         waits: maxUnavailable is 1 and the pod on node {last} is not available"
    );
    let waiting = waiting.unready(&last);
    let status = check(&waiting, Outcome::Progressing, "Updating", &message);
    assert_eq!(status.problems[0].node, last);
    let free = "stage 2 of 4 (30% 30m), 2 of 3 nodes healthy";
    // A node that is down uses no budget (R4.1), nor does one whose turn has come wait for itself.
    let down = fixture().0.unready(&last).down(&last);
    check(&down, Outcome::Progressing, "Updating", free);
    let in_between = fixture().0.unready(&order[2]);
    check(&in_between, Outcome::Progressing, "Updating", free);
    // With a larger budget it goes on.
    let (mut larger, _) = fixture();
    let limits = serde_json::json!({"rollingUpdate": {"maxUnavailable": 2}});
    larger.set.strategy = crate::daemonset::view::Strategy::parse(&limits);
    check(
        &larger.unready(&last),
        Outcome::Progressing,
        "Updating",
        free,
    );
}

#[test]
fn a_stage_waits_for_a_person() {
    let fixture = in_stage_two(Phase::AwaitingPromotion);
    let message = "stage 2 of 4 (30% 30m) waits for a person";
    let status = check(&fixture, Outcome::Waiting, "AwaitingPromotion", message);
    let commands: Vec<&str> = status
        .next
        .iter()
        .map(|next| next.command.as_str())
        .collect();
    assert_eq!(
        commands,
        [
            "kennel rollout promote ds/agent",
            "kennel rollout abort ds/agent"
        ]
    );
}

#[test]
fn a_paused_failure_is_a_failure() {
    let fixture = in_stage_two(Phase::Paused).because("TooManyRestarts", "1 node has failed");
    let message = "failed and paused in stage 2 of 4 (30% 30m): 1 node has failed";
    let status = check(&fixture, Outcome::Failed, "Paused", message);
    assert_eq!(status.next.len(), 3);
}

#[test]
fn a_way_back_and_a_held_target_are_failures() {
    let back = |phase| {
        let fixture = fixture().record(Verdict::Failed, state(phase, 2, Cut::Nothing));
        fixture.because("Aborted", "aborted by hand").updated(2)
    };
    let message = "new has failed (aborted by hand); 2 nodes still to go back to old";
    check(
        &back(Phase::RollingBack),
        Outcome::Failed,
        "RollingBack",
        message,
    );
    let message = "new has failed and is held (aborted by hand); the nodes run old";
    let status = check(&back(Phase::Held), Outcome::Failed, "Held", message);
    assert_eq!(status.next[0].command, "kennel rollout retry ds/agent");
}

#[test]
fn pause_freeze_and_an_unreadable_policy_wait_for_a_person() {
    let fixture = in_stage_two(Phase::Updating).annotate("pause", "night");
    let message = "paused by hand in stage 2 of 4 (30% 30m) (night)";
    let status = check(&fixture, Outcome::Waiting, "PausedByHand", message);
    assert_eq!(status.next[0].command, "kennel rollout resume ds/agent");
    let fixture = fixture.annotate("freeze", "look");
    let message = "frozen (look): no pod is created or deleted";
    check(&fixture, Outcome::Waiting, "Frozen", message);
    let fixture = in_stage_two(Phase::Updating).annotate("max-restarts", "few");
    let message = "no node changes its revision: rollout.kennel.dev/max-restarts: \"few\" is not allowed: \
                   must be a count such as 0 or 5";
    check(&fixture, Outcome::Waiting, "PolicyInvalid", message);
}

#[test]
fn complete_once_every_node_has_the_target() {
    let complete = || fixture().record(Verdict::Stable, state(Phase::Complete, 4, ALL));
    let done = complete().updated(10);
    check(
        &done,
        Outcome::Complete,
        "Complete",
        "complete, new is stable",
    );
    let message = "9 of 10 nodes are healthy with new, whose verdict is stable: it needs no stages";
    check(
        &complete().updated(9),
        Outcome::Progressing,
        "Updating",
        message,
    );
    let mut unseen = complete().updated(10);
    unseen.set.generation = 3;
    assert_eq!(status(&unseen).outcome, Outcome::Progressing);
}

#[test]
fn r4_1_down_nodes_hold_nothing_up() {
    let fixture = fixture().record(Verdict::Stable, state(Phase::Complete, 4, ALL));
    let last = fixture.order()[9].clone();
    let fixture = fixture.updated(9).down(&last);
    assert_eq!(status(&fixture).outcome, Outcome::Complete);
    let counted = fixture.annotate("down-nodes", "count");
    assert_eq!(status(&counted).outcome, Outcome::Progressing);
}

#[test]
fn failures_that_were_accepted_do_not_keep_it_from_being_complete() {
    let mut ended = state(Phase::Complete, 4, ALL);
    ended.accepted = Accepted::All;
    let fixture = fixture().record(Verdict::Stable, ended).updated(10);
    let fixture = fixture.unpullable("n1");
    let message = "complete, new is stable; 1 node not healthy, which was accepted";
    check(&fixture, Outcome::Complete, "Complete", message);
}

#[test]
fn before_a_controller_has_acted() {
    let message =
        "the rollout is about to start; only Kennel's controller carries out rollout policies";
    check(&fixture(), Outcome::Progressing, "Starting", message);
    let mut unseen = fixture();
    unseen.revisions.pop();
    let message = "the controller is about to create the revision of the present template";
    check(&unseen, Outcome::Progressing, "Starting", message);
    unseen.set.generation = 3;
    let message = "no controller has seen the present template yet; is one running?";
    check(&unseen, Outcome::Progressing, "Starting", message);
}

#[test]
fn without_a_policy_it_judges_as_kubectl() {
    let mut fixture = Fixture::new(3);
    let status = &mut fixture.set.status;
    (status.desired, status.updated, status.available) = (3, 1, 2);
    let message = "1 of 3 nodes have a pod of the present template, 2 have an available pod (no rollout policy)";
    check(&fixture, Outcome::Progressing, "Updating", message);
    let status = &mut fixture.set.status;
    (status.updated, status.available) = (3, 3);
    check(
        &fixture,
        Outcome::Complete,
        "Complete",
        "complete (no rollout policy)",
    );
}

#[test]
fn a_command_that_is_about_to_act_is_no_wait_for_a_person() {
    let promoted = in_stage_two(Phase::AwaitingPromotion).annotate("promote", "new/2");
    let message = "the controller is about to carry out the command promote";
    check(
        &promoted,
        Outcome::Progressing,
        "AwaitingPromotion",
        message,
    );
    let left_behind = in_stage_two(Phase::AwaitingPromotion).annotate("promote", "new/1");
    assert_eq!(status(&left_behind).outcome, Outcome::Waiting);
    let carried_out = promoted.seen("promote", "new/2");
    assert_eq!(status(&carried_out).outcome, Outcome::Waiting);
    let held = fixture().record(Verdict::Failed, state(Phase::Held, 2, Cut::Nothing));
    let retried = held.annotate("abort", "new").annotate("retry", "new/1");
    assert_eq!(status(&retried).outcome, Outcome::Progressing);
}
