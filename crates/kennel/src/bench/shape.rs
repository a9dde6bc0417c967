//! A pod as the benchmark watches it: who it is, whether it is bound, whether it is ready. All else is
//! skipped, so that watching takes as little as possible from the machine that is measured.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kennel_client::resource;
use serde::{Deserialize, Deserializer};

use super::seen::Sight;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Pod {
    metadata: ObjectMeta,
    pub(super) sight: Sight,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Read {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let ready = |c: &Condition| c.r#type == "Ready" && c.status == "True";
        Ok(Self {
            sight: Sight {
                bound: !read.spec.node_name.is_empty(),
                ready: read.status.conditions.iter().any(ready),
            },
            metadata: ObjectMeta {
                name: read.metadata.name,
                namespace: read.metadata.namespace,
                uid: read.metadata.uid,
                resource_version: read.metadata.resource_version,
                ..ObjectMeta::default()
            },
        })
    }
}

resource!(Pod, NamespaceResourceScope, "", "Pod", "pods");

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: &Value, conditions: &Value, bound: bool, ready: bool) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "uid": "u", "labels": {"a": "b"}},
            "spec": spec, "status": {"phase": "Running", "conditions": conditions}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(pod.metadata.uid.as_deref(), Some("u"));
        assert_eq!(pod.sight, Sight { bound, ready });
    }

    #[test]
    fn a_pod_shows_whether_it_is_bound_and_ready() {
        let ready = json!([{"type": "Initialized", "status": "True"},
                           {"type": "Ready", "status": "True", "lastProbeTime": null}]);
        let not = json!([{"type": "Ready", "status": "False"}]);
        check(&json!({"containers": []}), &json!([]), false, false);
        check(&json!({"nodeName": "n"}), &not, true, false);
        check(&json!({"nodeName": "n"}), &ready, true, true);
    }
}
