//! The objects every cluster has from its first moment, and what every namespace is furnished with.

mod aggregation;
mod roles;

use std::sync::Arc;

use kennel_store::WatchEnd;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{self, Document};
use crate::registry::{self, Resource};
use crate::request::User;
use crate::status::{ApiError, Result};
use crate::verbs;

pub(crate) use aggregation::keep_gathered;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Where pods find the CA of this cluster.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Writes what is missing of the first objects.
pub(crate) async fn furnish(api: &Arc<Api>) -> Result<()> {
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
        furnish_namespace(api, &namespace).await?;
    }
    roles::furnish(api).await?;
    aggregation::gather_all(api).await?;
    kubernetes_service(api).await
}

/// The service through which pods find the API, and where it leads.
async fn kubernetes_service(api: &Arc<Api>) -> Result<()> {
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let address = api.settings.address;
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {
            "clusterIP": api.settings.service_cidr.0.first().to_string(),
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": address.port()}],
        },
    });
    ensure(api, "", "services", Some("default"), service).await?;
    // Endpoints may not point at loopback; a server that is reached only there has none to tell.
    let endpoints: Vec<Value> = if address.ip().is_loopback() {
        Vec::new()
    } else {
        vec![json!({"addresses": [address.ip().to_string()]})]
    };
    let subsets: Vec<Value> = endpoints
        .iter()
        .map(|e| {
            json!({
                "addresses": [{"ip": e["addresses"][0]}],
                "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
            })
        })
        .collect();
    let mut labels = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
    let object = json!({"metadata": {"name": "kubernetes", "labels": labels}, "subsets": subsets});
    replace(api, "", "endpoints", "default", object).await?;
    labels = json!({"kubernetes.io/service-name": "kubernetes"});
    let endpoints: Vec<Value> = endpoints
        .into_iter()
        .map(|mut e| {
            e["conditions"] = json!({"ready": true});
            e
        })
        .collect();
    let slice = json!({
        "metadata": {"name": "kubernetes", "labels": labels},
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": endpoints,
        "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
    });
    replace(api, "discovery.k8s.io", "endpointslices", "default", slice).await
}

fn all_namespaces(api: &Api) -> Vec<String> {
    let Some(row) = registry::find("", "v1", "namespaces") else {
        return Vec::new();
    };
    let records = api
        .store
        .range(&object::prefix(row, None), None, None)
        .records;
    let open = records
        .iter()
        .filter(|r| r.head.field(row, "status.phase") != Some("Terminating"));
    open.map(|r| r.head.name.to_string()).collect()
}

/// A namespace's default service account and the CA its pods trust.
async fn furnish_namespace(api: &Arc<Api>, namespace: &str) -> Result<()> {
    let account = json!({"metadata": {"name": "default"}});
    ensure(api, "", "serviceaccounts", Some(namespace), account).await?;
    let map = json!({"metadata": {"name": ROOT_CA}, "data": {"ca.crt": api.settings.ca_pem}});
    replace(api, "", "configmaps", namespace, map).await
}

/// The server, where it writes on its own behalf.
fn itself() -> User {
    User::master("system:kennel")
}

fn row(group: &str, plural: &str) -> Result<&'static Resource> {
    registry::find(group, "v1", plural).ok_or_else(ApiError::no_such_resource)
}

/// Creates an object unless it is there, or its namespace is on its way out.
async fn ensure(
    api: &Arc<Api>,
    group: &str,
    plural: &str,
    namespace: Option<&str>,
    tree: Value,
) -> Result<()> {
    let row = row(group, plural)?;
    let name = tree["metadata"]["name"].as_str().unwrap_or_default();
    if api.store.get(&object::key(row, namespace, name)).is_some() {
        return Ok(());
    }
    match verbs::insert(api, &itself(), row, namespace, Document::new(tree)).await {
        Err(error) if matches!(error.code, 403 | 404 | 409) => Ok(()),
        other => other,
    }
}

/// Writes an object anew if what is there says something else.
async fn replace(
    api: &Arc<Api>,
    group: &str,
    plural: &str,
    namespace: &str,
    tree: Value,
) -> Result<()> {
    let row = row(group, plural)?;
    let name = tree["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
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
    verbs::overwrite(api, &itself(), row, Some(namespace), &name, tree).await
}

/// Furnishes namespaces as they come, and again when somebody takes the furniture away.
pub(crate) async fn keep_furnished(api: Arc<Api>) {
    loop {
        let Ok(namespaces) = row("", "namespaces") else {
            return;
        };
        let Ok(accounts) = row("", "serviceaccounts") else {
            return;
        };
        let Ok(maps) = row("", "configmaps") else {
            return;
        };
        let from = api.store.revision();
        let prefixes = [namespaces, accounts, maps].map(|row| object::prefix(row, None));
        let watches: Vec<_> = prefixes
            .iter()
            .filter_map(|prefix| api.store.watch(prefix, from).ok())
            .collect();
        // What was missed between two rounds is found by looking everywhere once.
        for namespace in all_namespaces(&api) {
            attempt(&api, &namespace).await;
        }
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
                        if let Some(namespace) = unfurnished(&event) {
                            attempt(&api, &namespace).await;
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

async fn attempt(api: &Arc<Api>, namespace: &str) {
    if let Err(error) = furnish_namespace(api, namespace).await {
        tracing::warn!(
            namespace,
            error = error.message,
            "cannot furnish a namespace"
        );
    }
}

/// The namespace that an event leaves without some of its furniture.
fn unfurnished(event: &kennel_store::Event<object::Head>) -> Option<String> {
    match (&event.before, &event.after) {
        (None, Some(new)) if new.head.namespace.is_empty() => Some(new.head.name.to_string()),
        // The CA is not for users to change; upstream's publisher writes it back, too.
        (Some(_), Some(new)) if &*new.head.name == ROOT_CA => {
            (!new.head.namespace.is_empty()).then(|| new.head.namespace.to_string())
        }
        (Some(old), None) if matches!(&*old.head.name, "default" | ROOT_CA) => {
            (!old.head.namespace.is_empty()).then(|| old.head.namespace.to_string())
        }
        _ => None,
    }
}
