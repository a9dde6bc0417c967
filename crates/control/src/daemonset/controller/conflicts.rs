//! What the controller does about other controllers: passes on what it observes, reads events, and says what was noticed.

use std::sync::Arc;

use kennel_client::events::Note;
use kennel_client::write::Failure;
use kennel_core::daemonset::PodView;
use kennel_core::daemonset::conflict::ForeignWrite;
use kennel_core::daemonset::event::Identity;

use super::super::conflicts::REASON;
use super::{DaemonSetController, Outcome};
use crate::frame::Context;

impl DaemonSetController {
    pub(super) fn observe_pod(&mut self, pod: &PodView) {
        let requested = self.pending_names.observed(&pod.namespace, &pod.name);
        if let Some(conflicts) = &mut self.conflicts {
            let before = self.planner.pod(&pod.uid);
            conflicts.pod(self.clock.monotonic(), before, pod, requested);
        }
    }

    pub(super) fn observe_pod_gone(&mut self, uid: &str) {
        if let Some(conflicts) = &mut self.conflicts {
            let before = self.planner.pod(uid);
            conflicts.pod_gone(self.clock.monotonic(), uid, before);
        }
    }

    /// Reads the events on a DaemonSet that another controller may act on, one at a time.
    pub(super) fn look_for_conflicts(&mut self, cx: &mut Context<Self>) {
        let Some(conflicts) = &mut self.conflicts else {
            return;
        };
        let Some(uid) = conflicts.take_due(self.clock.monotonic()) else {
            return;
        };
        let Some(known) = self.known.get(&uid) else {
            return conflicts.forget(&uid);
        };
        let daemon_set = Arc::new(Identity::of(&known.object.metadata));
        let read = conflicts.read_events(&self.writer, &daemon_set);
        cx.spawn_unpaced(async move {
            let read = read.await;
            Outcome::EventsRead { daemon_set, read }
        });
    }

    pub(super) fn judge_conflict(
        &mut self,
        daemon_set: &Identity,
        read: Result<Vec<ForeignWrite>, Failure>,
    ) {
        let Some(conflicts) = &mut self.conflicts else {
            return;
        };
        let now = self.clock.monotonic();
        let Some(conflict) = conflicts.judge(now, daemon_set, read) else {
            return;
        };
        self.metrics.conflicted(&conflict);
        if conflict.report {
            let message = conflict.message();
            tracing::warn!("daemonset {daemon_set}: {message}");
            self.emit(daemon_set, Note::new(true, REASON, message));
        }
    }
}
