//! Compares static pods with the mirror pods in the API, and decides which action comes next. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::pod::MIRROR_ANNOTATION;

use crate::pods::{Origin, Pod, PodUpdate};
use crate::runtime::PodId;

/// Namespace and name.
pub(super) type Key = (String, String);

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Create a mirror of this static pod.
    Create(Arc<Pod>),
    /// Delete the mirror pod with this uid.
    Delete(String),
    /// Tell the status manager which mirror pod the static pod `uid` has.
    SetMirror { uid: String, mirror: Option<String> },
}

/// A mirror pod in the API.
#[derive(Clone, Debug)]
struct MirrorPod {
    uid: String,
    /// The static pod's uid.
    hash: String,
    /// It has a deletion timestamp.
    terminating: bool,
    /// We have deleted it, and the API server has accepted that.
    deleted: bool,
}

#[derive(Default)]
pub(super) struct Reconciler {
    static_pods: BTreeMap<Key, Arc<Pod>>,
    mirror_pods: BTreeMap<Key, MirrorPod>,
    static_pods_synced: bool,
    mirror_pods_synced: bool,
    /// The mirror pods that the status manager knows, by the static pod's uid.
    reported: BTreeMap<String, String>,
}

impl Reconciler {
    pub(super) fn on_static_pod(&mut self, update: PodUpdate) {
        match update {
            PodUpdate::Set(pod) => {
                self.static_pods.insert(key(&pod.id), pod);
            }
            PodUpdate::Removed(id) => {
                let key = key(&id);
                let known = self.static_pods.get(&key);
                if known.is_some_and(|pod| pod.id.uid == id.uid) {
                    self.static_pods.remove(&key);
                }
                self.reported.remove(&id.uid);
            }
            PodUpdate::Synced(origin) => self.static_pods_synced |= origin == Origin::File,
        }
    }

    pub(super) fn on_mirror_pod(&mut self, update: PodUpdate) {
        match update {
            PodUpdate::Set(mirror) => {
                let hash = mirror.metadata()["annotations"][MIRROR_ANNOTATION].as_str();
                let known = self.mirror_pods.get(&key(&mirror.id));
                let same = known.filter(|known| known.uid == mirror.id.uid);
                let mirror_pod = MirrorPod {
                    uid: mirror.id.uid.clone(),
                    hash: hash.unwrap_or_default().to_owned(),
                    terminating: mirror.is_deleted(),
                    deleted: same.is_some_and(|known| known.deleted),
                };
                self.mirror_pods.insert(key(&mirror.id), mirror_pod);
            }
            PodUpdate::Removed(id) => {
                let key = key(&id);
                let known = self.mirror_pods.get(&key);
                if known.is_some_and(|known| known.uid == id.uid) {
                    self.mirror_pods.remove(&key);
                }
            }
            PodUpdate::Synced(origin) => self.mirror_pods_synced |= origin == Origin::Api,
        }
    }

    /// The mirror pod `uid` of this static pod was created.
    pub(super) fn created(&mut self, key: &Key, uid: &str, pod: &Pod) {
        let mirror_pod = MirrorPod {
            uid: uid.to_owned(),
            hash: pod.id.uid.clone(),
            terminating: false,
            deleted: false,
        };
        self.mirror_pods.entry(key.clone()).or_insert(mirror_pod);
    }

    /// The API server has accepted the deletion; `gone` if the pod does not exist any more.
    pub(super) fn deleted(&mut self, key: &Key, uid: &str, gone: bool) {
        let known = self.mirror_pods.get_mut(key);
        let Some(mirror_pod) = known.filter(|known| known.uid == uid) else {
            return;
        };
        mirror_pod.deleted = true;
        if gone {
            self.mirror_pods.remove(key);
        }
    }

    /// The status manager knows the mirror pod of the static pod `uid`.
    pub(super) fn mirror_set(&mut self, uid: &str, mirror: Option<&str>) {
        match mirror {
            Some(mirror) => self.reported.insert(uid.to_owned(), mirror.to_owned()),
            None => self.reported.remove(uid),
        };
    }

    /// Whether there is a static or a mirror pod of this name.
    pub(super) fn knows(&self, key: &Key) -> bool {
        self.static_pods.contains_key(key) || self.mirror_pods.contains_key(key)
    }

    /// At most one action for each name.
    pub(super) fn actions(&self) -> Vec<(Key, Action)> {
        // Before the API has synced, a mirror pod may exist that is not known yet.
        if !self.mirror_pods_synced {
            return Vec::new();
        }
        let pods = self.static_pods.iter();
        let actions = pods.filter_map(|(key, pod)| Some((key.clone(), self.action(key, pod)?)));
        let orphans = self.mirror_pods.iter().filter_map(|(key, mirror_pod)| {
            let orphaned = self.static_pods_synced
                && !self.static_pods.contains_key(key)
                && !mirror_pod.deleted;
            orphaned.then(|| (key.clone(), Action::Delete(mirror_pod.uid.clone())))
        });
        actions.chain(orphans).collect()
    }

    fn action(&self, key: &Key, pod: &Arc<Pod>) -> Option<Action> {
        let uid = pod.id.uid.clone();
        let reported = self.reported.get(&uid);
        match self.mirror_pods.get(key) {
            Some(current) if current.hash == uid && !current.terminating => {
                let mirror = Some(current.uid.clone());
                (reported != mirror.as_ref()).then_some(Action::SetMirror { uid, mirror })
            }
            _ if reported.is_some() => Some(Action::SetMirror { uid, mirror: None }),
            Some(stale) if stale.deleted => None,
            Some(stale) => Some(Action::Delete(stale.uid.clone())),
            None => Some(Action::Create(Arc::clone(pod))),
        }
    }
}

fn key(id: &PodId) -> Key {
    (id.namespace.clone(), id.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str) -> PodUpdate {
        let metadata = json!({"namespace": "ns", "name": "p", "uid": uid});
        set(&metadata, Origin::File)
    }

    fn mirror(uid: &str, of: &str, deleted: bool) -> PodUpdate {
        let mut metadata = json!({"namespace": "ns", "name": "p", "uid": uid,
            "annotations": {MIRROR_ANNOTATION: of}});
        if deleted {
            metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        }
        set(&metadata, Origin::Api)
    }

    fn set(metadata: &serde_json::Value, origin: Origin) -> PodUpdate {
        let object = json!({"metadata": metadata, "spec": {"containers": []}});
        PodUpdate::Set(Arc::new(Pod::parse(object, origin).unwrap()))
    }

    fn removed(uid: &str) -> PodUpdate {
        PodUpdate::Removed(PodId {
            namespace: "ns".to_owned(),
            name: "p".to_owned(),
            uid: uid.to_owned(),
        })
    }

    /// Takes the next action and describes it.
    fn next(reconciler: &mut Reconciler) -> String {
        let Some((key, action)) = reconciler.actions().pop() else {
            return String::new();
        };
        match action {
            Action::Create(pod) => {
                reconciler.created(&key, "m9", &pod);
                format!("create {}", pod.id.uid)
            }
            Action::Delete(uid) => {
                reconciler.deleted(&key, &uid, false);
                format!("delete {uid}")
            }
            Action::SetMirror { uid, mirror } => {
                reconciler.mirror_set(&uid, mirror.as_deref());
                format!("{uid} has {mirror:?}")
            }
        }
    }

    fn synced() -> Reconciler {
        let mut reconciler = Reconciler::default();
        reconciler.on_static_pod(PodUpdate::Synced(Origin::File));
        reconciler.on_mirror_pod(PodUpdate::Synced(Origin::Api));
        reconciler
    }

    #[test]
    fn a_pod_gets_one_mirror() {
        let mut reconciler = Reconciler::default();
        reconciler.on_static_pod(pod("a"));
        assert_eq!(next(&mut reconciler), "", "the API may have it already");
        reconciler.on_mirror_pod(PodUpdate::Synced(Origin::Api));
        assert_eq!(next(&mut reconciler), "create a");
        assert_eq!(next(&mut reconciler), "a has Some(\"m9\")");
        reconciler.on_mirror_pod(mirror("m9", "a", false));
        assert_eq!(next(&mut reconciler), "");
    }

    #[test]
    fn a_deleted_mirror_is_created_again() {
        let mut reconciler = synced();
        reconciler.on_static_pod(pod("a"));
        reconciler.on_mirror_pod(mirror("m1", "a", false));
        assert_eq!(next(&mut reconciler), "a has Some(\"m1\")");
        reconciler.on_mirror_pod(mirror("m1", "a", true));
        assert_eq!(next(&mut reconciler), "a has None");
        assert_eq!(next(&mut reconciler), "delete m1");
        assert_eq!(next(&mut reconciler), "", "it is not gone yet");
        reconciler.on_mirror_pod(removed("m1"));
        assert_eq!(next(&mut reconciler), "create a");
    }

    #[test]
    fn a_mirror_of_another_pod_is_replaced() {
        let mut reconciler = synced();
        reconciler.on_mirror_pod(mirror("m1", "old", false));
        reconciler.on_static_pod(pod("a"));
        assert_eq!(next(&mut reconciler), "delete m1");
        reconciler.on_mirror_pod(removed("m1"));
        assert_eq!(next(&mut reconciler), "create a");
    }

    #[test]
    fn orphaned_mirrors_are_deleted_once_manifests_are_synced() {
        let mut reconciler = Reconciler::default();
        reconciler.on_mirror_pod(mirror("m1", "a", false));
        reconciler.on_mirror_pod(PodUpdate::Synced(Origin::Api));
        assert_eq!(next(&mut reconciler), "");
        reconciler.on_static_pod(PodUpdate::Synced(Origin::File));
        assert_eq!(next(&mut reconciler), "delete m1");
        assert_eq!(next(&mut reconciler), "");
    }

    #[test]
    fn removals_of_other_pods_change_nothing() {
        let mut reconciler = synced();
        reconciler.on_static_pod(pod("a"));
        reconciler.on_mirror_pod(mirror("m1", "a", false));
        next(&mut reconciler);
        reconciler.on_mirror_pod(removed("other"));
        assert_eq!(next(&mut reconciler), "");
    }
}
