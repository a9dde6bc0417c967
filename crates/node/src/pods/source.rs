//! Watches the API server for the pods of this node.

use std::sync::Arc;

use futures_util::StreamExt as _;
use kennel_client::feed;
use kennel_types::pod::MIRROR_ANNOTATION;
use kube::Client;
use kube::api::{Api, ObjectMeta};
use kube::runtime::watcher::Config;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Origin, Pod};
use crate::runtime::PodId;

/// What a source of pods reports.
#[derive(Clone, Debug)]
pub enum PodUpdate {
    /// Added or changed.
    Set(Arc<Pod>),
    Removed(PodId),
    /// The source has reported every pod that it has at least once.
    Synced(Origin),
}

/// Lists and watches this node's pods until `stop`. Mirror pods go to `mirrors` only: the node does not run them.
pub async fn api(
    client: Client,
    node_name: &str,
    pods: mpsc::Sender<PodUpdate>,
    mirrors: mpsc::Sender<PodUpdate>,
    stop: CancellationToken,
) {
    let ours = Config::default().fields(&format!("spec.nodeName={node_name}"));
    let mut changes = feed::watch(Api::<WholePod>::all(client), ours, "the node's pods");
    let forward_all = async {
        while let Some(change) = changes.next().await {
            if !forward(change, &pods, &mirrors).await {
                return;
            }
        }
    };
    stop.run_until_cancelled(forward_all).await;
}

/// Returns false once the receiver of pods is gone.
async fn forward(
    change: feed::Change<WholePod>,
    pods: &mpsc::Sender<PodUpdate>,
    mirrors: &mpsc::Sender<PodUpdate>,
) -> bool {
    match change {
        feed::Change::Applied(whole) => {
            let Some(pod) = whole.into_pod() else {
                return true;
            };
            let mirror = pod.metadata()["annotations"][MIRROR_ANNOTATION].is_string();
            let receiver = if mirror { mirrors } else { pods };
            receiver.send(PodUpdate::Set(Arc::new(pod))).await.is_ok() || mirror
        }
        feed::Change::Gone(id) => {
            let id = PodId {
                namespace: id.namespace.to_string(),
                name: id.name.to_string(),
                uid: id.uid.to_string(),
            };
            // A delete event does not say whether the pod was a mirror pod, so notify both receivers; the wrong one
            // ignores it.
            let _closed = mirrors.send(PodUpdate::Removed(id.clone())).await;
            pods.send(PodUpdate::Removed(id)).await.is_ok()
        }
        feed::Change::Synced => {
            let _closed = mirrors.send(PodUpdate::Synced(Origin::Api)).await;
            pods.send(PodUpdate::Synced(Origin::Api)).await.is_ok()
        }
    }
}

/// A pod of the API with all its fields.
#[derive(Clone, Debug, Deserialize)]
struct WholePod {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

kennel_types::resource!(WholePod; kube::core::NamespaceResourceScope, "", "Pod", "pods");

impl WholePod {
    fn into_pod(mut self) -> Option<Pod> {
        self.metadata.managed_fields = None;
        let id = format!("{:?}/{:?}", self.metadata.namespace, self.metadata.name);
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata,
            "spec": self.spec, "status": self.status});
        let parsed = Pod::parse(object, Origin::Api);
        parsed
            .inspect_err(|error| tracing::error!(pod = id, "ignoring an invalid pod: {error}"))
            .ok()
    }
}
