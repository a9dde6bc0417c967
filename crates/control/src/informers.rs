//! One watch per kind for all controllers of a process.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use tokio_util::sync::CancellationToken;

use crate::shape::{Node, Pod};
use kennel_client::informer::{Changes, Informer};

/// The kinds that controllers watch. Those to which nobody subscribes are not watched.
pub struct Informers {
    daemon_sets: Informer<DynamicObject>,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    revisions: Informer<DynamicObject>,
}

impl Informers {
    /// Informers that watch with this client.
    pub fn new(client: &Client) -> Self {
        let whole = |kind: ApiResource| Api::all_with(client.clone(), &kind);
        Self {
            daemon_sets: Informer::new(whole(ApiResource::erase::<DaemonSet>(&())), "daemonsets"),
            nodes: Informer::new(Api::all(client.clone()), "nodes"),
            pods: Informer::new(Api::all(client.clone()), "pods"),
            revisions: Informer::new(
                whole(ApiResource::erase::<ControllerRevision>(&())),
                "controllerrevisions",
            ),
        }
    }

    /// DaemonSets, whole, as the API gave them.
    pub fn daemon_sets(&mut self) -> Changes<DynamicObject> {
        self.daemon_sets.subscribe()
    }

    /// Nodes.
    pub fn nodes(&mut self) -> Changes<Node> {
        self.nodes.subscribe()
    }

    /// Pods.
    pub fn pods(&mut self) -> Changes<Pod> {
        self.pods.subscribe()
    }

    /// Revisions, whole, as the API gave them.
    pub fn revisions(&mut self) -> Changes<DynamicObject> {
        self.revisions.subscribe()
    }

    /// Watches until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let stop = || stop.clone();
        tokio::join!(
            self.daemon_sets.run(stop()),
            self.nodes.run(stop()),
            self.pods.run(stop()),
            self.revisions.run(stop()),
        );
    }
}
