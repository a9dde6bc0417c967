//! Measures this machine and its pods, and reclaims disk space.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use kennel_core::pod::eviction::{ContainerUsage, Readings, Signal};

use super::disk::{self, DiskUsage};
use super::{Meter, Used, memory};
use crate::agent::Paths;
use crate::inputs::EMPTY_DIR;
use crate::pods::{CachedPod, Pod};
use crate::runtime::{Found, PodId, Runtime, Usage};

#[derive(Clone)]
pub struct Machine {
    runtime: Arc<dyn Runtime>,
    paths: Paths,
}

impl Machine {
    pub fn new(runtime: Arc<dyn Runtime>, paths: Paths) -> Self {
        Self { runtime, paths }
    }

    async fn remove_old_runs(&self) {
        let found = match self.runtime.list().await {
            Ok(found) => found,
            Err(error) => {
                return tracing::warn!("cannot list containers to remove old ones: {error}");
            }
        };
        for id in found.iter().flat_map(old_runs) {
            if let Err(error) = self.runtime.remove(&id).await {
                tracing::warn!("cannot remove the old container {id}: {error}");
            }
        }
    }
}

/// Ids of exited runs that a later run of the same container has replaced.
fn old_runs(found: &Found) -> Vec<String> {
    let old = |run: &&kennel_core::pod::Run| {
        let newest = found.observed.latest(&run.name);
        run.exit().is_some() && newest.is_some_and(|newest| newest.attempt > run.attempt)
    };
    let runs = found.observed.runs.iter().filter(old);
    runs.map(|run| run.id.clone()).collect()
}

#[async_trait]
impl Meter for Machine {
    async fn read(&self) -> Readings {
        let (data, images) = (self.paths.data.clone(), self.runtime.image_dir());
        blocking(move || measure(&data, images.as_deref())).await
    }

    async fn usage(&self, pods: &[Arc<CachedPod>], disks: bool) -> BTreeMap<String, Used> {
        let usage = match self.runtime.usage(disks).await {
            Ok(usage) => usage,
            Err(error) => {
                tracing::warn!("cannot read the usage of containers: {error}");
                return BTreeMap::new();
            }
        };
        let (pods, paths) = (pods.to_vec(), self.paths.clone());
        blocking(move || {
            let used = |cached: &Arc<CachedPod>| used(&cached.pod, &usage, disks.then_some(&paths));
            let known = |cached: &Arc<CachedPod>| Some((cached.pod.id.uid.clone(), used(cached)?));
            pods.iter().filter_map(known).collect()
        })
        .await
    }

    async fn reclaim(&self, pods: &[Arc<CachedPod>]) {
        self.remove_old_runs().await;
        match self.runtime.remove_unused_images().await {
            Ok(0) => {}
            Ok(freed) => tracing::info!("removed unused images: {freed} bytes"),
            Err(error) => tracing::warn!("cannot remove unused images: {error}"),
        }
        let ids: Vec<PodId> = pods.iter().map(|cached| cached.pod.id.clone()).collect();
        let paths = self.paths.clone();
        blocking(move || {
            for id in &ids {
                remove_rotated_logs(&paths.pod_logs(id));
            }
        })
        .await;
    }

    fn is_split(&self) -> bool {
        let images = self.runtime.image_dir();
        let images = images.and_then(|images| disk::device(&images));
        images.is_some_and(|images| disk::device(&self.paths.data) != Some(images))
    }
}

/// Runs `work` on a thread that may wait for disks.
async fn blocking<T: Default + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

fn measure(data: &Path, images: Option<&Path>) -> Readings {
    let mut readings = vec![
        (Signal::Memory, memory::read()),
        (Signal::Pids, memory::pids()),
    ];
    let (bytes, files) = disk::free(data);
    readings.extend([(Signal::NodeDisk, bytes), (Signal::NodeInodes, files)]);
    if let Some(images) = images {
        let (bytes, files) = disk::free(images);
        readings.extend([(Signal::ImageDisk, bytes), (Signal::ImageInodes, files)]);
    }
    let known = readings.into_iter();
    known
        .filter_map(|(signal, reading)| Some((signal, reading?)))
        .collect()
}

/// Measures disk usage only with `disks`. None if the runtime does not know the pod.
fn used(pod: &Pod, usage: &[Usage], disks: Option<&Paths>) -> Option<Used> {
    let mut used = Used::default();
    for usage in usage.iter().filter(|usage| usage.pod == pod.id.uid) {
        let mut logs = DiskUsage::default();
        if let Some(paths) = disks {
            logs = disk::usage(&paths.pod_logs(&pod.id).join(&usage.container));
        }
        used.inodes += logs.inodes;
        used.containers.push(ContainerUsage {
            name: usage.container.clone(),
            memory: usage.memory,
            layer: usage.disk.unwrap_or(0),
            logs: logs.bytes,
        });
    }
    for (name, path) in disks.map(|paths| volumes(pod, paths)).unwrap_or_default() {
        let usage = disk::usage(&path);
        used.inodes += usage.inodes;
        used.volumes.insert(name, usage.bytes);
    }
    let measured = disks.is_some() || !used.containers.is_empty();
    measured.then_some(used)
}

/// The names and paths of a pod's emptyDirs that are on disk.
fn volumes(pod: &Pod, paths: &Paths) -> Vec<(String, PathBuf)> {
    let all = pod.raw_spec()["volumes"].as_array().into_iter().flatten();
    let on_disk = all.filter(|volume| {
        volume["emptyDir"].is_object() && volume["emptyDir"]["medium"] != "Memory"
    });
    let named = on_disk.filter_map(|volume| volume["name"].as_str());
    let path = |name: &str| paths.volume(&pod.id.uid, EMPTY_DIR, name);
    named.map(|name| (name.to_owned(), path(name))).collect()
}

/// Rotated logs are named like `<container>/0.log.20260102-030405`.
fn remove_rotated_logs(dir: &Path) {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    for file in entries(dir).flat_map(|container| entries(&container.path())) {
        let name = file.file_name();
        if name.to_string_lossy().contains(".log.")
            && let Err(error) = fs::remove_file(file.path())
        {
            tracing::warn!(
                "cannot remove the rotated log {}: {error}",
                file.path().display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use kennel_core::pod::{Exit, Observed, Run, State};
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::pods::Origin;

    #[test]
    fn only_replaced_runs_are_old() {
        let run = |name: &str, attempt, exited: bool| Run {
            name: name.to_owned(),
            id: format!("{name}{attempt}"),
            attempt,
            sandbox: String::new(),
            image: String::new(),
            image_id: String::new(),
            state: if exited {
                State::Exited(Exit::default())
            } else {
                State::Running {
                    started_at: kennel_types::Timestamp::EPOCH,
                }
            },
        };
        let runs = vec![
            run("a", 0, true),
            run("a", 1, true),
            run("a", 2, false),
            run("init", 0, true),
        ];
        let found = Found {
            pod: PodId::default(),
            observed: Observed {
                runs,
                ..Observed::default()
            },
            stale: Vec::new(),
        };
        assert_eq!(old_runs(&found), ["a0", "a1"]);
    }

    #[test]
    fn the_disk_usage_of_a_pod_is_measured() {
        let dir = TempDir::new().unwrap();
        let paths = Paths {
            data: dir.path().join("data"),
            logs: dir.path().join("logs"),
        };
        let object = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u"}, "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}],
            "containers": [{"name": "c"}]}});
        let pod = Pod::parse(object, Origin::Api).unwrap();
        let volume = paths.volume("u", EMPTY_DIR, "v");
        let logs = paths.pod_logs(&pod.id).join("c");
        for (dir, name) in [
            (&volume, "x"),
            (&logs, "0.log"),
            (&logs, "0.log.20260101-000000"),
        ] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join(name), vec![1; 1 << 20]).unwrap();
        }
        let usage = [Usage {
            pod: "u".to_owned(),
            container: "c".to_owned(),
            memory: 5,
            disk: Some(7),
            ..Usage::default()
        }];
        let found = used(&pod, &usage, Some(&paths)).unwrap();
        assert!(found.volumes["v"] >= 1 << 20 && found.volumes.len() == 1);
        let container = &found.containers[0];
        assert_eq!((container.memory, container.layer), (5, 7));
        assert!(container.logs >= 2 << 20);

        remove_rotated_logs(&paths.pod_logs(&pod.id));
        let found = used(&pod, &usage, Some(&paths)).unwrap();
        assert!(found.containers[0].logs < 2 << 20 && logs.join("0.log").exists());
        assert!(used(&pod, &[], None).is_none());
    }
}
