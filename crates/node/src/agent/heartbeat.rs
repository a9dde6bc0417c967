//! Registers the Node object and updates its status: at start, on changes, and regularly. Also watches the object, so
//! that admission and the downward API know its labels, taints and allocatable resources.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::write::{Failure, Writer};
use kennel_client::{clock, feed};
use kennel_core::pod::eviction::Pressures;
use kennel_types::Condition;
use kube::Client;
use kube::api::{Api, ObjectMeta};
use kube::runtime::watcher::Config;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settings::Settings;
use super::{node, node_events, register};
use crate::network::NetworkState;
use crate::runtime::Runtime;

/// How often the status is written if nothing changes: upstream's default.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_mins(5);
pub(crate) const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// While the node is not ready.
const UNREADY_HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// After a failed write of the Node.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) struct Heartbeat {
    pub(super) client: Client,
    pub(super) writer: Writer,
    /// The object to register.
    pub(super) object: Value,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) pressures: watch::Receiver<Pressures>,
    pub(super) network: watch::Receiver<NetworkState>,
    pub(super) settings: Arc<Settings>,
    /// Why services are not routed.
    pub(super) services: watch::Receiver<Option<String>>,
    /// The stored object, without a uid before registration and after deletion.
    pub(super) node: watch::Sender<Arc<Value>>,
    pub(super) recorder: Recorder,
    /// Why the node is not ready, as logged last.
    pub(super) unready: Option<String>,
}

impl Heartbeat {
    /// Runs until `stop`. Sets `registered` once the Node object exists.
    pub(super) async fn run(mut self, registered: watch::Sender<bool>, stop: CancellationToken) {
        let work = async {
            self.register().await;
            let _ignored = registered.send(true);
            self.report_loop().await;
        };
        stop.run_until_cancelled(work).await;
    }

    fn name(&self) -> &str {
        let name = self.object["metadata"]["name"].as_str();
        name.unwrap_or_default()
    }

    async fn register(&mut self) {
        let now = clock::now_rfc3339();
        // Not logged: what is stored of an earlier agent is not known yet.
        let conditions = self.observe().await;
        self.object["status"] = self.status();
        self.object["status"]["conditions"] = node::to_api(&conditions, &json!({}), &now).into();
        let mut retry = Backoff::new(RETRY);
        loop {
            match register::register(&self.writer, &self.object).await {
                Ok((stored, new)) => {
                    tracing::info!("registered node {}", self.name());
                    self.record_start(&conditions, &stored, new);
                    self.set_node(stored);
                    return;
                }
                Err(failure) => {
                    tracing::warn!("registering node {} failed: {failure}", self.name());
                    retry.sleep().await;
                }
            }
        }
    }

    fn record_start(&self, conditions: &[Condition], stored: &Value, new: bool) {
        self.record(vec![node_events::agent_started()]);
        // For a node that existed before, the first status update records its conditions.
        if new {
            self.record(node_events::condition_events(
                self.name(),
                conditions,
                &Value::Null,
            ));
        }
        let boot = &self.object["status"]["nodeInfo"]["bootID"];
        let boot = boot.as_str().unwrap_or_default();
        self.record(node_events::reboot_event(self.name(), boot, stored));
    }

    fn record(&self, notes: Vec<Note>) {
        for note in notes {
            tracing::debug!(reason = %note.reason, "{}", note.message);
            self.recorder.emit(Reference::own_node(self.name()), note);
        }
    }

    async fn report_loop(&mut self) {
        let own = Config::default().fields(&format!("metadata.name={}", self.name()));
        let own = feed::watch(
            Api::<WholeNode>::all(self.client.clone()),
            own,
            "the own node",
        );
        let mut own = own.fuse();
        let mut addresses = self.settings.addresses.subscribe();
        let mut conditions = self.conditions().await;
        let mut check_at = Instant::now() + health_check_interval(&conditions);
        let mut report_at = Instant::now();
        let mut retry = Backoff::new(RETRY);
        loop {
            if report_at <= Instant::now() && self.is_registered() {
                report_at = match self.report(&conditions).await {
                    Ok(()) => {
                        retry.reset();
                        Instant::now() + REPORT_INTERVAL
                    }
                    Err(failure) => {
                        tracing::warn!(
                            "updating the status of node {} failed: {failure}",
                            self.name()
                        );
                        Instant::now() + retry.next_delay()
                    }
                };
            }
            tokio::select! {
                Some(change) = own.next() => self.on_change(change),
                Ok(()) = self.pressures.changed() => conditions = self.conditions().await,
                Ok(()) = self.network.changed() => conditions = self.conditions().await,
                Ok(()) = addresses.changed() => report_at = Instant::now(),
                Ok(()) = self.services.changed() => conditions = self.conditions().await,
                () = tokio::time::sleep_until(check_at) => {
                    conditions = self.conditions().await;
                    check_at = Instant::now() + health_check_interval(&conditions);
                }
                () = tokio::time::sleep_until(report_at), if self.is_registered() => {}
            }
            if self.is_registered() && self.is_stale(&conditions) {
                report_at = report_at.min(Instant::now());
            }
        }
    }

    /// Like a kubelet, a running agent does not register again after its Node was deleted.
    fn on_change(&self, change: feed::Change<WholeNode>) {
        match change {
            feed::Change::Applied(whole) => self.set_node(whole.into_value()),
            feed::Change::Gone(id) => {
                if self.node.borrow()["metadata"]["uid"] == *id.uid {
                    let name = self.name();
                    tracing::warn!(
                        "node {name} was deleted from the API, which ends its certificate; to join again, start the agent with a \
                         new token"
                    );
                    let mut object = (**self.node.borrow()).clone();
                    object["metadata"]["uid"] = Value::Null;
                    self.node.send_replace(Arc::new(object));
                }
            }
            feed::Change::Synced => {}
        }
    }

    fn set_node(&self, object: Value) {
        self.record(node_events::cordon_event(
            self.name(),
            &self.node.borrow(),
            &object,
        ));
        self.node.send_replace(Arc::new(object));
    }

    fn is_registered(&self) -> bool {
        self.node.borrow()["metadata"]["uid"].is_string()
    }

    async fn conditions(&mut self) -> Vec<Condition> {
        let conditions = self.observe().await;
        self.log_readiness(&conditions);
        conditions
    }

    async fn observe(&mut self) -> Vec<Condition> {
        let health = tokio::time::timeout(HEALTH_CHECK_TIMEOUT, self.runtime.health()).await;
        let mut health = health.unwrap_or_else(|_| crate::runtime::Health {
            runtime: Some(format!(
                "container runtime is down: no answer within {} seconds",
                HEALTH_CHECK_TIMEOUT.as_secs()
            )),
            network: None,
        });
        let services = self.services.borrow_and_update().clone();
        health.network = join(health.network, services);
        let network = self.network.borrow_and_update().clone();
        let boot_id = self.object["status"]["nodeInfo"]["bootID"].as_str();
        let boot_id = boot_id.unwrap_or_default();
        let network = node::network_condition(&network, &self.node.borrow(), boot_id);
        let pressures = *self.pressures.borrow_and_update();
        node::conditions(&health, pressures, network)
    }

    fn log_readiness(&mut self, conditions: &[Condition]) {
        let reason = node::unready_reason(conditions).map(str::to_owned);
        if reason == self.unready {
            return;
        }
        if let Some(reason) = &reason {
            tracing::warn!("node {} is not ready: {reason}", self.name());
        } else {
            tracing::info!("node {} is ready", self.name());
        }
        self.unready = reason;
    }

    /// The status without conditions.
    fn status(&self) -> Value {
        let mut status = self.object["status"].clone();
        status["addresses"] = node::addresses(&self.settings).into();
        // Unknown until the runtime first answers, and different after its upgrade.
        status["nodeInfo"][node::RUNTIME_VERSION] =
            node::runtime_version(&self.runtime.about()).into();
        status
    }

    fn is_stale(&self, conditions: &[Condition]) -> bool {
        let stored = self.node.borrow();
        let runtime = &stored["status"]["nodeInfo"][node::RUNTIME_VERSION];
        !node::are_stored(conditions, &stored)
            || *runtime != node::runtime_version(&self.runtime.about())
    }

    async fn report(&self, conditions: &[Condition]) -> Result<(), Failure> {
        let stored = Arc::clone(&self.node.borrow());
        let conditions_to_write = node::to_api(conditions, &stored, &clock::now_rfc3339());
        let (name, status) = (self.name(), self.status());
        let new = register::write_status(&self.writer, name, &status, conditions_to_write).await?;
        self.record(node_events::condition_events(
            self.name(),
            conditions,
            &stored,
        ));
        self.set_node(new);
        Ok(())
    }
}

/// Both problems, if there are two.
fn join(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}; {other}")),
        (one, other) => one.or(other),
    }
}

fn health_check_interval(conditions: &[Condition]) -> Duration {
    match node::unready_reason(conditions) {
        None => HEALTH_CHECK_INTERVAL,
        Some(_) => UNREADY_HEALTH_CHECK_INTERVAL,
    }
}

/// A node with all its fields.
#[derive(Clone, Debug, Deserialize)]
struct WholeNode {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

kennel_types::resource!(WholeNode; kube::core::ClusterResourceScope, "", "Node", "nodes");

impl WholeNode {
    fn into_value(self) -> Value {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": self.metadata, "spec": self.spec,
            "status": self.status})
    }
}
