//! Files of a volume that change all at once.
//!
//! ```text
//!   volume/config.yaml ─▶ ..data/config.yaml
//!   volume/..data      ─▶ ..2026_01_02T03_04_05Z.4711      swapped by one rename
//!   volume/..2026_01_02T03_04_05Z.4711/config.yaml
//! ```
//!
//! Readers see all old files or all new ones. A crash at any point leaves one of the two and litter that the next
//! write clears away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, symlink,
};
use std::path::{Component, Path, PathBuf};

use super::ownership::{self, Access};

const DATA: &str = "..data";
const DATA_TMP: &str = "..data_tmp";

/// A file to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::inputs) struct File {
    pub(in crate::inputs) content: Vec<u8>,
    pub(in crate::inputs) mode: u32,
    /// Whose it is, if not ours.
    pub(in crate::inputs) owner: Option<u32>,
}

/// All files of a volume, by their paths in it.
pub(in crate::inputs) type Payload = BTreeMap<PathBuf, File>;

/// Makes a volume show exactly these files.
pub(super) fn write(dir: &Path, payload: &Payload, group: Option<u32>) -> io::Result<()> {
    for path in payload.keys() {
        judge(path)?;
    }
    if !is_current(dir, payload, group) {
        swap(dir, payload, group)?;
    }
    link(dir, payload)?;
    clear(dir)?;
    match group {
        Some(group) => ownership::give_one(dir, group, Access::Read),
        None => Ok(()),
    }
}

/// A path must stay within the volume, and may not look like our own.
fn judge(path: &Path) -> io::Result<()> {
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let ours = path.to_string_lossy().starts_with("..");
    if plain && !ours && path.components().next().is_some() {
        return Ok(());
    }
    let why = format!("invalid path: {}", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Does the volume show these files already?
fn is_current(dir: &Path, payload: &Payload, group: Option<u32>) -> bool {
    let data = dir.join(DATA);
    let mut found = BTreeSet::new();
    let same = |(path, file): (&PathBuf, &File)| {
        let at = data.join(path);
        let mode = fs::symlink_metadata(&at).map(|found| found.mode() & 0o7777);
        let wanted = group.map_or(file.mode, |_| Access::Read.on(file.mode, false));
        mode.is_ok_and(|mode| mode == wanted) && fs::read(&at).is_ok_and(|now| now == file.content)
    };
    data.is_dir()
        && payload.iter().all(same)
        && files(&data, Path::new(""), &mut found).is_ok()
        && found.iter().all(|path| payload.contains_key(path))
}

fn files(root: &Path, at: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(at))? {
        let entry = entry?;
        let path = at.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files(root, &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

fn swap(dir: &Path, payload: &Payload, group: Option<u32>) -> io::Result<()> {
    let stamp = kennel_client::clock::now_rfc3339().replace(['-', ':'], "_");
    let name = format!("..{stamp}.{}", fastrand::u32(..));
    let fresh = dir.join(&name);
    directory(&fresh)?;
    for (path, file) in payload {
        let at = fresh.join(path);
        if let Some(parent) = at.parent() {
            directory(parent)?;
        }
        write_file(&at, file)?;
    }
    if let Some(group) = group {
        ownership::give(&fresh, group, Access::Read)?;
    }
    let tmp = dir.join(DATA_TMP);
    forget(fs::remove_file(&tmp))?;
    symlink(&name, &tmp)?;
    fs::rename(tmp, dir.join(DATA))
}

fn directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o755).create(path)
}

fn write_file(path: &Path, file: &File) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    // Nobody else reads it before its mode is set.
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

/// The names that readers see: one link for the first part of each path.
fn link(dir: &Path, payload: &Payload) -> io::Result<()> {
    let wanted: BTreeSet<&Path> = payload
        .keys()
        .filter_map(|path| Some(Path::new(path.components().next()?.as_os_str())))
        .collect();
    for name in &wanted {
        match symlink(Path::new(DATA).join(name), dir.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let stale = !wanted.contains(Path::new(&name)) && entry.file_type()?.is_symlink();
        if stale && !name.to_string_lossy().starts_with("..") {
            forget(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

/// Takes away what is no longer shown, from this write or one that a crash has cut short.
fn clear(dir: &Path) -> io::Result<()> {
    let current = fs::read_link(dir.join(DATA))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.to_string_lossy().starts_with("..") && entry.file_type()?.is_dir();
        if ours && Path::new(&name) != current {
            forget(fs::remove_dir_all(entry.path()))?;
        }
    }
    Ok(())
}

/// Fine if it is gone already.
fn forget(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
