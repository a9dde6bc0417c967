//! Volumes: what containers see of the machine, of other objects and of each other.
//!
//! ```text
//!   spec.volumes ─▶ gather (asks the API) ─▶ Work ─▶ disk, below the pod's directory
//!   volumeMounts ─▶ mounts ─▶ runtime::Mount
//! ```
//!
//! Files of objects are swapped as a whole ([`atomic`]); nothing is ever deleted through a mount ([`remove`]).

mod atomic;
mod gather;
mod host_path;
mod mounted;
mod mounts;
mod ownership;
mod remove;
mod subpath;

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(super) use self::atomic::{File, Payload};
pub(super) use self::gather::Gatherer;
pub(super) use self::mounts::{Mounts, in_order};
pub(super) use self::remove::remove;
use super::tree::text;
use crate::agent::Paths;

/// The directory of empty directories among a pod's volumes.
pub const EMPTY_DIR: &str = "kubernetes.io~empty-dir";

/// What a volume is made of.
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
    /// Of a volume of a spec, with what it says. Others are refused.
    pub(super) fn of(volume: &Value) -> Result<(Self, &Value), String> {
        const SERVED: [(&str, Kind); 6] = [
            ("hostPath", Kind::HostPath),
            ("emptyDir", Kind::EmptyDir),
            ("configMap", Kind::ConfigMap),
            ("secret", Kind::Secret),
            ("downwardAPI", Kind::DownwardApi),
            ("projected", Kind::Projected),
        ];
        let served = SERVED.iter().find(|(key, _)| volume[key].is_object());
        if let Some((key, kind)) = served {
            return Ok((*kind, &volume[key]));
        }
        let keys = volume.as_object().into_iter().flatten();
        let mut keys = keys.filter(|(key, value)| *key != "name" && !value.is_null());
        match keys.next() {
            // A volume that says nothing is an empty directory.
            None => Ok((Self::EmptyDir, &Value::Null)),
            Some((key, _)) => Err(format!(
                "volumes of kind {key} are not served by this node; those of hostPath, emptyDir, configMap, \
                 secret, downwardAPI and projected are"
            )),
        }
    }

    /// Does it show something that changes while the pod runs?
    pub(super) fn changes(self) -> bool {
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

/// Where a volume is on the machine.
pub(super) fn place(paths: &Paths, uid: &str, volume: &Value) -> Result<PathBuf, String> {
    let (kind, source) = Kind::of(volume)?;
    Ok(match kind {
        Kind::HostPath => PathBuf::from(text(source, "path")),
        kind => paths.volume(uid, kind.directory(), text(volume, "name")),
    })
}

/// A volume that is ready to be written to disk. Doing so again changes nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Something of the machine is looked at.
    Host {
        path: PathBuf,
        kind: String,
        /// Nobody else makes a directory that is missing.
        make: bool,
    },
    /// A directory for the containers.
    Empty {
        dir: PathBuf,
        medium: Medium,
        group: Option<u32>,
    },
    /// Files that we write.
    Files {
        dir: PathBuf,
        payload: Payload,
        /// They are not to reach a disk.
        secret: bool,
        group: Option<u32>,
    },
}

/// What an empty directory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Disk,
    /// Of at most so many bytes; 0 for no bound.
    Memory(u64),
}

impl Work {
    /// Does it.
    pub(super) fn carry_out(&self) -> Result<(), String> {
        match self {
            Self::Host { path, kind, make } => host_path::check(path, kind, *make),
            Self::Empty { dir, medium, group } => {
                let made = empty(dir, *medium, *group);
                made.map_err(|error| match error.kind() {
                    io::ErrorKind::PermissionDenied if *medium != Medium::Disk => {
                        "emptyDir with medium Memory needs an agent that runs as root".to_owned()
                    }
                    _ => error.to_string(),
                })
            }
            Self::Files {
                dir,
                payload,
                secret,
                group,
            } => files(dir, payload, *secret, *group).map_err(|error| error.to_string()),
        }
    }
}

fn empty(dir: &Path, medium: Medium, group: Option<u32>) -> io::Result<()> {
    let mut fresh = !dir.exists();
    make(dir)?;
    if let Medium::Memory(size) = medium {
        fresh |= mounted::tmpfs(dir, size)?;
    }
    // Modes and owners are settled once: later its files are the containers' own.
    if fresh {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777))?;
    }
    match group {
        Some(group) if !ownership::is(dir, group)? => {
            ownership::give(dir, group, ownership::Access::Write)
        }
        _ => Ok(()),
    }
}

fn files(dir: &Path, payload: &Payload, secret: bool, group: Option<u32>) -> io::Result<()> {
    make(dir)?;
    if secret {
        match mounted::tmpfs(dir, 0) {
            // Who may not mount has nothing but the disk.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            mounted => drop(mounted?),
        }
    }
    if group.is_none() {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
    }
    atomic::write(dir, payload, group)
}

/// A directory that others than its owner do not list; volumes in it have modes of their own.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o750).create(dir)
}
