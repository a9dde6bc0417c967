//! Revisions and what became of them.

use kennel_types::Timestamp;

use super::fixture::{Fixture, NOW, state};
use crate::rollout::history::{DatedRevision, History};
use crate::rollout::state::{Cut, Phase, StageTimes, State, Verdict};

#[test]
fn r9_4_revisions_have_a_verdict_a_reason_and_a_duration() {
    let fixture = Fixture::new(1)
        .annotate("stages", "1")
        .record(Verdict::Failed, state(Phase::Held, 1, Cut::Nothing))
        .because("TooManyRestarts", "1 node has failed");
    let dated = fixture.revisions.iter().map(|revision| DatedRevision {
        revision: revision.clone(),
        created: Some(Timestamp::from_secs(NOW - 600)),
        cause: None,
    });
    let dated: Vec<DatedRevision> = dated.collect();
    let history = History::of(&fixture.outline(), &dated);
    let expected = "\
DaemonSet default/agent
REVISION  HASH  VERDICT          ATTEMPT  AGE  TOOK  STAGES  REASON
1         old   stable           -        10m  -     -
2         new   failed (target)  1        10m  6m    -       1 node has failed
";
    assert_eq!(history.text(), expected);
    assert_eq!(history.revisions[1].took_seconds, Some(360));
}

#[test]
fn r9_4_history_says_how_long_each_stage_took() {
    let times = |stage: usize, began: i64, ended: Option<i64>| StageTimes {
        stage,
        began: Timestamp::from_secs(NOW - began),
        ended: ended.map(|ended| Timestamp::from_secs(NOW - ended)),
    };
    let of = |verdict: Verdict, phase: Phase, stages: Vec<StageTimes>| {
        let state = State {
            stages,
            ..state(phase, 2, Cut::Nothing)
        };
        let fixture = Fixture::new(1)
            .annotate("stages", "1")
            .record(verdict, state);
        let dated = fixture.revisions.iter().map(|revision| DatedRevision {
            revision: revision.clone(),
            created: Some(Timestamp::from_secs(NOW - 600)),
            cause: None,
        });
        let dated: Vec<DatedRevision> = dated.collect();
        History::of(&fixture.outline(), &dated)
    };
    let stages = vec![times(1, 540, Some(300)), times(2, 300, None)];
    let history = of(Verdict::Progressing, Phase::Baking, stages.clone());
    let expected = "\
DaemonSet default/agent
REVISION  HASH  VERDICT               ATTEMPT  AGE  TOOK  STAGES               REASON
1         old   stable                -        10m  -     -
2         new   progressing (target)  1        10m  -     1: 4m, 2: 5m so far
";
    assert_eq!(history.text(), expected);
    let json = serde_json::to_value(&history.revisions[1].stages).unwrap();
    assert_eq!(json[0]["stage"], 1);
    assert_eq!(json[0]["tookSeconds"], 240);
    assert_eq!(json[1].get("ended"), None);
    // A newer template has ended it, nobody wrote when.
    let superseded = of(Verdict::Superseded, Phase::Updating, stages);
    assert!(
        superseded.text().contains("1: 4m, 2: -"),
        "{}",
        superseded.text()
    );
}
