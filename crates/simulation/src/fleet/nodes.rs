//! Nodes of the fleet: registration, lease renewal, status reports, outages.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_client::write::Failure;
use kennel_types::{ConditionType, Node};

use super::{Fleet, TaskResult, WriteResult};
use crate::node;
use crate::scenario::OutageKind;
use crate::stages::{self, Stage};

impl Fleet {
    /// Creates or updates the Node object. `booted`: the node has just booted.
    pub(super) fn register(&mut self, index: usize, booted: bool) {
        let name = self.name(index);
        let writer = self.writer(&name);
        let random = self.random().named(&name).named("boot");
        let node = &mut self.nodes[index];
        // Derived from the previous boot id, so that it differs from it.
        if node.boot_id.is_empty() || booted && !node.registering {
            node.boot_id = random.named(&node.boot_id).uuid().into();
        }
        node.registering = true;
        let (number, boot_id) = (node.number, node.boot_id.clone());
        let now = clock::now_rfc3339();
        let object = node::object(&self.simulation, number, &boot_id, &now);
        self.work.push(async move {
            let registered = node::register(&writer, &object, booted).await;
            let log = |error: &Failure| tracing::warn!("registering node {name} failed: {error}");
            let uid = registered.inspect_err(log).ok();
            if booted && uid.is_some() {
                let event = node::rebooted_event(&name, &boot_id);
                if let Err(error) = node::post_event(&writer, &event).await {
                    tracing::debug!("posting an event of node {name} failed: {error}");
                }
            }
            TaskResult::Registered {
                node: index,
                booted,
                uid,
            }
        });
    }

    pub(super) fn on_registered(&mut self, index: usize, uid: &str) {
        let node = &mut self.nodes[index];
        node.registering = false;
        node.uid = Some(uid.into());
        if !std::mem::replace(&mut node.known, true) {
            self.counts.registered.send_modify(|count| *count += 1);
        }
        self.renew_lease(index);
    }

    /// Renews the leases of the next `count` nodes.
    pub(crate) fn renew_leases(&mut self, count: usize) {
        for _ in 0..count {
            let index = self.next_renewal;
            self.next_renewal = (index + 1) % self.nodes.len();
            self.renew_lease(index);
        }
    }

    fn renew_lease(&mut self, index: usize) {
        let Some(uid) = self.active_uid(index) else {
            return;
        };
        if std::mem::replace(&mut self.nodes[index].renewing, true) {
            return;
        }
        let name = self.name(index);
        let writer = self.writer(&name);
        // Ahead of other writes: a node whose lease expires is taken for dead.
        self.work.push_first(async move {
            if let Err(error) = node::renew_lease(&writer, &name, &uid).await {
                tracing::warn!("renewing the lease of node {name} failed: {error}");
            }
            TaskResult::LeaseRenewed(index)
        });
    }

    /// Sends the periodic status report of the next `count` nodes.
    pub(crate) fn report_statuses(&mut self, count: usize) {
        for _ in 0..count {
            let index = self.next_report;
            self.next_report = (index + 1) % self.nodes.len();
            self.report_status(index, Vec::new());
        }
    }

    /// `changed`: the conditions that differ from what the API has.
    fn report_status(&mut self, index: usize, changed: Vec<ConditionType>) {
        if self.active_uid(index).is_none() {
            return;
        }
        if self.nodes[index].reporting {
            self.nodes[index].report_again |= !changed.is_empty();
            return;
        }
        self.nodes[index].reporting = true;
        let name = self.name(index);
        let writer = self.writer(&name);
        self.work.push_first(async move {
            let result = match node::report_status(&writer, &name, &changed).await {
                Ok(()) => WriteResult::Written(0),
                Err(failure) if failure.is(404) => WriteResult::NotFound,
                Err(failure) => {
                    tracing::warn!("updating the status of node {name} failed: {failure}");
                    WriteResult::Failed
                }
            };
            TaskResult::StatusReported(index, result)
        });
    }

    pub(super) fn on_status_reported(&mut self, index: usize, result: WriteResult) {
        match result {
            WriteResult::Failed => {
                let retry = TaskResult::RetryStatusReport(index);
                self.work.later(self.retry.next_delay(), retry);
            }
            WriteResult::Written(_) | WriteResult::NotFound => {
                self.retry.reset();
                self.nodes[index].reporting = false;
                if std::mem::take(&mut self.nodes[index].report_again) {
                    self.retry_status_report(index);
                }
            }
        }
    }

    /// Registers the node again: after a failure it is unknown what the API has, so the whole status is written.
    pub(super) fn retry_status_report(&mut self, index: usize) {
        self.nodes[index].reporting = false;
        if self.active_uid(index).is_some() {
            self.register(index, false);
        }
    }

    /// The uid of its Node object, if there is one and the node has no outage.
    fn active_uid(&self, index: usize) -> Option<Arc<str>> {
        let node = &self.nodes[index];
        node.uid.clone().filter(|_| node.outage.is_none())
    }

    pub(super) fn node_applied(&mut self, object: &Node) {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let Some(index) = self.index(name) else {
            return;
        };
        let node = &mut self.nodes[index];
        if node.outage.is_none() && !object.status.node_info.boot_id.is_empty() {
            node.boot_id = object.status.node_info.boot_id.as_str().into();
        }
        if node.registering {
            return;
        }
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        if node.uid.as_deref() != Some(uid) {
            // Another client has recreated the object.
            node.uid = Some(uid.into());
            self.renew_lease(index);
        }
        let changed = node::changed_conditions(&object.status);
        if !changed.is_empty() {
            self.report_status(index, changed);
        }
    }

    /// Like a running kubelet, the node does not recreate its Node object when somebody deletes it.
    pub(super) fn node_deleted(&mut self, name: &str, uid: &str) {
        let Some(index) = self.index(name) else {
            return;
        };
        let node = &mut self.nodes[index];
        if node.uid.as_deref() == Some(uid) && !node.registering {
            node.uid = None;
            tracing::info!("node {name} was deleted; its next reboot recreates it");
        }
    }

    /// Starts a timer for the node's next outage that begins at `from` or later.
    pub(super) fn schedule_outage(&mut self, index: usize, from: Duration) {
        if self.simulation.scenario.nodes.is_empty() {
            return;
        }
        let (name, random) = (self.name(index), self.random());
        let next = self.simulation.scenario.next_outage(&name, from, random);
        if let Some((begin, end, kind)) = next {
            let delay = begin.saturating_sub(self.started.elapsed());
            let begins = TaskResult::OutageBegins(index, kind, end);
            self.work.later(delay, begins);
        }
    }

    pub(super) fn begin_outage(&mut self, index: usize, kind: OutageKind, until: Duration) {
        let now = self.started.elapsed();
        self.nodes[index].outage = Some(kind);
        tracing::info!("outage of node {} begins: {kind:?}", self.name(index));
        if kind == OutageKind::Reboot {
            for uid in self.nodes[index].pods.clone() {
                self.cancel_timer(&uid);
            }
        }
        let delay = until.saturating_sub(now).max(Duration::from_millis(1));
        let ends = TaskResult::OutageEnds(index, now + delay);
        self.work.later(delay, ends);
    }

    pub(super) fn end_outage(&mut self, index: usize, since: Duration) {
        let Some(kind) = self.nodes[index].outage.take() else {
            return;
        };
        tracing::info!("outage of node {} ends: {kind:?}", self.name(index));
        let rebooted = kind == OutageKind::Reboot;
        // Corrects what others wrote meanwhile. A deleted node stays deleted unless it rebooted.
        if rebooted || self.nodes[index].uid.is_some() {
            self.register(index, rebooted);
        }
        for uid in self.nodes[index].pods.clone() {
            if rebooted {
                self.reboot_pod(&uid);
            } else {
                self.write(&uid);
            }
        }
        self.schedule_outage(index, since);
    }

    fn reboot_pod(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let before = pod.stage;
        let after = stages::after_reboot(before, pod.template.restart_policy);
        if before == after {
            self.resume(uid);
            return;
        }
        if stages::has_run(before) && after == Stage::Creating {
            pod.lose_containers();
        }
        self.enter(uid, after);
    }
}
