//! The state that all requests share: the store, the watch hubs, authentication and authorisation, and the
//! settings of the server.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kennel_core::health::{Endpoint, Outcome};
use kennel_core::metric::{Observed, Page};
use kennel_core::network::Network;
pub use kennel_core::pod_security::Exemptions;
use kennel_store::Store;
use serde_json::Value;

use crate::advertised::Advertised;
use crate::agent_usage::AgentUsage;
use crate::audit::Audit;
use crate::authenticate::{Authenticator, Credentials};
use crate::authorize::Authorizer;
use crate::backup;
use crate::certificates::Certificates;
use crate::damaged::Damaged;
use crate::fairness::Fairness;
use crate::health::{self, Health};
use crate::kinds::service::Cidr;
use crate::metrics::{self, Metrics};
use crate::object::{self, Head, Stored};
use crate::projection::Projector;
use crate::quota::{StorageQuota, Writer};
use crate::quota_ledger::QuotaLedger;
use crate::registry::{self, Resource};
use crate::service_allocations::Allocations;
use crate::snapshots::Snapshots;
use crate::status::{ApiError, Result};
use crate::tree;
use crate::watch::Hubs;

/// The settings of a server that requests depend on.
#[derive(Clone, Debug)]
pub struct Settings {
    pub certificates: Arc<Certificates>,
    /// The address that clients reach this server at.
    pub address: std::net::SocketAddr,
    /// Where pods and other machines reach this process.
    pub advertised: Advertised,
    /// The range that cluster IPs are allocated from.
    pub service_cidr: Cidr,
    /// The log of requests that change something.
    pub audit: Arc<Audit>,
    /// How long an event is kept after it was last written.
    pub event_ttl: Duration,
    pub storage_quota: Arc<StorageQuota>,
    pub backups: Arc<backup::Status>,
    /// What is exempt from Pod Security admission.
    pub pod_security: Exemptions,
}

/// The API.
pub struct Api {
    pub(crate) store: Arc<dyn Store<Head>>,
    pub(crate) hubs: Hubs,
    /// Of lists that clients read page by page.
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    pub(crate) fairness: Arc<Fairness>,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    /// Serialises the writes of services, whose cluster IPs and node ports must be unique.
    pub(crate) services: tokio::sync::Mutex<()>,
    /// What writes of services allocate that memory does not show.
    pub(crate) allocations: Allocations,
    /// What nodes and containers use, for a short time.
    pub(crate) usage: AgentUsage,
    /// What writes under way use of resource quotas.
    pub(crate) quotas: QuotaLedger,
    pub(crate) damaged: Damaged,
}

impl Api {
    /// Must be called within a runtime: starts the tasks that feed the watches.
    pub(crate) fn new(
        store: Arc<dyn Store<Head>>,
        credentials: Credentials,
        settings: Settings,
    ) -> Arc<Self> {
        let hubs = Hubs::new(store.revision());
        let snapshots = Arc::<Snapshots>::default();
        hubs.start(&store, &snapshots);
        let own_health = Health::default();
        own_health.add(health::of_store(&store));
        own_health.add(health::of_quota(&store, &settings.storage_quota));
        let authenticator = Authenticator::new(Arc::clone(&store), credentials);
        Arc::new(Self {
            authorizer: Authorizer::new(&store),
            damaged: Damaged::of(&*store),
            store,
            hubs,
            snapshots,
            settings,
            metrics: Metrics::default(),
            health: own_health,
            fairness: Arc::default(),
            authenticator,
            services: tokio::sync::Mutex::default(),
            allocations: Allocations::default(),
            usage: AgentUsage::default(),
            quotas: QuotaLedger::default(),
        })
    }

    /// The stored objects of a resource.
    pub(crate) fn all(&self, row: &Resource) -> Vec<Stored> {
        let prefix = object::prefix(row, None);
        self.store.range(&prefix, None, None).records
    }

    /// Whether a pod has this address, or it is in the pod network of a node: the status of a pod that has just started does not
    /// have it yet.
    pub(crate) fn is_pod_address(&self, address: IpAddr) -> bool {
        let (pods, nodes) = (registry::core("pods"), registry::core("nodes"));
        let text = address.to_string();
        let has = |pod: &Stored| pod.head.field(pods, "status.podIP") == Some(&text);
        if self.all(pods).iter().any(has) {
            return true;
        }
        self.all(nodes).iter().any(|node| {
            let node: Value = serde_json::from_slice(&node.value).unwrap_or_default();
            let networks = tree::texts(&node, "spec.podCIDRs");
            let mut networks = networks.filter_map(|cidr| cidr.parse::<Network>().ok());
            networks.any(|network| network.contains(address))
        })
    }

    /// The stored object of this name.
    pub(crate) fn stored(
        &self,
        row: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Stored> {
        if let Some(found) = self.store.get(&object::key(row, namespace, name)) {
            return Ok(found);
        }
        self.check_damaged(row, namespace, name)?;
        Err(ApiError::not_found(row, name))
    }

    /// Fails if this object, which is not in the store, is damaged.
    pub(crate) fn check_damaged(
        &self,
        row: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<()> {
        self.damaged.check(&*self.store, row, namespace, name)
    }

    /// How the objects of a row are computed; `None` if they are stored.
    pub(crate) fn projector(&self, row: &'static Resource) -> Option<Projector> {
        Projector::of(row, &self.settings.service_cidr)
    }

    /// Refuses a write that lets the stored objects grow beyond the storage quota.
    pub(crate) fn admit_growth(&self, writer: Writer, before: usize, after: usize) -> Result<()> {
        let growth = after.saturating_sub(before) as u64;
        let quota = &self.settings.storage_quota;
        let admitted = quota.admit(self.stored_bytes(), growth, writer);
        admitted.map_err(|full| ApiError::insufficient_storage(full.to_string()))
    }

    fn stored_bytes(&self) -> u64 {
        self.store.stats().map_or(0, |stats| stats.bytes)
    }

    /// Appends the metrics of other components of this process to `/metrics`.
    pub fn add_metrics(&self, page: impl Fn() -> String + Send + Sync + 'static) {
        self.metrics.add(Box::new(page));
    }

    /// Adds health checks of other components of this process. The source is called for each request; `/livez` is for checks
    /// that a restart can help.
    pub fn add_health_checks(
        &self,
        source: impl Fn(Endpoint) -> Vec<Outcome> + Send + Sync + 'static,
    ) {
        self.health.add(source);
    }

    /// Whether all checks of `/livez` pass.
    pub fn is_live(&self) -> bool {
        let outcomes = self.health.outcomes(Endpoint::Livez);
        outcomes.iter().all(|outcome| outcome.result.is_ok())
    }

    /// Ends all watches and refuses new ones.
    pub fn end_watches(&self) {
        self.hubs.close();
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics_page(&self) -> String {
        let mut text = Page::of([self as &dyn Observed]);
        self.metrics.append_others(&mut text);
        text
    }
}

impl Api {
    /// Objects that were set aside, and not discarded since.
    fn show_damaged(&self, page: &mut Page) {
        let damaged = self.store.set_aside();
        let rows = damaged
            .iter()
            .map(|value| (format!("key={:?}", value.key), 1));
        let rows: Vec<(String, u8)> = rows.collect();
        page.number(&metrics::DAMAGED, rows.len());
        page.rows(&metrics::DAMAGED_KEY, rows);
    }
}

impl Observed for Api {
    fn show(&self, page: &mut Page) {
        self.metrics.show(page);
        page.number(&metrics::WATCHES, self.hubs.watchers());
        self.fairness.show(page);
        page.number(&metrics::REVISION, self.store.revision());
        let spent = &self.authorizer.cost;
        let nanoseconds = spent.nanoseconds.load(Ordering::Relaxed);
        page.number(&metrics::DECISIONS, spent.decisions.load(Ordering::Relaxed));
        page.number(
            &metrics::DECISION_SECONDS,
            metrics::seconds(Duration::from_nanos(nanoseconds)),
        );
        let certificates = self.settings.certificates.list();
        let ends = certificates.iter().map(|one| {
            let labels = format!("certificate=\"{}\"", one.name);
            (labels, one.not_after.as_secs())
        });
        page.rows(&metrics::CERTIFICATE_ENDS, ends);
        page.number(&metrics::AUDIT_DROPPED, self.settings.audit.lost());
        let suppressed = self.settings.audit.suppressed();
        page.number(&metrics::AUDIT_SUPPRESSED, suppressed);
        if let Some(stats) = self.store.stats() {
            page.number(&metrics::WRITES, stats.writes);
            page.number(&metrics::BATCHES, stats.batches);
            page.number(&metrics::SYNCS, stats.syncs);
            page.number(&metrics::CHECKPOINTS, stats.checkpoints);
            page.number(&metrics::STORE_BYTES, stats.bytes);
        }
        self.show_damaged(page);
        self.health.show(page);
        self.settings.storage_quota.show(page);
        self.settings.backups.show(page);
    }
}
