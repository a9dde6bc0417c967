//! Labels and annotations of sandboxes and containers: upstream's, which tools such as `crictl` and log collectors know,
//! and our own.

use std::collections::BTreeMap;

use crate::runtime::PodId;

pub(super) const POD_NAME: &str = "io.kubernetes.pod.name";
pub(super) const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
pub(super) const POD_UID: &str = "io.kubernetes.pod.uid";
pub(super) const CONTAINER_NAME: &str = "io.kubernetes.container.name";
pub(super) const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
pub(super) const TERMINATION_MESSAGE: &str = "io.kubernetes.container.terminationMessagePath";
/// The image as the container's spec names it.
pub(super) const IMAGE: &str = "agent.kennel.dev/image";
/// The stop signal of its spec, if there is one.
pub(super) const STOP_SIGNAL: &str = "agent.kennel.dev/stop-signal";
/// The cgroup of a pod, which is removed with it.
pub(super) const CGROUP: &str = "agent.kennel.dev/cgroup";
/// The data directory of the agent that created a sandbox.
pub(super) const DATA_DIR: &str = "agent.kennel.dev/data-dir";
/// Marks our containers: a runtime may serve other clients, too.
const MANAGED: &str = "agent.kennel.dev/managed";

/// The labels of everything that belongs to a pod.
pub(super) fn of(pod: &PodId) -> BTreeMap<String, String> {
    let mut labels = managed();
    for (key, value) in [
        (POD_NAME, &pod.name),
        (POD_NAMESPACE, &pod.namespace),
        (POD_UID, &pod.uid),
    ] {
        labels.insert(key.to_owned(), value.clone());
    }
    labels
}

/// Selects our sandboxes or containers; only those of one pod if a uid is given.
pub(super) fn selector(uid: Option<&str>) -> BTreeMap<String, String> {
    let mut labels = managed();
    if let Some(uid) = uid {
        labels.insert(POD_UID.to_owned(), uid.to_owned());
    }
    labels
}

fn managed() -> BTreeMap<String, String> {
    BTreeMap::from([(MANAGED.to_owned(), "true".to_owned())])
}

/// The value of a label; empty if it is missing.
pub(super) fn get(labels: &BTreeMap<String, String>, key: &str) -> String {
    labels.get(key).cloned().unwrap_or_default()
}

/// The pod that something belongs to.
pub(super) fn pod(labels: &BTreeMap<String, String>) -> PodId {
    PodId {
        namespace: get(labels, POD_NAMESPACE),
        name: get(labels, POD_NAME),
        uid: get(labels, POD_UID),
    }
}
