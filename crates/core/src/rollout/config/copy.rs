//! The ConfigMap that a revision owns.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CONFIG, COPY_OF};
use crate::daemonset::HASH_LABEL;
use crate::daemonset::event::Object;

/// A copy to make, in the namespace of its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigCopy {
    pub name: Arc<str>,
    /// The ConfigMap that has the content.
    pub source: Arc<str>,
    /// The hash that its content must have.
    pub hash: Arc<str>,
    /// The ConfigMap that the template names.
    pub config_map: Arc<str>,
    /// The config's hash.
    pub config: Arc<str>,
    /// The owner.
    pub revision: Object,
    pub revision_hash: Arc<str>,
}

impl ConfigCopy {
    /// The body of the request that creates it, with the contents of its source.
    pub fn body(&self, namespace: &str, source: &Value) -> Value {
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": &*self.name,
                "namespace": namespace,
                "labels": {CONFIG: &*self.config, HASH_LABEL: &*self.revision_hash},
                "annotations": {COPY_OF: &*self.config_map},
                // Without blockOwnerDeletion, which would need more rights.
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "ControllerRevision",
                    "name": &*self.revision.name,
                    "uid": &*self.revision.uid,
                    "controller": true,
                }],
            },
            "immutable": true,
        });
        for member in ["data", "binaryData"] {
            if let Some(content) = source.get(member).filter(|content| content.is_object()) {
                body[member] = content.clone();
            }
        }
        body
    }
}
