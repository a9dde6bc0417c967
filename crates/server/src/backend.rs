//! The store and the API over it, without a socket. [`crate::server`] adds certificates, TLS and a listener;
//! clients in the same process call the API through [`crate::http::answer`].

use std::net::SocketAddr;
use std::sync::Arc;

use kennel_store::{OpenError, Options, SqliteStore, Store};

use crate::admit::pod_security::Exemptions;
use crate::admit::service::Cidr;
use crate::agent_client::AgentClient;
use crate::api::{Api, Settings};
use crate::audit::{self, Audit};
use crate::authenticate::Credentials;
use crate::bootstrap;
use crate::expire;
use crate::object::{self, Head};
use crate::pki::Pki;
use crate::pki::keys;
use crate::seal::Keyring;
use crate::server::StartError;

/// A running API and its store.
pub struct Backend {
    pub api: Arc<Api>,
    store: Arc<SqliteStore<Head>>,
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
        let pki = Pki::open(&options.dir, &[], &[], keys::DAYS_DEFAULT)?;
        let store = open_store(options)?;
        let settings = Settings {
            agents: AgentClient::new(&pki)?,
            ca_pem: pki.ca_pem,
            address,
            service_cidr,
            audit: Arc::new(Audit::open(audit)?),
            event_ttl: expire::TTL_DEFAULT,
            pod_security,
        };
        let credentials = Credentials {
            keys: pki.tokens,
            static_tokens: None,
        };
        Self::start(store, credentials, settings).await
    }

    /// Starts the API over a store, and writes the objects that every cluster has.
    pub(crate) async fn start(
        store: Arc<SqliteStore<Head>>,
        credentials: Credentials,
        settings: Settings,
    ) -> Result<Self, StartError> {
        let objects: Arc<dyn Store<Head>> = Arc::clone(&store) as _;
        let api = Api::new(objects, credentials, settings);
        let bootstrapped = bootstrap::ensure_initial_objects(&api).await;
        bootstrapped.map_err(|error| StartError::Bootstrap(error.message))?;
        tokio::spawn(bootstrap::watch_namespaces(Arc::clone(&api)));
        tokio::spawn(bootstrap::watch_aggregated_roles(Arc::clone(&api)));
        tokio::spawn(expire::expire_events(Arc::clone(&api)));
        Ok(Self { api, store })
    }

    /// Ends all watches, finishes the writes under way and closes the store and the audit log.
    pub async fn close(self) {
        self.api.end_watches();
        self.store.close().await;
        self.api.settings.audit.close().await;
    }
}

/// Opens the store and parses the head of every object in it.
pub(crate) fn open_store(mut options: Options) -> Result<Arc<SqliteStore<Head>>, OpenError> {
    options.collections = object::collections();
    // An empty keyring refuses encrypted objects. Without one, they would look corrupt.
    options
        .seal
        .get_or_insert_with(|| Arc::new(Keyring::empty()));
    SqliteStore::open(options, |key, bytes| {
        let row = object::row_of_key(key);
        let head = row.and_then(|row| Head::read(row, bytes).ok());
        head.unwrap_or_else(|| {
            tracing::error!(
                key,
                "cannot parse a stored object; selectors will not find it"
            );
            Head::default()
        })
    })
}
