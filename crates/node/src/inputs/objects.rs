//! Config maps and secrets, as far as pods of this node name them.
//!
//! An object is watched by name, from when the first pod names it until the last one that did is removed. It is
//! shared by all of them, and known while the server is away. Nothing else is read: a node may see no more.

mod contents;
mod references;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
pub(super) use self::references::of;

/// How long somebody who needs an object waits for the first answer about it, before trying again later.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// What kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
}

impl Kind {
    /// As messages call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What is known of an object: nothing yet; or that it is not there; or what is in it.
type Known = Option<Option<Arc<Contents>>>;

/// See the [module](self).
pub(super) struct Objects {
    client: Client,
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    entries: BTreeMap<Key, Entry>,
    /// The pods, and how to tell them of changes.
    holders: BTreeMap<String, (Vec<Key>, Arc<Notify>)>,
}

struct Entry {
    known: watch::Receiver<Known>,
    /// How many pods name it.
    holders: usize,
    _task: AbortOnDropHandle<()>,
}

impl Objects {
    pub(super) fn new(client: Client) -> Self {
        let watched = Arc::default();
        Self { client, watched }
    }

    /// From now on a pod names these. It is notified when one of them changes.
    pub(super) fn hold(&self, uid: &str, keys: impl FnOnce() -> Vec<Key>) -> Arc<Notify> {
        let mut watched = lock(&self.watched);
        if let Some((_, notify)) = watched.holders.get(uid) {
            return notify.clone();
        }
        let (keys, notify) = (keys(), Arc::new(Notify::new()));
        for key in &keys {
            let entry = watched.entries.entry(key.clone());
            entry.or_insert_with(|| self.watch(key)).holders += 1;
        }
        let holder = (keys, notify.clone());
        watched.holders.insert(uid.to_owned(), holder);
        notify
    }

    /// A pod is gone.
    pub(super) fn release(&self, uid: &str) {
        let mut watched = lock(&self.watched);
        let Some((keys, _)) = watched.holders.remove(uid) else {
            return;
        };
        for key in keys {
            if let Some(entry) = watched.entries.get_mut(&key) {
                entry.holders -= 1;
                if entry.holders == 0 {
                    watched.entries.remove(&key);
                }
            }
        }
    }

    /// What is in an object that a pod holds; none if it is not there.
    pub(super) async fn get(&self, key: &Key) -> Result<Option<Arc<Contents>>, String> {
        let known = lock(&self.watched)
            .entries
            .get(key)
            .map(|entry| entry.known.clone());
        let Some(mut known) = known else {
            let Key {
                namespace, name, ..
            } = key;
            return Err(format!("object \"{namespace}\"/\"{name}\" not registered"));
        };
        let answer = tokio::time::timeout(FIRST_ANSWER, known.wait_for(Option::is_some)).await;
        let answer = answer.ok().and_then(|known| known.ok()?.clone());
        answer.ok_or_else(|| {
            let kind = key.kind.name();
            format!("failed to sync {kind} cache: timed out waiting for the condition")
        })
    }

    fn watch(&self, key: &Key) -> Entry {
        let (sender, known) = watch::channel(None);
        let teller = Teller {
            key: key.clone(),
            sender,
            watched: Arc::downgrade(&self.watched),
        };
        let (client, namespace) = (self.client.clone(), &key.namespace);
        let task = match key.kind {
            Kind::ConfigMap => {
                tokio::spawn(teller.run(Api::<ConfigMap>::namespaced(client, namespace)))
            }
            Kind::Secret => tokio::spawn(teller.run(Api::<Secret>::namespaced(client, namespace))),
        };
        Entry {
            known,
            holders: 0,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches one object and tells the pods that name it.
struct Teller {
    key: Key,
    sender: watch::Sender<Known>,
    watched: Weak<Mutex<Watched>>,
}

impl Teller {
    async fn run<K>(self, api: Api<K>)
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
        Contents: From<K>,
    {
        let only = Config::default().fields(&format!("metadata.name={}", self.key.name));
        let mut changes = feed::watch(api, only, self.key.kind.name());
        while let Some(change) = changes.next().await {
            let changed = match change {
                Change::Applied(object) => self.say(Some(object.into())),
                Change::Gone(_) => self.say(None),
                Change::Synced if self.sender.borrow().is_none() => self.say(None),
                Change::Synced => false,
            };
            if changed {
                self.notify();
            }
        }
    }

    /// Says what is known now, if that is news.
    fn say(&self, contents: Option<Contents>) -> bool {
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
        let all = watched.holders.values();
        for (_, notify) in all.filter(|(keys, _)| keys.contains(&self.key)) {
            notify.notify_one();
        }
    }
}
