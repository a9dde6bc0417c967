//! `fsGroup`: files that belong to a group which all containers of a pod are in.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

/// What the group may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Access {
    /// What a mode becomes.
    pub(super) fn on(self, mode: u32, is_dir: bool) -> u32 {
        let mode = mode
            | match self {
                Self::Read => 0o440,
                Self::Write => 0o660,
            };
        // What is made in a directory of the group is the group's, too.
        if is_dir { mode | 0o2110 } else { mode }
    }
}

/// Does it belong to the group?
pub(super) fn is(path: &Path, group: u32) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.gid() == group)
}

/// Gives a directory, and all in it, to a group.
pub(super) fn give(path: &Path, group: u32, access: Access) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), group, access)?;
        }
    }
    give_one(path, group, access)
}

/// Gives one thing to a group. Links have no mode.
pub(super) fn give_one(path: &Path, group: u32, access: Access) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    lchown(path, None, Some(group))?;
    if found.is_symlink() {
        return Ok(());
    }
    // After the owner, since a change of owner takes the bit that hands the group down.
    let mode = access.on(found.mode() & 0o7777, found.is_dir());
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
