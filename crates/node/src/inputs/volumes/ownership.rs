//! `fsGroup`: sets the group of a volume's files.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Access {
    /// Adds the group's permissions to a mode.
    pub(super) fn apply(self, mode: u32, is_dir: bool) -> u32 {
        let mode = mode
            | match self {
                Self::Read => 0o440,
                Self::Write => 0o660,
            };
        // Setgid: new files in the directory get its group.
        if is_dir { mode | 0o2110 } else { mode }
    }
}

pub(super) fn has_group(path: &Path, group: u32) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.gid() == group)
}

pub(super) fn set_group_recursively(path: &Path, group: u32, access: Access) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            set_group_recursively(&entry?.path(), group, access)?;
        }
    }
    set_group(path, group, access)
}

/// Changes the group and mode of one file. Links have no mode.
pub(super) fn set_group(path: &Path, group: u32, access: Access) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    lchown(path, None, Some(group))?;
    if found.is_symlink() {
        return Ok(());
    }
    // After the group: changing it clears the setgid bit.
    let mode = access.apply(found.mode() & 0o7777, found.is_dir());
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
