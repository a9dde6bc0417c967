//! Kubernetes clients whose server is in the same process: no socket, no TLS, the same code. Each has an
//! identity of its own, with the rights that roles give it and no others.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use kennel_node::simulated;
use kennel_server::api::Api;
use kennel_server::http::{body, connection};
use kennel_server::request::User;
use kube::client::Body;

/// A client of this API, as the given user.
fn client(api: &Arc<Api>, user: User) -> kube::Client {
    let api = Arc::clone(api);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (api, user) = (Arc::clone(&api), user.clone());
        async move {
            let answer: Response<body::Body> = connection::answer(&api, request, user).await;
            Ok::<_, Infallible>(answer)
        }
    });
    kube::Client::new(service, "default")
}

/// The DaemonSet controller's own: `system:controller:daemon-set-controller` is its role.
pub(crate) fn daemonsets(api: &Arc<Api>) -> kube::Client {
    client(
        api,
        User::service_account("kube-system", "daemon-set-controller"),
    )
}

/// A controller's own, by the name of its account; its role has that name, too.
pub(crate) fn account(api: &Arc<Api>, name: &str) -> kube::Client {
    client(api, User::service_account("kube-system", name))
}

/// The scheduler's own: `system:kube-scheduler` is its role.
pub(crate) fn scheduler(api: &Arc<Api>) -> kube::Client {
    client(
        api,
        User::authenticated("system:kube-scheduler", Vec::new()),
    )
}

/// What the controllers see they see through this one, which cannot write: `kennel:informers` is its role.
pub(crate) fn informers(api: &Arc<Api>) -> kube::Client {
    client(
        api,
        User::authenticated("system:kennel:informers", Vec::new()),
    )
}

/// The DNS server's own, which cannot write: `kennel:dns` is its role.
pub(crate) fn names(api: &Arc<Api>) -> kube::Client {
    client(api, User::authenticated("system:kennel:dns", Vec::new()))
}

/// The simulated nodes' own: one that sees pods, with the role `kennel:simulated-nodes`, and one for each
/// node, with the rights that node has.
pub(crate) fn simulated(api: &Arc<Api>) -> simulated::Clients {
    let watcher = client(
        api,
        User::authenticated("system:kennel:simulated-nodes", Vec::new()),
    );
    let api = Arc::clone(api);
    let node = move |name: &str| {
        let groups = vec!["system:nodes".to_owned()];
        let user = User::authenticated(format!("system:node:{name}"), groups);
        client(&api, user)
    };
    simulated::Clients {
        watcher,
        node: Box::new(node),
    }
}
