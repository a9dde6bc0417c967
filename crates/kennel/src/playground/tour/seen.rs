//! What the cluster shows of the tour's DaemonSet: one look, and what it means for each node. It asks the
//! API and changes nothing.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use http::Request;
use kube::Client;
use serde::Deserialize;

/// One look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The DaemonSet, if there is one.
    pub(super) set: Option<Set>,
    /// Its pods: all with its label.
    pub(super) pods: Vec<Pod>,
}

/// A DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// Which one.
    pub(super) uid: String,
    /// Whether every node that should run its newest template does.
    pub(super) settled: bool,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    /// Its name.
    pub(super) name: String,
    /// Which one.
    pub(super) uid: String,
    /// Where it is, if it is anywhere.
    pub(super) node: Option<String>,
    /// The version that it runs: the tag of its image.
    pub(super) version: String,
    /// How it fares.
    pub(super) state: State,
    /// Who manages it.
    pub(super) owner: Option<String>,
}

/// How a pod fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is not ready yet.
    Starts,
    /// It is ready.
    Runs,
    /// It ended by itself, and waits for another try.
    Fails,
    /// It was told to end.
    Ends,
}

impl Seen {
    /// Looks.
    pub(super) async fn look(client: &Client, name: &str) -> Result<Self> {
        // The set first: where it says that all is done, the pods that are read after it show it.
        let path = format!("/apis/apps/v1/namespaces/default/daemonsets/{name}");
        let set = match client.request::<SetShape>(get(&path)?).await {
            Ok(set) => Some(set.read()),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(error).context("cannot read the DaemonSet"),
        };
        let path = format!("/api/v1/namespaces/default/pods?labelSelector=app%3D{name}");
        let pods = client.request::<Pods>(get(&path)?).await;
        let pods = pods.context("cannot list the pods")?.items;
        Ok(Self {
            set,
            pods: pods.into_iter().map(PodShape::read).collect(),
        })
    }

    /// The pod of a node: the one that stays, where one goes and another comes.
    pub(super) fn on(&self, node: &str) -> Option<&Pod> {
        let here = self
            .pods
            .iter()
            .filter(|pod| pod.node.as_deref() == Some(node));
        here.min_by_key(|pod| pod.state == State::Ends)
    }

    /// Which pods are ready.
    pub(super) fn ready(&self) -> BTreeSet<&str> {
        let ready = self.pods.iter().filter(|pod| pod.state == State::Runs);
        ready.map(|pod| pod.uid.as_str()).collect()
    }

    /// A pod that fails, for those who want to know why.
    pub(super) fn failing(&self) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.state == State::Fails)
    }
}

fn get(path: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::get(path).body(Vec::new())?)
}

#[derive(Deserialize)]
struct SetShape {
    metadata: Metadata,
    #[serde(default)]
    status: SetStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SetStatus {
    observed_generation: i64,
    desired_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_available: i64,
    number_misscheduled: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    generation: i64,
    deletion_timestamp: Option<String>,
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
    #[serde(default)]
    controller: bool,
}

impl SetShape {
    fn read(self) -> Set {
        let Self { metadata, status } = self;
        let wanted = status.desired_number_scheduled;
        Set {
            settled: status.observed_generation == metadata.generation
                && status.updated_number_scheduled == wanted
                && status.number_available == wanted
                && status.number_misscheduled == 0,
            uid: metadata.uid,
        }
    }
}

#[derive(Deserialize)]
struct Pods {
    items: Vec<PodShape>,
}

#[derive(Deserialize)]
struct PodShape {
    metadata: Metadata,
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    image: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    state: ContainerState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Deserialize)]
struct Waiting {
    #[serde(default)]
    reason: String,
}

impl PodShape {
    fn read(self) -> Pod {
        let state = self.state();
        let image = self.spec.containers.first();
        let tag = image.and_then(|container| container.image.rsplit_once(':'));
        let owners = self.metadata.owner_references;
        let owner = owners.into_iter().find(|owner| owner.controller);
        Pod {
            version: tag.map_or_else(String::new, |(_, tag)| tag.to_owned()),
            name: self.metadata.name,
            uid: self.metadata.uid,
            node: self.spec.node_name,
            state,
            owner: owner.map(|owner| owner.uid),
        }
    }

    fn state(&self) -> State {
        let statuses = &self.status.container_statuses;
        let fails = |status: &ContainerStatus| {
            let waiting = status.state.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reason == "CrashLoopBackOff")
        };
        if self.metadata.deletion_timestamp.is_some() {
            State::Ends
        } else if statuses.iter().any(fails) {
            State::Fails
        } else if !statuses.is_empty() && statuses.iter().all(|status| status.ready) {
            State::Runs
        } else {
            State::Starts
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(extra: &Value, statuses: &Value) -> Pod {
        let mut metadata =
            json!({"name": "a", "uid": "u", "ownerReferences": [{"uid": "o", "controller": true}]});
        let fields = extra.as_object().unwrap().clone();
        metadata.as_object_mut().unwrap().extend(fields);
        let shape = json!({
            "metadata": metadata,
            "spec": {"nodeName": "n", "containers": [{"image": "log-shipper:2.0"}]},
            "status": {"containerStatuses": statuses},
        });
        serde_json::from_value::<PodShape>(shape).unwrap().read()
    }

    #[test]
    fn pods_fare_as_their_status_says() {
        let loops = json!([{"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
        let check = |extra: Value, statuses: &Value, expected| {
            let pod = pod(&extra, statuses);
            assert_eq!(pod.state, expected, "{statuses}");
            assert_eq!(
                (pod.version.as_str(), pod.owner.as_deref()),
                ("2.0", Some("o"))
            );
        };
        check(json!({}), &json!([]), State::Starts);
        check(json!({}), &json!([{"ready": false}]), State::Starts);
        check(json!({}), &json!([{"ready": true}]), State::Runs);
        check(json!({}), &loops, State::Fails);
        check(
            json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            &json!([{"ready": true}]),
            State::Ends,
        );
    }

    #[test]
    fn a_set_has_settled_once_its_newest_template_is_everywhere() {
        let check = |observed, updated, available, misplaced, expected| {
            let set: SetShape = serde_json::from_value(json!({
                "metadata": {"uid": "u", "generation": 2},
                "status": {
                    "observedGeneration": observed, "desiredNumberScheduled": 3,
                    "updatedNumberScheduled": updated, "numberAvailable": available,
                    "numberMisscheduled": misplaced,
                },
            }))
            .unwrap();
            assert_eq!(set.read().settled, expected);
        };
        check(2, 3, 3, 0, true);
        check(1, 3, 3, 0, false);
        check(2, 2, 3, 0, false);
        check(2, 3, 2, 0, false);
        check(2, 3, 3, 1, false);
    }
}
