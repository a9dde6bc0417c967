//! Revisions and what became of them.

use kennel_types::Timestamp;

use super::fixture::{Fixture, NOW, state};
use crate::rollout::history::{DatedRevision, History};
use crate::rollout::state::{Cut, Phase, Verdict};

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
REVISION  HASH  VERDICT          ATTEMPT  AGE  TOOK  REASON
1         old   stable           -        10m  -
2         new   failed (target)  1        10m  6m    1 node has failed
";
    assert_eq!(history.text(), expected);
    assert_eq!(history.revisions[1].took_seconds, Some(360));
}
