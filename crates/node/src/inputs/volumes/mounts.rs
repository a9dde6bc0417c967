//! The mounts of a container, from its `volumeMounts`.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::{Kind, VolumeError, path, subpath};
use crate::agent::Paths;
use crate::inputs::env::{Variables, expand};
use crate::inputs::write_lock::WriteLockError;
use crate::json::{flag, list, text};
use crate::pods::Pod;
use crate::runtime::{Mount, Propagation};

/// Why the mounts of a container cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub(in crate::inputs) enum MountError {
    #[error("volumeDevices are not served by this node; use a hostPath volume")]
    Devices,
    #[error("recursiveReadOnly: Enabled is not served by this node; use IfPossible")]
    RecursiveReadOnly,
    #[error("cannot find volume \"{volume}\" to mount into container \"{container}\"")]
    UnknownVolume { volume: String, container: String },
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error(
        "failed to prepare subPath for volumeMount \"{volume}\" of container \"{container}\": {error}"
    )]
    SubPath {
        volume: String,
        container: String,
        error: io::Error,
    },
    #[error("error SubPath `{0}` must not be an absolute path")]
    AbsoluteSubPath(String),
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    ParentInSubPath(String),
    #[error("missing value for \"{0}\"")]
    Variable(String),
    #[error("cannot write files of the pod: {0}")]
    Files(io::Error),
    #[error(transparent)]
    Lock(#[from] WriteLockError),
}

pub(in crate::inputs) struct Mounts<'a> {
    pub(in crate::inputs) pod: &'a Pod,
    pub(in crate::inputs) paths: &'a Paths,
    pub(in crate::inputs) variables: &'a Variables,
}

impl Mounts<'_> {
    /// Creates and binds sub paths of volumes.
    pub(in crate::inputs) fn of(&self, container: &Value) -> Result<Vec<Mount>, MountError> {
        if !list(container, "volumeDevices").is_empty() {
            return Err(MountError::Devices);
        }
        let mounts = list(container, "volumeMounts").iter().enumerate();
        let mounts = mounts.map(|(index, mount)| self.one(container, index, mount));
        mounts.collect()
    }

    fn one(&self, container: &Value, index: usize, mount: &Value) -> Result<Mount, MountError> {
        let (name, container) = (text(mount, "name"), text(container, "name"));
        let mut volumes = list(self.pod.raw_spec(), "volumes").iter();
        let volume = volumes
            .find(|volume| volume["name"] == name)
            .ok_or_else(|| MountError::UnknownVolume {
                volume: name.to_owned(),
                container: container.to_owned(),
            })?;
        let mut host_path = path(self.paths, &self.pod.id.uid, volume)?;
        if let Some(sub_path) = self.sub_path(mount)? {
            let binds = self.paths.pod(&self.pod.id.uid).join("volume-subpaths");
            let bind = binds.join(name).join(container).join(index.to_string());
            let bound = subpath::bind(&host_path, &sub_path, &bind);
            host_path = bound.map_err(|error| MountError::SubPath {
                volume: name.to_owned(),
                container: container.to_owned(),
                error,
            })?;
        }
        if text(mount, "recursiveReadOnly") == "Enabled" {
            return Err(MountError::RecursiveReadOnly);
        }
        let ours = Kind::of(volume).is_ok_and(|(kind, _)| kind.is_updated());
        Ok(Mount {
            container_path: Path::new("/").join(text(mount, "mountPath")),
            host_path,
            // Containers must not change files that we write.
            read_only: flag(mount, "readOnly") || ours,
            propagation: match text(mount, "mountPropagation") {
                "HostToContainer" => Propagation::HostToContainer,
                "Bidirectional" => Propagation::Bidirectional,
                _ => Propagation::Private,
            },
        })
    }

    fn sub_path(&self, mount: &Value) -> Result<Option<PathBuf>, MountError> {
        let sub_path = match (text(mount, "subPath"), text(mount, "subPathExpr")) {
            ("", "") => return Ok(None),
            ("", expression) => self.expand(expression)?,
            (sub_path, _) => sub_path.to_owned(),
        };
        let path = PathBuf::from(&sub_path);
        if path.is_absolute() {
            return Err(MountError::AbsoluteSubPath(sub_path));
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(MountError::ParentInSubPath(sub_path));
        }
        Ok(Some(path))
    }

    /// All variables of a `subPathExpr` must be set.
    fn expand(&self, expression: &str) -> Result<String, MountError> {
        let missing = std::cell::RefCell::new(None);
        let sub_path = expand(expression, |name| {
            let value = self.variables.all.get(name).cloned();
            if value.is_none() {
                missing.replace(Some(name.to_owned()));
            }
            value
        });
        match missing.into_inner() {
            Some(name) => Err(MountError::Variable(name)),
            None => Ok(sub_path),
        }
    }
}

/// Sorts mounts so that none hides an earlier one.
pub(in crate::inputs) fn sort_mounts(mounts: &mut [Mount]) {
    mounts.sort_by_key(|mount| mount.container_path.components().count());
}
