//! Pictures of DaemonSets, kept up to date by watches.
//!
//! ```text
//!   API ──watches──▶ source ─▶ view (nodes, a picture for each DaemonSet) ─▶ readers, at most ten times a second
//! ```
//!
//! It keeps what the rules read of objects, not the objects. A reader that is late reads the newest state; nothing is queued
//! for it.

mod connection;
mod set;
mod source;
mod view;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use kennel_client::feed::Links;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Error, snapshot};
pub use connection::Connection;
pub use set::{Failed, Set};
use source::Input;
pub use view::View;

/// How long after a change readers hear of the next one at the earliest.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often pictures are looked at that time alone may change.
const RECHECK: Duration = Duration::from_secs(1);
/// Changes that are entered under one lock.
const BATCH: usize = 256;

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The DaemonSets of all namespaces.
    All,
    One {
        namespace: String,
        name: String,
    },
}

/// See the [module](self). Clones share the watches.
#[derive(Clone)]
pub struct Live {
    view: Arc<Mutex<View>>,
    changes: watch::Receiver<u64>,
}

impl Live {
    /// Watches until `stop` is cancelled. Fails if the one DaemonSet to watch cannot be read.
    pub async fn start(
        client: Client,
        scope: Scope,
        stop: CancellationToken,
    ) -> Result<Self, Error> {
        let selector = selector(&client, &scope).await?;
        let view = Arc::new(Mutex::new(View::default()));
        let (sender, changes) = watch::channel(0);
        let updater = Updater {
            client,
            scope,
            view: view.clone(),
            changes: sender,
        };
        tokio::spawn(async move {
            let run = updater.run(selector);
            let _stopped = stop.run_until_cancelled(run).await;
        });
        Ok(Self { view, changes })
    }

    /// A number that grows with each change of the view, at most ten times a second. Its sender is gone once the watches have
    /// stopped.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Reads the view under its lock: copy what you need.
    pub fn read<R>(&self, read: impl FnOnce(&View) -> R) -> R {
        read(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until all lists are complete, or a watch says why it is not.
    pub async fn settled(&self) -> Connection {
        let mut changes = self.changes();
        loop {
            let connection = self.read(|view| view.connection().clone());
            if connection.synced || connection.why.is_some() || changes.changed().await.is_err() {
                return connection;
            }
        }
    }
}

/// The selector of the one DaemonSet.
async fn selector(client: &Client, scope: &Scope) -> Result<Option<String>, Error> {
    let Scope::One { namespace, name } = scope else {
        return Ok(None);
    };
    let set = snapshot::daemon_set(client, namespace, name).await?;
    Ok(Some(set.selector.to_string()))
}

/// Keeps the view up to date.
struct Updater {
    client: Client,
    scope: Scope,
    view: Arc<Mutex<View>>,
    changes: watch::Sender<u64>,
}

impl Updater {
    /// Watches for ever, and restarts the watches when the DaemonSet is replaced by one with another selector.
    async fn run(self, mut selector: Option<String>) {
        loop {
            let links: Links = Arc::new(watch::Sender::default());
            let mut inputs = source::watch(&self.client, &self.scope, selector.as_deref(), &links);
            let replaced = self.follow(&mut inputs, &links, selector.as_deref());
            let Some(other) = replaced.await else {
                return;
            };
            selector = Some(other);
            self.lock().clear();
        }
    }

    /// Returns the selector of a DaemonSet that replaces the one with the watched selector.
    async fn follow(
        &self,
        inputs: &mut source::Inputs,
        links: &Links,
        selector: Option<&str>,
    ) -> Option<String> {
        let mut batches = inputs.ready_chunks(BATCH);
        let mut linked = links.subscribe();
        let mut dirty = false;
        let mut publish_at = Instant::now();
        let mut recheck_at = Instant::now() + RECHECK;
        loop {
            let at = if dirty { publish_at } else { recheck_at };
            tokio::select! {
                batch = batches.next() => {
                    let other = self.enter(batch?, selector);
                    dirty = true;
                    if other.is_some() {
                        return other;
                    }
                }
                // The sender is held above.
                _changed = linked.changed() => {
                    let connection = Connection::of(&linked.borrow_and_update());
                    self.lock().connect(connection);
                    dirty = true;
                }
                () = tokio::time::sleep_until(at) => {
                    self.publish();
                    dirty = false;
                    publish_at = Instant::now() + INTERVAL;
                    recheck_at = Instant::now() + RECHECK;
                }
            }
        }
    }

    fn enter(&self, batch: Vec<Input>, selector: Option<&str>) -> Option<String> {
        let mut view = self.lock();
        let now = snapshot::now();
        for input in batch {
            if let Input::Set(set) = &input
                && let Some(other) = source::other_selector(set, selector)
            {
                return Some(other);
            }
            view.enter(input, now);
        }
        None
    }

    /// Judges what has changed, and tells the readers if they see it.
    fn publish(&self) {
        let version = self.lock().refresh(snapshot::now());
        self.changes.send_if_modified(|known| {
            let newer = *known != version;
            *known = version;
            newer
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
