//! All DaemonSets: a row for each, the one with most trouble first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kennel_core::picture::CellState;
use kennel_core::rollout::Outcome;
use kennel_core::rollout::plan::{PlannedStage, StageState};
use kennel_core::rollout::status::Status;
use kennel_inspect::live::{Set, View};
use kennel_inspect::snapshot;
use tokio::time::Instant;

use super::sse::{Messages, Source};
use super::{Watching, picture, rollout};
use crate::protocol::{Key, Overview, OverviewChange, Row, StagePosition};

/// How long a row's rollout is not computed again: that reads all nodes.
const ROLLOUT_INTERVAL: Duration = Duration::from_secs(1);
/// Time alone changes a rollout, too.
const ROLLOUT_ANYWAY: Duration = Duration::from_secs(15);

/// See the [module](self).
pub(super) struct OverviewStream {
    watching: Watching,
    /// The rows sent last; nothing before the first message.
    rows: Option<BTreeMap<Key, Known>>,
}

struct Known {
    uid: std::sync::Arc<str>,
    version: u64,
    /// When the rollout was computed, and whether the set has changed since.
    computed: Instant,
    changed_since: bool,
    row: Row,
}

impl OverviewStream {
    pub(super) fn new(watching: Watching) -> Self {
        let rows = None;
        Self { watching, rows }
    }
}

impl Source for OverviewStream {
    async fn collect(&mut self, messages: &mut Messages) -> Option<Instant> {
        let now = Instant::now();
        let mut rows = self.rows.take();
        let connection = self.watching.read(|view| {
            let connection = view.connection().clone();
            if connection.synced {
                add_changes(view, &mut rows, now, messages);
            }
            connection
        });
        let changed = rows.iter().flatten().any(|(_, known)| known.changed_since);
        self.rows = rows;
        self.watching.add_status(connection, false, messages);
        Some(
            now + if changed {
                ROLLOUT_INTERVAL
            } else {
                ROLLOUT_ANYWAY
            },
        )
    }

    async fn changed(&mut self) {
        self.watching.changed().await;
    }
}

fn add_changes(
    view: &View,
    rows: &mut Option<BTreeMap<Key, Known>>,
    now: Instant,
    messages: &mut Messages,
) {
    let is_first = rows.is_none();
    let rows = rows.get_or_insert_default();
    let mut changed = Vec::new();
    let mut present = BTreeSet::new();
    for set in view.sets() {
        let key = key(set);
        if let Some(row) = update(view, set, rows.get_mut(&key), now) {
            changed.push(row.row.clone());
            rows.insert(key.clone(), row);
        }
        present.insert(key);
    }
    let gone = rows.keys().filter(|key| !present.contains(key));
    let removed: Vec<Key> = gone.cloned().collect();
    for key in &removed {
        rows.remove(key);
    }
    if is_first {
        changed.sort_by_key(|row| (Reverse(row.trouble), row.key.clone()));
        messages.add("overview", &Overview { rows: changed });
    } else if !changed.is_empty() || !removed.is_empty() {
        let rows = changed;
        messages.add("change", &OverviewChange { rows, removed });
    }
}

fn key(set: &Set) -> Key {
    let set = set.picture().daemon_set();
    Key {
        namespace: set.namespace.to_string(),
        name: set.name.to_string(),
    }
}

/// The row, if it is to be sent.
fn update(view: &View, set: &Set, known: Option<&mut Known>, now: Instant) -> Option<Known> {
    let uid = &set.picture().daemon_set().uid;
    let Some(known) = known.filter(|known| known.uid == *uid) else {
        return Some(fresh(view, set, now));
    };
    known.changed_since |= known.version != set.version();
    let age = now.saturating_duration_since(known.computed);
    let looks = age >= ROLLOUT_ANYWAY || known.changed_since && age >= ROLLOUT_INTERVAL;
    if looks {
        let fresh = fresh(view, set, now);
        if fresh.row != known.row {
            return Some(fresh);
        }
        *known = fresh;
        return None;
    }
    known.version = set.version();
    let counts = picture::counts(set.picture().counts());
    if counts == known.row.counts {
        return None;
    }
    Some(Known {
        uid: known.uid.clone(),
        row: Row {
            counts,
            desired: set.picture().counts().eligible(),
            ..known.row.clone()
        },
        ..*known
    })
}

fn fresh(view: &View, set: &Set, now: Instant) -> Known {
    let status = view.status(set, snapshot::now());
    let counts = set.picture().counts();
    let row = Row {
        key: key(set),
        counts: picture::counts(counts),
        desired: counts.eligible(),
        stage: stage_of(&status, &status.stages),
        outcome: status.outcome,
        phase: status.phase.to_string(),
        paused: rollout::paused(set.picture().daemon_set()),
        trouble: trouble(status.outcome, counts),
        message: status.message,
        said: status.said,
    };
    Known {
        uid: set.picture().daemon_set().uid.clone(),
        version: set.version(),
        computed: now,
        changed_since: false,
        row,
    }
}

/// The stage of a rollout under way.
pub(super) fn stage_of(status: &Status, stages: &[PlannedStage]) -> Option<StagePosition> {
    let present = stages
        .iter()
        .find(|stage| stage.state == StageState::Present);
    let index = present.map(|stage| stage.stage).or(status.stage)?;
    let total = stages.len();
    (index <= total).then_some(StagePosition { index, total })
}

/// What a person has to do comes first, then failures, then what goes on by itself. Nodes that are down concern all
/// DaemonSets alike.
fn trouble(outcome: Outcome, counts: kennel_core::picture::Counts) -> u32 {
    let bounded = |state: CellState, max: u32| {
        let count = counts.get(state);
        u32::try_from(count).map_or(max, |count| count.min(max))
    };
    let by_outcome = match outcome {
        Outcome::Failed => 4_000_000,
        Outcome::Waiting => 2_000_000,
        Outcome::Progressing => 50,
        Outcome::Complete => 0,
    };
    by_outcome + bounded(CellState::Failed, 9_999) * 100 + bounded(CellState::Down, 40)
}
