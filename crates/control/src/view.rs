//! API objects as the views that the rules of `kennel_core` read.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use kennel_core::daemonset::view::{Phase, Strategy, pinned_node};
use kennel_core::daemonset::{Counters, DaemonSetView, GENERATION_ANNOTATION, NodeView, PodView};
use kennel_core::selector::{Selector, SelectorError};
use kennel_core::taint::Taint;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

/// A node.
pub fn node(node: &Node) -> NodeView {
    let spec = node.spec.as_ref();
    let taints = spec
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    NodeView {
        name: node.name_any().into(),
        labels: node.metadata.labels.clone().unwrap_or_default(),
        taints: taints
            .iter()
            .map(|taint| Taint {
                key: taint.key.clone(),
                value: taint.value.clone().unwrap_or_default(),
                effect: taint.effect.clone(),
            })
            .collect(),
        unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
    }
}

/// A pod. Only a DaemonSet counts as its controller.
pub fn pod(pod: &Pod) -> PodView {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let bound_to = spec
        .and_then(|spec| spec.node_name.as_deref())
        .filter(|name| !name.is_empty());
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    PodView {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        controller: daemon_controller(pod),
        labels: meta.labels.clone().unwrap_or_default(),
        pinned_to: match bound_to {
            Some(_) => None,
            None => spec.and_then(pin),
        },
        bound_to: bound_to.map(Into::into),
        created: meta
            .creation_timestamp
            .as_ref()
            .map_or(0, |t| t.0.as_second()),
        terminating: meta.deletion_timestamp.is_some(),
        phase: match phase {
            Some("Failed") => Phase::Failed,
            Some("Succeeded") => Phase::Succeeded,
            _ => Phase::Active,
        },
        ready_since: ready_since(pod),
    }
}

fn daemon_controller(pod: &Pod) -> Option<Arc<str>> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
    (controller.kind == "DaemonSet").then(|| controller.uid.as_str().into())
}

fn pin(spec: &PodSpec) -> Option<Arc<str>> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let required = serde_json::to_value(required).ok()?;
    pinned_node(&required).map(Into::into)
}

fn ready_since(pod: &Pod) -> Option<i64> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    let ready = conditions.iter().find(|c| c.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref();
    (ready.status == "True").then(|| since.map_or(i64::MAX, |time| time.0.as_second()))
}

/// A DaemonSet, whose template is kept as the API gave it.
pub fn daemon_set(object: &DynamicObject) -> Result<DaemonSetView, SelectorError> {
    let meta = &object.metadata;
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let annotations: Option<&BTreeMap<String, String>> = meta.annotations.as_ref();
    let template_generation = annotations
        .and_then(|all| all.get(GENERATION_ANNOTATION))
        .and_then(|text| text.parse().ok());
    let version = meta.resource_version.as_ref().and_then(|v| v.parse().ok());
    Ok(DaemonSetView {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        generation: meta.generation.unwrap_or_default(),
        template_generation,
        terminating: meta.deletion_timestamp.is_some(),
        selector: Selector::from_object(&spec["selector"])?,
        template: Arc::new(spec["template"].clone()),
        min_ready_seconds: number(spec, "minReadySeconds"),
        collision_count: status["collisionCount"].as_i64(),
        status: counters(status),
        strategy: Strategy::parse(&spec["updateStrategy"]),
        revision_history_limit: spec["revisionHistoryLimit"].as_i64().unwrap_or(10),
        annotations: Arc::new(annotations.cloned().unwrap_or_default()),
        version: version.unwrap_or_default(),
    })
}

fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or_default()
}

fn counters(status: &Value) -> Counters {
    Counters {
        desired: number(status, "desiredNumberScheduled"),
        current: number(status, "currentNumberScheduled"),
        misscheduled: number(status, "numberMisscheduled"),
        ready: number(status, "numberReady"),
        updated: number(status, "updatedNumberScheduled"),
        available: number(status, "numberAvailable"),
        observed_generation: number(status, "observedGeneration"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn from(object: Value) -> PodView {
        pod(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn only_a_daemon_set_counts_as_controller() {
        let owned_by = |kind: &str, controller: bool| {
            let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u",
                               "controller": controller});
            from(json!({"metadata": {"ownerReferences": [owner]}})).controller
        };
        assert_eq!(owned_by("DaemonSet", true).as_deref(), Some("u"));
        assert_eq!(owned_by("DaemonSet", false), None);
        assert_eq!(owned_by("ReplicaSet", true), None);
    }

    #[test]
    fn a_pod_is_where_it_is_bound_or_else_where_it_is_pinned() {
        let spec = |node: Value| {
            let term = json!({"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["pin"]}]});
            let required = json!({ "nodeSelectorTerms": [term] });
            json!({"spec": {"containers": [], "nodeName": node, "affinity": {"nodeAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": required}}}})
        };
        assert_eq!(from(spec(Value::Null)).target().map(|n| &**n), Some("pin"));
        assert_eq!(from(spec("".into())).target().map(|n| &**n), Some("pin"));
        assert_eq!(
            from(spec("bound".into())).target().map(|n| &**n),
            Some("bound")
        );
    }

    #[test]
    fn ready_counts_only_when_true() {
        let with = |status: &str| {
            let condition = json!({"type": "Ready", "status": status,
                                   "lastTransitionTime": "1970-01-01T00:00:09Z"});
            from(json!({"status": {"conditions": [condition]}})).ready_since
        };
        assert_eq!(with("True"), Some(9));
        assert_eq!(with("False"), None);
    }

    #[test]
    fn a_daemon_set_keeps_fields_of_its_template_that_nobody_knows() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "generation": 3,
                         "annotations": {GENERATION_ANNOTATION: "2"}},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "minReadySeconds": 5,
                     "template": {"spec": {"fromTheFuture": true}}},
            "status": {"desiredNumberScheduled": 4, "observedGeneration": 2}}))
        .unwrap();
        let view = daemon_set(&object).unwrap();
        assert_eq!(view.template["spec"]["fromTheFuture"], true);
        assert_eq!(view.template_generation, Some(2));
        assert_eq!(view.status.desired, 4);
        assert_eq!(view.selector.to_string(), "a=b");
    }
}
