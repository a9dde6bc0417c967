//! One watch per kind for all controllers of a process.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use tokio_util::sync::CancellationToken;

use crate::shape::{Lease, Namespace, Node, Pod};
use kennel_client::informer::{Changes, Informer};

/// Where nodes have their leases.
const NODE_LEASES: &str = "kube-node-lease";

/// The kinds that controllers watch. Those to which nobody subscribes are not watched.
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
    /// Informers that watch with this client.
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

    /// Requests for certificates.
    pub fn certificate_requests(&mut self) -> Changes<CertificateSigningRequest> {
        self.certificate_requests.subscribe()
    }

    /// DaemonSets, whole, as the API gave them.
    pub fn daemon_sets(&mut self) -> Changes<DynamicObject> {
        self.daemon_sets.subscribe()
    }

    /// Endpoints, whole, as the API gave them.
    pub fn endpoints(&mut self) -> Changes<DynamicObject> {
        self.endpoints.subscribe()
    }

    /// Endpoint slices, whole, as the API gave them.
    pub fn endpoint_slices(&mut self) -> Changes<DynamicObject> {
        self.endpoint_slices.subscribe()
    }

    /// Namespaces.
    pub fn namespaces(&mut self) -> Changes<Namespace> {
        self.namespaces.subscribe()
    }

    /// Nodes.
    pub fn nodes(&mut self) -> Changes<Node> {
        self.nodes.subscribe()
    }

    /// The leases of nodes: only who, and when it was renewed.
    pub fn node_leases(&mut self) -> Changes<Lease> {
        self.node_leases.subscribe()
    }

    /// Pods.
    pub fn pods(&mut self) -> Changes<Pod> {
        self.pods.subscribe()
    }

    /// Revisions, whole, as the API gave them.
    pub fn revisions(&mut self) -> Changes<DynamicObject> {
        self.revisions.subscribe()
    }

    /// Services, whole, as the API gave them.
    pub fn services(&mut self) -> Changes<DynamicObject> {
        self.services.subscribe()
    }

    /// Watches until told to stop.
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
