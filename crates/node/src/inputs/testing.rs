//! What tests of this room share: a pod, settings, an API that holds what it is told.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::{ApiAddress, Paths, Settings};
use crate::pods::{Origin, Pod};

/// The pod `shop/web` with this spec.
pub(super) fn pod(spec: Value) -> Pod {
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "u1"});
    let object = json!({"metadata": metadata, "spec": spec});
    Pod::parse(object, Origin::Api).unwrap()
}

/// Settings of a node that keeps its things in `dir`.
pub(super) fn settings(dir: &Path) -> Settings {
    Settings {
        node_name: "n1".into(),
        addresses: vec!["10.0.0.1".parse().unwrap()],
        paths: Paths {
            data: dir.join("data"),
            logs: dir.join("logs"),
        },
        labels: Default::default(),
        taints: Vec::new(),
        listen: "127.0.0.1:0".parse().unwrap(),
        cluster_dns: Vec::new(),
        cluster_domain: "cluster.local".into(),
        api: Some(ApiAddress {
            host: "192.0.2.5".into(),
            port: 6443,
        }),
        manifest_dir: None,
        max_pods: 110,
    }
}

/// Those, shared.
pub(super) fn shared_settings(dir: &Path) -> Arc<Settings> {
    Arc::new(settings(dir))
}
