//! Reads why nodes fail, seldom: it lists all nodes and pods.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Error;
use crate::causes::{self, PodCause};

/// How long after a read the next one begins at the earliest.
const READ_AFTER: Duration = Duration::from_secs(5);
/// How much later it begins if all causes are known: while a container restarts, it may look well.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Reads in the background, while nodes fail.
pub struct Causes {
    client: Client,
    namespace: String,
    name: String,
    known: BTreeMap<String, PodCause>,
    reads: mpsc::Sender<BTreeMap<String, PodCause>>,
    results: mpsc::Receiver<BTreeMap<String, PodCause>>,
    next: Instant,
}

impl Causes {
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        // One read at a time.
        let (reads, results) = mpsc::channel(1);
        Self {
            client,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            known: BTreeMap::new(),
            reads,
            results,
            next: Instant::now(),
        }
    }

    /// Reads them now.
    pub async fn read(&self) -> Result<BTreeMap<String, PodCause>, Error> {
        causes::read(&self.client, &self.namespace, &self.name).await
    }

    pub fn get(&self, node: &str) -> Option<&PodCause> {
        self.known.get(node)
    }

    /// For another rollout.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Has the causes of these nodes read, unless they were read just now. Returns whether there are new ones.
    pub fn want(&mut self, failed: &[String]) -> bool {
        let mut news = false;
        while let Ok(found) = self.results.try_recv() {
            news |= !found.is_empty();
            self.known.extend(found);
        }
        let all_known = failed.iter().all(|node| self.known.contains_key(node));
        let due = if all_known {
            self.next + READ_AGAIN_AFTER
        } else {
            self.next
        };
        if failed.is_empty() || Instant::now() < due {
            return news;
        }
        self.next = Instant::now() + READ_AFTER;
        let (client, results) = (self.client.clone(), self.reads.clone());
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        tokio::spawn(async move {
            match causes::read(&client, &namespace, &name).await {
                // Its receiver may be gone.
                Ok(found) => drop(results.send(found).await),
                Err(error) => tracing::debug!(%error, "the causes of failures cannot be read"),
            }
        });
        news
    }
}
