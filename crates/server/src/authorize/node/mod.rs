//! The node authoriser: a node may access its own objects and those that its pods reference.
//!
//! ```text
//!  node ◀── pod ◀── config map, secret, service account, claim ◀── volume ◀── secret
//! ```
//!
//! It only allows: what it does not allow may be allowed by a role. Names in a request's body are checked
//! later, by [`crate::admit`]. It is stricter than upstream in two respects: a node may read only its own
//! certificate signing requests, and no endpoints.

mod graph;
mod identity;
mod rules;
mod volumes;

use std::borrow::Cow;
use std::sync::Arc;

use kennel_store::Store;
use kennel_types::Verb;
use kennel_types::pod::references::ReferencedKind;

pub(crate) use self::identity::node_of;

use self::graph::Graph;
use super::{Attributes, Decision, ResourceAttributes};
use crate::derived::{self, Follower};
use crate::object::{self, Head};
use crate::registry;
use crate::request::User;

pub(crate) const LEASES: &str = "kube-node-lease";
const VOLUMES: &str = "persistentvolumes";

/// Why not, in upstream's words; empty where upstream gives no reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(Cow<'static, str>);

impl Refusal {
    const SILENT: Self = Self(Cow::Borrowed(""));
}

pub(crate) struct NodeAuthorizer {
    store: Arc<dyn Store<Head>>,
    graph: Arc<Follower<Graph>>,
}

impl NodeAuthorizer {
    /// Spawns the task that keeps the graph up to date, so it must run within a Tokio runtime.
    pub(crate) fn new(store: &Arc<dyn Store<Head>>) -> Self {
        let rows = ["pods", VOLUMES].map(registry::core).to_vec();
        let graph = Arc::new(Follower::new(Arc::clone(store), rows));
        tokio::spawn(derived::keep_up(Arc::downgrade(&graph)));
        Self {
            store: Arc::clone(store),
            graph,
        }
    }

    /// Has no opinion on users that are not nodes.
    pub(crate) fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        let (Some(node), Attributes::Resource(asked)) = (node_of(user), asked) else {
            return Decision::NONE;
        };
        match self.check(user, node, asked) {
            Ok(()) => Decision::Allow("".into()),
            Err(Refusal(why)) => Decision::NoOpinion(why),
        }
    }

    fn check(
        &self,
        user: &User,
        node: &str,
        asked: &ResourceAttributes<'_>,
    ) -> Result<(), Refusal> {
        if node.is_empty() {
            return refuse(format!("unknown node for user {:?}", user.name));
        }
        match (asked.group, asked.resource) {
            ("", "secrets") => self.read_object(node, ReferencedKind::Secret, asked),
            ("", "configmaps") => self.read_object(node, ReferencedKind::ConfigMap, asked),
            ("", "serviceaccounts") => self.account(node, asked),
            ("", "persistentvolumeclaims") => self.claim(node, asked),
            ("", VOLUMES) => self.volume(node, asked),
            ("", "nodes") => rules::own_node(node, asked),
            ("", "pods") => self.pod(node, asked),
            ("coordination.k8s.io", "leases") => rules::lease(node, asked),
            ("storage.k8s.io", "csinodes") => rules::csi_node(node, asked),
            ("resource.k8s.io", "resourceslices") => rules::slices(node, asked),
            ("certificates.k8s.io", "certificatesigningrequests") => self.request(user, asked),
            _ => rules::any_node(asked),
        }
    }

    /// Config maps and secrets: may be read by name.
    fn read_object(
        &self,
        node: &str,
        kind: ReferencedKind,
        asked: &ResourceAttributes<'_>,
    ) -> Result<(), Refusal> {
        if !matches!(asked.verb, Verb::Get | Verb::List | Verb::Watch) {
            return refuse("can only read resources of this type");
        }
        if !asked.subresource.is_empty() {
            return refuse("cannot read subresource");
        }
        if asked.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.related(node, kind, asked)
    }

    /// Service accounts: may be read, and their tokens requested.
    fn account(&self, node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
        match (asked.verb, asked.subresource) {
            (Verb::Get, "") | (Verb::Create, "token") => {
                self.related(node, ReferencedKind::ServiceAccount, asked)
            }
            (Verb::Create, _) => refuse("can only create token subresource of serviceaccount"),
            _ => refuse("can only create tokens for individual service accounts"),
        }
    }

    fn claim(&self, node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
        match (asked.verb, asked.subresource) {
            (Verb::Update | Verb::Patch, "status") => {}
            (_, "status") => return refuse("can only get/update/patch this type"),
            _ => rules::one_by_one(asked)?,
        }
        self.related(node, ReferencedKind::PersistentVolumeClaim, asked)
    }

    fn volume(&self, node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
        rules::one_by_one(asked)?;
        let claims = self.graph.read(|graph| graph.claims(node, asked.name));
        rules::relation(node, asked, claims)
    }

    fn related(
        &self,
        node: &str,
        kind: ReferencedKind,
        asked: &ResourceAttributes<'_>,
    ) -> Result<(), Refusal> {
        let (namespace, name) = (asked.namespace, asked.name);
        let related = self.graph.read(|g| g.relates(node, kind, namespace, name));
        rules::relation(node, asked, related)
    }

    /// Pods bound to the node. Admission checks creates, updates and deletes.
    fn pod(&self, node: &str, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
        let narrowed = asked.fields.and_then(|f| f.required("spec.nodeName"));
        match (asked.verb, asked.subresource) {
            (Verb::Create | Verb::Delete, "")
            | (Verb::Update | Verb::Patch, "status")
            | (Verb::Create, "eviction") => Ok(()),
            (Verb::List | Verb::Watch, "") if narrowed == Some(node) => Ok(()),
            (Verb::List | Verb::Watch, "") if asked.name.is_empty() => {
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            (Verb::Get | Verb::List | Verb::Watch, "") => {
                let bound = self.is_bound(node, asked.namespace, asked.name);
                rules::relation(node, asked, bound)
            }
            _ => Err(Refusal::SILENT),
        }
    }

    fn is_bound(&self, node: &str, namespace: &str, name: &str) -> bool {
        let row = registry::core("pods");
        let pod = self.store.get(&object::key(row, Some(namespace), name));
        pod.is_some_and(|pod| pod.head.field(row, "spec.nodeName") == Some(node))
    }

    /// Certificate signing requests: may be created, and the node's own be read.
    fn request(&self, user: &User, asked: &ResourceAttributes<'_>) -> Result<(), Refusal> {
        match (asked.verb, asked.subresource) {
            (Verb::Create, "") => Ok(()),
            (Verb::Get | Verb::List | Verb::Watch, "") if self.has_requested(user, asked.name) => {
                Ok(())
            }
            (Verb::Get | Verb::List | Verb::Watch, "") => {
                refuse("can only read certificate signing requests of its own")
            }
            _ => Err(Refusal::SILENT),
        }
    }

    fn has_requested(&self, user: &User, name: &str) -> bool {
        let row = registry::served("certificates.k8s.io", "certificatesigningrequests");
        let request = self.store.get(&object::key(row, None, name));
        let tree: Option<serde_json::Value> =
            request.and_then(|request| serde_json::from_slice(&request.value).ok());
        tree.is_some_and(|tree| tree["spec"]["username"] == *user.name)
    }
}

fn refuse(why: impl Into<Cow<'static, str>>) -> Result<(), Refusal> {
    Err(Refusal(why.into()))
}
