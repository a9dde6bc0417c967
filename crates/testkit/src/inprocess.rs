//! An API server in the test's own process, and clients of it without a socket.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use kennel_server::api::Api;
use kennel_server::audit;
use kennel_server::backend::Backend;
use kennel_server::http::{self as server_http, body};
use kennel_server::request::User;
use kennel_store::Options;
use kube::client::Body;
use tempfile::TempDir;

/// A server on a directory of its own.
pub struct Server {
    server: Backend,
    _dir: TempDir,
}

impl Server {
    /// Opens one.
    pub async fn open() -> Self {
        Self::open_at("127.0.0.1:6443").await
    }

    /// The same, as if it could be reached here: its Service has endpoints if this is no loopback address.
    pub async fn open_at(address: &str) -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let address = address.parse().expect("this is an address");
        let cidr = "10.96.0.0/16".parse().expect("this is a range");
        let opened = Backend::open(
            Options::new(dir.path()),
            address,
            cidr,
            &audit::Options::off(),
        )
        .await;
        let server = opened.unwrap_or_else(|error| panic!("the server cannot be opened: {error}"));
        Self { server, _dir: dir }
    }

    /// A client that may do everything.
    pub fn client(&self, name: &str) -> kube::Client {
        client(self.api(), name)
    }

    /// The API itself.
    pub fn api(&self) -> Arc<Api> {
        Arc::clone(&self.server.api)
    }
}

/// A client of an API that may do everything.
pub fn client(api: Arc<Api>, name: &str) -> kube::Client {
    let name = name.to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (api, name) = (api.clone(), name.clone());
        async move { Ok::<_, Infallible>(answer(&api, &name, request).await) }
    });
    kube::Client::new(service, "default")
}

/// Sends a request to the API as `system:masters`.
pub(crate) async fn answer(
    api: &Arc<Api>,
    name: &str,
    request: Request<Body>,
) -> Response<body::Body> {
    server_http::answer(api, request, User::master(name)).await
}
