//! Mirror pods: shows static pods in the API.
//!
//! Deleting a mirror pod does not stop its static pod; it is created again. It is deleted once its static pod has
//! terminated. The status manager writes its status, so it gets to know which mirror pod a static pod has.

mod reconciler;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kennel_client::write::{Call, Failure, Writer};
use kennel_types::pod::MIRROR_ANNOTATION;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::reconciler::{Action, Key, Reconciler};
use crate::pods::{Command, CommandSender, Pod, PodUpdate};
use crate::sync::sleep_until;

/// Before a failed write is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_mins(1));

/// What the manager of mirror pods needs.
pub struct Mirror {
    pub writer: Writer,
    /// The node's own object, which owns mirror pods. None are created before it has a uid.
    pub node: watch::Receiver<Arc<Value>>,
    pub commands: CommandSender,
    /// From [`super::Manifests::mirror`].
    pub static_pods: mpsc::Receiver<PodUpdate>,
    /// This node's mirror pods in the API, from [`crate::pods::source::api`].
    pub mirror_pods: mpsc::Receiver<PodUpdate>,
}

/// Creates and deletes mirror pods until `stop`.
pub async fn run(mirror: Mirror, stop: CancellationToken) {
    let manager = MirrorManager {
        mirror,
        reconciler: Reconciler::default(),
        retries: BTreeMap::new(),
    };
    stop.run_until_cancelled(manager.run()).await;
}

struct MirrorManager {
    mirror: Mirror,
    reconciler: Reconciler,
    /// When to retry what failed, and how often it failed.
    retries: BTreeMap<Key, (Instant, u32)>,
}

impl MirrorManager {
    async fn run(mut self) {
        loop {
            while self.reconcile().await {}
            let retry_at = self.retries.values().map(|(time, _)| *time).min();
            tokio::select! {
                update = self.mirror.static_pods.recv() => match update {
                    Some(update) => self.reconciler.on_static_pod(update),
                    None => return,
                },
                update = self.mirror.mirror_pods.recv() => match update {
                    Some(update) => self.reconciler.on_mirror_pod(update),
                    None => return,
                },
                Ok(()) = self.mirror.node.changed() => {}
                () = sleep_until(retry_at) => {}
            }
        }
    }

    /// Takes one action for each pod that needs one. Returns whether any succeeded.
    async fn reconcile(&mut self) -> bool {
        let Some(owner) = self.owner() else {
            return false;
        };
        let mut any = false;
        for (key, action) in self.reconciler.actions() {
            let retry = self.retries.get(&key);
            if retry.is_some_and(|(time, _)| *time > Instant::now()) {
                continue;
            }
            match self.execute(&key, action, &owner).await {
                Ok(()) => {
                    self.retries.remove(&key);
                    any = true;
                }
                Err(failure) => self.retry_later(key, &failure),
            }
        }
        let reconciler = &self.reconciler;
        self.retries.retain(|key, _| reconciler.knows(key));
        any
    }

    async fn execute(&mut self, key: &Key, action: Action, owner: &Value) -> Result<(), Failure> {
        match action {
            Action::Create(pod) => {
                let path = format!("/api/v1/namespaces/{}/pods", key.0);
                let body = mirror_object(&pod, owner).to_string();
                let answer = self.mirror.writer.send(&Call::create(path, body)).await?;
                self.reconciler.created(key, &answer.written().uid, &pod);
            }
            Action::Delete(uid) => {
                let path = format!("/api/v1/namespaces/{}/pods/{}", key.0, key.1);
                match self.mirror.writer.send(&Call::delete_now(path, &uid)).await {
                    Ok(_) => self.reconciler.deleted(key, &uid, false),
                    // It is gone, or another pod has its name by now.
                    Err(failure) if failure.is(404) || failure.is(409) => {
                        self.reconciler.deleted(key, &uid, true);
                    }
                    Err(failure) => return Err(failure),
                }
            }
            Action::SetMirror { uid, mirror } => {
                self.reconciler.mirror_set(&uid, mirror.as_deref());
                self.mirror
                    .commands
                    .send(Command::SetMirror { uid, mirror })
                    .await;
            }
        }
        Ok(())
    }

    fn retry_later(&mut self, key: Key, failure: &Failure) {
        let failures = self.retries.get(&key).map_or(0, |(_, failures)| *failures);
        let retry_at = Instant::now() + backoff::delay(&RETRY, failures);
        let (namespace, name) = &key;
        tracing::warn!("cannot update the mirror of static pod {namespace}/{name}: {failure}");
        self.retries
            .insert(key, (retry_at, failures.saturating_add(1)));
    }

    /// The owner reference of mirror pods.
    fn owner(&self) -> Option<Value> {
        let node = self.mirror.node.borrow();
        let metadata = &node["metadata"];
        let (name, uid) = (metadata["name"].as_str()?, metadata["uid"].as_str()?);
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid,
            "controller": true});
        (!uid.is_empty()).then_some(owner)
    }
}

fn mirror_object(pod: &Pod, owner: &Value) -> Value {
    let own = pod.metadata();
    let mut metadata = json!({
        "name": own["name"], "namespace": own["namespace"], "annotations": own["annotations"],
        "ownerReferences": [owner],
    });
    if own["labels"].is_object() {
        metadata["labels"] = own["labels"].clone();
    }
    metadata["annotations"][MIRROR_ANNOTATION] = pod.id.uid.as_str().into();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.raw_spec()})
}
