//! One watch per kind, shared by all controllers of a process.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kennel_client::informer::{Changes, Informer};
use kennel_types::{Lease, Namespace, Node};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;

/// Pods as the controllers watch them: no controller reads container statuses.
pub type Pod = kennel_types::Pod<IgnoredAny>;

/// The namespace of the nodes' leases.
const NODE_LEASES: &str = "kube-node-lease";

/// The kinds that controllers watch. A kind without a subscriber is not watched.
pub struct Informers {
    certificate_requests: Informer<CertificateSigningRequest>,
    daemon_sets: Informer<DynamicObject>,
    endpoints: Informer<DynamicObject>,
    endpoint_slices: Informer<DynamicObject>,
    namespaces: Informer<Namespace>,
    nodes: Informer<Node>,
    node_leases: Informer<Lease>,
    pods: Informer<Pod>,
    revisions: Informer<DynamicObject>,
    services: Informer<DynamicObject>,
}

impl Informers {
    pub fn new(client: &Client) -> Self {
        let whole = |kind: ApiResource| Api::all_with(client.clone(), &kind);
        Self {
            certificate_requests: Informer::new(
                Api::all(client.clone()),
                "certificatesigningrequests",
            ),
            daemon_sets: Informer::new(whole(ApiResource::erase::<DaemonSet>(&())), "daemonsets"),
            endpoints: Informer::new(whole(ApiResource::erase::<Endpoints>(&())), "endpoints"),
            endpoint_slices: Informer::new(
                whole(ApiResource::erase::<EndpointSlice>(&())),
                "endpointslices",
            ),
            namespaces: Informer::new(Api::all(client.clone()), "namespaces"),
            nodes: Informer::new(Api::all(client.clone()), "nodes"),
            node_leases: Informer::new(Api::namespaced(client.clone(), NODE_LEASES), "node leases"),
            pods: Informer::new(Api::all(client.clone()), "pods"),
            revisions: Informer::new(
                whole(ApiResource::erase::<ControllerRevision>(&())),
                "controllerrevisions",
            ),
            services: Informer::new(whole(ApiResource::erase::<Service>(&())), "services"),
        }
    }

    pub fn certificate_requests(&mut self) -> Changes<CertificateSigningRequest> {
        self.certificate_requests.subscribe()
    }

    /// DaemonSets, undecoded.
    pub fn daemon_sets(&mut self) -> Changes<DynamicObject> {
        self.daemon_sets.subscribe()
    }

    /// Endpoints, undecoded.
    pub fn endpoints(&mut self) -> Changes<DynamicObject> {
        self.endpoints.subscribe()
    }

    /// Endpoint slices, undecoded.
    pub fn endpoint_slices(&mut self) -> Changes<DynamicObject> {
        self.endpoint_slices.subscribe()
    }

    pub fn namespaces(&mut self) -> Changes<Namespace> {
        self.namespaces.subscribe()
    }

    pub fn nodes(&mut self) -> Changes<Node> {
        self.nodes.subscribe()
    }

    /// The leases of nodes: only their identity and renew time.
    pub fn node_leases(&mut self) -> Changes<Lease> {
        self.node_leases.subscribe()
    }

    pub fn pods(&mut self) -> Changes<Pod> {
        self.pods.subscribe()
    }

    /// Revisions, undecoded.
    pub fn revisions(&mut self) -> Changes<DynamicObject> {
        self.revisions.subscribe()
    }

    /// Services, undecoded.
    pub fn services(&mut self) -> Changes<DynamicObject> {
        self.services.subscribe()
    }

    /// Watches until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
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
