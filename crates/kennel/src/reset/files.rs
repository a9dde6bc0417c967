//! Deletes the files that Kennel created in a data directory, and no others.

use std::fs;
use std::io;
use std::path::Path;

use kennel_node::cleanup::Failure;
use kennel_node::mountinfo;

/// Deletes these entries of a directory, in this order.
pub(super) fn delete(dir: &Path, entries: &[&str]) -> Vec<Failure> {
    let mut failures = Vec::new();
    for entry in entries {
        let path = dir.join(entry);
        if let Err(error) = delete_entry(&path) {
            failures.push(Failure::new(path.display().to_string(), &error));
        }
    }
    failures
}

/// Succeeds if it does not exist. A directory that is a mount point is emptied.
fn delete_entry(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    let mounted = mountinfo::below(path)?;
    if let Some(point) = mounted.iter().find(|point| *point != path) {
        let why = format!("{} is mounted", point.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    match fs::remove_dir_all(path) {
        Err(_) if mounted.iter().any(|point| point == path) && others(path, &[]).is_empty() => {
            Ok(())
        }
        deleted => deleted,
    }
}

/// The names of all other entries of a directory, sorted.
pub(super) fn others(dir: &Path, entries: &[&str]) -> Vec<String> {
    let all = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut others: Vec<String> = names
        .filter(|name| !entries.contains(&name.as_str()))
        .collect();
    others.sort();
    others
}

/// Deletes a directory if it is empty; it may be a mount point or contain other files.
pub(super) fn delete_if_empty(dir: &Path) {
    let _in_use = fs::remove_dir(dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_entries_are_deleted_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("thesis.txt"), "mine").unwrap();
        fs::create_dir_all(dir.path().join("pki/deep")).unwrap();
        fs::write(dir.path().join("lock"), "").unwrap();
        fs::write(dir.path().join("encryption.key"), "mine").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("pods")).unwrap();
        let ours = ["pki", "missing", "pods", "lock"];
        assert_eq!(others(dir.path(), &ours), ["encryption.key"]);
        assert_eq!(delete(dir.path(), &ours), []);
        delete_if_empty(dir.path());
        assert_eq!(others(dir.path(), &[]), ["encryption.key"]);
        assert!(elsewhere.path().join("thesis.txt").exists());
        fs::remove_file(dir.path().join("encryption.key")).unwrap();
        delete_if_empty(dir.path());
        assert!(!dir.path().exists());
    }
}
