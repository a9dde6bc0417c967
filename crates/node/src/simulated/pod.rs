//! A pod on a simulated node: what is kept of it, and the status it gets when it starts.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::{Client, Error};
use serde_json::{Value, json};

use kennel_client::feed::Identity;
use kennel_client::{api, clock};

use crate::stages::{Stage, Step};

/// What is kept of a pod.
#[derive(Debug)]
pub(super) struct SimulatedPod {
    pub(super) id: Identity,
    /// Name of its node.
    pub(super) node: Arc<str>,
    pub(super) stage: Stage,
    /// The step that is under way, or was taken and has not shown up in the watch yet.
    pub(super) taking: Option<Step>,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) host_network: bool,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    /// The conditions it has.
    conditions: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Container {
    name: String,
    image: String,
    /// Runs as long as the pod does.
    lasting: bool,
}

impl SimulatedPod {
    /// Reads a pod that is bound to a node; `None` if it is not.
    pub(super) fn read(object: &DynamicObject) -> Option<Self> {
        let (spec, status) = (&object.data["spec"], &object.data["status"]);
        let node = spec["nodeName"].as_str().filter(|name| !name.is_empty())?;
        let conditions = status["conditions"].as_array().cloned();
        Some(Self {
            id: Identity::of(object),
            node: node.into(),
            stage: stage(object),
            taking: None,
            address: status["podIP"].as_str().and_then(|ip| ip.parse().ok()),
            host_network: spec["hostNetwork"] == Value::Bool(true),
            containers: containers(&spec["containers"], true),
            init_containers: containers(&spec["initContainers"], false),
            conditions: conditions.unwrap_or_default(),
        })
    }

    /// The status of a pod that has just become ready.
    pub(super) fn started(&self, host: Ipv4Addr, now: &str) -> Value {
        let address = self.address.map(|ip| ip.to_string());
        let addresses = address.iter().map(|ip| json!({ "ip": ip }));
        let statuses = |list: &[Container]| -> Value {
            let status = |container: &Container| self.container_status(container, now);
            list.iter().map(status).collect()
        };
        let mut status = json!({
            "phase": "Running",
            "startTime": now,
            "hostIP": host.to_string(),
            "hostIPs": [{"ip": host.to_string()}],
            "podIP": address,
            "podIPs": addresses.collect::<Value>(),
            "conditions": self.ready_conditions(now),
            "containerStatuses": statuses(&self.containers),
        });
        if !self.init_containers.is_empty() {
            status["initContainerStatuses"] = statuses(&self.init_containers);
        }
        status
    }

    fn container_status(&self, container: &Container, now: &str) -> Value {
        let Container {
            name,
            image,
            lasting,
        } = container;
        let id = format!("simulated://{}/{name}", self.id.uid);
        let state = if *lasting {
            json!({"running": {"startedAt": now}})
        } else {
            json!({"terminated": {"exitCode": 0, "reason": "Completed", "containerID": id,
                                  "startedAt": now, "finishedAt": now}})
        };
        json!({
            "name": name,
            "image": image,
            "imageID": format!("simulated://{image}"),
            "containerID": id,
            "ready": true,
            "started": lasting,
            "restartCount": 0,
            "state": state,
            "lastState": {},
        })
    }

    /// All of the node's own conditions are true; those of others are kept.
    fn ready_conditions(&self, now: &str) -> Value {
        const OWN: [&str; 5] = [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        ];
        let of_type = |condition: &&Value, kind: &str| condition["type"] == kind;
        let own = OWN.iter().map(|kind| {
            let before = self.conditions.iter().find(|c| of_type(c, kind));
            match before.filter(|condition| condition["status"] == "True") {
                Some(condition) => condition.clone(),
                None => json!({"type": kind, "status": "True", "lastProbeTime": null,
                               "lastTransitionTime": now}),
            }
        });
        let foreign = self.conditions.iter();
        let foreign = foreign.filter(|c| !OWN.iter().any(|kind| of_type(c, kind)));
        own.chain(foreign.cloned()).collect()
    }
}

fn stage(object: &DynamicObject) -> Stage {
    let status = &object.data["status"];
    if object.metadata.deletion_timestamp.is_some() {
        let grace = object.metadata.deletion_grace_period_seconds;
        let grace = Duration::from_secs(grace.and_then(|s| s.try_into().ok()).unwrap_or(0));
        return Stage::Stopping { grace };
    }
    if matches!(status["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return Stage::Finished;
    }
    let conditions = status["conditions"].as_array();
    let is_ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
    if conditions.is_some_and(|list| list.iter().any(is_ready)) {
        return Stage::Running;
    }
    Stage::Waiting
}

fn containers(list: &Value, lasting: bool) -> Vec<Container> {
    let text =
        |container: &Value, field: &str| container[field].as_str().unwrap_or_default().to_owned();
    let read = |container: &Value| Container {
        name: text(container, "name"),
        image: text(container, "image"),
        lasting: lasting || container["restartPolicy"] == "Always",
    };
    list.as_array().into_iter().flatten().map(read).collect()
}

/// Reports a pod running and ready.
pub(super) async fn start(client: &Client, id: &Identity, status: &Value) -> Result<(), Error> {
    let path = api::core_path(&id.namespace, "pods");
    let patch = json!({"metadata": {"uid": &*id.uid}, "status": status});
    api::merge(client, &path, &id.name, Some("status"), &patch).await
}

/// Confirms that a pod has stopped.
pub(super) async fn remove(client: &Client, id: &Identity) -> Result<(), Error> {
    let path = api::core_path(&id.namespace, "pods");
    api::delete(client, &path, &id.name, &id.uid, Some(0)).await
}

/// The time that goes into a status.
pub(super) fn now() -> String {
    clock::now_rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(object: Value) -> Option<SimulatedPod> {
        SimulatedPod::read(&serde_json::from_value(object).unwrap())
    }

    fn check(metadata: &Value, status: &Value, expected: Stage) {
        let pod = json!({"metadata": metadata, "spec": {"nodeName": "n"}, "status": status});
        assert_eq!(read(pod).unwrap().stage, expected);
    }

    #[test]
    fn the_stage_is_read_from_the_pod() {
        check(&json!({}), &json!({}), Stage::Waiting);
        check(&json!({}), &json!({"phase": "Failed"}), Stage::Finished);
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        check(&json!({}), &ready, Stage::Running);
        let deleted = json!({"deletionTimestamp": "2026-01-02T03:04:05Z",
                             "deletionGracePeriodSeconds": 30});
        let grace = Duration::from_secs(30);
        check(&deleted, &ready, Stage::Stopping { grace });
    }

    #[test]
    fn pods_that_are_not_bound_are_nobodys() {
        assert!(read(json!({"metadata": {}, "spec": {}})).is_none());
        assert!(read(json!({"metadata": {}, "spec": {"nodeName": ""}})).is_none());
    }

    #[test]
    fn a_started_pod_is_ready_in_every_respect() {
        let mut pod = read(json!({
            "metadata": {"uid": "u"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i:1"}],
                     "initContainers": [{"name": "once", "image": "j"},
                                        {"name": "side", "image": "k", "restartPolicy": "Always"}]},
            "status": {"conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "before"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "before"},
                {"type": "example.com/gate", "status": "False"}]}}))
        .unwrap();
        pod.address = Some(Ipv4Addr::new(10, 0, 1, 2));
        let status = pod.started(Ipv4Addr::new(172, 16, 0, 1), "now");
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["podIP"], "10.0.1.2");
        assert_eq!(status["podIPs"], json!([{"ip": "10.0.1.2"}]));
        assert_eq!(status["hostIP"], "172.16.0.1");
        assert_eq!(
            status["containerStatuses"][0]["state"]["running"]["startedAt"],
            "now"
        );
        assert_eq!(
            status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"],
            0
        );
        assert!(status["initContainerStatuses"][1]["state"]["running"].is_object());
        let conditions = status["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 6);
        assert!(conditions[..5].iter().all(|c| c["status"] == "True"));
        assert_eq!(conditions[2]["lastTransitionTime"], "now");
        assert_eq!(conditions[4]["lastTransitionTime"], "before");
        assert_eq!(conditions[5]["type"], "example.com/gate");
    }
}
