//! Watches for another controller that acts on the same DaemonSets: see [`kennel_core::daemonset::conflict`].

use std::collections::BTreeSet;
use std::sync::Arc;

use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::daemonset::PodView;
use kennel_core::daemonset::conflict::{Act, Conflict, Conflicts, ForeignWrite};
use kennel_core::daemonset::event::Identity;
use kennel_types::Monotonic;
use kennel_types::event::Event;

/// The reason of the event on a DaemonSet that another controller acts on.
pub(super) const REASON: &str = "ConflictingController";
/// Events of one DaemonSet that are read: more than its controllers' recorders let through.
const EVENTS_MAX: u32 = 1000;

/// See the [module](self).
pub(super) struct ConflictWatch {
    /// The `reportingInstance` of our own events.
    instance: Arc<str>,
    conflicts: Conflicts,
    /// False until the first lists are complete: pods that were there before are nobody's doing.
    started: bool,
    /// The pods whose deletion this controller has requested, by uid.
    deleting: BTreeSet<Arc<str>>,
    reading: bool,
    /// Missing rights to read events were logged.
    refused: bool,
}

impl ConflictWatch {
    pub(super) fn new(instance: Arc<str>) -> Self {
        Self {
            instance,
            conflicts: Conflicts::default(),
            started: false,
            deleting: BTreeSet::new(),
            reading: false,
            refused: false,
        }
    }

    pub(super) fn start(&mut self) {
        self.started = true;
    }

    /// This controller requests the deletion of a pod.
    pub(super) fn deleting(&mut self, uid: &Arc<str>) {
        self.deleting.insert(uid.clone());
    }

    /// The watch shows a pod, which looked like `before`. `requested`: this controller has asked for its creation.
    pub(super) fn pod(
        &mut self,
        now: Monotonic,
        before: Option<&PodView>,
        pod: &PodView,
        requested: bool,
    ) {
        let Some(set) = pod.controller.as_ref().filter(|_| self.started) else {
            return;
        };
        match before {
            None if !requested => self.conflicts.suspect(now, set, Act::Created, &pod.name),
            Some(before) if pod.terminating && !before.terminating => {
                self.deleted(now, pod);
            }
            _ => {}
        }
    }

    /// A pod is gone, which looked like `before`.
    pub(super) fn pod_gone(&mut self, now: Monotonic, uid: &str, before: Option<&PodView>) {
        if let Some(pod) = before.filter(|pod| !pod.terminating && self.started) {
            self.deleted(now, pod);
        }
        self.deleting.remove(uid);
    }

    fn deleted(&mut self, now: Monotonic, pod: &PodView) {
        if let Some(set) = &pod.controller
            && !self.deleting.contains(&pod.uid)
        {
            self.conflicts.suspect(now, set, Act::Deleted, &pod.name);
        }
    }

    pub(super) fn next_due(&self) -> Option<Monotonic> {
        self.conflicts.next_due().filter(|_| !self.reading)
    }

    /// The DaemonSet whose events to read now, by uid.
    pub(super) fn take_due(&mut self, now: Monotonic) -> Option<Arc<str>> {
        if self.reading {
            return None;
        }
        self.conflicts.take_due(now)
    }

    /// Reads the events on a DaemonSet; the result goes to [`judge`](Self::judge).
    pub(super) fn read_events(
        &mut self,
        writer: &Writer,
        set: &Identity,
    ) -> impl Future<Output = Result<Vec<ForeignWrite>, Failure>> + use<> {
        self.reading = true;
        let (writer, own) = (writer.clone(), self.instance.clone());
        let collection = api::core_path(&set.namespace, "events");
        let selector = format!("fieldSelector=involvedObject.uid%3D{}", set.uid);
        let call = Call::get(format!("{collection}?{selector}&limit={EVENTS_MAX}"));
        async move {
            let answer = writer.send(&call).await?;
            let list = serde_json::from_slice::<api::List<Event>>(&answer.body);
            let events = list.map(|list| list.items).unwrap_or_default();
            let read = |event| ForeignWrite::of(event, &own);
            Ok(events.iter().filter_map(read).collect())
        }
    }

    /// Judges what the events say, or why they could not be read.
    pub(super) fn judge(
        &mut self,
        now: Monotonic,
        set: &Identity,
        read: Result<Vec<ForeignWrite>, Failure>,
    ) -> Option<Conflict> {
        self.reading = false;
        if let Err(failure) = &read
            && failure.is(403)
            && !std::mem::replace(&mut self.refused, true)
        {
            tracing::warn!(
                "another DaemonSet controller would go unnoticed: grant the right to list events ({failure})"
            );
        }
        let writes = read.unwrap_or_default();
        self.conflicts.judge(now, &set.uid, &writes)
    }

    pub(super) fn forget(&mut self, set: &str) {
        self.conflicts.forget(set);
    }
}

#[cfg(test)]
mod tests;
