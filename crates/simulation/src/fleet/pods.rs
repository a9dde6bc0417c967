//! Pods of the fleet: accept them, move them through their stages, write their statuses.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::feed::Identity;
use kennel_client::write::{Call, Content};
use kennel_client::{api, clock};
use kennel_types::{Pod, Timestamp};

use super::ordinals::owner;
use super::{Fleet, TaskResult, WriteResult};
use crate::pod::{self, PodTemplate, RecordedHistory, SimulatedPod, StatusSummary};
use crate::scenario::PodFacts;
use crate::stages::{self, Stage};
use crate::{address, pod_status};

fn now() -> Timestamp {
    clock::now()
}

/// A resource version as a number, which grows with each change of an object.
fn version(text: Option<&String>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Fleet {
    pub(super) fn pod_applied(&mut self, object: Pod) {
        let Some(node) = object.spec.node_name.as_deref() else {
            return;
        };
        let Some(node) = self.index(node) else {
            return;
        };
        let uid: Arc<str> = object.metadata.uid.as_deref().unwrap_or_default().into();
        if self.pods.contains_key(&uid) {
            self.pod_changed(&uid, &object);
        } else {
            self.add_pod(node, &uid, object);
            if self.synced {
                self.resume(&uid);
            }
        }
    }

    fn pod_changed(&mut self, uid: &Arc<str>, object: &Pod) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let version = version(object.metadata.resource_version.as_ref());
        if version < pod.written_version {
            return;
        }
        pod.generation = object.metadata.generation.unwrap_or_default();
        pod.gates_open = pod::gates_open(object);
        let status = StatusSummary::from(object);
        let imposed = pod::imposed_stage(object, &status);
        if pod.write_in_flight {
            pod.deferred = Some((version, status));
        } else {
            pod.set_api_status(status);
        }
        match imposed {
            Some(stage) if pod.accepts(stage) => {
                pod.stage = stage;
                if self.synced {
                    self.enter(uid, stage);
                }
            }
            _ => self.write(uid),
        }
    }

    /// Adds a pod in the stage that the API shows.
    fn add_pod(&mut self, index: usize, uid: &Arc<str>, object: Pod) {
        let status = StatusSummary::from(&object);
        let history = RecordedHistory::from(&object);
        let id = Identity::of(&object.metadata);
        let stage = pod::stage(&object, &status);
        let gates_open = pod::gates_open(&object);
        let (owner, has_owner) = owner(&object);
        let template = self.shared_template(PodTemplate::from(object.spec));
        let name = self.name(index);
        let node = &mut self.nodes[index];
        let ordinal = if has_owner {
            node.ordinal(owner, history.ordinal)
        } else {
            0
        };
        let address: Option<Ipv4Addr> = object.status.pod_ip.and_then(|ip| ip.parse().ok());
        if let Some(address) = address {
            node.addresses.reserve(address);
        }
        node.pods.push(uid.clone());
        let facts = PodFacts {
            node: &name,
            namespace: &id.namespace,
            images: &template.images(),
        };
        let of_node = self.random().named(&name);
        let random = of_node.numbered(owner).numbered(ordinal.into());
        let scenario = &self.simulation.scenario;
        let rule = scenario.pod_rule(facts, of_node, random);
        let pod = SimulatedPod {
            node: index,
            template: template.clone(),
            rule,
            ordinal,
            generation: object.metadata.generation.unwrap_or_default(),
            address,
            gates_open,
            stage,
            restarts: status.containers.map_or(0, |(_, restarts)| restarts),
            started_at: history.started_at,
            last_termination: history.last_termination,
            stage_epoch: 0,
            api_status: status,
            written_version: version(object.metadata.resource_version.as_ref()),
            write_in_flight: false,
            deferred: None,
            needs_token: self.mounts_tokens && template.token_account.is_some(),
            id,
        };
        if pod.needs_token {
            self.mount_authorities(index, &pod.id.namespace);
        }
        self.pods.insert(uid.clone(), pod);
    }

    fn shared_template(&mut self, template: PodTemplate) -> Arc<PodTemplate> {
        if let Some(known) = self.templates.get(&template) {
            return known.clone();
        }
        let template = Arc::new(template);
        self.templates.insert(template.clone());
        template
    }

    pub(super) fn pod_deleted(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else {
            return;
        };
        let node = &mut self.nodes[pod.node];
        node.pods.retain(|other| **other != *uid);
        if self.mounts_tokens && pod.template.token_account.is_some() {
            node.unmount(&pod.id.namespace);
        }
        if let Some(address) = pod.address {
            node.addresses.release(address);
        }
        // The references of the set and of this pod: no other pod shares the template.
        if Arc::strong_count(&pod.template) == 2 {
            self.templates.remove(&pod.template);
        }
    }

    /// Continues from the stage that a pod is in.
    pub(super) fn resume(&mut self, uid: &Arc<str>) {
        match self.next_stage(uid) {
            Some((Duration::ZERO, stage)) => self.enter(uid, stage),
            next => {
                self.start_timer(uid, next);
                self.write(uid);
            }
        }
    }

    /// Moves a pod to a stage, and on to those that follow without delay.
    pub(super) fn enter(&mut self, uid: &Arc<str>, stage: Stage) {
        let mut next = Some((Duration::ZERO, stage));
        while let Some((Duration::ZERO, stage)) = next {
            self.set_stage(uid, stage);
            next = self.next_stage(uid);
        }
        self.start_timer(uid, next);
        self.write(uid);
    }

    fn next_stage(&self, uid: &Arc<str>) -> Option<(Duration, Stage)> {
        let pod = self.pods.get(uid)?;
        let scenario = &self.simulation.scenario;
        let behaviour = scenario.behaviour(pod.rule, pod.restarts);
        let restart = pod.template.restart_policy;
        stages::next(pod.stage, behaviour, restart, pod.restarts)
    }

    fn start_timer(&mut self, uid: &Arc<str>, next: Option<(Duration, Stage)>) {
        if let (Some((delay, stage)), Some(pod)) = (next, self.pods.get(uid)) {
            let (pod, epoch) = (uid.clone(), pod.stage_epoch);
            let due = TaskResult::StageDue { pod, epoch, stage };
            self.work.later(delay, due);
        }
    }

    fn set_stage(&mut self, uid: &Arc<str>, stage: Stage) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        pod.stage_epoch = pod.stage_epoch.wrapping_add(1);
        let before = std::mem::replace(&mut pod.stage, stage);
        match stage {
            Stage::Started => {
                pod.restarts += u32::from(matches!(before, Stage::CrashLoop(_)));
                pod.started_at = Some(now());
            }
            Stage::CrashLoop(code) | Stage::Finished(code) => pod.terminate_containers(code),
            _ => {}
        }
        let has_network = matches!(stage, Stage::Started | Stage::PullFailed(_));
        if has_network && pod.address.is_none() {
            let node = &mut self.nodes[pod.node];
            pod.address = if pod.template.host_network {
                Some(address::node_address(node.number))
            } else {
                node.addresses.allocate()
            };
        }
    }

    /// Makes the timer of a pod's stage stale.
    pub(super) fn cancel_timer(&mut self, uid: &Arc<str>) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.stage_epoch = pod.stage_epoch.wrapping_add(1);
        }
    }

    pub(super) fn on_stage_due(&mut self, uid: &Arc<str>, epoch: u32, stage: Stage) {
        let pod = self.pods.get(uid);
        if pod.is_some_and(|pod| pod.stage_epoch == epoch) {
            self.enter(uid, stage);
        }
    }

    /// Writes what the API does not have yet, unless a write is in flight or the node has an outage.
    pub(super) fn write(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid).filter(|_| self.synced) else {
            return;
        };
        let node = &self.nodes[pod.node];
        if pod.write_in_flight || node.outage.is_some() {
            return;
        }
        if pod.needs_token && pod.stage != Stage::Stopped {
            pod.write_in_flight = true;
            return self.request_token(uid);
        }
        let patch = match pod.stage {
            Stage::Stopped => None,
            _ => match pod_status::patch(pod, address::node_address(node.number), now()) {
                Some(patch) => Some(patch),
                None => return,
            },
        };
        pod.write_in_flight = true;
        let (id, index) = (pod.id.clone(), pod.node);
        let node = self.name(index);
        match patch {
            None => self.delete(id, &node),
            Some((patch, status)) => {
                let writer = self.writer(&node);
                let write = async move {
                    let pods = api::core_path(&id.namespace, "pods");
                    let path = format!("{pods}/{}/status", id.name);
                    let call = Call::patch(path, Content::Strategic, &patch);
                    let result = match writer.send(&call).await {
                        Ok(answer) => {
                            let written = answer.written().resource_version;
                            WriteResult::Written(version(Some(&written)))
                        }
                        Err(failure) if failure.is(404) => WriteResult::NotFound,
                        Err(failure) => {
                            let name = &id.name;
                            tracing::warn!("updating the status of pod {name} failed: {failure}");
                            WriteResult::Failed
                        }
                    };
                    TaskResult::PodWritten {
                        pod: id.uid,
                        result,
                        status: Some(status),
                    }
                };
                if self.mounts_tokens {
                    // Not behind the tokens of other nodes' pods.
                    self.work.push_first(write);
                } else {
                    self.work.push(write);
                }
            }
        }
    }

    /// Deletes a pod that has stopped, with a grace period of zero, which removes it from the API.
    fn delete(&mut self, id: Identity, node: &str) {
        let client = (self.client_of)(node);
        self.work.push(async move {
            let path = api::core_path(&id.namespace, "pods");
            let result = match api::delete(&client, &path, &id.name, &id.uid, Some(0)).await {
                Err(error) if !api::already_gone(&error) => {
                    let why = api::explain(&error);
                    tracing::warn!("deleting pod {} failed: {why}", id.name);
                    WriteResult::Failed
                }
                _ => WriteResult::NotFound,
            };
            TaskResult::PodWritten {
                pod: id.uid,
                result,
                status: None,
            }
        });
    }

    pub(super) fn on_pod_written(
        &mut self,
        uid: &Arc<str>,
        result: WriteResult,
        status: Option<StatusSummary>,
    ) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let version = match result {
            WriteResult::Written(version) => {
                self.retry.reset();
                version
            }
            // The watch delivers the deletion.
            WriteResult::NotFound => return,
            WriteResult::Failed => {
                let retry = TaskResult::RetryPodWrite(uid.clone());
                return self.work.later(self.retry.next_delay(), retry);
            }
        };
        pod.write_in_flight = false;
        pod.written_version = version;
        if let Some(status) = status {
            pod.api_status = status;
        }
        if let Some((newer, status)) = pod.deferred.take()
            && newer > version
        {
            pod.set_api_status(status);
        }
        self.write(uid);
    }
}
