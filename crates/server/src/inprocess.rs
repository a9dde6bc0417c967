//! A server without a socket: the store and the API over it, for clients in the same process.
//! What [`crate::server`] adds is certificates for the outside, TLS and a listener.

use std::net::SocketAddr;
use std::sync::Arc;

use kennel_store::{OpenError, Options, SqliteStore, Store};

use crate::admit::service::Cidr;
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
use crate::verbs::connect::Agents;

/// A running API without a socket.
pub struct InProcess {
    /// The API.
    pub api: Arc<Api>,
    store: Arc<SqliteStore<Head>>,
}

impl InProcess {
    /// Opens the API of a data directory, without an audit log. `address` is where it says that it can
    /// be reached.
    pub async fn open(
        options: Options,
        address: SocketAddr,
        service_cidr: Cidr,
    ) -> Result<Self, StartError> {
        let audit = audit::Options::off();
        Self::open_audited(options, address, service_cidr, &audit).await
    }

    /// Opens the API of a data directory, with an audit log.
    pub async fn open_audited(
        options: Options,
        address: SocketAddr,
        service_cidr: Cidr,
        audit: &audit::Options,
    ) -> Result<Self, StartError> {
        let pki = Pki::open(&options.dir, &[], &[], keys::DAYS_DEFAULT)?;
        let store = open_store(options)?;
        let agents = Agents::new(&pki)?;
        let settings = Settings {
            ca_pem: pki.ca_pem,
            address,
            service_cidr,
            audit: Arc::new(Audit::open(audit)?),
            event_ttl: expire::TTL_DEFAULT,
            agents,
        };
        let credentials = Credentials {
            keys: pki.tokens,
            static_tokens: None,
        };
        let api = open_api(&store, credentials, settings).await?;
        Ok(Self { api, store })
    }

    /// Ends all watches, finishes the writes under way and closes the store.
    pub async fn close(self) {
        self.api.end_watches();
        self.store.close().await;
        self.api.settings.audit.close().await;
    }
}

/// Opens the store with a head for every object in it.
pub(crate) fn open_store(mut options: Options) -> Result<Arc<SqliteStore<Head>>, OpenError> {
    options.collections = object::collections();
    // Without keys, too: what is encrypted must be refused, not taken for damaged.
    options
        .seal
        .get_or_insert_with(|| Arc::new(Keyring::empty()));
    SqliteStore::open(options, |key, bytes| {
        let row = object::row_of_key(key);
        let head = row.and_then(|row| Head::read(row, bytes).ok());
        head.unwrap_or_else(|| {
            tracing::error!(
                key,
                "a stored object cannot be read; it will not be found by selectors"
            );
            Head::default()
        })
    })
}

/// Starts the API over a store and writes the objects that every cluster has.
pub(crate) async fn open_api(
    store: &Arc<SqliteStore<Head>>,
    credentials: Credentials,
    settings: Settings,
) -> Result<Arc<Api>, StartError> {
    let store: Arc<dyn Store<Head>> = Arc::clone(store) as _;
    let api = Api::new(store, credentials, settings);
    let furnished = bootstrap::furnish(&api).await;
    furnished.map_err(|error| StartError::Bootstrap(error.message))?;
    tokio::spawn(bootstrap::keep_furnished(Arc::clone(&api)));
    tokio::spawn(bootstrap::keep_gathered(Arc::clone(&api)));
    tokio::spawn(expire::expire_events(Arc::clone(&api)));
    Ok(api)
}
