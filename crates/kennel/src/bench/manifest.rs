//! The benchmark's objects, and how the cleanup finds them.

use serde_json::{Map, Value, json};

pub(super) const NAMESPACE: &str = "kennel-bench";
/// Name of the DaemonSet.
pub(super) const NAME: &str = "bench";
pub(super) const NODE_PREFIX: &str = "bench-";
/// The label of all nodes: the DaemonSet and the cleanup select by it.
pub(super) const NODE_LABEL: (&str, &str) = ("kennel-bench", "node");

pub(super) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// A Service over the DaemonSet.
pub(super) fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"selector": {"app": NAME}, "ports": [{"port": 80}]},
    })
}

/// A DaemonSet on all nodes of the benchmark, whose pods stop without a grace period. They mount the tokens of service
/// accounts as pods do by default, or do not.
pub(super) fn daemon_set(
    max_unavailable: &Value,
    policy: &[(String, String)],
    mounts_tokens: bool,
) -> Value {
    let (key, value) = NODE_LABEL;
    let annotation = |(key, value): &(String, String)| {
        let key = format!("{}{key}", kennel_core::rollout::PREFIX);
        (key, Value::from(value.as_str()))
    };
    let annotations: Map<String, Value> = policy.iter().map(annotation).collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"app": NAME},
            "annotations": annotations},
        "spec": {
            "selector": {"matchLabels": {"app": NAME}},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": max_unavailable},
            },
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "nodeSelector": {key: value},
                    "tolerations": [{"operator": "Exists"}],
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": mounts_tokens,
                    "containers": [{
                        "name": "daemon",
                        "image": "registry.k8s.io/pause:3.10",
                        "env": [{"name": "GENERATION", "value": "1"}],
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    }],
                },
            },
        },
    })
}

/// A merge patch that changes the pod template.
pub(super) fn template_patch() -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"generation": "2"}}}}})
}

/// An invalid `--max-unavailable`.
#[derive(Debug, thiserror::Error)]
pub(super) enum MaxUnavailableError {
    #[error("must be at least 1")]
    Zero,
    #[error("neither a number nor a percentage up to 100%")]
    Invalid,
}

/// Parses a percentage such as `10%`, or a number of pods.
pub(super) fn max_unavailable(text: &str) -> Result<Value, MaxUnavailableError> {
    let (digits, percent) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    match digits.parse::<u32>() {
        Ok(0) => Err(MaxUnavailableError::Zero),
        Ok(number) if percent && number <= 100 => Ok(json!(text)),
        Ok(number) if !percent => Ok(json!(number)),
        _ => Err(MaxUnavailableError::Invalid),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("not of the form KEY=VALUE")]
pub(super) struct NotAnEntry;

/// Parses an entry of a rollout policy, such as `stages=10%, 100%`.
pub(super) fn policy_entry(text: &str) -> Result<(String, String), NotAnEntry> {
    let entry = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = entry.ok_or(NotAnEntry)?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_becomes_annotations() {
        let entry = policy_entry("stages=nodes(a=b), 100%").unwrap();
        let set = daemon_set(&json!(1), &[entry], false);
        let annotations = &set["metadata"]["annotations"];
        assert_eq!(annotations["rollout.kennel.dev/stages"], "nodes(a=b), 100%");
        assert!(policy_entry("stages").is_err());
        assert!(policy_entry("=1").is_err());
    }

    fn check(text: &str, expected: Option<&Value>) {
        assert_eq!(max_unavailable(text).ok().as_ref(), expected, "{text}");
    }

    #[test]
    fn max_unavailable_is_a_number_or_a_percentage() {
        check("10%", Some(&json!("10%")));
        check("100%", Some(&json!("100%")));
        check("500", Some(&json!(500)));
        for wrong in ["0", "0%", "101%", "-1", "", "%", "ten"] {
            check(wrong, None);
        }
    }
}
