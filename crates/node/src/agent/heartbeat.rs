//! Tells the cluster how the node is: at start, when something changes, and now and then if nothing does.
//! Watches the node's own object meanwhile, for those on the node who go by its labels, taints and size.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::write::{Failure, Writer};
use kennel_client::{clock, feed};
use kennel_core::pod::eviction::Pressures;
use kube::Client;
use kube::api::{Api, ObjectMeta};
use kube::runtime::watcher::Config;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::news;
use super::node::{self, Condition};
use super::register;
use crate::runtime::Runtime;

/// How often the status is written if nothing changes; upstream's five minutes.
const REPORT: Duration = Duration::from_mins(5);
/// How often the runtime is asked how it is …
const ASK: Duration = Duration::from_secs(10);
/// … and how often while it is not well.
const ASK_SOON: Duration = Duration::from_secs(2);
/// How soon what failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long a runtime may think about how it is.
const ANSWER: Duration = Duration::from_secs(15);

/// What is told, and to whom.
pub(super) struct Heartbeat {
    pub(super) client: Client,
    pub(super) writer: Writer,
    /// The object to register.
    pub(super) object: Value,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) pressures: watch::Receiver<Pressures>,
    /// The node's own object, as far as we know it.
    pub(super) node: watch::Sender<Arc<Value>>,
    pub(super) recorder: Recorder,
}

impl Heartbeat {
    /// Registers the node and tells how it is until told to stop. `registered` is told when others can see it.
    pub(super) async fn run(mut self, registered: watch::Sender<bool>, stop: CancellationToken) {
        let telling = async {
            self.register().await;
            let _nobody = registered.send(true);
            self.tell().await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = telling => {}
        }
    }

    fn name(&self) -> &str {
        let name = self.object["metadata"]["name"].as_str();
        name.unwrap_or_default()
    }

    async fn register(&mut self) {
        let now = clock::now_rfc3339();
        let conditions = self.conditions().await;
        self.object["status"]["conditions"] = node::written(&conditions, &json!({}), &now).into();
        loop {
            match register::register(&self.writer, &self.object).await {
                Ok((stored, new)) => {
                    tracing::info!("node {} is registered", self.name());
                    self.say_of_start(&conditions, &stored, new);
                    self.learn(stored);
                    return;
                }
                Err(failure) => {
                    tracing::warn!("registering node {} failed: {failure}", self.name());
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    fn say_of_start(&self, conditions: &[Condition], stored: &Value, new: bool) {
        self.say(vec![news::started()]);
        // What was there before we came is told when it is written.
        if new {
            self.say(news::of_conditions(self.name(), conditions, &Value::Null));
        }
        let boot = &self.object["status"]["nodeInfo"]["bootID"];
        let boot = boot.as_str().unwrap_or_default();
        self.say(news::of_boot(self.name(), boot, stored));
    }

    fn say(&self, notes: Vec<Note>) {
        for note in notes {
            tracing::debug!(reason = %note.reason, "{}", note.message);
            self.recorder.emit(Reference::own_node(self.name()), note);
        }
    }

    async fn tell(&mut self) {
        let own = Config::default().fields(&format!("metadata.name={}", self.name()));
        let own = feed::watch(Api::<Whole>::all(self.client.clone()), own, "the own node");
        let mut own = own.fuse();
        let mut conditions = self.conditions().await;
        let (mut ask_at, mut report_at) = (Instant::now() + ASK, Instant::now());
        loop {
            if report_at <= Instant::now() && self.is_known() {
                report_at = match self.report(&conditions).await {
                    Ok(()) => Instant::now() + REPORT,
                    Err(failure) => {
                        tracing::warn!("reporting on node {} failed: {failure}", self.name());
                        Instant::now() + RETRY
                    }
                };
            }
            tokio::select! {
                Some(change) = own.next() => self.hear(change),
                Ok(()) = self.pressures.changed() => conditions = self.conditions().await,
                () = tokio::time::sleep_until(ask_at) => {
                    conditions = self.conditions().await;
                    let well = node::is_ready(&conditions);
                    ask_at = Instant::now() + if well { ASK } else { ASK_SOON };
                }
                () = tokio::time::sleep_until(report_at), if self.is_known() => {}
            }
            let wrong = self.is_known() && !node::shown(&conditions, &self.node.borrow());
            if wrong {
                report_at = report_at.min(Instant::now());
            }
        }
    }

    /// As a kubelet that runs does not, neither do we make a node again that somebody has deleted.
    fn hear(&self, change: feed::Change<Whole>) {
        match change {
            feed::Change::Applied(whole) => self.learn(whole.into_value()),
            feed::Change::Gone(id) => {
                if self.node.borrow()["metadata"]["uid"] == *id.uid {
                    let name = self.name();
                    tracing::warn!(
                        "node {name} was deleted from the API; start the agent again to register it anew"
                    );
                    let mut object = (**self.node.borrow()).clone();
                    object["metadata"]["uid"] = Value::Null;
                    self.node.send_replace(Arc::new(object));
                }
            }
            feed::Change::Synced => {}
        }
    }

    fn learn(&self, object: Value) {
        self.say(news::of_cordon(self.name(), &self.node.borrow(), &object));
        self.node.send_replace(Arc::new(object));
    }

    /// Has the API an object of it?
    fn is_known(&self) -> bool {
        self.node.borrow()["metadata"]["uid"].is_string()
    }

    async fn conditions(&mut self) -> Vec<Condition> {
        let health = tokio::time::timeout(ANSWER, self.runtime.health()).await;
        let health = health.unwrap_or_else(|_| crate::runtime::Health {
            runtime: Some(format!("no answer within {} seconds", ANSWER.as_secs())),
            network: None,
        });
        node::conditions(&health, *self.pressures.borrow_and_update())
    }

    async fn report(&self, conditions: &[Condition]) -> Result<(), Failure> {
        let stored = Arc::clone(&self.node.borrow());
        let written = node::written(conditions, &stored, &clock::now_rfc3339());
        let status = &self.object["status"];
        let answer = register::report(&self.writer, self.name(), status, written).await?;
        self.say(news::of_conditions(self.name(), conditions, &stored));
        self.learn(answer);
        Ok(())
    }
}

/// A node with all its fields.
#[derive(Clone, Debug, Deserialize)]
struct Whole {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

kennel_types::resource!(Whole; kube::core::ClusterResourceScope, "", "Node", "nodes");

impl Whole {
    fn into_value(self) -> Value {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": self.metadata, "spec": self.spec,
            "status": self.status})
    }
}
