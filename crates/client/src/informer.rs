//! One watch of a kind, shared by any number of subscribers.
//!
//! It caches no objects: subscribe before it runs to receive everything from the initial list on. Queues are bounded. A
//! slow subscriber holds up the others and finally the watch itself, which the API then ends and which lists again. So no
//! subscriber ever misses a change.

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
const QUEUE: usize = 1024;

/// The changes that one subscriber receives.
pub type Changes<K> = BoxStream<'static, Change<Arc<K>>>;

/// See the [module](self).
pub struct Informer<K> {
    api: Api<K>,
    what: &'static str,
    /// What is missing without the right to watch; `None` if nothing goes without it.
    consequence: Option<&'static str>,
    subscribers: Vec<mpsc::Sender<Change<Arc<K>>>>,
}

impl<K> Informer<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Watches all objects of `api`. `what` names them in the log.
    pub fn new(api: Api<K>, what: &'static str) -> Self {
        let subscribers = Vec::new();
        Self {
            api,
            what,
            consequence: None,
            subscribers,
        }
    }

    /// Goes on without objects while the right to watch them is lacking; one warning says so, with the `consequence`.
    #[must_use]
    pub fn optional(mut self, consequence: &'static str) -> Self {
        self.consequence = Some(consequence);
        self
    }

    pub fn subscribe(&mut self) -> Changes<K> {
        let (sender, mut receiver) = mpsc::channel(QUEUE);
        self.subscribers.push(sender);
        stream::poll_fn(move |context| receiver.poll_recv(context)).boxed()
    }

    /// Watches until `stop` is cancelled or no subscriber is left.
    pub async fn run(mut self, stop: CancellationToken) {
        if self.subscribers.is_empty() {
            return;
        }
        let (api, config) = (self.api.clone(), Config::default());
        let mut changes = match self.consequence {
            Some(consequence) => feed::watch_optional(api, config, self.what, consequence),
            None => feed::watch(api, config, self.what),
        };
        let publish_all = async {
            while let Some(change) = changes.next().await {
                self.publish(change.map(Arc::new)).await;
                if self.subscribers.is_empty() {
                    return;
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = publish_all => {}
        }
    }

    async fn publish(&mut self, change: Change<Arc<K>>) {
        let mut left = Vec::with_capacity(self.subscribers.len());
        for subscriber in std::mem::take(&mut self.subscribers) {
            if subscriber.send(change.clone()).await.is_ok() {
                left.push(subscriber);
            }
        }
        self.subscribers = left;
    }
}
