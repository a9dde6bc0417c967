//! A Kubernetes client whose server is in the same process: no socket, no TLS, the same code.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use kennel_server::api::Api;
use kennel_server::http::{body, connection};
use kennel_server::request::User;
use kube::client::Body;

/// A client of this API, under the given name.
pub(crate) fn client(api: &Arc<Api>, name: &str) -> kube::Client {
    let (api, user) = (Arc::clone(api), User::master(name));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (api, user) = (Arc::clone(&api), user.clone());
        async move {
            let answer: Response<body::Body> = connection::answer(&api, request, user).await;
            Ok::<_, Infallible>(answer)
        }
    });
    kube::Client::new(service, "default")
}
