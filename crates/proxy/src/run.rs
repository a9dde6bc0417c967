//! Watches services and their endpoints, and keeps the kernel's table up to date.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _};
use futures_util::{FutureExt as _, future};
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::feed::{self, Change};
use kennel_core::services::{ServiceName, ServiceTable};
use kennel_types::{EndpointSlice, Service};
use kube::api::{Api, ListParams};
use kube::runtime::watcher::Config as WatchConfig;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::health_check::HealthChecks;
use crate::kernel::{Kernel, KernelError};
use crate::lock::Lock;
use crate::metrics::{Metrics, Rewrite};
use crate::monitor::Monitor;

/// Services of other proxies, and slices of services without an address, are not watched.
const SERVICES: &str = "!service.kubernetes.io/service-proxy-name";
const SLICES: &str = "!service.kubernetes.io/headless";
/// Changes that are read before they are written: all of a list, and those that come faster than the kernel takes them.
const BATCH: usize = 4096;
/// After the kernel has refused a transaction.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(30));
/// While the right to list services is lacking.
const ACCESS_RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(30));

/// What a proxy needs.
pub struct Proxy {
    /// Held while the proxy runs.
    pub lock: Arc<Lock>,
    pub client: Client,
    pub node: String,
    /// The node's zone, as its label says.
    pub zone: watch::Receiver<Option<String>>,
    /// Why services are not routed, if the kernel refuses.
    pub problem: watch::Sender<Option<String>>,
    pub metrics: Arc<Metrics>,
}

impl Proxy {
    /// Runs until `stop`, and leaves the rules behind. Call it in the network namespace whose packets to route.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.route()).await;
    }

    async fn route(self) {
        let Self {
            lock: _lock,
            client,
            node,
            zone,
            problem,
            metrics,
        } = self;
        wait_for_access(&client).await;
        let mut router = Router {
            table: ServiceTable::new(&node),
            zone,
            kernel: None,
            monitor: None,
            reason: Rewrite::Start,
            health_checks: HealthChecks::default(),
            unchecked: BTreeSet::new(),
            changed_since: None,
            problem,
            metrics,
        };
        router.run(Feeds::of(client)).await;
    }
}

/// Returns once services and slices may be listed. Without the right to do so, the node works, but for services.
async fn wait_for_access(client: &Client) {
    let mut is_warned = false;
    let mut retry = Backoff::new(ACCESS_RETRY);
    loop {
        let one = ListParams::default().limit(1);
        let services = Api::<Service>::all(client.clone());
        let slices = Api::<EndpointSlice>::all(client.clone());
        let (services, slices) = future::join(
            services.list_metadata(&one).map(Result::err),
            slices.list_metadata(&one).map(Result::err),
        )
        .await;
        let is_refusal =
            |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 403);
        let Some(refusal) = services.into_iter().chain(slices).find(is_refusal) else {
            return;
        };
        if !std::mem::replace(&mut is_warned, true) {
            tracing::warn!(
                "no right to list and watch services and endpointslices: this node does not route services, and leaves the rules of an \
                 earlier run as they are ({refusal})"
            );
        }
        retry.sleep().await;
    }
}

struct Feeds {
    services: BoxStream<'static, Change<Service>>,
    slices: BoxStream<'static, Change<EndpointSlice>>,
    /// Lists that are not complete yet.
    missing: u8,
}

impl Feeds {
    fn of(client: Client) -> Self {
        Self {
            services: watch(client.clone(), SERVICES, "services"),
            slices: watch(client, SLICES, "endpointslices"),
            missing: 2,
        }
    }

    /// Waits for a change.
    async fn next(&mut self, table: &mut ServiceTable) {
        tokio::select! {
            Some(change) = self.services.next() => self.put_service(change, table),
            Some(change) = self.slices.next() => self.put_slice(change, table),
        }
    }

    /// Reads what there is without waiting.
    fn drain(&mut self, table: &mut ServiceTable) {
        for _ in 0..BATCH {
            match self.next(table).now_or_never() {
                Some(()) => {}
                None => return,
            }
        }
    }

    fn put_service(&mut self, change: Change<Service>, table: &mut ServiceTable) {
        match change {
            Change::Applied(service) => table.put_service(&service),
            Change::Gone(id) => table.remove_service(&id),
            Change::Synced => self.missing -= 1,
        }
    }

    fn put_slice(&mut self, change: Change<EndpointSlice>, table: &mut ServiceTable) {
        match change {
            Change::Applied(slice) => table.put_slice(&slice),
            Change::Gone(id) => table.remove_slice(&id),
            Change::Synced => self.missing -= 1,
        }
    }

    fn is_complete(&self) -> bool {
        self.missing == 0
    }
}

fn watch<K>(client: Client, labels: &str, what: &'static str) -> BoxStream<'static, Change<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = WatchConfig::default().labels(labels);
    feed::watch(Api::<K>::all(client), config, what)
}

struct Router {
    table: ServiceTable,
    zone: watch::Receiver<Option<String>>,
    kernel: Option<Kernel>,
    monitor: Option<Monitor>,
    /// Why the whole table is written next.
    reason: Rewrite,
    health_checks: HealthChecks,
    /// Services that have changed, or gone, since the kernel last took a write.
    unchecked: BTreeSet<ServiceName>,
    changed_since: Option<Instant>,
    problem: watch::Sender<Option<String>>,
    metrics: Arc<Metrics>,
}

impl Router {
    async fn run(&mut self, mut feeds: Feeds) {
        let mut retry = Backoff::new(RETRY);
        let mut retry_at = None;
        self.set_zone();
        loop {
            let retrying = async {
                match retry_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = feeds.next(&mut self.table) => {}
                Ok(()) = self.zone.changed() => self.set_zone(),
                () = foreign_change(&mut self.monitor) => {
                    tracing::warn!("another program changed the nftables table {}: writing it again", crate::ruleset::TABLE);
                    self.write_all(Rewrite::Foreign);
                }
                () = retrying => retry_at = None,
            }
            feeds.drain(&mut self.table);
            if self.table.has_changed() && self.changed_since.is_none() {
                self.changed_since = Some(Instant::now());
            }
            if !feeds.is_complete() || retry_at.is_some() {
                continue;
            }
            match self.write() {
                Ok(()) => {
                    retry.reset();
                    self.set_problem(None);
                }
                Err(error) => {
                    self.metrics.failed();
                    self.set_problem(Some(format!("services are not routed: {error}")));
                    self.write_all(Rewrite::Failure);
                    retry_at = Some(Instant::now() + retry.next_delay());
                }
            }
        }
    }

    fn set_zone(&mut self) {
        let zone = self.zone.borrow_and_update().clone();
        self.table.set_zone(zone.as_deref());
    }

    fn set_problem(&self, new: Option<String>) {
        self.problem.send_if_modified(|current| {
            let changes = *current != new;
            *current = new;
            changes
        });
    }

    /// Has the whole table written next.
    fn write_all(&mut self, reason: Rewrite) {
        if let Some(kernel) = &mut self.kernel {
            kernel.forget();
        }
        self.monitor = None;
        self.reason = reason;
    }

    /// Writes what has changed.
    fn write(&mut self) -> Result<(), KernelError> {
        let kernel = match &mut self.kernel {
            Some(kernel) => kernel,
            none => none.insert(Kernel::open()?),
        };
        let changed = self.table.take_changed();
        self.unchecked.extend(changed.iter().cloned());
        if kernel.is_current() {
            if changed.is_empty() {
                return Ok(());
            }
            let routed = kernel.put(changed, |name| self.table.routes(name));
            match routed {
                Ok(difference) => {
                    let stale = difference.redirected.into_iter();
                    clean(kernel, stale, &self.metrics);
                    self.wrote(None);
                    self.check_health();
                    return Ok(());
                }
                Err(error) => {
                    // Most likely another program changed the table, and its notice is not read yet.
                    tracing::debug!(%error, "writing the whole table");
                    self.metrics.failed();
                    self.write_all(Rewrite::Failure);
                }
            }
        }
        self.write_whole_table()?;
        self.check_health();
        Ok(())
    }

    fn write_whole_table(&mut self) -> Result<(), KernelError> {
        self.changed_since.get_or_insert_with(Instant::now);
        let Some(kernel) = &mut self.kernel else {
            return Ok(());
        };
        let monitor = kernel.write_whole(&self.table)?;
        let all: Vec<_> = kernel.plan().destinations().collect();
        clean(kernel, all.into_iter(), &self.metrics);
        self.monitor = Some(monitor);
        self.wrote(Some(self.reason));
        Ok(())
    }

    fn wrote(&mut self, rewrite: Option<Rewrite>) {
        let took = self
            .changed_since
            .take()
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.metrics.wrote(rewrite, took);
        let services = self
            .kernel
            .as_ref()
            .map_or(0, |kernel| kernel.plan().services());
        self.metrics.has(services, self.table.endpoints());
        if let Some(reason) = rewrite {
            let (reason, endpoints) = (reason.as_str(), self.table.endpoints());
            tracing::info!(reason, services, endpoints, ?took, "routing services");
        } else {
            tracing::debug!(?took, "routing changed services");
        }
    }

    /// Starts, updates and stops servers of health checks, once the kernel has the rules.
    fn check_health(&mut self) {
        for name in std::mem::take(&mut self.unchecked) {
            let check = self.table.health_check(&name);
            self.health_checks.put(&name, check);
        }
    }
}

/// Connections that cannot be deleted end by themselves, once no packets come.
fn clean(
    kernel: &mut Kernel,
    stale: impl Iterator<
        Item = (
            kennel_core::services::Destination,
            BTreeSet<crate::plan::Endpoint>,
        ),
    >,
    metrics: &Metrics,
) {
    match kernel.clean_connections(stale) {
        Ok(count) => metrics.deleted_connections(count),
        Err(error) => {
            tracing::warn!("cannot delete UDP connections to endpoints that are gone: {error}");
        }
    }
}

async fn foreign_change(monitor: &mut Option<Monitor>) {
    match monitor {
        Some(monitor) => monitor.changed().await,
        None => std::future::pending().await,
    }
}
