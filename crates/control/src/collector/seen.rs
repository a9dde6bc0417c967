//! Objects as the graph reads them, from the informers that others share, and of all other kinds from
//! watches of their metadata.

use futures_util::stream::{BoxStream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kennel_client::feed::{self, Change};
use kennel_core::garbage::{Item, KindId, OwnerRef};
use kube::Client;
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;

use crate::discover::Stored;
use crate::informers::Informers;

/// What was seen of one kind.
pub(super) type Seen = (KindId, Change<Item>);
/// Changes of one kind.
pub(super) type Watch = BoxStream<'static, Seen>;

/// The kinds that are watched for others anyway: group and version, kind, whether in namespaces.
pub(super) const SHARED: [(&str, &str, bool); 4] = [
    ("v1", "Pod", true),
    ("v1", "Node", false),
    ("apps/v1", "DaemonSet", true),
    ("apps/v1", "ControllerRevision", true),
];

/// Is this kind watched for others anyway?
pub(super) fn is_shared(stored: &Stored) -> bool {
    let (version, kind) = (&stored.resource.api_version, &stored.resource.kind);
    SHARED.iter().any(|(v, k, _)| v == version && k == kind)
}

/// The shared watches, in the order of [`SHARED`].
pub(super) fn shared(
    informers: &mut Informers,
    [pods, nodes, sets, revisions]: [KindId; 4],
) -> [Watch; 4] {
    let pod = move |pod: &crate::shape::Pod| item(pods, &pod.metadata);
    let node = move |node: &crate::shape::Node| item(nodes, &node.metadata);
    let of = |kind: KindId| move |object: &DynamicObject| item(kind, &object.metadata);
    let (set, revision) = (of(sets), of(revisions));
    [
        informers
            .pods()
            .map(move |c| (pods, c.map(|o| pod(&o))))
            .boxed(),
        informers
            .nodes()
            .map(move |c| (nodes, c.map(|o| node(&o))))
            .boxed(),
        informers
            .daemon_sets()
            .map(move |c| (sets, c.map(|o| set(&o))))
            .boxed(),
        informers
            .revisions()
            .map(move |c| (revisions, c.map(|o| revision(&o))))
            .boxed(),
    ]
}

/// Watches the metadata of all objects of a kind.
pub(super) fn watch(client: &Client, stored: &Stored, kind: KindId, what: &'static str) -> Watch {
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::all_with(client.clone(), &stored.resource);
    let changes = feed::watch(api, Config::default(), what);
    changes
        .map(move |change| (kind, change.map(|object| item(kind, &object.metadata))))
        .boxed()
}

fn item(kind: KindId, meta: &ObjectMeta) -> Item {
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
