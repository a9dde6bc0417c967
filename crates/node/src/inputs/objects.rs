//! `ConfigMap`s and `Secret`s that pods of this node reference.
//!
//! Each object is watched by name from its first reference until the last pod that references it is removed. All pods
//! share it, and it stays available while the API server is not. A node may read no other objects.

mod contents;
mod references;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use kennel_client::feed::{self, Change};
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

pub(super) use self::contents::Contents;
use self::contents::{ConfigMap, Secret};
use self::references::references;
use crate::pods::Pod;
use crate::sync::lock;

/// How long a reader waits for the first result of a watch.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
}

impl Kind {
    /// As in upstream's messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    /// An object in the pod's namespace.
    pub(super) fn new(pod: &Pod, kind: Kind, name: &str) -> Self {
        Self {
            kind,
            namespace: pod.id.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

/// The outer option is none until the watch has synced, the inner one if the object does not exist.
type Known = Option<Option<Arc<Contents>>>;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ObjectError {
    #[error("object \"{namespace}\"/\"{name}\" not registered")]
    Unregistered { namespace: String, name: String },
    #[error("failed to sync {} cache: timed out waiting for the condition", .0.name())]
    Unsynced(Kind),
    #[error("{} \"{name}\" not found", kind.name())]
    Missing { kind: Kind, name: String },
}

pub(super) struct Objects {
    client: Client,
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    entries: BTreeMap<Key, Entry>,
    /// By uid: the objects that a pod references, and the notification of their changes.
    pods: BTreeMap<String, (Vec<Key>, Arc<Notify>)>,
}

struct Entry {
    known: watch::Receiver<Known>,
    /// How many pods reference it.
    references: usize,
    _task: AbortOnDropHandle<()>,
}

impl Objects {
    pub(super) fn new(client: Client) -> Self {
        let watched = Arc::default();
        Self { client, watched }
    }

    /// Watches the objects that a pod references. The pod is notified when one of them changes.
    pub(super) fn register(&self, pod: &Pod) -> Arc<Notify> {
        let uid = &pod.id.uid;
        let mut watched = lock(&self.watched);
        if let Some((_, notify)) = watched.pods.get(uid) {
            return notify.clone();
        }
        let (keys, notify) = (references(pod), Arc::new(Notify::new()));
        for key in &keys {
            let entry = watched.entries.entry(key.clone());
            entry.or_insert_with(|| self.watch(key)).references += 1;
        }
        watched.pods.insert(uid.clone(), (keys, notify.clone()));
        notify
    }

    pub(super) fn unregister(&self, uid: &str) {
        let mut watched = lock(&self.watched);
        let Some((keys, _)) = watched.pods.remove(uid) else {
            return;
        };
        for key in keys {
            if let Some(entry) = watched.entries.get_mut(&key) {
                entry.references -= 1;
                if entry.references == 0 {
                    watched.entries.remove(&key);
                }
            }
        }
    }

    /// None if the object does not exist. A registered pod must reference it.
    pub(super) async fn get(&self, key: &Key) -> Result<Option<Arc<Contents>>, ObjectError> {
        let known = lock(&self.watched)
            .entries
            .get(key)
            .map(|entry| entry.known.clone());
        let Some(mut known) = known else {
            return Err(ObjectError::Unregistered {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
            });
        };
        let synced = tokio::time::timeout(SYNC_TIMEOUT, known.wait_for(Option::is_some)).await;
        let contents = synced.ok().and_then(|known| known.ok()?.clone());
        contents.ok_or(ObjectError::Unsynced(key.kind))
    }

    fn watch(&self, key: &Key) -> Entry {
        let (sender, known) = watch::channel(None);
        let object_watch = ObjectWatch {
            key: key.clone(),
            sender,
            watched: Arc::downgrade(&self.watched),
        };
        let (client, namespace) = (self.client.clone(), &key.namespace);
        let task = match key.kind {
            Kind::ConfigMap => {
                tokio::spawn(object_watch.run(Api::<ConfigMap>::namespaced(client, namespace)))
            }
            Kind::Secret => {
                tokio::spawn(object_watch.run(Api::<Secret>::namespaced(client, namespace)))
            }
        };
        Entry {
            known,
            references: 0,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

/// Watches one object and notifies the pods that reference it.
struct ObjectWatch {
    key: Key,
    sender: watch::Sender<Known>,
    watched: Weak<Mutex<Watched>>,
}

impl ObjectWatch {
    async fn run<K>(self, api: Api<K>)
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
        Contents: From<K>,
    {
        let only = Config::default().fields(&format!("metadata.name={}", self.key.name));
        let mut changes = feed::watch(api, only, self.key.kind.name());
        while let Some(change) = changes.next().await {
            let changed = match change {
                Change::Applied(object) => self.set(Some(object.into())),
                Change::Gone(_) => self.set(None),
                Change::Synced if self.sender.borrow().is_none() => self.set(None),
                Change::Synced => false,
            };
            if changed {
                self.notify();
            }
        }
    }

    /// Returns whether the contents have changed.
    fn set(&self, contents: Option<Contents>) -> bool {
        let same = |known: &Known| match (known, &contents) {
            (Some(Some(known)), Some(contents)) => **known == *contents,
            (Some(None), None) => true,
            _ => false,
        };
        if same(&self.sender.borrow()) {
            return false;
        }
        self.sender.send_replace(Some(contents.map(Arc::new)));
        true
    }

    fn notify(&self) {
        let Some(watched) = self.watched.upgrade() else {
            return;
        };
        let watched = lock(&watched);
        let all = watched.pods.values();
        for (_, notify) in all.filter(|(keys, _)| keys.contains(&self.key)) {
            notify.notify_one();
        }
    }
}
