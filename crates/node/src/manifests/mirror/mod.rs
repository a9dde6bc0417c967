//! Mirrors: what the API shows of static pods.
//!
//! A mirror is a picture. Deleting it stops nothing, and it comes back; it goes when its pod is over. Its status
//! is written by those who report statuses, to whom it is told which mirror a pod has.

mod album;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kennel_client::write::{Call, Content, Failure, Writer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::album::{Act, Album, Key};
use crate::pods::{Command, CommandSender, Pod, PodUpdate};

/// Marks a mirror; its value is the hash of the pod that it shows.
pub const MIRROR: &str = crate::pods::source::MIRROR;

/// The wait after a failure; doubled each time …
const RETRY: Duration = Duration::from_secs(1);
/// … up to this.
const RETRY_MAX: Duration = Duration::from_mins(1);

/// What keeping mirrors needs.
pub struct Mirror {
    /// Makes and deletes them, as the node.
    pub writer: Writer,
    /// The node's own object: mirrors belong to it, as soon as it has a uid.
    pub node: watch::Receiver<Arc<Value>>,
    /// Takes which mirror a pod has.
    pub orders: CommandSender,
    /// The static pods: [`super::Manifests::shown`].
    pub statics: mpsc::Receiver<PodUpdate>,
    /// The mirrors that the API has for this node: [`crate::pods::source::api`]'s.
    pub mirrors: mpsc::Receiver<PodUpdate>,
}

/// Keeps mirrors, until told to stop.
pub async fn keep(mirror: Mirror, stop: CancellationToken) {
    let painter = Painter {
        writer: mirror.writer,
        node: mirror.node,
        orders: mirror.orders,
        album: Album::default(),
        failed: BTreeMap::new(),
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = painter.paint(mirror.statics, mirror.mirrors) => {}
    }
}

struct Painter {
    writer: Writer,
    node: watch::Receiver<Arc<Value>>,
    orders: CommandSender,
    album: Album,
    /// When to try again what failed, and how long the wait was.
    failed: BTreeMap<Key, (Instant, Duration)>,
}

impl Painter {
    async fn paint(
        mut self,
        mut statics: mpsc::Receiver<PodUpdate>,
        mut mirrors: mpsc::Receiver<PodUpdate>,
    ) {
        let mut registered = self.node.clone();
        loop {
            while self.catch_up().await {}
            let again = self.failed.values().map(|(time, _)| *time).min();
            tokio::select! {
                change = statics.recv() => match change {
                    Some(change) => self.album.has(change),
                    None => return,
                },
                change = mirrors.recv() => match change {
                    Some(change) => self.album.shows(change),
                    None => return,
                },
                Ok(()) = registered.changed() => {}
                () = until(again) => {}
            }
        }
    }

    /// Does one thing for each name that something can be done for. Was there any?
    async fn catch_up(&mut self) -> bool {
        let Some(owner) = self.owner() else {
            return false;
        };
        let mut done = false;
        for (key, act) in self.album.acts() {
            let waits = self.failed.get(&key);
            if waits.is_some_and(|(time, _)| *time > Instant::now()) {
                continue;
            }
            match self.act(&key, act, &owner).await {
                Ok(()) => {
                    self.failed.remove(&key);
                    done = true;
                }
                Err(failure) => self.wait(key, &failure),
            }
        }
        let album = &self.album;
        self.failed.retain(|key, _| album.knows(key));
        done
    }

    async fn act(&mut self, key: &Key, act: Act, owner: &Value) -> Result<(), Failure> {
        match act {
            Act::Create(pod) => {
                let path = format!("/api/v1/namespaces/{}/pods", key.0);
                let body = picture(&pod, owner).to_string();
                let answer = self.writer.send(&Call::create(path, body)).await?;
                self.album.created(key, &answer.written().uid, &pod);
            }
            Act::Delete(uid) => match self.writer.send(&delete(key, &uid)).await {
                Ok(_) => self.album.deleted(key, &uid, false),
                // It is gone, or another one has its name by now.
                Err(failure) if failure.is(404) || failure.is(409) => {
                    self.album.deleted(key, &uid, true);
                }
                Err(failure) => return Err(failure),
            },
            Act::Tell { uid, mirror } => {
                self.album.told(&uid, mirror.as_deref());
                self.orders.send(Command::SetMirror { uid, mirror }).await;
            }
        }
        Ok(())
    }

    fn wait(&mut self, key: Key, failure: &Failure) {
        let before = self.failed.get(&key).map(|(_, wait)| *wait);
        let wait = before.map_or(RETRY, |wait| (2 * wait).min(RETRY_MAX));
        let (namespace, name) = &key;
        tracing::warn!("the mirror of the static pod {namespace}/{name} fails: {failure}");
        self.failed.insert(key, (Instant::now() + wait, wait));
    }

    /// The reference that makes mirrors the node's.
    fn owner(&self) -> Option<Value> {
        let node = self.node.borrow();
        let metadata = &node["metadata"];
        let (name, uid) = (metadata["name"].as_str()?, metadata["uid"].as_str()?);
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid,
            "controller": true});
        (!uid.is_empty()).then_some(owner)
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// What the API is to show of a pod.
fn picture(pod: &Pod, owner: &Value) -> Value {
    let own = pod.metadata();
    let mut metadata = json!({
        "name": own["name"], "namespace": own["namespace"], "annotations": own["annotations"],
        "ownerReferences": [owner],
    });
    if own["labels"].is_object() {
        metadata["labels"] = own["labels"].clone();
    }
    metadata["annotations"][MIRROR] = pod.id.uid.as_str().into();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.raw_spec()})
}

fn delete(key: &Key, uid: &str) -> Call {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid}});
    Call {
        method: Method::DELETE,
        path: format!("/api/v1/namespaces/{}/pods/{}", key.0, key.1),
        content: Content::Json,
        body: options.to_string(),
    }
}
