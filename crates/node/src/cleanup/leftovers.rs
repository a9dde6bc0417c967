//! Finds what an agent left on this machine, and ends it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kennel_network::cni::Places;

use super::resources::Resources;
use super::{Failure, end_pods, end_shims, logs, mounts, unmount_below};
use crate::agent::Paths;
use crate::runtime::cri::Cri;
use crate::runtime::process::{self, Process};
use crate::runtime::{Found, PodId, Runtime};

/// Where to look.
#[derive(Clone, Debug)]
pub struct Search {
    /// The agent's data directory, which nobody else may use meanwhile.
    pub data: PathBuf,
    /// Our own binary, for the process runtime.
    pub shim: PathBuf,
    /// What the agent used outside of its data directory.
    pub resources: Resources,
}

/// The pods of one runtime.
struct RuntimePods {
    source: Source,
    pods: Vec<Found>,
}

enum Source {
    /// Opened only to end pods, because opening it ends containers without a shim.
    Process,
    Cri {
        socket: PathBuf,
        runtime: Box<Cri>,
    },
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process => f.write_str("in the process runtime"),
            Self::Cri { socket, .. } => {
                write!(f, "in the container runtime at {}", socket.display())
            }
        }
    }
}

/// See the [module](self).
pub struct Leftovers {
    search: Search,
    runtimes: Vec<RuntimePods>,
    /// Runtimes that do not answer.
    unreachable: Vec<Failure>,
    /// The log directories of its pods.
    pub logs: Vec<PathBuf>,
    /// What is mounted in its data directory.
    pub mounts: Vec<PathBuf>,
}

impl Leftovers {
    pub async fn find(search: Search) -> Self {
        let mut runtimes = vec![RuntimePods {
            source: Source::Process,
            pods: process::list(&search.data),
        }];
        let mut unreachable = Vec::new();
        let recorded = recorded_uids(&search.data);
        for socket in &search.resources.cri_sockets {
            match containers(socket, &search.data).await {
                Ok(found) => runtimes.push(found),
                // Every pod has a directory, so there are none.
                Err(_) if recorded.is_empty() => {}
                Err(failure) => unreachable.push(failure),
            }
        }
        let in_runtimes = runtimes.iter().flat_map(|found| &found.pods);
        let mut uids = recorded;
        uids.extend(in_runtimes.map(|found| found.pod.uid.clone()));
        let directories = mount_directories(&search.data);
        Self {
            logs: logs::find(&search.resources.log_dirs, &uids),
            mounts: directories
                .iter()
                .flat_map(|dir| mounts::below(dir))
                .collect(),
            search,
            runtimes,
            unreachable,
        }
    }

    /// The pods of each runtime that has some: what to call the runtime, and the pods.
    pub fn pods(&self) -> impl Iterator<Item = (String, Vec<&PodId>)> {
        let some = self.runtimes.iter().filter(|found| !found.pods.is_empty());
        some.map(|found| {
            let pods = found.pods.iter().map(|found| &found.pod).collect();
            (found.source.to_string(), pods)
        })
    }

    /// Runtimes that do not answer, whose pods can therefore not be ended.
    pub fn unreachable(&self) -> &[Failure] {
        &self.unreachable
    }

    /// Ends all pods and their shims, and unmounts their volumes. Returns what is left, including runtimes that do not
    /// answer.
    pub async fn end(&self, grace: Duration) -> Vec<Failure> {
        let mut failures = self.unreachable.clone();
        failures.extend(self.record_pods().err());
        let process = self.open_process_runtime();
        for RuntimePods { source, pods } in &self.runtimes {
            let runtime: &dyn Runtime = match (source, &process) {
                (Source::Cri { runtime, .. }, _) => runtime.as_ref(),
                (Source::Process, Ok(Some(runtime))) => runtime,
                (Source::Process, _) => continue,
            };
            failures.extend(end_pods(runtime, pods, grace).await);
        }
        failures.extend(end_shims(&self.search.data).await);
        // Only now can the process runtime remove the cgroup of its shims, which it does when it is dropped.
        failures.extend(process.err());
        for dir in mount_directories(&self.search.data) {
            failures.extend(unmount_below(&dir));
        }
        failures
    }

    /// Creates the directory of every pod: a repeated cleanup finds their logs by it when the runtimes no longer know
    /// them.
    fn record_pods(&self) -> Result<(), Failure> {
        let all = Paths::all_pods(&self.search.data);
        for found in self.runtimes.iter().flat_map(|found| &found.pods) {
            let dir = all.join(&found.pod.uid);
            let created = std::fs::create_dir_all(&dir);
            created.map_err(|error| Failure::new(dir.display().to_string(), &error))?;
        }
        Ok(())
    }

    /// None if it was never used.
    fn open_process_runtime(&self) -> Result<Option<Process>, Failure> {
        let data = &self.search.data;
        if !process::directory(data).exists() {
            return Ok(None);
        }
        let options = process::Options {
            data: data.clone(),
            shim: self.search.shim.clone(),
            pod_pids_limit: 0,
        };
        let failed =
            |error: std::io::Error| Failure::new(format!("pods in {}", data.display()), &error);
        Process::open(options).map(Some).map_err(failed)
    }

    /// Whether the agent has made a pod network.
    pub fn has_network(&self) -> bool {
        self.search.resources.pod_network.is_some()
    }

    /// Removes the pod network, which pods must not need any more.
    pub async fn remove_network(&self) -> Vec<Failure> {
        let Some(dirs) = &self.search.resources.pod_network else {
            return Vec::new();
        };
        let places: Vec<Places> = dirs
            .iter()
            .map(|dir| Places {
                configurations: dir.clone(),
                ..Places::default()
            })
            .collect();
        match kennel_network::cleanup(&places).await {
            Ok(_) => Vec::new(),
            Err(error) => vec![Failure::new("the pod network", &error)],
        }
    }

    /// Whether the agent has routed services.
    pub fn has_proxy(&self) -> bool {
        self.search.resources.proxy
    }

    pub fn remove_logs(&self) -> Vec<Failure> {
        logs::remove(&self.search.resources.log_dirs, &self.logs)
    }
}

/// The pods of an agent in some of its runtimes, as failures for people: `2 pods in the process runtime: default/a,
/// default/b`. A container runtime that does not answer counts, unless the agent never had a pod.
pub async fn pods_in(data: &Path, process: bool, sockets: &BTreeSet<PathBuf>) -> Vec<Failure> {
    let mut runtimes = Vec::new();
    if process {
        runtimes.push(RuntimePods {
            source: Source::Process,
            pods: process::list(data),
        });
    }
    let mut failures = Vec::new();
    // Every pod has a directory.
    let mut uids = recorded_uids(data);
    for found in process::list(data) {
        uids.remove(&found.pod.uid);
    }
    for socket in sockets {
        match containers(socket, data).await {
            Ok(found) => runtimes.push(found),
            Err(_) if uids.is_empty() => {}
            Err(failure) => failures.push(failure),
        }
    }
    let some = runtimes.iter().filter(|found| !found.pods.is_empty());
    failures.extend(some.map(|RuntimePods { source, pods }| {
        let pods_name = if pods.len() == 1 { "pod" } else { "pods" };
        let names = pods.iter().map(|found| &found.pod);
        let names: Vec<String> = names
            .map(|pod| format!("{}/{}", pod.namespace, pod.name))
            .collect();
        Failure {
            what: format!("{} {pods_name} {source}", pods.len()),
            why: names.join(", "),
        }
    }));
    failures
}

/// Where an agent mounts volumes, and where its containers do.
fn mount_directories(data: &Path) -> [PathBuf; 2] {
    [Paths::all_pods(data), process::directory(data)]
}

fn recorded_uids(data: &Path) -> BTreeSet<String> {
    let dirs = std::fs::read_dir(Paths::all_pods(data));
    let dirs = dirs.into_iter().flatten().flatten();
    dirs.map(|dir| dir.file_name().to_string_lossy().into_owned())
        .collect()
}

async fn containers(socket: &Path, data: &Path) -> Result<RuntimePods, Failure> {
    let find = async {
        let runtime = Cri::new(socket, data);
        let pods = runtime.list().await?;
        Ok::<_, crate::runtime::Error>((runtime, pods))
    };
    let what = || format!("pods in the container runtime at {}", socket.display());
    let (runtime, pods) = find.await.map_err(|error| Failure::new(what(), &error))?;
    let socket = socket.to_owned();
    let runtime = Box::new(runtime);
    let source = Source::Cri { socket, runtime };
    Ok(RuntimePods { source, pods })
}
