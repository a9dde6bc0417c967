//! The `ConfigMap`s and `Secret`s that a pod references.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Key, Kind};
use crate::json::{containers, list, text};
use crate::pods::{Origin, Pod};

/// Each once. A static pod references none: it must run without an API server.
pub(in crate::inputs) fn references(pod: &Pod) -> Vec<Key> {
    if pod.origin == Origin::File {
        return Vec::new();
    }
    let mut found = References {
        namespace: &pod.id.namespace,
        keys: BTreeSet::new(),
    };
    let spec = pod.raw_spec();
    for secret in list(spec, "imagePullSecrets") {
        found.add(Kind::Secret, text(secret, "name"));
    }
    for container in containers(spec) {
        found.add_variables(container);
    }
    for volume in list(spec, "volumes") {
        found.add(Kind::Secret, text(&volume["secret"], "secretName"));
        found.add(Kind::ConfigMap, text(&volume["configMap"], "name"));
        for source in list(&volume["projected"], "sources") {
            found.add(Kind::Secret, text(&source["secret"], "name"));
            found.add(Kind::ConfigMap, text(&source["configMap"], "name"));
        }
    }
    found.keys.into_iter().collect()
}

struct References<'a> {
    namespace: &'a str,
    keys: BTreeSet<Key>,
}

impl References<'_> {
    fn add_variables(&mut self, container: &Value) {
        for from in list(container, "envFrom") {
            self.add(Kind::ConfigMap, text(&from["configMapRef"], "name"));
            self.add(Kind::Secret, text(&from["secretRef"], "name"));
        }
        for variable in list(container, "env") {
            let from = &variable["valueFrom"];
            self.add(Kind::ConfigMap, text(&from["configMapKeyRef"], "name"));
            self.add(Kind::Secret, text(&from["secretKeyRef"], "name"));
        }
    }

    fn add(&mut self, kind: Kind, name: &str) {
        if !name.is_empty() {
            self.keys.insert(Key {
                kind,
                namespace: self.namespace.to_owned(),
                name: name.to_owned(),
            });
        }
    }
}
