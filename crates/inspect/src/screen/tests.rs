//! What the screen shows, in every size.

use std::collections::BTreeMap;

use kennel_core::picture::CellState;
use kennel_core::rollout::outline::{Input, Outline};
use kennel_core::rollout::plan::{PlannedStage, StageState};
use kennel_core::rollout::state::Phase;
use kennel_core::rollout::status::{Counts, Status, Suggestion};
use kennel_core::rollout::{Outcome, Sentence};
use kennel_types::Timestamp;
use kube::api::DynamicObject;
use serde_json::json;

use super::waffle::{Paint, cells};
use super::{Frame, Pace, Size, printable};

fn stage(number: usize, policy: &str, state: StageState) -> PlannedStage {
    PlannedStage {
        stage: number,
        policy: policy.to_owned(),
        state,
        reaches: number * 10,
        bake_seconds: 0,
        manual: false,
        nodes: Vec::new(),
        down: Vec::new(),
    }
}

fn now() -> Timestamp {
    Timestamp::from_secs(1_000_000)
}

fn status(stages: Vec<PlannedStage>) -> Status {
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {}}});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let set = kennel_control::view::daemon_set(&object).unwrap();
    let outline = Outline::of(&Input {
        daemon_set: &set,
        namespace: &BTreeMap::new(),
        nodes: &[],
        pods: &[],
        revisions: &[],
        now: now(),
    });
    let mut status = Status::of(&outline, |_| None);
    status.outcome = Outcome::Progressing;
    status.phase = Phase::Updating.into();
    status.message = "stage 2 of 3 (50%), 4 of 5 nodes healthy".to_owned();
    status.stable = Some("5d8b".to_owned());
    status.target = Some("7c9f".to_owned());
    status.since = Some(Timestamp::from_secs(1_000_000 - 120));
    status.nodes = Counts::default();
    status.stages = stages;
    status.next = vec![Suggestion {
        command: "kennel rollout abort ds/agent".to_owned(),
        effect: "fail it and go back to 5d8b".to_owned(),
        said: Sentence::default(),
    }];
    status
}

fn screen(letters: &[u8], size: (usize, usize), failures: &[(String, String)]) -> Vec<String> {
    let stages = vec![
        stage(1, "10%", StageState::Done),
        stage(2, "50%", StageState::Present),
        stage(3, "100%", StageState::Ahead),
    ];
    let status = status(stages);
    let mut pace = Pace::default();
    pace.note(now().saturating_add_millis(-60_000), 2, true);
    pace.note(now(), 8, true);
    let frame = Frame {
        status: &status,
        letters,
        excluded: 2,
        pace: &pace,
        failures,
        disconnected: None,
        now: now(),
    };
    let (columns, rows) = size;
    frame.lines(Size { columns, rows }, false)
}

#[test]
fn a_screen_has_the_cells_the_stages_and_the_failures() {
    let failures = [(
        "n5".to_owned(),
        "its image\ncannot\x1b[2J be pulled".to_owned(),
    )];
    let lines = screen(b"nnnnfuwwww", (80, 24), &failures);
    let expected = "\
DaemonSet default/agent: stage 2 of 3 (50%), 4 of 5 nodes healthy
5d8b -> 7c9f | Updating for 2m | 6.0 nodes/min | ends in about 50s (13:47 UTC)

# # # # X ~ . . . .

# new 4   ~ updating 1   X failed 1   ! down 0   . waiting its turn 4
o old 0   - not eligible 2

  stage 1  10%   to    10 nodes  done
> stage 2  50%   to    20 nodes  Updating
  stage 3  100%  to    30 nodes  ahead

First failures
  n5: its image cannot [2J be pulled

  kennel rollout abort ds/agent  # fail it and go back to 5d8b";
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn thousands_of_nodes_fit_by_sharing_blocks() {
    let mut letters = vec![b'n'; 5_000];
    letters[4_321] = b'f';
    for size in [(80, 24), (200, 60), (40, 12), (20, 8), (1, 1), (500, 200)] {
        let (columns, rows) = size;
        let lines = screen(&letters, size, &[]);
        assert!(lines.len() <= rows, "{size:?}");
        let widest = lines.iter().map(|line| line.trim_end().chars().count());
        assert!(widest.max() <= Some(columns), "{size:?}: {lines:#?}");
        if rows >= 8 {
            assert!(
                lines.concat().contains('X'),
                "{size:?} hides the failed node"
            );
        }
    }
    let text = screen(&letters, (80, 24), &[]).join("\n");
    assert!(text.contains("one block is 6 nodes"), "{text}");
}

#[test]
fn equal_neighbours_share_their_colour_codes() {
    let (lines, per_block) = cells(b"nnnnnnnnnn", 10, 1, Paint(true));
    assert_eq!(per_block, 1);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].matches("\x1b[").count(), 2, "{:?}", lines[0]);
    let (lines, per_block) = cells(b"nnnnnnnfnn", 5, 1, Paint(false));
    assert_eq!((lines, per_block), (vec!["###X#".to_owned()], 2));
    assert_eq!(cells(b"", 80, 10, Paint(true)), (Vec::new(), 1));
}

#[test]
fn every_state_has_its_own_symbol() {
    let paint = Paint(false);
    let mut symbols: Vec<String> = CellState::ALL.map(|state| paint.cell(state)).to_vec();
    symbols.sort();
    symbols.dedup();
    assert_eq!(symbols.len(), CellState::ALL.len());
}

#[test]
fn the_pace_is_of_the_last_two_minutes_and_begins_anew_on_a_way_back() {
    // Looks come up to ten times a second.
    for every_millis in [100_i64, 1_000] {
        let mut pace = Pace::default();
        let at = |millis: i64| Timestamp::from_secs(1_000).saturating_add_millis(millis);
        pace.note(at(0), 0, true);
        assert_eq!(pace.per_minute(), None);
        // Nothing for a minute, then three nodes every three seconds for two minutes.
        for millis in (1..=180_000 / every_millis).map(|look| look * every_millis) {
            let done = (millis - 60_000).max(0) / 3_000 * 3;
            pace.note(at(millis), usize::try_from(done).unwrap(), true);
        }
        let rate = pace.per_minute().unwrap();
        assert!((58.0..=62.0).contains(&rate), "{every_millis}: {rate}");
        let left = pace.time_for(30).unwrap();
        assert!((29..=31).contains(&left.as_secs()), "{left:?}");
        pace.note(at(181_000), 5, true);
        assert_eq!(pace.per_minute(), None);
    }
}

#[test]
fn a_bake_has_an_estimated_end_however_long_it_lasts() {
    let stages = vec![
        stage(1, "50% 1h", StageState::Present),
        stage(2, "100%", StageState::Ahead),
    ];
    let mut status = status(stages);
    let mut pace = Pace::default();
    let at = |seconds: i64| Timestamp::from_secs(1_000_000 + seconds);
    let facts = |status: &Status, pace: &Pace, now: Timestamp| {
        let frame = Frame {
            status,
            letters: b"nnnnnwwwww",
            excluded: 0,
            pace,
            failures: &[],
            disconnected: None,
            now,
        };
        let size = Size {
            columns: 100,
            rows: 24,
        };
        frame.lines(size, false)[1].clone()
    };
    // Five nodes in ten seconds; then the stage bakes for an hour.
    for second in 0..=10 {
        pace.note(at(second), usize::try_from(second / 2).unwrap(), true);
    }
    status.phase = Phase::Baking.into();
    status.since = Some(at(10));
    status.earliest_end = Some(at(3610));
    for second in (20..=3490).step_by(10) {
        pace.note(at(second), 5, false);
    }
    let shown = facts(&status, &pace, at(3490));
    // Two minutes, and ten seconds for five more nodes.
    assert!(shown.contains("ends in about 2m10s"), "{shown}");
    assert!(!shown.contains("nodes/min"), "{shown}");
    // One who has not seen nodes being updated knows the bake at least.
    let shown = facts(&status, &Pace::default(), at(3490));
    assert!(shown.contains("ends in 2m at the earliest"), "{shown}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    assert_eq!(printable("a\x1b[31mb\rc\u{9b}d"), "a [31mb c d");
}
