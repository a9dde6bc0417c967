//! Kubernetes clients of the API server in this process: no socket, no TLS, the same request handling. Each has
//! an identity of its own, with the rights that its roles give it and no others.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use kennel_server::api::Api;
use kennel_server::http::{self as server_http, body};
use kennel_server::request::User;
use kube::client::Body;

use crate::request_counts::{self, RequestCount};

/// A client of this user, whose requests are counted under the user's name.
fn client(api: &Arc<Api>, user: User) -> kube::Client {
    let count = request_counts::of_user(&user.name);
    counted(api, user, count)
}

fn counted(api: &Arc<Api>, user: User, count: Arc<RequestCount>) -> kube::Client {
    let api = Arc::clone(api);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        request.headers_mut().extend(kennel_client::headers());
        let (api, user, count) = (Arc::clone(&api), user.clone(), Arc::clone(&count));
        async move {
            let response: Response<body::Body> = server_http::answer(&api, request, user).await;
            count.increment(response.status().as_u16());
            Ok::<_, Infallible>(response)
        }
    });
    kube::Client::new(service, "default")
}

/// A controller's client: the service account `name` in `kube-system`, which has the role
/// `system:controller:{name}`.
pub fn controller(api: &Arc<Api>, name: &str) -> kube::Client {
    client(api, User::service_account("kube-system", name))
}

/// The scheduler's client, with the role `system:kube-scheduler`.
pub fn scheduler(api: &Arc<Api>) -> kube::Client {
    system_user(api, "system:kube-scheduler")
}

/// The client of the informers that all controllers share. Its role `kennel:informers` is read-only.
pub fn informers(api: &Arc<Api>) -> kube::Client {
    system_user(api, "system:kennel:informers")
}

/// The client that holds the lease of the controllers, with the role `kennel:controller-manager`.
pub fn controller_manager(api: &Arc<Api>) -> kube::Client {
    system_user(api, "system:kennel:controller-manager")
}

/// The DNS server's client. Its role `kennel:dns` is read-only.
pub fn dns(api: &Arc<Api>) -> kube::Client {
    system_user(api, "system:kennel:dns")
}

/// The client of the dashboard. Its role `kennel:dashboard` reads what the page shows, and may change DaemonSets.
pub fn dashboard(api: &Arc<Api>) -> kube::Client {
    system_user(api, "system:kennel:dashboard")
}

/// The client that labels and taints a control-plane node, with the role `kennel:control-plane`.
pub fn control_plane(api: &Arc<Api>) -> kube::Client {
    system_user(api, "system:kennel:control-plane")
}

/// The client of a real node, with the rights of that node.
pub fn node(api: &Arc<Api>, name: &str) -> kube::Client {
    client(api, node_user(name))
}

/// The clients of simulated nodes: one that watches pods, with the role `kennel:simulated-nodes`, and one per
/// node, with the rights of that node.
pub fn simulated(api: &Arc<Api>) -> kennel_simulation::Clients {
    let watcher = system_user(api, "system:kennel:simulated-nodes");
    let (api, count) = (Arc::clone(api), request_counts::of_user("system:node"));
    let node = move |name: &str| counted(&api, node_user(name), Arc::clone(&count));
    kennel_simulation::Clients {
        watcher: kennel_simulation::Watcher::Shared(watcher),
        node: Box::new(node),
    }
}

fn system_user(api: &Arc<Api>, name: &str) -> kube::Client {
    client(api, User::authenticated(name, Vec::new()))
}

fn node_user(name: &str) -> User {
    let groups = vec!["system:nodes".to_owned()];
    User::authenticated(format!("system:node:{name}"), groups)
}
