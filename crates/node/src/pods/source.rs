//! Where pods come from. Sources say what is to run; they judge nothing and keep nothing.

use std::sync::Arc;

use futures_util::StreamExt as _;
use kennel_client::feed;
use kube::Client;
use kube::api::{Api, ObjectMeta};
use kube::runtime::watcher::Config;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Origin, Pod};
use crate::runtime::PodId;

/// Marks what the API shows of a pod that comes from a file.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// What a source says.
#[derive(Clone, Debug)]
pub enum Change {
    /// A pod is there, or has changed.
    Set(Arc<Pod>),
    /// A pod is gone.
    Gone(PodId),
    /// All that this source has was said once.
    Synced(Origin),
}

/// Tells of the API's pods for this node, by one list and one watch, until told to stop. Mirrors of static pods
/// are told to `mirrors` alone: nobody runs them.
pub async fn api(
    client: Client,
    node_name: &str,
    pods: mpsc::Sender<Change>,
    mirrors: mpsc::Sender<Change>,
    stop: CancellationToken,
) {
    let ours = Config::default().fields(&format!("spec.nodeName={node_name}"));
    let mut changes = feed::watch(Api::<Whole>::all(client), ours, "the node's pods");
    let tell_all = async {
        while let Some(change) = changes.next().await {
            if !tell(change, &pods, &mirrors).await {
                return;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = tell_all => {}
    }
}

/// Does anybody still listen?
async fn tell(
    change: feed::Change<Whole>,
    pods: &mpsc::Sender<Change>,
    mirrors: &mpsc::Sender<Change>,
) -> bool {
    match change {
        feed::Change::Applied(whole) => {
            let Some(pod) = whole.into_pod() else {
                return true;
            };
            let mirror = pod.metadata()["annotations"][MIRROR].is_string();
            let listeners = if mirror { mirrors } else { pods };
            listeners.send(Change::Set(Arc::new(pod))).await.is_ok() || mirror
        }
        feed::Change::Gone(id) => {
            let id = PodId {
                namespace: id.namespace.to_string(),
                name: id.name.to_string(),
                uid: id.uid.to_string(),
            };
            // Of what is gone nobody knows any more which it was. Who does not know it lets it be.
            let _nobody = mirrors.send(Change::Gone(id.clone())).await;
            pods.send(Change::Gone(id)).await.is_ok()
        }
        feed::Change::Synced => {
            let _nobody = mirrors.send(Change::Synced(Origin::Api)).await;
            pods.send(Change::Synced(Origin::Api)).await.is_ok()
        }
    }
}

/// A pod of the API with all its fields.
#[derive(Clone, Debug, Deserialize)]
struct Whole {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

kennel_client::resource!(Whole, kube::core::NamespaceResourceScope, "", "Pod", "pods");

impl Whole {
    fn into_pod(mut self) -> Option<Pod> {
        self.metadata.managed_fields = None;
        let id = format!("{:?}/{:?}", self.metadata.namespace, self.metadata.name);
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata,
            "spec": self.spec, "status": self.status});
        let parsed = Pod::parse(object, Origin::Api);
        parsed
            .inspect_err(|error| tracing::error!(pod = id, "this pod cannot be read: {error}"))
            .ok()
    }
}
