//! Watches of all kinds: those that other controllers watch too come from the shared informers, all others are watches of
//! metadata only.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kennel_client::feed::{self, Change};
use kennel_core::garbage::{Item, KindId, OwnerRef};
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Client, Resource};

use crate::discovery::Stored;
use crate::frame::{Update, Watches};
use crate::informers::Informers;

/// The kinds with a shared informer: API version, kind, whether namespaced.
pub(super) const SHARED: [(&str, &str, bool); 4] = [
    ("v1", "Pod", true),
    ("v1", "Node", false),
    ("apps/v1", "DaemonSet", true),
    ("apps/v1", "ControllerRevision", true),
];

/// Whether the kind has a shared informer.
pub(super) fn is_shared(stored: &Stored) -> bool {
    let (version, kind) = (&stored.resource.api_version, &stored.resource.kind);
    SHARED.iter().any(|(v, k, _)| v == version && k == kind)
}

/// The watches of the shared informers, in the order of [`SHARED`].
pub(super) fn shared(
    informers: &mut Informers,
    [pods, nodes, daemon_sets, revisions]: [KindId; 4],
) -> Watches<Update<Item>> {
    let mut watches = Watches::default();
    watches.add("pods", informers.pods.subscribe(), to_item(pods));
    watches.add("nodes", informers.nodes.subscribe(), to_item(nodes));
    watches.add(
        "daemonsets",
        informers.daemon_sets.subscribe(),
        to_item(daemon_sets),
    );
    watches.add(
        "controllerrevisions",
        informers.revisions.subscribe(),
        to_item(revisions),
    );
    watches
}

/// Watches the metadata of all objects of a kind.
pub(super) fn metadata(
    client: &Client,
    stored: &Stored,
    name: &'static str,
) -> BoxStream<'static, Change<PartialObjectMeta<DynamicObject>>> {
    let api = Api::all_with(client.clone(), &stored.resource);
    feed::watch(api, Config::default(), name)
}

/// Converts objects of a kind from a shared informer.
fn to_item<K: Resource>(kind: KindId) -> impl Fn(Update<Arc<K>>) -> Update<Item> {
    move |update| update.map(|object| item(kind, object.meta()))
}

pub(super) fn item(kind: KindId, meta: &ObjectMeta) -> Item {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    Item {
        kind,
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        version: meta.resource_version.as_deref().unwrap_or_default().into(),
        owners: owners.iter().map(owner).collect(),
        finalizers: finalizers.iter().map(|f| f.as_str().into()).collect(),
        deleting: meta.deletion_timestamp.is_some(),
    }
}

fn owner(owner: &OwnerReference) -> OwnerRef {
    OwnerRef {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
        block: owner.block_owner_deletion.unwrap_or_default(),
    }
}
