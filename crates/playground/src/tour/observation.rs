//! A snapshot of the tour's DaemonSet and its pods, read from the API.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use kennel_types::pod::WaitingReason;
use kennel_types::{ContainerStatus, DaemonSet, Pod, meta};
use kube::Client;
use kube::api::{Api, ListParams};

/// One snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) daemon_set: Option<ObservedDaemonSet>,
    /// All pods with the DaemonSet's label.
    pub(super) pods: Vec<ObservedPod>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedDaemonSet {
    pub(super) uid: String,
    pub(super) rolled_out: bool,
    /// The newest template has failed, and every node is back on the one before.
    pub(super) rolled_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedPod {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) node: Option<String>,
    /// The tag of its image.
    pub(super) version: String,
    pub(super) state: State,
    /// The uid of its controller.
    pub(super) owner: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not ready yet.
    Starting,
    Ready,
    /// In `CrashLoopBackOff`.
    Failing,
    /// Being deleted.
    Terminating,
}

impl Observation {
    pub(super) async fn read(client: &Client, name: &str) -> Result<Self> {
        // The DaemonSet first: pods that are read later than a complete rollout show it, too.
        let daemon_sets: Api<DaemonSet> = Api::default_namespaced(client.clone());
        let daemon_set = daemon_sets.get_opt(name).await;
        let daemon_set = daemon_set.context("cannot read the DaemonSet")?;
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let ours = ListParams::default().labels(&format!("app={name}"));
        let pods = pods.list(&ours).await.context("cannot list the pods")?;
        Ok(Self {
            daemon_set: daemon_set.map(ObservedDaemonSet::from),
            pods: pods.items.into_iter().map(ObservedPod::from).collect(),
        })
    }

    /// The pod of a node; if one replaces another, the new one.
    pub(super) fn on(&self, node: &str) -> Option<&ObservedPod> {
        let here = self
            .pods
            .iter()
            .filter(|pod| pod.node.as_deref() == Some(node));
        here.min_by_key(|pod| pod.state == State::Terminating)
    }

    /// The uids of the pods that are ready.
    pub(super) fn ready(&self) -> BTreeSet<&str> {
        let ready = self.pods.iter().filter(|pod| pod.state == State::Ready);
        ready.map(|pod| pod.uid.as_str()).collect()
    }

    /// Number of pods of a version that are in a state.
    pub(super) fn count(&self, version: &str, state: State) -> usize {
        let matches = |pod: &&ObservedPod| pod.version == version && pod.state == state;
        self.pods.iter().filter(matches).count()
    }

    /// Some pod that fails.
    pub(super) fn failing(&self) -> Option<&ObservedPod> {
        self.pods.iter().find(|pod| pod.state == State::Failing)
    }
}

impl From<DaemonSet> for ObservedDaemonSet {
    fn from(daemon_set: DaemonSet) -> Self {
        Self {
            rolled_out: daemon_set.is_rolled_out(),
            rolled_back: daemon_set.is_rolled_back(),
            uid: daemon_set.metadata.uid.unwrap_or_default(),
        }
    }
}

impl From<Pod> for ObservedPod {
    fn from(pod: Pod) -> Self {
        let container = pod.spec.containers.first();
        let tag = container.and_then(|container| container.image.rsplit_once(':'));
        Self {
            version: tag.map_or_else(String::new, |(_, tag)| tag.to_owned()),
            state: state(&pod),
            owner: meta::controller(&pod.metadata).map(|owner| owner.uid.clone()),
            name: pod.metadata.name.unwrap_or_default(),
            uid: pod.metadata.uid.unwrap_or_default(),
            node: pod.spec.node_name,
        }
    }
}

fn state(pod: &Pod) -> State {
    let statuses = &pod.status.container_statuses;
    let fails = |status: &ContainerStatus| {
        let waiting = status.state.waiting.as_ref();
        waiting.is_some_and(|waiting| waiting.reason() == WaitingReason::CrashLoopBackOff)
    };
    if pod.metadata.deletion_timestamp.is_some() {
        State::Terminating
    } else if statuses.iter().any(fails) {
        State::Failing
    } else if !statuses.is_empty() && statuses.iter().all(|status| status.ready) {
        State::Ready
    } else {
        State::Starting
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(extra: &Value, statuses: &Value) -> ObservedPod {
        let mut metadata = json!({"name": "a", "uid": "u", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "o", "controller": true}]});
        let fields = extra.as_object().unwrap().clone();
        metadata.as_object_mut().unwrap().extend(fields);
        let pod = json!({
            "metadata": metadata,
            "spec": {"nodeName": "n", "containers": [{"image": "log-shipper:2.0"}]},
            "status": {"containerStatuses": statuses},
        });
        serde_json::from_value::<Pod>(pod).unwrap().into()
    }

    #[test]
    fn the_state_follows_from_the_status() {
        let loops = json!([{"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
        let check = |extra: Value, statuses: &Value, expected| {
            let pod = pod(&extra, statuses);
            assert_eq!(pod.state, expected, "{statuses}");
            assert_eq!(
                (pod.version.as_str(), pod.owner.as_deref()),
                ("2.0", Some("o"))
            );
        };
        check(json!({}), &json!([]), State::Starting);
        check(json!({}), &json!([{"ready": false}]), State::Starting);
        check(json!({}), &json!([{"ready": true}]), State::Ready);
        check(json!({}), &loops, State::Failing);
        check(
            json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            &json!([{"ready": true}]),
            State::Terminating,
        );
    }
}
