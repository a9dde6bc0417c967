//! What is known of the pods on this node right now, for those who only want to look: kubectl's requests,
//! pressure, metrics. Workers write their own entry and nobody else's.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use kennel_core::pod::Observed;
use serde_json::Value;

use super::Pod;

/// A pod, how it runs and what was told about it.
#[derive(Clone, Debug)]
pub struct View {
    /// The pod.
    pub pod: Arc<Pod>,
    /// What runs.
    pub observed: Observed,
    /// The status that was last worked out, whether or not the API has it yet.
    pub status: Value,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Directory(RwLock<BTreeMap<String, Arc<View>>>);

impl Directory {
    /// Writes an entry.
    pub fn set(&self, view: View) {
        let uid = view.pod.id.uid.clone();
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(uid, Arc::new(view));
    }

    /// Takes an entry out.
    pub fn remove(&self, uid: &str) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(uid);
    }

    /// A pod by uid.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<View>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(uid).cloned()
    }

    /// A pod by name. While one that ends has the name of its successor, the successor is meant.
    pub fn by_name(&self, namespace: &str, name: &str) -> Option<Arc<View>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let named = |view: &&Arc<View>| {
            let id = &view.pod.id;
            id.namespace == namespace && id.name == name
        };
        all.values()
            .filter(named)
            .min_by_key(|view| view.pod.is_deleted())
            .cloned()
    }

    /// All pods.
    pub fn all(&self) -> Vec<Arc<View>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }
}
