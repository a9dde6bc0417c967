//! One DaemonSet: its cells, its rollout and its events.

use std::time::Duration;

use kennel_inspect::live::{Set, View};
use tokio::time::Instant;

use super::picture::{BY_STAGE, Grouping, Sent, Stages, picture};
use super::sse::{Messages, Source};
use super::{Watching, rollout};
use crate::protocol::Events;
use crate::route::SetName;

/// How long after a rollout was sent it is computed again: that reads all nodes.
const ROLLOUT_INTERVAL: Duration = Duration::from_secs(1);
/// Time alone changes a rollout, too.
const ROLLOUT_ANYWAY: Duration = Duration::from_secs(10);

/// See the [module](self).
pub(super) struct DaemonSetStream {
    watching: Watching,
    page: Page,
}

/// What the page asked for, and has.
struct Page {
    set: SetName,
    group: Option<String>,
    sent: Option<Sent>,
    stages: Stages,
    /// The version of the set whose rollout was sent, and when.
    rollout: Option<(u64, Instant)>,
    events: Option<Events>,
}

impl DaemonSetStream {
    pub(super) fn new(watching: Watching, set: SetName, group: Option<&str>) -> Self {
        let page = Page {
            set,
            group: group.map(str::to_owned),
            sent: None,
            stages: Stages::default(),
            rollout: None,
            events: None,
        };
        Self { watching, page }
    }
}

impl Source for DaemonSetStream {
    async fn collect(&mut self, messages: &mut Messages) -> Option<Instant> {
        let page = &mut self.page;
        let (connection, gone, again) = self.watching.read(|view| {
            let connection = view.connection().clone();
            if !connection.synced {
                return (connection, false, Instant::now() + ROLLOUT_ANYWAY);
            }
            if let Some(set) = view.set(&page.set.namespace, &page.set.name) {
                (connection, false, page.add_changes(view, set, messages))
            } else {
                page.forget();
                (connection, true, Instant::now() + ROLLOUT_ANYWAY)
            }
        });
        self.watching.add_status(connection, gone, messages);
        Some(again)
    }

    async fn changed(&mut self) {
        self.watching.changed().await;
    }
}

impl Page {
    /// Another DaemonSet of this name has nothing to do with this one.
    fn forget(&mut self) {
        self.sent = None;
        self.stages = Stages::default();
        self.rollout = None;
        self.events = None;
    }

    /// Adds what is new. Returns when to call it again at the latest.
    fn add_changes(&mut self, view: &View, set: &Set, messages: &mut Messages) -> Instant {
        let uid = &set.picture().daemon_set().uid;
        if self.sent.as_ref().is_some_and(|sent| sent.uid != *uid) {
            self.forget();
        }
        let now = Instant::now();
        let has_changed = self
            .rollout
            .is_none_or(|(version, _)| version != set.version());
        let interval = if has_changed {
            ROLLOUT_INTERVAL
        } else {
            ROLLOUT_ANYWAY
        };
        let is_due = self.rollout.is_none_or(|(_, at)| now >= at + interval);
        // The stages first: cells may be grouped by them.
        let rollout = is_due.then(|| rollout::rollout(view, set));
        let rollout = rollout.map(|(rollout, stages)| {
            self.rollout = Some((set.version(), now));
            self.regroup(stages);
            rollout
        });
        self.add_cells(view, set, messages);
        if let Some(rollout) = rollout {
            messages.add("rollout", &rollout);
        }
        let events = Some(rollout::events(set));
        if self.events != events {
            self.events = events;
            if let Some(events) = &self.events {
                messages.add("events", events);
            }
        }
        let (version, at) = self.rollout.unwrap_or((0, now));
        let rollout_at = at
            + if version == set.version() {
                ROLLOUT_ANYWAY
            } else {
                ROLLOUT_INTERVAL
            };
        let groups_at = self.sent.as_ref().and_then(Sent::groups_at);
        groups_at.map_or(rollout_at, |at| at.min(rollout_at))
    }

    /// The stages that take the nodes now. A rollout that begins or ends regroups all nodes at once.
    fn regroup(&mut self, stages: Stages) {
        if self.group.as_deref() != Some(BY_STAGE) || self.stages == stages {
            return;
        }
        self.stages = stages;
        if let Some(sent) = &mut self.sent {
            sent.regroup();
        }
    }

    fn add_cells(&mut self, view: &View, set: &Set, messages: &mut Messages) {
        let grouping = Grouping {
            label: self.group.as_deref(),
            stages: &self.stages,
        };
        if let Some(sent) = &mut self.sent {
            if let Some(delta) = sent.delta(view, set, &grouping) {
                messages.add("delta", &delta);
            }
        } else {
            let (all, sent) = picture(view, set, &grouping);
            messages.add("picture", &all);
            self.sent = Some(sent);
        }
    }
}
