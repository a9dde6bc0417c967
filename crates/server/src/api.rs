//! The state that all requests share: the store, the watch hubs, authentication and authorisation, and the
//! settings of the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kennel_core::metric::{Observed, Page};
use kennel_store::Store;

use crate::agent_client::AgentClient;
use crate::audit::Audit;
use crate::authenticate::{Authenticator, Credentials};
use crate::authorize::Authorizer;
use crate::fairness::Fairness;
use crate::metrics::{self, Metrics};
use crate::object::{self, Head, Stored};
use crate::registry::Resource;
use crate::status::{ApiError, Result};
use crate::watch::Hubs;

/// The settings of a server that requests depend on.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The certificate authority's certificate, as PEM, which pods trust.
    pub ca_pem: String,
    /// The address that clients reach this server at.
    pub address: std::net::SocketAddr,
    /// The range that cluster IPs are allocated from.
    pub service_cidr: crate::admit::service::Cidr,
    /// The log of requests that change something.
    pub audit: Arc<Audit>,
    /// How long an event is kept after it was last written.
    pub event_ttl: Duration,
    pub agents: AgentClient,
    /// What is exempt from Pod Security admission.
    pub pod_security: crate::admit::pod_security::Exemptions,
}

/// The API.
pub struct Api {
    pub(crate) store: Arc<dyn Store<Head>>,
    pub(crate) hubs: Hubs,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) fairness: Arc<Fairness>,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    /// Serialises the writes of services, whose cluster IPs and node ports must be unique.
    pub(crate) services: tokio::sync::Mutex<()>,
    /// What writes under way use of resource quotas.
    pub(crate) quotas: crate::admit::quota::Ledger,
}

impl Api {
    /// Must be called within a runtime: starts the tasks that feed the watches.
    pub(crate) fn new(
        store: Arc<dyn Store<Head>>,
        credentials: Credentials,
        settings: Settings,
    ) -> Arc<Self> {
        let hubs = Hubs::new(store.revision());
        hubs.start(&store);
        let authenticator = Authenticator::new(Arc::clone(&store), credentials);
        Arc::new(Self {
            authorizer: Authorizer::new(&store),
            store,
            hubs,
            settings,
            metrics: Metrics::default(),
            fairness: Arc::default(),
            authenticator,
            services: tokio::sync::Mutex::default(),
            quotas: crate::admit::quota::Ledger::default(),
        })
    }

    /// The stored objects of a resource.
    pub(crate) fn all(&self, row: &Resource) -> Vec<Stored> {
        let prefix = object::prefix(row, None);
        self.store.range(&prefix, None, None).records
    }

    /// The stored object of this name.
    pub(crate) fn stored(
        &self,
        row: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Stored> {
        let found = self.store.get(&object::key(row, namespace, name));
        found.ok_or_else(|| ApiError::not_found(row, name))
    }

    /// Appends the metrics of other components of this process to `/metrics`.
    pub fn add_metrics(&self, page: impl Fn() -> String + Send + Sync + 'static) {
        self.metrics.add(Box::new(page));
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
        page.number(&metrics::AUDIT_DROPPED, self.settings.audit.lost());
        if let Some(stats) = self.store.stats() {
            page.number(&metrics::WRITES, stats.writes);
            page.number(&metrics::BATCHES, stats.batches);
            page.number(&metrics::SYNCS, stats.syncs);
            page.number(&metrics::CHECKPOINTS, stats.checkpoints);
        }
    }
}
