//! What a runtime has, by pod. Lists are cheap and say how each container is; only of those that are no
//! longer as they were is more asked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use kennel_core::pod::{Exit, Observed, Run, Sandbox, State};
use kennel_types::Timestamp;
use std::net::IpAddr;

use super::line::Line;
use super::{api, labels, make};
use crate::runtime::{Error, Found, PodId, Result};

/// What was asked about containers and sandboxes, by id: it holds as long as the list says the same.
#[derive(Debug, Default)]
pub(super) struct Known {
    details: Mutex<Details>,
}

#[derive(Debug, Default)]
struct Details {
    runs: HashMap<String, (i32, Run)>,
    addresses: HashMap<String, Vec<IpAddr>>,
    /// The signals that end containers, where their specs named one.
    signals: HashMap<String, Option<String>>,
    /// Which pod's each sandbox and container is.
    owners: HashMap<String, String>,
}

/// What lists say, by pod.
#[derive(Debug, Default)]
struct Listed {
    pod: PodId,
    sandboxes: Vec<api::PodSandbox>,
    containers: Vec<api::Container>,
}

impl Known {
    /// Whose a sandbox or container is, if it was seen or made.
    pub(super) fn owner(&self, id: &str) -> Option<String> {
        self.with(|details| details.owners.get(id).cloned())
    }

    /// A sandbox or container was made for this pod.
    pub(super) fn made(&self, id: &str, uid: &str) {
        self.with(|details| details.owners.insert(id.to_owned(), uid.to_owned()));
    }

    /// The signal that is to end a container, if its spec named one.
    pub(super) async fn stop_signal(&self, line: &Line, id: &str) -> Result<Option<String>> {
        if let Some(known) = self.with(|details| details.signals.get(id).cloned()) {
            return Ok(known);
        }
        let Some(container) = container(line, id).await? else {
            return Ok(None);
        };
        let signal = container.annotations.get(labels::STOP_SIGNAL).cloned();
        self.with(|details| details.signals.insert(id.to_owned(), signal.clone()));
        Ok(signal)
    }

    /// All pods, or one.
    pub(super) async fn gather(&self, line: &Line, uid: Option<&str>) -> Result<Vec<Found>> {
        let (sandboxes, containers) =
            tokio::try_join!(list_sandboxes(line, uid), list_containers(line, uid))?;
        if uid.is_none() {
            let ids = sandboxes.iter().map(|sandbox| &sandbox.id);
            let ids = ids.chain(containers.iter().map(|container| &container.id));
            self.forget_all_but(&ids.map(String::as_str).collect());
        }
        let mut found = Vec::new();
        for listed in by_pod(sandboxes, containers) {
            found.push(self.find(line, listed).await?);
        }
        Ok(found)
    }

    async fn find(&self, line: &Line, listed: Listed) -> Result<Found> {
        let Listed {
            pod,
            mut sandboxes,
            containers,
        } = listed;
        for id in sandboxes.iter().map(|sandbox| &sandbox.id) {
            self.made(id, &pod.uid);
        }
        for id in containers.iter().map(|container| &container.id) {
            self.made(id, &pod.uid);
        }
        sandboxes.sort_by_key(|sandbox| (attempt(sandbox), sandbox.created_at));
        let sandbox = match sandboxes.pop() {
            Some(newest) => Some(self.sandbox(line, newest).await?),
            None => None,
        };
        let mut runs = Vec::new();
        for container in containers {
            runs.extend(self.run(line, container).await?);
        }
        let stale = sandboxes.into_iter().map(|sandbox| sandbox.id).collect();
        let observed = Observed { sandbox, runs };
        Ok(Found {
            pod,
            observed,
            stale,
        })
    }

    async fn sandbox(&self, line: &Line, sandbox: api::PodSandbox) -> Result<Sandbox> {
        let ready = sandbox.state() == api::PodSandboxState::Ready;
        let addresses = if ready {
            self.addresses(line, &sandbox.id).await?
        } else {
            Vec::new()
        };
        Ok(Sandbox {
            ready,
            addresses,
            attempt: attempt(&sandbox),
            id: sandbox.id,
        })
    }

    async fn addresses(&self, line: &Line, id: &str) -> Result<Vec<IpAddr>> {
        if let Some(addresses) = self.with(|details| details.addresses.get(id).cloned()) {
            return Ok(addresses);
        }
        let asked = line
            .ask(api::PodSandboxStatusRequest {
                pod_sandbox_id: id.to_owned(),
            })
            .await;
        let status = match asked {
            Ok(answer) => answer.status.unwrap_or_default(),
            // Gone since it was listed.
            Err(Error::NotFound(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let network = status.network.unwrap_or_default();
        let more = network.additional_ips.into_iter().map(|ip| ip.ip);
        let all = std::iter::once(network.ip).chain(more);
        let addresses: Vec<IpAddr> = all.filter_map(|ip| ip.parse().ok()).collect();
        self.with(|details| details.addresses.insert(id.to_owned(), addresses.clone()));
        Ok(addresses)
    }

    /// One run; nothing if it has gone since it was listed.
    async fn run(&self, line: &Line, listed: api::Container) -> Result<Option<Run>> {
        let state = listed.state;
        let known = self.with(|details| details.runs.get(&listed.id).cloned());
        if let Some((_, run)) = known.filter(|(before, _)| *before == state) {
            return Ok(Some(run));
        }
        if listed.state() == api::ContainerState::Unknown {
            settle(line, &listed.id).await?;
        }
        let request = api::ContainerStatusRequest {
            container_id: listed.id.clone(),
        };
        let status = match line.ask(request).await {
            Ok(answer) => answer.status.unwrap_or_default(),
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        if was_cut_off(&status) {
            make::remove(line, &listed.id).await?;
            return Ok(None);
        }
        let run = read(listed, &status);
        // What was asked may be newer than the list; then the next list says the same.
        self.with(|details| {
            details
                .runs
                .insert(run.id.clone(), (status.state, run.clone()))
        });
        Ok(Some(run))
    }

    fn forget_all_but(&self, ids: &HashSet<&str>) {
        self.with(|details| {
            details.runs.retain(|id, _| ids.contains(id.as_str()));
            details.addresses.retain(|id, _| ids.contains(id.as_str()));
            details.signals.retain(|id, _| ids.contains(id.as_str()));
            details.owners.retain(|id, _| ids.contains(id.as_str()));
        });
    }

    fn with<T>(&self, then: impl FnOnce(&mut Details) -> T) -> T {
        let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
        then(&mut details)
    }
}

/// Whoever asked for its start went away in the middle of it: it never ran, and is no run that could be told of.
fn was_cut_off(status: &api::ContainerStatus) -> bool {
    let never_ran = status.started_at == 0 && status.reason == "StartError";
    // With its client containerd gives up, or kills whoever was about to start the container.
    let words = ["context canceled", "signal: killed"];
    never_ran && words.iter().any(|words| status.message.contains(words))
}

/// Ours, or those of one pod.
pub(super) async fn list_sandboxes(line: &Line, uid: Option<&str>) -> Result<Vec<api::PodSandbox>> {
    let filter = api::PodSandboxFilter {
        label_selector: labels::selector(uid),
        ..Default::default()
    };
    let answer = line
        .ask(api::ListPodSandboxRequest {
            filter: Some(filter),
        })
        .await?;
    Ok(answer.items)
}

/// Ours, or those of one pod.
pub(super) async fn list_containers(line: &Line, uid: Option<&str>) -> Result<Vec<api::Container>> {
    let filter = api::ContainerFilter {
        label_selector: labels::selector(uid),
        ..Default::default()
    };
    let answer = line
        .ask(api::ListContainersRequest {
            filter: Some(filter),
        })
        .await?;
    Ok(answer.containers)
}

/// One container, if it is there; whoever's it is.
pub(super) async fn container(line: &Line, id: &str) -> Result<Option<api::Container>> {
    let filter = api::ContainerFilter {
        id: id.to_owned(),
        ..Default::default()
    };
    let answer = line
        .ask(api::ListContainersRequest {
            filter: Some(filter),
        })
        .await?;
    Ok(answer
        .containers
        .into_iter()
        .find(|container| container.id == id))
}

/// One sandbox, if it is there; whoever's it is.
pub(super) async fn sandbox(line: &Line, id: &str) -> Result<Option<api::PodSandbox>> {
    let filter = api::PodSandboxFilter {
        id: id.to_owned(),
        ..Default::default()
    };
    let request = api::ListPodSandboxRequest {
        filter: Some(filter),
    };
    let answer = line.ask(request).await?;
    Ok(answer.items.into_iter().find(|sandbox| sandbox.id == id))
}

/// The control group that a sandbox's pod was given, if the sandbox is there.
pub(super) async fn cgroup(line: &Line, id: &str) -> Result<Option<String>> {
    let sandbox = sandbox(line, id).await?;
    Ok(sandbox.and_then(|mut sandbox| sandbox.annotations.remove(labels::CGROUP)))
}

/// The uid of the pod that a sandbox is for.
pub(super) fn uid(sandbox: &api::PodSandbox) -> &str {
    sandbox
        .metadata
        .as_ref()
        .map_or("", |metadata| &metadata.uid)
}

fn attempt(sandbox: &api::PodSandbox) -> u32 {
    sandbox
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.attempt)
}

fn by_pod(sandboxes: Vec<api::PodSandbox>, containers: Vec<api::Container>) -> Vec<Listed> {
    let mut pods: BTreeMap<String, Listed> = BTreeMap::new();
    for sandbox in sandboxes {
        let listed = pods.entry(uid(&sandbox).to_owned()).or_default();
        if let Some(metadata) = &sandbox.metadata {
            listed.pod = PodId {
                namespace: metadata.namespace.clone(),
                name: metadata.name.clone(),
                uid: metadata.uid.clone(),
            };
        }
        listed.sandboxes.push(sandbox);
    }
    for container in containers {
        let pod = labels::pod(&container.labels);
        let listed = pods.entry(pod.uid.clone()).or_default();
        if listed.sandboxes.is_empty() {
            listed.pod = pod;
        }
        listed.containers.push(container);
    }
    pods.into_values().collect()
}

/// Nobody knows whether it runs, the runtime included: it is ended, since another run must not join it.
async fn settle(line: &Line, id: &str) -> Result<()> {
    let request = api::StopContainerRequest {
        container_id: id.to_owned(),
        timeout: 0,
    };
    match line.ask(request).await {
        Ok(_) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn read(listed: api::Container, status: &api::ContainerStatus) -> Run {
    let metadata = listed.metadata.unwrap_or_default();
    let started_at = timestamp(status.started_at);
    let state = match status.state() {
        api::ContainerState::Created => State::Created,
        api::ContainerState::Running => State::Running { started_at },
        api::ContainerState::Exited => State::Exited(Exit {
            started_at,
            finished_at: timestamp(status.finished_at),
            code: status.exit_code,
            reason: status.reason.clone(),
            message: status.message.clone(),
        }),
        // It could not be settled: it may run.
        api::ContainerState::Unknown => State::Running {
            started_at: timestamp(status.created_at),
        },
    };
    Run {
        name: metadata.name,
        id: listed.id,
        attempt: metadata.attempt,
        sandbox: listed.pod_sandbox_id,
        image: labels::get(&listed.annotations, labels::IMAGE),
        image_id: status.image_ref.clone(),
        state,
    }
}

fn timestamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_secs(nanoseconds.div_euclid(1_000_000_000))
}
