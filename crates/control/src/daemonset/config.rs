//! Watches of ConfigMaps, in exactly the namespaces in which some DaemonSet's config is pinned (R10).
//!
//! A watch that cannot be opened, for want of rights, holds up nothing but new config: the frame does not wait for its
//! first list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kennel_client::feed::{self, Change};
use kennel_core::daemonset::event::{ConfigEvent, Event as PlannerEvent};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use tokio_util::sync::CancellationToken;

use super::controller::DaemonSetController;
use super::events::Event;
use crate::frame::{Context, Update};
use crate::view;

/// See the [module](self).
pub(super) struct ConfigWatches {
    client: Client,
    /// By namespace; cancelling one ends its watch.
    open: BTreeMap<Arc<str>, CancellationToken>,
}

impl ConfigWatches {
    pub(super) fn new(client: Client) -> Self {
        let open = BTreeMap::new();
        Self { client, open }
    }

    /// Opens and closes watches, so that those of `namespaces` are open. Returns which were closed.
    pub(super) fn update(
        &mut self,
        namespaces: BTreeSet<Arc<str>>,
        cx: &mut Context<DaemonSetController>,
    ) -> Vec<Arc<str>> {
        let mut closed = Vec::new();
        self.open.retain(|namespace, watch| {
            let wanted = namespaces.contains(namespace);
            if !wanted {
                watch.cancel();
                closed.push(namespace.clone());
            }
            wanted
        });
        for namespace in namespaces {
            if !self.open.contains_key(&namespace) {
                let watch = self.watch(namespace.clone(), cx);
                self.open.insert(namespace, watch);
            }
        }
        closed
    }

    fn watch(
        &self,
        namespace: Arc<str>,
        cx: &mut Context<DaemonSetController>,
    ) -> CancellationToken {
        let kind = ApiResource::erase::<ConfigMap>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
        let stop = CancellationToken::new();
        let changes = feed::watch(api, Config::default(), "configmaps")
            .take_until(stop.clone().cancelled_owned())
            .map(move |change| Change::Applied(event(&namespace, change)));
        // A watch of the frame never ends.
        let changes = changes.chain(stream::pending());
        let synced = stream::iter([Change::Synced]);
        cx.watch("configmaps", synced.chain(changes), |update| match update {
            Update::Applied(event) => Event::Planner(PlannerEvent::Config(event)),
            Update::Gone(_) => Event::Invalid,
        });
        stop
    }
}

fn event(namespace: &Arc<str>, change: Change<DynamicObject>) -> ConfigEvent {
    match change {
        Change::Applied(object) => ConfigEvent::Applied(view::config_map(&object)),
        Change::Gone(id) => ConfigEvent::Gone {
            namespace: namespace.clone(),
            name: id.name,
        },
        Change::Synced => ConfigEvent::Synced(namespace.clone()),
    }
}
