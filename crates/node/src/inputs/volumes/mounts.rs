//! What a container mounts: its `volumeMounts`, in the order to mount.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Kind, place, subpath};
use crate::agent::Paths;
use crate::inputs::env::{Variables, expand};
use crate::inputs::tree::{flag, list, text};
use crate::pods::Pod;
use crate::runtime::{Mount, Propagation};

/// See the [module](self).
pub(in crate::inputs) struct Mounts<'a> {
    pub(in crate::inputs) pod: &'a Pod,
    pub(in crate::inputs) paths: &'a Paths,
    pub(in crate::inputs) variables: &'a Variables,
}

impl Mounts<'_> {
    /// Of a container. Parts of volumes are made and held.
    pub(in crate::inputs) fn of(&self, container: &Value) -> Result<Vec<Mount>, String> {
        if !list(container, "volumeDevices").is_empty() {
            return Err("volumeDevices are not served by this node; use a hostPath volume".into());
        }
        let mounts = list(container, "volumeMounts").iter().enumerate();
        let mounts = mounts.map(|(index, mount)| self.one(container, index, mount));
        mounts.collect()
    }

    fn one(&self, container: &Value, index: usize, mount: &Value) -> Result<Mount, String> {
        let (name, of) = (text(mount, "name"), text(container, "name"));
        let mut volumes = list(self.pod.raw_spec(), "volumes").iter();
        let volume = volumes
            .find(|volume| volume["name"] == name)
            .ok_or_else(|| {
                format!("cannot find volume \"{name}\" to mount into container \"{of}\"")
            })?;
        let mut host_path = place(self.paths, &self.pod.id.uid, volume)?;
        if let Some(part) = self.part(mount)? {
            let holds = self.paths.pod(&self.pod.id.uid).join("volume-subpaths");
            let hold = holds.join(name).join(of).join(index.to_string());
            host_path = subpath::hold(&host_path, &part, &hold).map_err(|error| {
                format!(
                    "failed to prepare subPath for volumeMount \"{name}\" of container \"{of}\": {error}"
                )
            })?;
        }
        if text(mount, "recursiveReadOnly") == "Enabled" {
            return Err(
                "recursiveReadOnly: Enabled is not served by this node; use IfPossible".into(),
            );
        }
        let ours = Kind::of(volume).is_ok_and(|(kind, _)| kind.changes());
        Ok(Mount {
            container_path: Path::new("/").join(text(mount, "mountPath")),
            host_path,
            // Files that we write, others do not.
            read_only: flag(mount, "readOnly") || ours,
            propagation: match text(mount, "mountPropagation") {
                "HostToContainer" => Propagation::HostToContainer,
                "Bidirectional" => Propagation::Bidirectional,
                _ => Propagation::Private,
            },
        })
    }

    fn part(&self, mount: &Value) -> Result<Option<PathBuf>, String> {
        let part = match (text(mount, "subPath"), text(mount, "subPathExpr")) {
            ("", "") => return Ok(None),
            ("", expression) => self.expression(expression)?,
            (part, _) => part.to_owned(),
        };
        let path = PathBuf::from(&part);
        if path.is_absolute() {
            return Err(format!(
                "error SubPath `{part}` must not be an absolute path"
            ));
        }
        let out = |component| component == std::path::Component::ParentDir;
        if path.components().any(out) {
            return Err(format!(
                "unable to provision SubPath `{part}`: must not contain '..'"
            ));
        }
        Ok(Some(path))
    }

    /// All variables of an expression must be known.
    fn expression(&self, expression: &str) -> Result<String, String> {
        let missing = std::cell::RefCell::new(None);
        let part = expand(expression, |name| {
            let value = self.variables.all.get(name).cloned();
            if value.is_none() {
                missing.replace(Some(name.to_owned()));
            }
            value
        });
        match missing.into_inner() {
            Some(name) => Err(format!("missing value for \"{name}\"")),
            None => Ok(part),
        }
    }
}

/// Sorts mounts so that none covers one that was made before.
pub(in crate::inputs) fn in_order(mounts: &mut [Mount]) {
    mounts.sort_by_key(|mount| mount.container_path.components().count());
}
