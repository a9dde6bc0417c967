//! What a cluster decides for a new pod: its priority, its service account, how long it stays on a
//! node that is in trouble.

use serde::Deserialize;
use serde_json::{Value, json};

use super::append;
use crate::api::Api;
use crate::names;
use crate::object::{self, Stored};
use crate::registry::{self, Resource};
use crate::status::{ApiError, Result};

/// Where containers find their token, as upstream has it.
const TOKEN_MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The life of a projected token: an hour and a little, which the kubelet renews early.
const TOKEN_SECONDS: i64 = 3607;
/// How long a pod stays on a node that is not ready or not reachable.
const TROUBLE_SECONDS: i64 = 300;
/// Pods that a kubelet runs by itself and only shows here.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Admits a new pod.
pub(super) fn admit(api: &Api, row: &Resource, namespace: &str, pod: &mut Value) -> Result<()> {
    let name = pod["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let refuse = |why: String| ApiError::forbidden(row, &name, &why);
    service_account(api, namespace, pod).map_err(refuse)?;
    priority(api, pod).map_err(refuse)?;
    runtime_class(api, pod).map_err(refuse)?;
    tolerations(pod);
    Ok(())
}

fn lookup(
    api: &Api,
    group: &str,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Stored> {
    let row = registry::find(group, "v1", plural)?;
    api.store.get(&object::key(row, namespace, name))
}

fn read(stored: &Stored) -> Value {
    serde_json::from_slice(&stored.value).unwrap_or_default()
}

/// The numbers behind a priority class's name.
fn priority(api: &Api, pod: &mut Value) -> Result<(), String> {
    let spec = &mut pod["spec"];
    let named = spec["priorityClassName"]
        .as_str()
        .filter(|n| !n.is_empty())
        .map(str::to_owned);
    let class = match &named {
        Some(name) => {
            let found = lookup(api, "scheduling.k8s.io", "priorityclasses", None, name);
            Some(found.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
        }
        None => default_class(api),
    };
    let class = class.as_ref().map(read).unwrap_or_default();
    let value = class["value"].as_i64().unwrap_or(0);
    if spec["priority"]
        .as_i64()
        .is_some_and(|given| given != value)
    {
        return Err(format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name",
            spec["priority"]
        ));
    }
    let policy = class["preemptionPolicy"]
        .as_str()
        .unwrap_or("PreemptLowerPriority");
    if spec["preemptionPolicy"]
        .as_str()
        .is_some_and(|given| given != policy)
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name",
            spec["preemptionPolicy"].as_str().unwrap_or_default()
        ));
    }
    spec["priority"] = value.into();
    spec["preemptionPolicy"] = policy.into();
    if let (None, Some(name)) = (named, class["metadata"]["name"].as_str()) {
        spec["priorityClassName"] = name.into();
    }
    Ok(())
}

/// The class of pods that name none, if the cluster has one.
fn default_class(api: &Api) -> Option<Stored> {
    let row = registry::find("scheduling.k8s.io", "v1", "priorityclasses")?;
    let classes = api
        .store
        .range(&object::prefix(row, None), None, None)
        .records;
    let is_default = |class: &Stored| read(class)["globalDefault"] == true;
    // The two classes of the system never are; most clusters have no others.
    classes
        .into_iter()
        .find(|c| !c.head.name.starts_with("system-") && is_default(c))
}

fn runtime_class(api: &Api, pod: &mut Value) -> Result<(), String> {
    let Some(name) = pod["spec"]["runtimeClassName"]
        .as_str()
        .filter(|n| !n.is_empty())
    else {
        return Ok(());
    };
    let found = lookup(api, "node.k8s.io", "runtimeclasses", None, name);
    let class = found
        .as_ref()
        .map(read)
        .ok_or_else(|| format!("pod rejected: RuntimeClass \"{name}\" not found"))?;
    let overhead = &class["overhead"]["podFixed"];
    if overhead.is_object() && pod["spec"]["overhead"].is_null() {
        pod["spec"]["overhead"] = overhead.clone();
    }
    Ok(())
}

/// Pods leave nodes in trouble after a while, unless they say otherwise.
fn tolerations(pod: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let given = pod["spec"]["tolerations"].as_array();
        if given.is_some_and(|list| list.iter().any(|t| tolerates_eviction(t, key))) {
            continue;
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": TROUBLE_SECONDS,
        });
        append(&mut pod["spec"]["tolerations"], toleration);
    }
}

fn tolerates_eviction(toleration: &Value, key: &str) -> bool {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    (text("key").is_empty() || text("key") == key)
        && (text("effect").is_empty() || text("effect") == "NoExecute")
}

/// What a service account says about the pods that name it: all that is read of it, for every new pod.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Account {
    image_pull_secrets: Option<Vec<Value>>,
    automount_service_account_token: Option<bool>,
}

impl Account {
    fn read(stored: &Stored) -> Self {
        serde_json::from_slice(&stored.value).unwrap_or_default()
    }
}

/// The service account: named, existing, its token mounted.
fn service_account(api: &Api, namespace: &str, pod: &mut Value) -> Result<(), String> {
    if pod["metadata"]["annotations"][MIRROR].is_string() {
        return Ok(());
    }
    let spec = &mut pod["spec"];
    if spec["serviceAccountName"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        spec["serviceAccountName"] = "default".into();
        spec["serviceAccount"] = "default".into();
    }
    let name = spec["serviceAccountName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let found = lookup(api, "", "serviceaccounts", Some(namespace), &name);
    let account = found.as_ref().map(Account::read).ok_or_else(|| {
        format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found")
    })?;
    let has_none = |list: Option<&Value>| {
        let list = list.and_then(Value::as_array);
        list.is_none_or(Vec::is_empty)
    };
    if has_none(spec.get("imagePullSecrets"))
        && let Some(secrets) = account.image_pull_secrets
    {
        spec["imagePullSecrets"] = secrets.into();
    }
    let automount = spec.get("automountServiceAccountToken");
    let automount = automount
        .and_then(Value::as_bool)
        .or(account.automount_service_account_token)
        .unwrap_or(true);
    if automount {
        mount_token(spec);
    }
    Ok(())
}

fn mount_token(spec: &mut Value) {
    let volume = token_volume_name(spec);
    let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_MOUNT});
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array();
            if mounts.is_some_and(|list| list.iter().any(|m| m["mountPath"] == TOKEN_MOUNT)) {
                continue;
            }
            append(&mut container["volumeMounts"], mount.clone());
            mounted = true;
        }
    }
    let volumes = spec["volumes"].as_array();
    let there = volumes.is_some_and(|list| list.iter().any(|v| v["name"] == volume.as_str()));
    if mounted && !there {
        append(&mut spec["volumes"], token_volume(&volume));
    }
}

/// The name of the token's volume: that of one already there, or a fresh one.
fn token_volume_name(spec: &Value) -> String {
    let prefix = "kube-api-access-";
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let mut names = volumes.filter_map(|v| v["name"].as_str());
    match names.find(|name| name.starts_with(prefix)) {
        Some(name) => name.to_owned(),
        None => names::generate_name(prefix, |bound| fastrand::usize(..bound)),
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}
