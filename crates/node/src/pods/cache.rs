//! The current state of every pod on this node, for readers outside the pod manager: the kubelet API, eviction and
//! metrics. Each worker writes only the entry of its own pod.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use kennel_core::pod::Observed;
use serde_json::Value;

use super::Pod;

#[derive(Clone, Debug)]
pub struct CachedPod {
    pub pod: Arc<Pod>,
    pub observed: Observed,
    /// The newest computed status, whether or not the API server has it yet.
    pub status: Value,
}

/// Pods by uid.
#[derive(Debug, Default)]
pub struct PodCache(RwLock<BTreeMap<String, Arc<CachedPod>>>);

impl PodCache {
    pub fn set(&self, pod: CachedPod) {
        let uid = pod.pod.id.uid.clone();
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(uid, Arc::new(pod));
    }

    pub fn remove(&self, uid: &str) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(uid);
    }

    pub fn by_uid(&self, uid: &str) -> Option<Arc<CachedPod>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(uid).cloned()
    }

    /// While a terminating pod and its successor share a name, returns the successor.
    pub fn by_name(&self, namespace: &str, name: &str) -> Option<Arc<CachedPod>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let named = |cached: &&Arc<CachedPod>| {
            let id = &cached.pod.id;
            id.namespace == namespace && id.name == name
        };
        all.values()
            .filter(named)
            .min_by_key(|cached| cached.pod.is_deleted())
            .cloned()
    }

    pub fn all(&self) -> Vec<Arc<CachedPod>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }
}
