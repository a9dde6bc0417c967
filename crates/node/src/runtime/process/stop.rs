//! Ends containers and takes them away, and mends what a killed shim left.

use std::time::Duration;

use futures_util::future::try_join_all;
use kennel_shim::cgroup::Cgroups;
use kennel_shim::kill::Belongings;
use kennel_shim::state::{self, Dir, Exit, Life};
use rustix::process::Signal;
use tokio::time::timeout;

use super::launch::ended;
use super::rights::Rights;
use super::spec::Spec;
use super::store::Store;
use super::{blocking, io, signals};
use crate::runtime::{Error, Result};

/// How long a container that was killed may take to be gone. Longer takes only one that waits for a disk.
const DEATH: Duration = Duration::from_secs(30);
/// What a container returns that SIGKILL ended.
const KILLED: i32 = 137;

/// Asks a container to end, and kills it after the grace.
pub(super) async fn container(dir: Dir, grace: Duration) -> Result<()> {
    let start = match dir.life() {
        Life::Created | Life::Ended(_) => return Ok(()),
        Life::Kept(start) => start,
        Life::Lost(start) => Some(start),
    };
    let send = |signal| {
        let start = start.clone().or_else(|| dir.started());
        start.map_or(Ok(()), |start| start.process.signal(signal))
    };
    let failed = |error: rustix::io::Errno| Error::Failed(error.to_string());
    if !grace.is_zero() {
        let spec = Spec::read(dir.path()).map_err(io(dir.path()))?;
        send(signals::parse(&spec.stop_signal)?).map_err(failed)?;
        if timeout(grace, ended(&dir)).await.is_ok() {
            return Ok(());
        }
    }
    send(Signal::KILL).map_err(failed)?;
    let alive = |_| {
        Error::TimedOut(format!(
            "container {} was killed and has not ended yet",
            dir.id()
        ))
    };
    timeout(DEATH, ended(&dir)).await.map_err(alive)
}

/// Ends everything in a sandbox.
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

/// Forgets a sandbox, and what was in it.
pub(super) async fn remove_sandbox(
    store: &std::sync::Arc<Store>,
    rights: &Rights,
    id: &str,
) -> Result<()> {
    sandbox(store, id).await?;
    let (id, rights) = (id.to_owned(), rights.clone());
    blocking(store, move |store| {
        let Some((dir, record, containers)) = store.sandbox(&id) else {
            return Ok(());
        };
        for container in &containers {
            remove(store, &rights, container)?;
        }
        if let Some(cgroups) = rights.cgroups.filter(|_| !record.cgroup.is_empty()) {
            cgroups.group(&record.cgroup).remove_if_empty();
        }
        store.forget(&dir)
    })
    .await
}

/// Forgets a container.
pub(super) fn remove(store: &Store, rights: &Rights, dir: &Dir) -> Result<()> {
    if !matches!(dir.life(), Life::Created | Life::Ended(_)) {
        return Err(Error::Failed(format!("container {} is running", dir.id())));
    }
    let group = Spec::read(dir.path()).ok().and_then(|spec| spec.cgroup);
    if let (Some(cgroups), Some(path)) = (&rights.cgroups, group) {
        cgroups.group(&path).remove();
    }
    store.forget(dir.path())
}

/// Ends what a killed shim left, and records it. Nobody can know any more how it would have ended.
pub(super) async fn mend(dir: Dir) {
    let mended = tokio::task::spawn_blocking(move || {
        let Ok(Some(_place)) = dir.lock() else {
            return;
        };
        let Life::Lost(start) = dir.life() else {
            return;
        };
        let group = Spec::read(dir.path()).ok().and_then(|spec| spec.cgroup);
        let group = group.map(|path| Cgroups::find().group(&path));
        let alive = start.process.is_alive();
        let id = dir.id();
        Belongings {
            id: &id,
            group: group.as_ref(),
            parent: None,
            process: Some(&start.process),
        }
        .end();
        if let Some(group) = group {
            group.remove();
        }
        let message = if alive {
            "its shim was killed, and so it was, too"
        } else {
            "it ended while nobody watched: its shim was killed, or the machine restarted"
        };
        let exit = Exit {
            since: start.since,
            until: state::now(),
            code: if alive { KILLED } else { 255 },
            reason: "Unknown".to_owned(),
            message: message.to_owned(),
        };
        if let Err(error) = dir.set_exit(&exit) {
            tracing::error!(container = id, %error, "the end of a container cannot be recorded");
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let _panicked = mended.await;
}
