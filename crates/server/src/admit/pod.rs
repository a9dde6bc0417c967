//! Admission of pods: sets the priority, the service account with its token, the overhead of the runtime
//! class, and the default tolerations of not-ready and unreachable nodes; applies limit ranges, and
//! refuses what Pod Security forbids. Of these, an update sets the priority and the tolerations again.

use kennel_types::PodPhase;
use kennel_types::pod::MIRROR_ANNOTATION;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Admission, Notes, Write, append, limit_range, lookup, pod_security, read};
use crate::api::Api;
use crate::names;
use crate::object::Stored;
use crate::registry::{self, Part, Resource};
use crate::status::{ApiError, Result};
use crate::tree::{is_deleting, list, list_mut, opt_flag, text};

/// The path of the service account token in containers.
const TOKEN_MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The lifetime of a projected token. The kubelet renews it early.
const TOKEN_SECONDS: i64 = 3607;
/// How long a pod tolerates that its node is not ready or unreachable.
const TOLERATION_SECONDS: i64 = 300;

/// The admission of pods.
pub(crate) struct PodAdmission;

impl Admission for PodAdmission {
    fn create(&self, write: Write<'_>, pod: &mut Value) -> Result<()> {
        limit_range::set_defaults(write, pod);
        admit(
            write.api,
            write.row,
            write.namespace.unwrap_or_default(),
            pod,
        )
    }

    /// Sets again what a manifest that is sent a second time lacks: lists of tolerations replace each other as a whole, and
    /// nothing but additions to them is valid.
    fn update(&self, _: Write<'_>, pod: &mut Value, old: &Value) -> Result<()> {
        for field in ["priority", "preemptionPolicy"] {
            let before = &old["spec"][field];
            if pod["spec"][field].is_null() && !before.is_null() {
                pod["spec"][field] = before.clone();
            }
        }
        tolerations(pod);
        Ok(())
    }

    fn validate(
        &self,
        write: Write<'_>,
        part: Part,
        new: &Value,
        old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<()> {
        if old.is_none() {
            limit_range::check_pod(write, new)?;
        }
        if part == Part::EphemeralContainers {
            notes.warnings.extend(will_not_start(new));
        }
        pod_security::check_pod(write, part, new, old, notes)
    }
}

/// The warning about ephemeral containers of a pod whose containers do not start any more.
fn will_not_start(pod: &Value) -> Option<String> {
    let name = text(pod, "metadata.name");
    let phase = text(pod, "status.phase");
    let why = if PodPhase::from(phase).is_terminal() {
        format!("has finished ({phase})")
    } else if is_deleting(pod) {
        "is being deleted".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "pod {name:?} {why}: its ephemeral containers will not start"
    ))
}

fn admit(api: &Api, row: &Resource, namespace: &str, pod: &mut Value) -> Result<()> {
    let name = text(pod, "metadata.name").to_owned();
    let refuse = |why: Refusal| ApiError::forbidden(row, &name, &why.to_string());
    service_account(api, namespace, pod).map_err(refuse)?;
    priority(api, pod).map_err(refuse)?;
    runtime_class(api, pod).map_err(refuse)?;
    tolerations(pod);
    Ok(())
}

/// Why a pod is not admitted.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("no PriorityClass with name {0} was found")]
    NoPriorityClass(String),
    #[error(
        "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
         controller computed {computed} from the given PriorityClass name"
    )]
    Priority { given: i64, computed: i64 },
    #[error(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
         admission controller computed {computed} from the given PriorityClass name"
    )]
    PreemptionPolicy { given: String, computed: String },
    #[error("pod rejected: RuntimeClass \"{0}\" not found")]
    NoRuntimeClass(String),
    #[error(
        "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
    )]
    NoServiceAccount { namespace: String, name: String },
}

/// Sets the priority and preemption policy of the pod's priority class.
fn priority(api: &Api, pod: &mut Value) -> Result<(), Refusal> {
    let spec = &mut pod["spec"];
    let named = spec["priorityClassName"]
        .as_str()
        .filter(|n| !n.is_empty())
        .map(str::to_owned);
    let class = match &named {
        Some(name) => {
            let found = lookup(api, "scheduling.k8s.io", "priorityclasses", None, name);
            Some(found.ok_or_else(|| Refusal::NoPriorityClass(name.clone()))?)
        }
        None => default_class(api),
    };
    let class = class.as_ref().map(read).unwrap_or_default();
    let value = class["value"].as_i64().unwrap_or(0);
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        return Err(Refusal::Priority {
            given,
            computed: value,
        });
    }
    let policy = class["preemptionPolicy"]
        .as_str()
        .unwrap_or("PreemptLowerPriority");
    let given = spec["preemptionPolicy"].as_str();
    if let Some(given) = given.filter(|given| *given != policy) {
        return Err(Refusal::PreemptionPolicy {
            given: given.to_owned(),
            computed: policy.to_owned(),
        });
    }
    spec["priority"] = value.into();
    spec["preemptionPolicy"] = policy.into();
    if let (None, Some(name)) = (named, class["metadata"]["name"].as_str()) {
        spec["priorityClassName"] = name.into();
    }
    Ok(())
}

/// The priority class that is the global default, if there is one.
fn default_class(api: &Api) -> Option<Stored> {
    let classes = api.all(registry::served("scheduling.k8s.io", "priorityclasses"));
    let is_default = |class: &Stored| read(class)["globalDefault"] == true;
    // The two system classes are never the default, and most clusters have no others to parse.
    classes
        .into_iter()
        .find(|c| !c.head.name.starts_with("system-") && is_default(c))
}

fn runtime_class(api: &Api, pod: &mut Value) -> Result<(), Refusal> {
    let name = text(pod, "spec.runtimeClassName");
    if name.is_empty() {
        return Ok(());
    }
    let found = lookup(api, "node.k8s.io", "runtimeclasses", None, name);
    let class = found
        .as_ref()
        .map(read)
        .ok_or_else(|| Refusal::NoRuntimeClass(name.to_owned()))?;
    let overhead = &class["overhead"]["podFixed"];
    if overhead.is_object() && pod["spec"]["overhead"].is_null() {
        pod["spec"]["overhead"] = overhead.clone();
    }
    Ok(())
}

/// Adds the default tolerations of not-ready and unreachable nodes, unless the pod has its own.
fn tolerations(pod: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let mut given = list(pod, "spec.tolerations").iter();
        if given.any(|toleration| tolerates_eviction(toleration, key)) {
            continue;
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": TOLERATION_SECONDS,
        });
        append(&mut pod["spec"]["tolerations"], toleration);
    }
}

fn tolerates_eviction(toleration: &Value, key: &str) -> bool {
    let (given, effect) = (text(toleration, "key"), text(toleration, "effect"));
    (given.is_empty() || given == key) && matches!(effect, "" | "NoExecute")
}

/// The fields of a service account that admission reads, for every new pod.
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

/// Sets the pod's service account, which must exist, and mounts its token.
fn service_account(api: &Api, namespace: &str, pod: &mut Value) -> Result<(), Refusal> {
    if pod["metadata"]["annotations"][MIRROR_ANNOTATION].is_string() {
        return Ok(());
    }
    let spec = &mut pod["spec"];
    if text(spec, "serviceAccountName").is_empty() {
        spec["serviceAccountName"] = "default".into();
        spec["serviceAccount"] = "default".into();
    }
    let name = text(spec, "serviceAccountName").to_owned();
    let found = lookup(api, "", "serviceaccounts", Some(namespace), &name);
    let account = found.as_ref().map(Account::read);
    let account = account.ok_or_else(|| Refusal::NoServiceAccount {
        namespace: namespace.to_owned(),
        name,
    })?;
    if list(spec, "imagePullSecrets").is_empty()
        && let Some(secrets) = account.image_pull_secrets
    {
        spec["imagePullSecrets"] = secrets.into();
    }
    let automount =
        opt_flag(spec, "automountServiceAccountToken").or(account.automount_service_account_token);
    if automount.unwrap_or(true) {
        mount_token(spec);
    }
    Ok(())
}

fn mount_token(spec: &mut Value) {
    let volume = token_volume_name(spec);
    let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_MOUNT});
    let mut mounted = false;
    for kind in ["initContainers", "containers"] {
        for container in list_mut(spec, kind) {
            let mut mounts = list(container, "volumeMounts").iter();
            if mounts.any(|mount| mount["mountPath"] == TOKEN_MOUNT) {
                continue;
            }
            append(&mut container["volumeMounts"], mount.clone());
            mounted = true;
        }
    }
    let mut volumes = list(spec, "volumes").iter();
    if mounted && !volumes.any(|other| other["name"] == volume.as_str()) {
        append(&mut spec["volumes"], token_volume(&volume));
    }
}

/// The name of the token's volume: that of an existing one, or a generated one.
fn token_volume_name(spec: &Value) -> String {
    let prefix = "kube-api-access-";
    let mut names = list(spec, "volumes")
        .iter()
        .map(|volume| text(volume, "name"));
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
