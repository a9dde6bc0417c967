//! One watch per kind, shared by all controllers of a process.

use std::fmt::Debug;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kennel_client::informer::Informer;
use kennel_types::{ContainerHealth, Lease, Namespace, Node};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

/// Pods as the controllers watch them.
pub type Pod = kennel_types::Pod<ContainerHealth>;

/// The namespace of the nodes' leases.
const NODE_LEASES: &str = "kube-node-lease";

/// The kinds that controllers watch. A kind without a subscriber is not watched.
pub struct Informers {
    pub certificate_requests: Informer<CertificateSigningRequest>,
    /// Undecoded.
    pub daemon_sets: Informer<DynamicObject>,
    /// Undecoded.
    pub endpoints: Informer<DynamicObject>,
    /// Undecoded.
    pub endpoint_slices: Informer<DynamicObject>,
    pub namespaces: Informer<Namespace>,
    pub nodes: Informer<Node>,
    /// Only their identity and renew time.
    pub node_leases: Informer<Lease>,
    pub pods: Informer<Pod>,
    /// Undecoded.
    pub revisions: Informer<DynamicObject>,
    /// Undecoded.
    pub services: Informer<DynamicObject>,
}

impl Informers {
    pub fn new(client: &Client) -> Self {
        Self {
            certificate_requests: all(client, "certificatesigningrequests"),
            daemon_sets: undecoded::<DaemonSet>(client, "daemonsets"),
            endpoints: undecoded::<Endpoints>(client, "endpoints"),
            endpoint_slices: undecoded::<EndpointSlice>(client, "endpointslices"),
            namespaces: all(client, "namespaces"),
            nodes: all(client, "nodes"),
            node_leases: Informer::new(Api::namespaced(client.clone(), NODE_LEASES), "node leases"),
            pods: all(client, "pods"),
            revisions: undecoded::<ControllerRevision>(client, "controllerrevisions"),
            services: undecoded::<Service>(client, "services"),
        }
    }

    /// Watches until `stop` is cancelled. Boxed, as controllers are.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        self.run_all(stop).boxed()
    }

    async fn run_all(self, stop: CancellationToken) {
        let stop = || stop.clone();
        tokio::join!(
            self.certificate_requests.run(stop()),
            self.daemon_sets.run(stop()),
            self.endpoints.run(stop()),
            self.endpoint_slices.run(stop()),
            self.namespaces.run(stop()),
            self.nodes.run(stop()),
            self.node_leases.run(stop()),
            self.pods.run(stop()),
            self.revisions.run(stop()),
            self.services.run(stop()),
        );
    }
}

fn all<K>(client: &Client, what: &'static str) -> Informer<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    Informer::new(Api::all(client.clone()), what)
}

fn undecoded<K: Resource<DynamicType = ()>>(
    client: &Client,
    what: &'static str,
) -> Informer<DynamicObject> {
    let kind = ApiResource::erase::<K>(&());
    Informer::new(Api::all_with(client.clone(), &kind), what)
}
