//! The listener and its connections: plain HTTP on loopback addresses, TLS elsewhere.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kennel_client::expiry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::app::App;
use crate::hosts::Hosts;
use crate::secret::NoRandomness;
use crate::tls::{self, TlsError, TlsFiles};
use crate::watching::Watching;

/// The port that is used if it is free.
pub const PORT: u16 = 6480;

/// A browser has at most six for one tab's host; this allows several browsers.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take for a TLS handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Requests are small: most of a head is cookies of other servers on this machine.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long open requests may take at the end.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay after a failed accept, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// [`PORT`] of 127.0.0.1, or a free port if that is taken.
    Loopback,
    At(SocketAddr),
}

/// What to show, and to whom.
#[derive(Clone)]
pub struct Settings {
    pub client: kube::Client,
    pub listen: Listen,
    /// Required on other than loopback addresses.
    pub tls: Option<TlsFiles>,
    pub allow_changes: bool,
    /// Kennel's version.
    pub version: String,
    /// URL of the API server.
    pub server: String,
    /// Of the kubeconfig.
    pub context: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "{0} is not a loopback address: other machines reach the dashboard there, so it needs --tls-cert and --tls-key"
    )]
    NeedsTls(SocketAddr),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// A dashboard whose port is open. Clones share the port.
#[derive(Clone)]
pub struct Dashboard {
    listener: Arc<TcpListener>,
    tls: Option<Arc<tls::Live>>,
    app: Arc<App>,
}

impl Dashboard {
    pub fn bind(settings: Settings) -> BoxFuture<'static, Result<Self, StartError>> {
        bind(settings).boxed()
    }

    /// The address that a browser can open: another one each time that one was used.
    pub fn address(&self) -> watch::Receiver<String> {
        self.app.access.address()
    }

    /// Serves until `stop`.
    pub fn serve(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        serve(self, stop).boxed()
    }
}

async fn bind(settings: Settings) -> Result<Dashboard, StartError> {
    let listener = match settings.listen {
        Listen::At(address) => listen(address).await?,
        Listen::Loopback => {
            let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            match listen(loopback(PORT)).await {
                Ok(listener) => listener,
                Err(_taken) => listen(loopback(0)).await?,
            }
        }
    };
    let address = listener.local_addr().map_err(|source| {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        StartError::Listen { address, source }
    })?;
    let (hosts, tls) = match &settings.tls {
        Some(files) => {
            let tls = tls::Live::open(files.clone())?;
            (tls.hosts(address), Some(Arc::new(tls)))
        }
        None if address.ip().is_loopback() => (Hosts::loopback(address), None),
        None => return Err(StartError::NeedsTls(address)),
    };
    let access = Access::new(hosts)?;
    Ok(Dashboard {
        listener: Arc::new(listener),
        tls,
        app: Arc::new(App::new(settings, access)),
    })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| StartError::Listen { address, source })
}

async fn serve(dashboard: Dashboard, stop: CancellationToken) {
    let Dashboard { listener, tls, app } = dashboard;
    let connections = TaskTracker::new();
    let stop_watching = stop.clone();
    let watching = Watching::end_when_idle(&app.watching, stop_watching);
    let accepting = accept(&listener, tls.as_deref(), &app, &stop, &connections);
    tokio::select! {
        () = accepting => {}
        () = watching => {}
        () = keep_certificate(tls.as_deref(), &listener, &app) => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(STOP_TIMEOUT, connections.wait())
        .await
        .is_err()
    {
        tracing::debug!("connections of the dashboard were still open at the end");
    }
}

/// Follows the files of the certificate, and warns of its end. Never returns.
async fn keep_certificate(tls: Option<&tls::Live>, listener: &TcpListener, app: &App) {
    let (Some(tls), Ok(address)) = (tls, listener.local_addr()) else {
        return std::future::pending().await;
    };
    let follow = tls.follow(|| app.access.set_hosts(tls.hosts(address)));
    tokio::join!(follow, expiry::warn(|now| tls.warnings(now), drop));
}

/// Never returns.
async fn accept(
    listener: &TcpListener,
    tls: Option<&tls::Live>,
    app: &Arc<App>,
    stop: &CancellationToken,
    connections: &TaskTracker,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((socket, _)) => {
                let tls = tls.map(tls::Live::acceptor);
                let (app, stop) = (Arc::clone(app), stop.clone());
                connections.spawn(async move {
                    connection(socket, tls, app, stop).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection for the dashboard");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn connection(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    app: Arc<App>,
    stop: CancellationToken,
) {
    // Messages are small: waiting to fill a packet would only delay them.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let Some(tls) = tls else {
        return requests(socket, app, stop).await;
    };
    match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(socket)).await {
        Ok(Ok(stream)) => requests(stream, app, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn requests<S>(stream: S, app: Arc<App>, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let streams_end = stop.clone();
    let service = service_fn(move |request| {
        let (app, stop) = (Arc::clone(&app), streams_end.clone());
        async move { Ok::<_, Infallible>(app.respond(request, stop).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of the dashboard ended");
    }
}
