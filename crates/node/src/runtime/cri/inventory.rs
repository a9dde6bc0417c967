//! The sandboxes and containers of a runtime, by pod. Listing is cheap and includes states; details are requested only
//! when the state has changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use kennel_core::pod::{Exit, Observed, Run, Sandbox, State};
use kennel_types::Timestamp;
use std::net::IpAddr;
use tokio::time::Instant;

use super::connection::Connection;
use super::corrections::CORRECTION_TIME;
use super::{api, create, labels, stop};
use crate::agent::Paths;
use crate::runtime::{Error, Found, PodId, Result};
use crate::sync::lock;

/// Caches details of containers and sandboxes by id, which are valid as long as the listed state is the same. Those of an exit
/// are read again during [`CORRECTION_TIME`], and once after it.
#[derive(Debug)]
pub(super) struct Inventory {
    /// The data directory of the agent, whose pods alone are listed.
    data: PathBuf,
    details: Mutex<Details>,
}

#[derive(Debug, Default)]
struct Details {
    runs: HashMap<String, CachedRun>,
    addresses: HashMap<String, Vec<IpAddr>>,
    /// The stop signals of containers, where their spec has one.
    stop_signals: HashMap<String, Option<String>>,
    /// Pod uids by the id of a sandbox or container.
    owners: HashMap<String, String>,
}

#[derive(Clone, Debug)]
struct CachedRun {
    state: i32,
    run: Run,
    /// When the run was first seen in this state.
    since: Instant,
    read: Instant,
}

impl CachedRun {
    /// Whether the runtime will not correct it.
    fn is_final(&self) -> bool {
        self.run.exit().is_none() || self.read - self.since >= CORRECTION_TIME
    }
}

/// The listed sandboxes and containers of a pod.
#[derive(Debug, Default)]
struct Listed {
    pod: PodId,
    sandboxes: Vec<api::PodSandbox>,
    containers: Vec<api::Container>,
}

impl Inventory {
    pub(super) fn new(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            details: Mutex::default(),
        }
    }

    /// The pod uid of a sandbox or container, if it was listed or created.
    pub(super) fn owner(&self, id: &str) -> Option<String> {
        self.with(|details| details.owners.get(id).cloned())
    }

    pub(super) fn set_owner(&self, id: &str, uid: &str) {
        self.with(|details| details.owners.insert(id.to_owned(), uid.to_owned()));
    }

    /// The stop signal of a container, if its spec has one.
    pub(super) async fn stop_signal(
        &self,
        connection: &Connection,
        id: &str,
    ) -> Result<Option<String>> {
        if let Some(cached) = self.with(|details| details.stop_signals.get(id).cloned()) {
            return Ok(cached);
        }
        let Some(container) = container(connection, id).await? else {
            return Ok(None);
        };
        let signal = container.annotations.get(labels::STOP_SIGNAL).cloned();
        self.with(|details| details.stop_signals.insert(id.to_owned(), signal.clone()));
        Ok(signal)
    }

    /// Lists all pods, or one.
    pub(super) async fn list(
        &self,
        connection: &Connection,
        uid: Option<&str>,
    ) -> Result<Vec<Found>> {
        let (sandboxes, containers) = tokio::try_join!(
            list_sandboxes(connection, uid),
            list_containers(connection, uid)
        )?;
        let (sandboxes, containers) = of_agent(sandboxes, containers, &self.data);
        if uid.is_none() {
            let ids = sandboxes.iter().map(|sandbox| &sandbox.id);
            let ids = ids.chain(containers.iter().map(|container| &container.id));
            self.retain(&ids.map(String::as_str).collect());
        }
        let mut found = Vec::new();
        for listed in by_pod(sandboxes, containers) {
            found.push(self.assemble(connection, listed).await?);
        }
        Ok(found)
    }

    async fn assemble(&self, connection: &Connection, listed: Listed) -> Result<Found> {
        let Listed {
            pod,
            mut sandboxes,
            containers,
        } = listed;
        let ids = sandboxes.iter().map(|sandbox| &sandbox.id);
        for id in ids.chain(containers.iter().map(|container| &container.id)) {
            self.set_owner(id, &pod.uid);
        }
        sandboxes.sort_by_key(|sandbox| (attempt(sandbox), sandbox.created_at));
        let sandbox = match sandboxes.pop() {
            Some(newest) => Some(self.sandbox(connection, newest).await?),
            None => None,
        };
        let mut runs = Vec::new();
        for container in containers {
            runs.extend(self.run(connection, container).await?);
        }
        let stale = sandboxes.into_iter().map(|sandbox| sandbox.id).collect();
        let observed = Observed { sandbox, runs };
        Ok(Found {
            pod,
            observed,
            stale,
        })
    }

    async fn sandbox(&self, connection: &Connection, sandbox: api::PodSandbox) -> Result<Sandbox> {
        let ready = sandbox.state() == api::PodSandboxState::Ready;
        let addresses = if ready {
            self.addresses(connection, &sandbox.id).await?
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

    async fn addresses(&self, connection: &Connection, id: &str) -> Result<Vec<IpAddr>> {
        if let Some(addresses) = self.with(|details| details.addresses.get(id).cloned()) {
            return Ok(addresses);
        }
        let result = connection
            .call(api::PodSandboxStatusRequest {
                pod_sandbox_id: id.to_owned(),
            })
            .await;
        let status = match result {
            Ok(response) => response.status.unwrap_or_default(),
            // Removed since it was listed.
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

    /// A run of a container; `None` if it was removed since it was listed.
    async fn run(&self, connection: &Connection, listed: api::Container) -> Result<Option<Run>> {
        let state = listed.state;
        let cached = self.with(|details| details.runs.get(&listed.id).cloned());
        let cached = cached.filter(|cached| cached.state == state);
        if let Some(cached) = cached.as_ref().filter(|cached| cached.is_final()) {
            return Ok(Some(cached.run.clone()));
        }
        let read = Instant::now();
        if listed.state() == api::ContainerState::Unknown {
            // So that no second run of it can start beside it.
            stop::gracefully(connection, &listed.id, Duration::ZERO).await?;
        }
        let request = api::ContainerStatusRequest {
            container_id: listed.id.clone(),
        };
        let status = match connection.call(request).await {
            Ok(response) => response.status.unwrap_or_default(),
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        if start_was_interrupted(&status) {
            create::remove(connection, &listed.id).await?;
            return Ok(None);
        }
        let run = to_run(listed, &status);
        let new = CachedRun {
            // The status may be newer than the list; then the next list has the same state.
            state: status.state,
            run: run.clone(),
            since: cached.map_or(read, |cached| cached.since),
            read,
        };
        self.with(|details| details.runs.insert(run.id.clone(), new));
        Ok(Some(run))
    }

    fn retain(&self, ids: &HashSet<&str>) {
        self.with(|details| {
            details.runs.retain(|id, _| ids.contains(id.as_str()));
            details.addresses.retain(|id, _| ids.contains(id.as_str()));
            details
                .stop_signals
                .retain(|id, _| ids.contains(id.as_str()));
            details.owners.retain(|id, _| ids.contains(id.as_str()));
        });
    }

    fn with<T>(&self, then: impl FnOnce(&mut Details) -> T) -> T {
        then(&mut lock(&self.details))
    }
}

/// The client disconnected during the start: containerd canceled it and killed the process if there was one already.
/// It must not be reported as a run.
fn start_was_interrupted(status: &api::ContainerStatus) -> bool {
    let not_started = status.started_at == 0 && status.reason == "StartError";
    // When its client disconnects, containerd cancels the start or kills the starting process.
    let words = ["context canceled", "signal: killed"];
    not_started && words.iter().any(|words| status.message.contains(words))
}

/// Our sandboxes, or those of one pod.
pub(super) async fn list_sandboxes(
    connection: &Connection,
    uid: Option<&str>,
) -> Result<Vec<api::PodSandbox>> {
    let filter = Some(api::PodSandboxFilter {
        label_selector: labels::selector(uid),
        ..Default::default()
    });
    let response = connection.call(api::ListPodSandboxRequest { filter });
    Ok(response.await?.items)
}

/// Our containers, or those of one pod.
pub(super) async fn list_containers(
    connection: &Connection,
    uid: Option<&str>,
) -> Result<Vec<api::Container>> {
    let filter = Some(api::ContainerFilter {
        label_selector: labels::selector(uid),
        ..Default::default()
    });
    let response = connection.call(api::ListContainersRequest { filter });
    Ok(response.await?.containers)
}

/// Finds a container of any client.
pub(super) async fn container(connection: &Connection, id: &str) -> Result<Option<api::Container>> {
    let filter = Some(api::ContainerFilter {
        id: id.to_owned(),
        ..Default::default()
    });
    let response = connection.call(api::ListContainersRequest { filter });
    let mut containers = response.await?.containers.into_iter();
    Ok(containers.find(|container| container.id == id))
}

/// Finds a sandbox of any client.
pub(super) async fn sandbox(connection: &Connection, id: &str) -> Result<Option<api::PodSandbox>> {
    let filter = Some(api::PodSandboxFilter {
        id: id.to_owned(),
        ..Default::default()
    });
    let response = connection.call(api::ListPodSandboxRequest { filter });
    let mut sandboxes = response.await?.items.into_iter();
    Ok(sandboxes.find(|sandbox| sandbox.id == id))
}

/// The cgroup of a sandbox's pod, if the sandbox exists.
pub(super) async fn cgroup(connection: &Connection, id: &str) -> Result<Option<String>> {
    let sandbox = sandbox(connection, id).await?;
    Ok(sandbox.and_then(|mut sandbox| sandbox.annotations.remove(labels::CGROUP)))
}

/// The sandboxes and containers of the agent of a data directory.
fn of_agent(
    mut sandboxes: Vec<api::PodSandbox>,
    mut containers: Vec<api::Container>,
    data: &Path,
) -> (Vec<api::PodSandbox>, Vec<api::Container>) {
    let by_id: HashMap<String, bool> = sandboxes
        .iter()
        .map(|sandbox| (sandbox.id.clone(), is_of_agent(sandbox, data)))
        .collect();
    sandboxes.retain(|sandbox| by_id.get(&sandbox.id) == Some(&true));
    containers.retain(|container| {
        // One whose sandbox was created or removed between the two lists belongs to the pod.
        let known = by_id.get(&container.pod_sandbox_id).copied();
        known.unwrap_or_else(|| has_directory(&labels::pod(&container.labels).uid, data))
    });
    (sandboxes, containers)
}

/// Whether the agent of a data directory created a sandbox. Older agents did not annotate them; they had a directory for
/// each pod.
fn is_of_agent(sandbox: &api::PodSandbox, data: &Path) -> bool {
    let annotated = labels::get(&sandbox.annotations, labels::DATA_DIR);
    if annotated.is_empty() {
        return has_directory(uid(sandbox), data);
    }
    let annotated = Path::new(&annotated);
    // Agents do not resolve links.
    annotated == data
        || annotated
            .canonicalize()
            .is_ok_and(|annotated| data.canonicalize().is_ok_and(|data| annotated == data))
}

fn has_directory(uid: &str, data: &Path) -> bool {
    Paths::all_pods(data).join(uid).exists()
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

fn to_run(listed: api::Container, status: &api::ContainerStatus) -> Run {
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
        // Stopping has failed: it may run.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_one_runtime_do_not_see_each_others_pods() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (own, other) = (own.path(), other.path());
        let link = own.join("link");
        std::os::unix::fs::symlink(own, &link).unwrap();
        let sandbox = |id: &str, data: &Path| api::PodSandbox {
            id: id.to_owned(),
            metadata: Some(api::PodSandboxMetadata {
                uid: format!("uid-{id}"),
                ..Default::default()
            }),
            annotations: BTreeMap::from([(
                labels::DATA_DIR.to_owned(),
                data.display().to_string(),
            )]),
            ..Default::default()
        };
        let container = |sandbox: &str| api::Container {
            id: format!("c-{sandbox}"),
            pod_sandbox_id: sandbox.to_owned(),
            labels: labels::of(&PodId {
                uid: format!("uid-{sandbox}"),
                ..PodId::default()
            }),
            ..Default::default()
        };
        let mut unmarked = sandbox("unmarked", own);
        unmarked.annotations.clear();
        let sandboxes = vec![
            sandbox("ours", own),
            sandbox("linked", &link),
            sandbox("theirs", other),
            unmarked,
        ];
        let containers = ["ours", "theirs", "unmarked", "gone"].map(container);
        let check = |data: &Path, expected: (&[&str], &[&str])| {
            let (sandboxes, containers) = of_agent(sandboxes.clone(), containers.to_vec(), data);
            let sandboxes: Vec<&str> = sandboxes.iter().map(|s| s.id.as_str()).collect();
            let containers: Vec<&str> = containers.iter().map(|c| c.id.as_str()).collect();
            assert_eq!((&*sandboxes, &*containers), expected);
        };
        check(own, (&["ours", "linked"], &["c-ours"]));
        check(other, (&["theirs"], &["c-theirs"]));
        // Older agents had a directory for each pod.
        std::fs::create_dir_all(own.join("pods/uid-unmarked")).unwrap();
        std::fs::create_dir_all(own.join("pods/uid-gone")).unwrap();
        let all = ["c-ours", "c-unmarked", "c-gone"];
        check(own, (&["ours", "linked", "unmarked"], &all));
    }
}
