//! API objects as the rules of `kennel_core` read them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kennel_core::daemonset::history::{Revision, data};
use kennel_core::daemonset::view::{
    Before, ConfigMapView, Health, Phase, Readiness, Strategy, pinned_node,
};
use kennel_core::daemonset::{Counters, DaemonSetView, GENERATION_ANNOTATION, NodeView, PodView};
use kennel_core::rollout::BEFORE;
use kennel_core::rollout::condition::{self, Condition, Conditions};
use kennel_core::rollout::config::content_hash;
use kennel_core::rollout::state::Record;
use kennel_core::selector::{Selector, SelectorError};
use kennel_core::tree::number;
use kennel_types::{
    self as types, ConditionStatus, ConditionType, ContainerHealth, Node, PodPhase, Taint,
    Timestamp,
};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Deserialize as _;
use serde_json::Value;

pub fn node(node: &Node) -> NodeView {
    NodeView {
        name: node.name_any().into(),
        labels: node.metadata.labels.clone().unwrap_or_default(),
        taints: node.spec.taints.iter().map(Taint::without_time).collect(),
        unschedulable: node.spec.unschedulable,
        ready: readiness(node),
        ready_changed: ready_changed(node),
    }
}

/// A pod. Nothing, if its controller is of another kind than DaemonSet.
pub fn pod<C>(pod: &types::Pod<C>) -> Option<PodView>
where
    for<'a> &'a C: Into<ContainerHealth>,
{
    let meta = &pod.metadata;
    let bound_to = pod.spec.node_name.as_deref().filter(|n| !n.is_empty());
    let created = meta.creation_timestamp.as_ref();
    Some(PodView {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        controller: controller(meta)?,
        labels: Arc::new(meta.labels.clone().unwrap_or_default()),
        pinned_to: match bound_to {
            Some(_) => None,
            None => pin(&pod.spec.affinity),
        },
        bound_to: bound_to.map(Into::into),
        created: created.map_or(Timestamp::EPOCH, Timestamp::from),
        terminating: meta.deletion_timestamp.is_some(),
        phase: match pod.status.phase {
            PodPhase::Failed => Phase::Failed,
            PodPhase::Succeeded => Phase::Succeeded,
            _ => Phase::Active,
        },
        ready_since: ready_since(pod),
        health: health(pod),
    })
}

fn ready_changed(node: &Node) -> Option<Timestamp> {
    let ready = node.status.condition(&ConditionType::Ready);
    ready.and_then(|ready| ready.last_transition_time)
}

fn readiness(node: &Node) -> Readiness {
    let ready = node.status.condition(&ConditionType::Ready);
    match ready.map_or(ConditionStatus::Unknown, |ready| ready.status) {
        ConditionStatus::True => Readiness::Ready,
        ConditionStatus::False => Readiness::NotReady,
        ConditionStatus::Unknown => Readiness::Unknown,
    }
}

fn health<C>(pod: &types::Pod<C>) -> Health
where
    for<'a> &'a C: Into<ContainerHealth>,
{
    let (inits, mains) = (
        &pod.status.init_container_statuses,
        &pod.status.container_statuses,
    );
    let all = || {
        let all = inits.iter().chain(mains);
        all.map(Into::<ContainerHealth>::into)
    };
    let annotations = pod.metadata.annotations.as_ref();
    let before = annotations.and_then(|all| all.get(BEFORE));
    Health {
        restarts: all().map(|status| status.restart_count).max().unwrap_or(0),
        waiting: all()
            .map(|status| status.state.waiting.reason)
            .max()
            .unwrap_or_default(),
        before: before.map_or(Before::None, |text| Before::parse(text)),
    }
}

/// The uid of the DaemonSet that controls an object; `Some(None)` if it has no controller, nothing if its controller is
/// of another kind.
#[expect(clippy::option_option, reason = "three distinct cases")]
fn controller(meta: &ObjectMeta) -> Option<Option<Arc<str>>> {
    match types::meta::controller(meta) {
        None => Some(None),
        Some(owner) => {
            (owner.kind == types::daemonset::KIND).then(|| Some(owner.uid.as_str().into()))
        }
    }
}

fn pin(affinity: &Value) -> Option<Arc<str>> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    pinned_node(affinity.get("nodeAffinity")?.get(required)?).map(Into::into)
}

/// `Timestamp::MAX` if the condition has no time.
fn ready_since<C>(pod: &types::Pod<C>) -> Option<Timestamp> {
    let ready = pod.status.condition(&ConditionType::Ready);
    let since = ready.filter(|ready| ready.is_true())?.last_transition_time;
    Some(since.unwrap_or(Timestamp::MAX))
}

/// A revision. Nothing, if its controller is of another kind than DaemonSet.
pub fn revision(object: &DynamicObject) -> Option<Revision> {
    let meta = &object.metadata;
    Some(Revision {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        controller: controller(meta)?,
        labels: meta.labels.clone().unwrap_or_default(),
        revision: number(&object.data, "revision"),
        data: data::canonical(&object.data["data"]).into(),
        terminating: meta.deletion_timestamp.is_some(),
        template_generation: template_generation(meta),
        record: meta
            .annotations
            .as_ref()
            .map(Record::parse)
            .unwrap_or_default(),
        version: meta.resource_version.as_deref().unwrap_or_default().into(),
    })
}

/// A ConfigMap: only the hash of its content is kept.
pub fn config_map(object: &DynamicObject) -> ConfigMapView {
    let meta = &object.metadata;
    let owner = types::meta::controller(meta);
    let owner = owner.filter(|owner| owner.kind == "ControllerRevision");
    ConfigMapView {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        hash: content_hash(&object.data).into(),
        owner: owner.map(|owner| owner.uid.as_str().into()),
    }
}

/// A DaemonSet. Its template is kept undecoded, so that unknown fields survive.
pub fn daemon_set(object: &DynamicObject) -> Result<DaemonSetView, SelectorError> {
    let meta = &object.metadata;
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let annotations: Option<&BTreeMap<String, String>> = meta.annotations.as_ref();
    let version = meta.resource_version.as_ref().and_then(|v| v.parse().ok());
    Ok(DaemonSetView {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        generation: meta.generation.unwrap_or_default(),
        template_generation: template_generation(meta),
        terminating: meta.deletion_timestamp.is_some(),
        selector: Selector::from_object(&spec["selector"])?,
        template: Arc::new(spec["template"].clone()),
        min_ready_seconds: number(spec, "minReadySeconds"),
        collision_count: status["collisionCount"].as_i64(),
        status: counters(status),
        conditions: Arc::new(conditions(&status["conditions"])),
        strategy: Strategy::parse(&spec["updateStrategy"]),
        revision_history_limit: spec["revisionHistoryLimit"].as_i64().unwrap_or(10),
        annotations: Arc::new(annotations.cloned().unwrap_or_default()),
        version: version.unwrap_or_default(),
    })
}

fn template_generation(meta: &ObjectMeta) -> Option<i64> {
    let text = meta.annotations.as_ref()?.get(GENERATION_ANNOTATION)?;
    text.parse().ok()
}

/// The conditions of safe rollouts among those of a DaemonSet.
pub fn conditions(list: &Value) -> Conditions {
    let all = list.as_array().into_iter().flatten();
    let all = all.filter_map(|found| kennel_types::Condition::deserialize(found).ok());
    let ours = all.filter(|found| condition::TYPES.contains(&found.r#type.as_str()));
    ours.map(|found| {
        let condition = Condition {
            status: found.is_true(),
            reason: found.reason,
            message: found.message,
        };
        (found.r#type.as_str().to_owned(), condition)
    })
    .collect()
}

/// The counters of a DaemonSet's status.
pub fn counters(status: &Value) -> Counters {
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
    use kennel_core::daemonset::view::Waiting;
    use serde_json::json;

    fn from(object: Value) -> PodView {
        pod::<ContainerHealth>(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn pods_with_a_controller_of_another_kind_are_ignored() {
        let owned_by = |kind: &str, controller: bool| {
            let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u",
                               "controller": controller});
            let object = json!({"metadata": {"ownerReferences": [owner]}});
            let decoded = serde_json::from_value(object).unwrap();
            pod::<ContainerHealth>(&decoded).map(|pod| pod.controller)
        };
        assert_eq!(owned_by("DaemonSet", true), Some(Some("u".into())));
        assert_eq!(owned_by("DaemonSet", false), Some(None));
        assert_eq!(owned_by("ReplicaSet", true), None);
    }

    #[test]
    fn r5_1_the_worst_container_tells_the_health_of_a_pod() {
        let status = |restarts: u32, state: Value| json!({"name": "c", "restartCount": restarts, "state": state});
        let waits = |reason: &str| json!({"waiting": {"reason": reason}});
        let of = |inits: Value, mains: Value| {
            let status = json!({"initContainerStatuses": inits, "containerStatuses": mains});
            from(json!({"metadata": {}, "status": status})).health
        };
        let running = || json!({"running": {}});
        assert_eq!(of(json!([]), json!([])), Health::default());
        // Restarts are of one container, not of all together; those of init containers count.
        let found = of(
            json!([status(4, running())]),
            json!([status(3, running()), status(2, running())]),
        );
        assert_eq!(found.restarts, 4);
        for (reason, waiting) in [
            ("InvalidImageName", Waiting::InvalidImageName),
            (
                "CreateContainerConfigError",
                Waiting::CreateContainerConfigError,
            ),
            ("CreateContainerError", Waiting::CreateContainerError),
            ("RunContainerError", Waiting::RunContainerError),
            ("ErrImagePull", Waiting::ImagePull),
            ("ImagePullBackOff", Waiting::ImagePull),
            ("CrashLoopBackOff", Waiting::No),
            ("ContainerCreating", Waiting::No),
        ] {
            let ill = status(0, waits(reason));
            for (inits, mains) in [
                (json!([]), json!([status(0, running()), ill.clone()])),
                (
                    json!([ill.clone()]),
                    json!([status(0, waits("PodInitializing"))]),
                ),
            ] {
                assert_eq!(of(inits, mains).waiting, waiting, "{reason}");
            }
        }
    }

    #[test]
    fn r5_5_a_pod_says_what_its_nodes_daemon_was_before() {
        let of = |before: &str| {
            let annotations = json!({"rollout.kennel.dev/before": before});
            from(json!({"metadata": {"annotations": annotations}}))
                .health
                .before
        };
        for (text, before) in [
            ("available", Before::Available),
            ("failing", Before::Failing),
            ("down", Before::Down),
            ("none", Before::None),
            ("else", Before::None),
        ] {
            assert_eq!(of(text), before, "{text}");
        }
    }

    #[test]
    fn a_revision_keeps_its_data_in_the_form_that_compares() {
        let object = json!({
            "metadata": {"name": "d-1", "namespace": "n", "uid": "u", "labels": {"a": "b"}},
            "revision": 4,
            "data": {"spec": {"template": {"spec": {"x": "<"}, "$patch": "replace"}}}});
        let view = revision(&serde_json::from_value(object).unwrap()).unwrap();
        assert_eq!(view.revision, 4);
        let template = json!({"spec": {"x": "<"}});
        assert_eq!(&*view.data, data::of_template(&template));
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
        assert_eq!(with("True"), Some(Timestamp::from_secs(9)));
        assert_eq!(with("False"), None);
    }

    #[test]
    fn a_daemon_set_keeps_unknown_fields_of_its_template() {
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
