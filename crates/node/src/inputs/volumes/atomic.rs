//! Replaces all files of a volume at once.
//!
//! ```text
//!   volume/config.yaml ─▶ ..data/config.yaml
//!   volume/..data      ─▶ ..2026_01_02T03_04_05Z.4711      swapped by one rename
//!   volume/..2026_01_02T03_04_05Z.4711/config.yaml
//! ```
//!
//! Readers see all old files or all new ones. A crash at any point leaves one of the two, and directories that the
//! next write removes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{
    MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, symlink,
};
use std::path::{Component, Path, PathBuf};

use super::ownership::{self, Access};
use crate::files::{create_public_dir, if_found};

const DATA: &str = "..data";
const DATA_TMP: &str = "..data_tmp";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::inputs) struct File {
    pub(in crate::inputs) content: Vec<u8>,
    pub(in crate::inputs) mode: u32,
    /// Ours if none.
    pub(in crate::inputs) owner: Option<u32>,
}

/// All files of a volume, by path.
pub(in crate::inputs) type Files = BTreeMap<PathBuf, File>;

pub(super) fn write(dir: &Path, files: &Files, group: Option<u32>) -> io::Result<()> {
    for path in files.keys() {
        check_path(path)?;
    }
    if !is_current(dir, files, group) {
        swap(dir, files, group)?;
    }
    link(dir, files)?;
    remove_old(dir)?;
    match group {
        Some(group) => ownership::set_group(dir, group, Access::Read),
        None => Ok(()),
    }
}

/// A path must stay within the volume, and must not have the prefix of our own files.
fn check_path(path: &Path) -> io::Result<()> {
    let normal = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let ours = path.to_string_lossy().starts_with("..");
    if normal && !ours && path.components().next().is_some() {
        return Ok(());
    }
    let why = format!("invalid path: {}", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Whether the volume has exactly these files already.
fn is_current(dir: &Path, files: &Files, group: Option<u32>) -> bool {
    let data = dir.join(DATA);
    let mut found = BTreeSet::new();
    let same = |(path, file): (&PathBuf, &File)| {
        let at = data.join(path);
        let mode = fs::symlink_metadata(&at).map(|found| found.mode() & 0o7777);
        let expected = group.map_or(file.mode, |_| Access::Read.apply(file.mode, false));
        mode.is_ok_and(|mode| mode == expected)
            && fs::read(&at).is_ok_and(|now| now == file.content)
    };
    data.is_dir()
        && files.iter().all(same)
        && list_files(&data, Path::new(""), &mut found).is_ok()
        && found.iter().all(|path| files.contains_key(path))
}

fn list_files(root: &Path, at: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(at))? {
        let entry = entry?;
        let path = at.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list_files(root, &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

fn swap(dir: &Path, files: &Files, group: Option<u32>) -> io::Result<()> {
    let stamp = kennel_client::clock::now_rfc3339().replace(['-', ':'], "_");
    let name = format!("..{stamp}.{}", fastrand::u32(..));
    let fresh = dir.join(&name);
    create_public_dir(&fresh)?;
    for (path, file) in files {
        let at = fresh.join(path);
        if let Some(parent) = at.parent() {
            create_public_dir(parent)?;
        }
        write_file(&at, file)?;
    }
    if let Some(group) = group {
        ownership::set_group_recursively(&fresh, group, Access::Read)?;
    }
    let tmp = dir.join(DATA_TMP);
    if_found(fs::remove_file(&tmp))?;
    symlink(&name, &tmp)?;
    fs::rename(tmp, dir.join(DATA))
}

fn write_file(path: &Path, file: &File) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    // No other user can read it before its mode is set.
    let mut open = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    open.write_all(&file.content)?;
    if file.owner.is_some() {
        chown(path, file.owner, None)?;
    }
    open.set_permissions(fs::Permissions::from_mode(file.mode))
}

/// Links the first component of each path to the current files, and removes other links.
fn link(dir: &Path, files: &Files) -> io::Result<()> {
    let names: BTreeSet<&Path> = files
        .keys()
        .filter_map(|path| Some(Path::new(path.components().next()?.as_os_str())))
        .collect();
    for name in &names {
        match symlink(Path::new(DATA).join(name), dir.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let stale = !names.contains(Path::new(&name)) && entry.file_type()?.is_symlink();
        if stale && !name.to_string_lossy().starts_with("..") {
            if_found(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

/// Removes the directories of earlier writes, and of one that a crash has interrupted.
fn remove_old(dir: &Path) -> io::Result<()> {
    let current = fs::read_link(dir.join(DATA))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.to_string_lossy().starts_with("..") && entry.file_type()?.is_dir();
        if ours && Path::new(&name) != current {
            if_found(fs::remove_dir_all(entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
