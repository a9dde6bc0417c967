//! Stops and removes containers, and cleans up after a killed shim.

use std::time::Duration;

use futures_util::future::try_join_all;
use kennel_shim::cgroup::Cgroups;
use kennel_shim::kill::ContainerProcesses;
use kennel_shim::state::{self, Dir, Exit, Status};
use rustix::process::Signal;
use tokio::time::timeout;

use super::launch::exited;
use super::privileges::Privileges;
use super::spec::Spec;
use super::store::Store;
use super::{blocking, io, signals};
use crate::runtime::{Error, Result};

/// How long a killed container may take to exit. Only processes in uninterruptible sleep take longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// The exit code after SIGKILL.
const KILLED: i32 = 137;

/// Sends the stop signal, and SIGKILL after the grace period.
pub(super) async fn container(dir: Dir, grace: Duration) -> Result<()> {
    let start = match dir.status() {
        Status::Created | Status::Exited(_) => return Ok(()),
        Status::Supervised(start) => start,
        Status::Orphaned(start) => Some(start),
    };
    let send = |signal| {
        let start = start.clone().or_else(|| dir.started());
        start.map_or(Ok(()), |start| start.process.signal(signal))
    };
    if !grace.is_zero() {
        let spec = Spec::read(dir.path()).map_err(io(dir.path()))?;
        send(signals::parse(&spec.stop_signal)?).map_err(Error::failed)?;
        if timeout(grace, exited(&dir)).await.is_ok() {
            return Ok(());
        }
    }
    send(Signal::KILL).map_err(Error::failed)?;
    let alive = |_| {
        Error::TimedOut(format!(
            "container {} was killed and has not exited yet",
            dir.id()
        ))
    };
    timeout(KILL_TIMEOUT, exited(&dir)).await.map_err(alive)
}

/// Kills all containers of a sandbox.
pub(super) async fn sandbox(store: &Store, id: &str) -> Result<()> {
    let Some((dir, _, containers)) = store.sandbox(id) else {
        return Ok(());
    };
    Store::mark_stopped(&dir)?;
    let stops = containers
        .into_iter()
        .map(|dir| container(dir, Duration::ZERO));
    try_join_all(stops).await.map(drop)
}

/// Removes a sandbox and its containers.
pub(super) async fn remove_sandbox(
    store: &std::sync::Arc<Store>,
    privileges: &Privileges,
    id: &str,
) -> Result<()> {
    sandbox(store, id).await?;
    let (id, privileges) = (id.to_owned(), privileges.clone());
    blocking(store, move |store| {
        let Some((dir, record, containers)) = store.sandbox(&id) else {
            return Ok(());
        };
        for container in &containers {
            remove(store, &privileges, container)?;
        }
        if let Some(cgroups) = privileges.cgroups.filter(|_| !record.cgroup.is_empty()) {
            cgroups.group(&record.cgroup).remove_if_empty();
        }
        store.remove(&dir)
    })
    .await
}

/// Removes a container that does not run.
pub(super) fn remove(store: &Store, privileges: &Privileges, dir: &Dir) -> Result<()> {
    if !matches!(dir.status(), Status::Created | Status::Exited(_)) {
        return Err(Error::Failed(format!("container {} is running", dir.id())));
    }
    let group = Spec::read(dir.path()).ok().and_then(|spec| spec.cgroup);
    if let (Some(cgroups), Some(path)) = (&privileges.cgroups, group) {
        cgroups.group(&path).remove();
    }
    store.remove(dir.path())
}

/// Kills a container whose shim was killed, and records its exit. Its own exit code is lost.
pub(super) async fn kill_orphan(dir: Dir) {
    let killed = tokio::task::spawn_blocking(move || {
        let Ok(Some(_lock)) = dir.lock() else {
            return;
        };
        let Status::Orphaned(start) = dir.status() else {
            return;
        };
        let group = Spec::read(dir.path()).ok().and_then(|spec| spec.cgroup);
        let group = group.map(|path| Cgroups::find().group(&path));
        let alive = start.process.is_alive();
        let id = dir.id();
        ContainerProcesses {
            id: &id,
            group: group.as_ref(),
            parent: None,
            process: Some(&start.process),
        }
        .kill_all();
        if let Some(group) = group {
            group.remove();
        }
        let message = if alive {
            "the container was killed because its shim was killed"
        } else {
            "the exit was not observed: the shim was killed, or the machine restarted"
        };
        let exit = Exit {
            since: start.since,
            until: state::now(),
            code: if alive { KILLED } else { 255 },
            reason: "Unknown".to_owned(),
            message: message.to_owned(),
        };
        if let Err(error) = dir.set_exit(&exit) {
            tracing::error!(container = id, %error, "recording the exit of a container failed");
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let _panicked = killed.await;
}
