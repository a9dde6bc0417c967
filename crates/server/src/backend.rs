//! The store and the API over it, without a socket. [`crate::server`] adds certificates, TLS and a listener;
//! clients in the same process call the API through [`crate::http::answer`].

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use kennel_store::{Options, SqliteStore, Store};

use crate::advertised::Advertised;
use crate::api::{Api, Exemptions, Settings};
use crate::audit::{self, Audit};
use crate::authenticate::Credentials;
use crate::background::Background;
use crate::bootstrap;
use crate::certificates::Certificates;
use crate::data_dir;
use crate::expire;
use crate::kinds::service::Cidr;
use crate::object::{self, Head};
use crate::pki::{self, keys};
use crate::quota::{self, StorageQuota};
use crate::seal::Keyring;
use crate::start_error::StartError;

/// A running API and its store.
pub struct Backend {
    pub api: Arc<Api>,
    store: Arc<dyn Store<Head>>,
    background: Background,
}

impl Backend {
    /// Opens the API of a data directory with default settings. `address` is where it says that it can be
    /// reached.
    pub async fn open(
        options: Options,
        address: SocketAddr,
        service_cidr: Cidr,
        audit: &audit::Options,
    ) -> Result<Self, StartError> {
        let exemptions = Exemptions::default();
        Self::open_exempting(options, address, service_cidr, audit, exemptions).await
    }

    /// The same with exemptions from Pod Security admission.
    pub async fn open_exempting(
        options: Options,
        address: SocketAddr,
        service_cidr: Cidr,
        audit: &audit::Options,
        pod_security: Exemptions,
    ) -> Result<Self, StartError> {
        let advertised = Advertised {
            address: Some(address.ip()).filter(|ip| !ip.is_loopback()),
            dns: None,
        };
        let addresses = (address, advertised);
        Self::open_with(options, addresses, service_cidr, audit, pod_security).await
    }

    /// The same, with other addresses for pods.
    pub async fn open_advertising(
        options: Options,
        addresses: (SocketAddr, Advertised),
        service_cidr: Cidr,
    ) -> Result<Self, StartError> {
        let (audit, exemptions) = (audit::Options::off(), Exemptions::default());
        Self::open_with(options, addresses, service_cidr, &audit, exemptions).await
    }

    async fn open_with(
        options: Options,
        (address, advertised): (SocketAddr, Advertised),
        service_cidr: Cidr,
        audit: &audit::Options,
        pod_security: Exemptions,
    ) -> Result<Self, StartError> {
        let dir = options.dir.clone();
        let store = open_store(options)?;
        let addresses = (address, advertised);
        Self::over(store, &dir, addresses, service_cidr, audit, pod_security).await
    }

    /// Opens the API over a store that is open, with certificates in a data directory.
    pub async fn over(
        store: Arc<dyn Store<Head>>,
        dir: &Path,
        (address, advertised): (SocketAddr, Advertised),
        service_cidr: Cidr,
        audit: &audit::Options,
        pod_security: Exemptions,
    ) -> Result<Self, StartError> {
        let certificates = pki::Options {
            dir: dir.join(crate::data_dir::PKI),
            names: Vec::new(),
            addresses: Vec::new(),
            token_key_days: keys::DAYS_DEFAULT,
            clock: pki::Clock::default(),
        };
        let certificates = Arc::new(Certificates::open(certificates, None)?);
        let settings = Settings {
            certificates: Arc::clone(&certificates),
            address,
            advertised,
            service_cidr,
            audit: Arc::new(Audit::open(audit)?),
            event_ttl: expire::TTL_DEFAULT,
            storage_quota: Arc::new(StorageQuota::new(quota::QUOTA_DEFAULT)),
            backups: Arc::default(),
            pod_security,
        };
        let credentials = Credentials {
            certificates,
            static_tokens: None,
        };
        Self::start(store, credentials, settings).await
    }

    /// Starts the API over a store, and writes the objects that every cluster has.
    pub(crate) async fn start(
        store: Arc<dyn Store<Head>>,
        credentials: Credentials,
        settings: Settings,
    ) -> Result<Self, StartError> {
        let unserved = object::unserved(&*store);
        if !unserved.is_empty() {
            let unserved = unserved.join(", ");
            tracing::warn!("stored objects belong to no resource of this version: {unserved}");
        }
        let api = Api::new(Arc::clone(&store), credentials, settings);
        let bootstrapped = bootstrap::ensure_initial_objects(&api).await;
        bootstrapped.map_err(|error| StartError::Bootstrap(error.message))?;
        let mut background = Background::default();
        let namespaces = bootstrap::watch_namespaces(Arc::clone(&api));
        background.spawn("gives namespaces their default objects", namespaces);
        let roles = bootstrap::watch_aggregated_roles(Arc::clone(&api));
        background.spawn("aggregates cluster roles", roles);
        let services = bootstrap::keep_services(Arc::clone(&api));
        background.spawn("keeps the Services of the API and of DNS", services);
        let snapshots = Arc::clone(&api.snapshots).tidy_regularly(Arc::clone(&store));
        background.spawn("forgets snapshots of lists", snapshots);
        if !store.expires_keys() {
            let expiry = expire::expire_events(Arc::clone(&api));
            background.spawn("deletes old events", expiry);
        }
        Ok(Self {
            api,
            store,
            background,
        })
    }

    /// Waits until a task has ended, which it does only at [`Self::close`] or by a panic, and says what it did.
    pub(crate) async fn task_ended(&mut self) -> &'static str {
        self.background.ended().await
    }

    /// Waits until the store's writer has ended, which it does only at [`Self::close`] or by a panic.
    pub(crate) fn writer_ended(&self) -> impl Future<Output = ()> + use<> {
        let store = Arc::clone(&self.store);
        async move { store.ended().await }
    }

    /// As when the writer dies.
    #[cfg(test)]
    pub(crate) async fn close_store(&self) {
        self.store.close().await;
    }

    /// Ends all watches, finishes the writes under way and closes the store and the audit log.
    pub async fn close(self) {
        self.api.end_watches();
        self.store.close().await;
        self.api.settings.audit.close().await;
    }
}

/// Opens the store and parses the head of every object in it.
pub(crate) fn open_store(mut options: Options) -> Result<Arc<dyn Store<Head>>, StartError> {
    if data_dir::is_half_restored(&options.dir) {
        return Err(StartError::HalfRestored(options.dir));
    }
    if data_dir::is_half_migrated(&options.dir) {
        return Err(StartError::HalfMigrated(options.dir));
    }
    options.collections = object::collections();
    // An empty keyring refuses encrypted objects. Without one, they would look corrupt.
    options
        .seal
        .get_or_insert_with(|| Arc::new(Keyring::empty()));
    let opened = SqliteStore::open(options, |key, bytes| Ok(object::decode(key, bytes)?))?;
    Ok(opened)
}
