//! One watch of a kind, shared by all who want to know.
//!
//! It keeps no objects: who subscribes before it runs hears everything from the first listing on.
//! A subscriber that does not keep up holds the others back, and in the end the watch, which then
//! lists again: it never loses a change.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kube::Resource;
use kube::api::Api;
use kube::runtime::watcher::Config;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::feed::{self, Change};

/// How many changes may wait for a subscriber.
const WAITING: usize = 1024;

/// The changes that one subscriber hears of.
pub type Changes<K> = BoxStream<'static, Change<Arc<K>>>;

/// See the [module](self).
pub struct Informer<K> {
    api: Api<K>,
    what: &'static str,
    subscribers: Vec<mpsc::Sender<Change<Arc<K>>>>,
}

impl<K> Informer<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Of all objects that `api` has; `what` they are called, for the log.
    pub fn new(api: Api<K>, what: &'static str) -> Self {
        let subscribers = Vec::new();
        Self {
            api,
            what,
            subscribers,
        }
    }

    /// From now on one more hears of changes.
    pub fn subscribe(&mut self) -> Changes<K> {
        let (sender, mut receiver) = mpsc::channel(WAITING);
        self.subscribers.push(sender);
        stream::poll_fn(move |context| receiver.poll_recv(context)).boxed()
    }

    /// Watches until told to stop, or until nobody listens (any more).
    pub async fn run(mut self, stop: CancellationToken) {
        if self.subscribers.is_empty() {
            return;
        }
        let mut changes = feed::watch(self.api.clone(), Config::default(), self.what);
        let share = async {
            while let Some(change) = changes.next().await {
                self.tell(change.map(Arc::new)).await;
                if self.subscribers.is_empty() {
                    return;
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = share => {}
        }
    }

    async fn tell(&mut self, change: Change<Arc<K>>) {
        let mut left = Vec::with_capacity(self.subscribers.len());
        for subscriber in std::mem::take(&mut self.subscribers) {
            if subscriber.send(change.clone()).await.is_ok() {
                left.push(subscriber);
            }
        }
        self.subscribers = left;
    }
}
