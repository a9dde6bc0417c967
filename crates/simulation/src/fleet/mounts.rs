//! What the pods of a node mount by default: a token of the service account, and the authorities of the cluster. A pod does not
//! start before it has its token.

use std::sync::Arc;

use kennel_client::api;
use kennel_client::write::Call;
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::{Fleet, SimulatedNode, TaskResult};
use crate::discard::{self, Discard};

/// The lifetime of a token that admission asks for, of which it renews one a little late.
const TOKEN_SECONDS: u32 = 3607;

/// The config map that the pods of a node mount in one namespace.
pub(super) struct Mount {
    namespace: Arc<str>,
    pods: u32,
    _watch: AbortOnDropHandle<()>,
}

impl Fleet {
    /// Watches the config map with the authorities, as long as the node has pods that mount it.
    pub(super) fn mount_authorities(&mut self, index: usize, namespace: &Arc<str>) {
        let name = self.name(index);
        let mounts = &mut self.nodes[index].mounts;
        if let Some(mount) = mounts.iter_mut().find(|one| one.namespace == *namespace) {
            mount.pods += 1;
            return;
        }
        let (client, bytes) = ((self.client_of)(&name), self.counts.discarded.clone());
        let objects = discard::authorities(namespace);
        let watch = tokio::spawn(async move {
            Discard::begin(client, objects, bytes).await.run().await;
        });
        mounts.push(Mount {
            namespace: namespace.clone(),
            pods: 1,
            _watch: AbortOnDropHandle::new(watch),
        });
    }

    /// Requests the token of a pod, which the pod's first write waits for.
    pub(super) fn request_token(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get(uid) else {
            return;
        };
        let (id, template) = (pod.id.clone(), pod.template.clone());
        let writer = self.writer(&self.name(pod.node));
        self.work.push(async move {
            let accounts = api::core_path(&id.namespace, "serviceaccounts");
            let account = template.token_account.as_deref().unwrap_or_default();
            let request = json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [],
                    "expirationSeconds": TOKEN_SECONDS,
                    "boundObjectRef": {
                        "apiVersion": "v1", "kind": "Pod", "name": &*id.name, "uid": &*id.uid,
                    },
                },
            });
            let path = format!("{accounts}/{account}/token");
            let issued = writer.send(&Call::create(path, request.to_string())).await;
            if let Err(failure) = &issued {
                tracing::warn!("requesting a token for pod {} failed: {failure}", id.name);
            }
            TaskResult::TokenIssued(id.uid, issued.is_ok())
        });
    }

    pub(super) fn on_token_issued(&mut self, uid: &Arc<str>, issued: bool) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        if !issued {
            let retry = TaskResult::RetryPodWrite(uid.clone());
            return self.work.later(self.retry.next_delay(), retry);
        }
        pod.needs_token = false;
        pod.write_in_flight = false;
        if let Some((_, status)) = pod.deferred.take() {
            pod.set_api_status(status);
        }
        self.retry.reset();
        self.write(uid);
    }
}

impl SimulatedNode {
    /// A pod that mounts the authorities is gone.
    pub(super) fn unmount(&mut self, namespace: &str) {
        if let Some(mount) = self
            .mounts
            .iter_mut()
            .find(|one| *one.namespace == *namespace)
        {
            mount.pods -= 1;
        }
        self.mounts.retain(|mount| mount.pods > 0);
    }
}
