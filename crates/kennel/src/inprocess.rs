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

use crate::counts::{self, Sent};

/// A client of this API, as the given user, whose requests are counted under that name.
fn client(api: &Arc<Api>, user: User) -> kube::Client {
    let sent = counts::of(&user.name);
    counted(api, user, sent)
}

fn counted(api: &Arc<Api>, user: User, sent: Arc<Sent>) -> kube::Client {
    let api = Arc::clone(api);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (api, user, sent) = (Arc::clone(&api), user.clone(), Arc::clone(&sent));
        async move {
            let answer: Response<body::Body> = connection::answer(&api, request, user).await;
            sent.count(answer.status().as_u16());
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

/// What gives a node the role of a control plane: `kennel:control-plane` is its role.
pub(crate) fn control_plane(api: &Arc<Api>) -> kube::Client {
    client(
        api,
        User::authenticated("system:kennel:control-plane", Vec::new()),
    )
}

/// A real node's own, with the rights that node has.
pub(crate) fn node(api: &Arc<Api>, name: &str) -> kube::Client {
    client(api, node_user(name))
}

fn node_user(name: &str) -> User {
    let groups = vec!["system:nodes".to_owned()];
    User::authenticated(format!("system:node:{name}"), groups)
}

/// The simulated nodes' own: one that sees pods, with the role `kennel:simulated-nodes`, and one for each
/// node, with the rights that node has.
pub(crate) fn simulated(api: &Arc<Api>) -> simulated::Clients {
    let watcher = client(
        api,
        User::authenticated("system:kennel:simulated-nodes", Vec::new()),
    );
    let (api, sent) = (Arc::clone(api), counts::of("system:node"));
    let node = move |name: &str| counted(&api, node_user(name), Arc::clone(&sent));
    simulated::Clients {
        watcher,
        node: Box::new(node),
    }
}
