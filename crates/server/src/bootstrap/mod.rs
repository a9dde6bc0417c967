//! Creates the initial objects of a cluster, and the default service account and CA of every namespace.

mod aggregation;
mod roles;
mod services;

use std::sync::Arc;

use kennel_store::WatchEnd;
use kennel_types::NamespacePhase;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{self, Document, Stored};
use crate::registry;
use crate::request::{SERVER, User};
use crate::status::Result;
use crate::tree::text;
use crate::verbs;

pub(crate) use aggregation::watch_aggregated_roles;
pub(crate) use services::keep_services;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The config map with the CA of the cluster, which pods trust.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Creates the initial objects that are missing.
pub(crate) async fn ensure_initial_objects(api: &Arc<Api>) -> Result<()> {
    for name in NAMESPACES {
        let namespace = json!({"metadata": {"name": name}});
        ensure(api, "", "namespaces", None, namespace).await?;
    }
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        ensure(api, "scheduling.k8s.io", "priorityclasses", None, class).await?;
    }
    for namespace in all_namespaces(api) {
        ensure_namespace_defaults(api, &namespace).await?;
    }
    roles::ensure(api).await?;
    aggregation::aggregate_all(api).await?;
    services::ensure_services(api).await
}

fn all_namespaces(api: &Api) -> Vec<String> {
    let row = registry::core("namespaces");
    let records = api.all(row);
    let phase = |record: &Stored| {
        record
            .head
            .field(row, "status.phase")
            .map(NamespacePhase::from)
    };
    let open = records
        .iter()
        .filter(|record| phase(record) != Some(NamespacePhase::Terminating));
    open.map(|r| r.head.name.to_string()).collect()
}

async fn ensure_namespace_defaults(api: &Arc<Api>, namespace: &str) -> Result<()> {
    let account = json!({"metadata": {"name": "default"}});
    ensure(api, "", "serviceaccounts", Some(namespace), account).await?;
    let bundle = api.settings.certificates.bundle.get();
    let map = json!({"metadata": {"name": ROOT_CA}, "data": {"ca.crt": *bundle}});
    replace(api, "", "configmaps", namespace, map).await
}

fn server_user() -> User {
    User::master(SERVER)
}

/// Creates an object unless it exists or its namespace is terminating.
async fn ensure(
    api: &Arc<Api>,
    group: &str,
    plural: &str,
    namespace: Option<&str>,
    tree: Value,
) -> Result<()> {
    let row = registry::served(group, plural);
    let name = tree["metadata"]["name"].as_str().unwrap_or_default();
    if api.store.get(&object::key(row, namespace, name)).is_some() {
        return Ok(());
    }
    match verbs::insert(api, &server_user(), row, namespace, Document::new(tree)).await {
        Err(error) if matches!(error.code, 403 | 404 | 409) => Ok(()),
        other => other,
    }
}

/// Creates an object, or overwrites it if its fields differ.
async fn replace(
    api: &Arc<Api>,
    group: &str,
    plural: &str,
    namespace: &str,
    tree: Value,
) -> Result<()> {
    let row = registry::served(group, plural);
    let name = text(&tree, "metadata.name").to_owned();
    let key = object::key(row, Some(namespace), &name);
    let Some(stored) = api.store.get(&key) else {
        return ensure(api, group, plural, Some(namespace), tree).await;
    };
    let old: Value = serde_json::from_slice(&stored.value).unwrap_or_default();
    let wanted = tree.as_object().into_iter().flatten();
    let same = wanted.filter(|(k, _)| *k != "metadata").all(|(k, v)| {
        old[k] == *v || (v.as_array().is_some_and(Vec::is_empty) && old[k].is_null())
    });
    if same {
        return Ok(());
    }
    verbs::overwrite(api, &server_user(), row, Some(namespace), &name, tree).await
}

/// Creates the default objects of new namespaces, and again when they are deleted or changed.
pub(crate) async fn watch_namespaces(api: Arc<Api>) {
    loop {
        let from = api.store.revision();
        let prefixes = ["namespaces", "serviceaccounts", "configmaps"]
            .map(|plural| object::prefix(registry::core(plural), None));
        let watches: Vec<_> = prefixes
            .iter()
            .filter_map(|prefix| api.store.watch(prefix, from).ok())
            .collect();
        // Events may have been missed since the last watch: check all namespaces once.
        restore_namespace_defaults(&api).await;
        let Ok([mut spaces, mut accounts, mut maps]) = <[_; 3]>::try_from(watches) else {
            continue;
        };
        let ended = loop {
            let events = tokio::select! {
                events = spaces.next() => events,
                events = accounts.next() => events,
                events = maps.next() => events,
            };
            match events {
                Err(end) => break end,
                Ok(events) => {
                    for event in events {
                        if let Some(namespace) = incomplete_namespace(&event) {
                            try_namespace_defaults(&api, &namespace).await;
                        }
                    }
                }
            }
        };
        if ended == WatchEnd::Closed {
            return;
        }
    }
}

/// Restores the default objects of all namespaces, such as the CA after it has changed.
pub(crate) async fn restore_namespace_defaults(api: &Arc<Api>) {
    for namespace in all_namespaces(api) {
        try_namespace_defaults(api, &namespace).await;
    }
}

async fn try_namespace_defaults(api: &Arc<Api>, namespace: &str) {
    if let Err(error) = ensure_namespace_defaults(api, namespace).await {
        tracing::warn!(
            namespace,
            error = error.message,
            "cannot create the default objects of a namespace"
        );
    }
}

/// The namespace that lacks a default object after this event.
fn incomplete_namespace(event: &kennel_store::Event<object::Head>) -> Option<String> {
    match (&event.before, &event.after) {
        (None, Some(new)) if new.head.namespace.is_empty() => Some(new.head.name.to_string()),
        // Users may not change the CA: upstream's publisher restores it, too.
        (Some(_), Some(new)) if &*new.head.name == ROOT_CA => {
            (!new.head.namespace.is_empty()).then(|| new.head.namespace.to_string())
        }
        (Some(old), None) if matches!(&*old.head.name, "default" | ROOT_CA) => {
            (!old.head.namespace.is_empty()).then(|| old.head.namespace.to_string())
        }
        _ => None,
    }
}
