//! Volumes of pods.
//!
//! ```text
//!   spec.volumes ─▶ setup (reads the API) ─▶ VolumeSetup ─▶ disk, below the pod's directory
//!   volumeMounts ─▶ mounts ─▶ runtime::Mount
//! ```
//!
//! All files of an object are replaced at once ([`atomic`]). Nothing is deleted through a mount ([`mod@remove`]).

mod atomic;
mod host_path;
mod mount_points;
mod mounts;
mod ownership;
mod remove;
mod setup;
mod subpath;

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(super) use self::atomic::{File, Files};
pub(super) use self::mounts::{MountError, Mounts, sort_mounts};
pub(super) use self::remove::remove;
pub(super) use self::setup::VolumeSources;
use super::env::field::FieldError;
use super::env::resource::ResourceError;
use super::objects::ObjectError;
use super::tokens::TokenError;
use super::write_lock::WriteLockError;
use crate::agent::Paths;
use crate::json::text;

/// The directory of emptyDirs in a pod's volumes.
pub const EMPTY_DIR: &str = "kubernetes.io~empty-dir";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    HostPath,
    EmptyDir,
    ConfigMap,
    Secret,
    DownwardApi,
    Projected,
}

impl Kind {
    /// The kind of a volume, and its source.
    pub(super) fn of(volume: &Value) -> Result<(Self, &Value), VolumeError> {
        const SUPPORTED: [(&str, Kind); 6] = [
            ("hostPath", Kind::HostPath),
            ("emptyDir", Kind::EmptyDir),
            ("configMap", Kind::ConfigMap),
            ("secret", Kind::Secret),
            ("downwardAPI", Kind::DownwardApi),
            ("projected", Kind::Projected),
        ];
        let supported = SUPPORTED.iter();
        let mut supported = supported.filter(|(key, _)| volume[key].is_object());
        if let Some((key, kind)) = supported.next() {
            return Ok((*kind, &volume[key]));
        }
        let keys = volume.as_object().into_iter().flatten();
        let mut keys = keys.filter(|(key, value)| *key != "name" && !value.is_null());
        match keys.next() {
            // A volume without a source is an emptyDir.
            None => Ok((Self::EmptyDir, &Value::Null)),
            Some((key, _)) => Err(VolumeError::Kind(key.clone())),
        }
    }

    /// Whether we write its files, and update them while the pod runs.
    pub(super) fn is_updated(self) -> bool {
        !matches!(self, Self::HostPath | Self::EmptyDir)
    }

    fn directory(self) -> &'static str {
        match self {
            Self::HostPath => "kubernetes.io~host-path",
            Self::EmptyDir => EMPTY_DIR,
            Self::ConfigMap => "kubernetes.io~configmap",
            Self::Secret => "kubernetes.io~secret",
            Self::DownwardApi => "kubernetes.io~downward-api",
            Self::Projected => "kubernetes.io~projected",
        }
    }
}

/// The path of a volume on this machine.
pub(super) fn path(paths: &Paths, uid: &str, volume: &Value) -> Result<PathBuf, VolumeError> {
    let (kind, source) = Kind::of(volume)?;
    Ok(match kind {
        Kind::HostPath => PathBuf::from(text(source, "path")),
        kind => paths.volume(uid, kind.directory(), text(volume, "name")),
    })
}

/// Why a volume cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum VolumeError {
    #[error(
        "volumes of kind {0} are not served by this node; those of hostPath, emptyDir, configMap, secret, downwardAPI \
         and projected are"
    )]
    Kind(String),
    #[error(
        "{0} in projected volumes is not served by this node; configMap, secret, downwardAPI and serviceAccountToken \
         are"
    )]
    ProjectedSource(String),
    #[error("emptyDir with medium {0} is not served by this node; use Memory or none")]
    Medium(String),
    #[error("emptyDir with medium Memory needs an agent that runs as root")]
    MemoryNeedsRoot,
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("configmap references non-existent config key: {0}")]
    ConfigMapKey(String),
    #[error("references non-existent secret key: {0}")]
    SecretKey(String),
    #[error("couldn't find container {0} in the pod")]
    Container(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("hostPath type check failed: {} is {expected}", path.display())]
    HostPath {
        path: PathBuf,
        expected: &'static str,
    },
    #[error("{0} is an invalid volume type")]
    HostPathType(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Lock(#[from] WriteLockError),
}

/// What to write to disk for a volume. Idempotent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VolumeSetup {
    HostPath {
        path: PathBuf,
        /// The volume's `type`.
        kind: String,
        /// Create a missing directory, since the runtime does not.
        create: bool,
    },
    EmptyDir {
        dir: PathBuf,
        medium: Medium,
        group: Option<u32>,
    },
    /// Files that we write.
    Files {
        dir: PathBuf,
        files: Files,
        /// Keep them in memory if possible.
        secret: bool,
        group: Option<u32>,
    },
}

/// The medium of an emptyDir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Disk,
    /// With this size limit in bytes; 0 for none.
    Memory(u64),
}

impl VolumeSetup {
    pub(super) fn execute(&self) -> Result<(), VolumeError> {
        match self {
            Self::HostPath { path, kind, create } => host_path::check(path, kind, *create),
            Self::EmptyDir { dir, medium, group } => {
                let created = empty_dir(dir, *medium, *group);
                created.map_err(|error| match error.kind() {
                    io::ErrorKind::PermissionDenied if *medium != Medium::Disk => {
                        VolumeError::MemoryNeedsRoot
                    }
                    _ => error.into(),
                })
            }
            Self::Files {
                dir,
                files,
                secret,
                group,
            } => Ok(write_files(dir, files, *secret, *group)?),
        }
    }
}

fn empty_dir(dir: &Path, medium: Medium, group: Option<u32>) -> io::Result<()> {
    let mut fresh = !dir.exists();
    create_dir(dir)?;
    if let Medium::Memory(size) = medium {
        fresh |= mount_points::mount_tmpfs(dir, size)?;
    }
    // Set the mode once: containers may change it later.
    if fresh {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777))?;
    }
    match group {
        Some(group) if !ownership::has_group(dir, group)? => {
            ownership::set_group_recursively(dir, group, ownership::Access::Write)
        }
        _ => Ok(()),
    }
}

fn write_files(dir: &Path, files: &Files, secret: bool, group: Option<u32>) -> io::Result<()> {
    create_dir(dir)?;
    if secret {
        match mount_points::mount_tmpfs(dir, 0) {
            // An agent that must not mount uses the disk.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            mounted => drop(mounted?),
        }
    }
    if group.is_none() {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
    }
    atomic::write(dir, files, group)
}

/// Creates a directory that only its owner and group can list; volumes in it have modes of their own.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o750).create(dir)
}
