//! The record of what an agent uses outside of its data directory. The agent writes it before it creates pods.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::if_found;

/// In the agent's data directory.
pub(super) const RESOURCES_FILE: &str = "resources.json";

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// Sockets of container runtimes.
    pub cri_sockets: BTreeSet<PathBuf>,
    /// Directories of container logs.
    pub log_dirs: BTreeSet<PathBuf>,
    /// Directories of CNI configurations, if it has made a pod network.
    pub pod_network: Option<BTreeSet<PathBuf>>,
    /// Whether the agent routed services.
    pub proxy: bool,
}

impl Resources {
    /// The record in a data directory, if there is one.
    pub fn read(data: &Path) -> io::Result<Option<Self>> {
        let Some(text) = if_found(std::fs::read(data.join(RESOURCES_FILE)))? else {
            return Ok(None);
        };
        let parsed = serde_json::from_slice(&text);
        parsed
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Adds to the record. What earlier agents recorded stays, because their pods may still run.
    pub fn add(data: &Path, socket: Option<&Path>, logs: &Path) -> io::Result<()> {
        Self::update(data, |resources| {
            resources.cri_sockets.extend(socket.map(Path::to_owned));
            resources.log_dirs.insert(logs.to_owned());
        })
    }

    /// Records that the agent makes a pod network, and where the configuration of that goes.
    pub fn add_pod_network(data: &Path, configurations: Option<&Path>) -> io::Result<()> {
        Self::update(data, |resources| {
            let all = resources.pod_network.get_or_insert_default();
            all.extend(configurations.map(Path::to_owned));
        })
    }

    /// Records that the agent routes services.
    pub fn add_proxy(data: &Path) -> io::Result<()> {
        Self::update(data, |resources| resources.proxy = true)
    }

    fn update(data: &Path, change: impl FnOnce(&mut Self)) -> io::Result<()> {
        let recorded = match Self::read(data) {
            // A damaged record is replaced.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            read => read?,
        };
        let mut resources = recorded.clone().unwrap_or_default();
        change(&mut resources);
        if recorded.as_ref() == Some(&resources) {
            return Ok(());
        }
        let file = data.join(RESOURCES_FILE);
        let new = file.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(&resources)?)?;
        std::fs::rename(&new, &file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_accumulate_and_damaged_ones_are_replaced() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(Resources::read(data.path()).unwrap(), None);
        let socket = Path::new("/run/containerd/containerd.sock");
        Resources::add(data.path(), None, Path::new("/var/log")).unwrap();
        Resources::add(data.path(), Some(socket), Path::new("/logs")).unwrap();
        Resources::add_pod_network(data.path(), Some(Path::new("/etc/cni/net.d"))).unwrap();
        Resources::add_pod_network(data.path(), None).unwrap();
        let expected = Resources {
            cri_sockets: BTreeSet::from([socket.to_owned()]),
            log_dirs: BTreeSet::from(["/var/log".into(), "/logs".into()]),
            pod_network: Some(BTreeSet::from(["/etc/cni/net.d".into()])),
            proxy: false,
        };
        assert_eq!(Resources::read(data.path()).unwrap(), Some(expected));
        std::fs::write(data.path().join(RESOURCES_FILE), "{").unwrap();
        assert!(Resources::read(data.path()).is_err());
        Resources::add(data.path(), None, Path::new("/logs")).unwrap();
        let read = Resources::read(data.path()).unwrap().unwrap();
        assert_eq!(read.log_dirs, BTreeSet::from(["/logs".into()]));
    }
}
