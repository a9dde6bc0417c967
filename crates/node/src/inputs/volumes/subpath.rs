//! Bind mounts of a `subPath` of a volume.
//!
//! Containers may write to the volume and create links that lead out of it at any time. So we open the sub path with
//! `RESOLVE_BENEATH` and mount the open file, not whatever is at its path later.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::mount_bind;

use super::mount_points;

/// Bind-mounts a sub path, which is created if it is missing, to `target`. Returns the path to mount in the container.
pub(super) fn bind(volume: &Path, sub_path: &Path, target: &Path) -> io::Result<PathBuf> {
    let open = open(volume, sub_path)?;
    let source = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    prepare(target, FileType::from_raw_mode(fstat(&open)?.st_mode))?;
    match mount_bind(&source, target) {
        Ok(()) => Ok(target.to_owned()),
        // An agent that must not mount runs all containers as its own user, so none can escape to other users' files.
        Err(Errno::PERM | Errno::ACCESS) => fs::read_link(source),
        Err(error) => Err(error.into()),
    }
}

/// Creates an empty file or directory to mount on.
fn prepare(target: &Path, kind: FileType) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        super::create_dir(parent)?;
    }
    if fs::symlink_metadata(target).is_ok() {
        while mount_points::is_mount_point(target)? {
            mount_points::unmount_point(target)?;
        }
        if fs::symlink_metadata(target)?.is_dir() {
            fs::remove_dir(target)?;
        } else {
            fs::remove_file(target)?;
        }
    }
    match kind {
        FileType::Directory => fs::create_dir(target),
        _ => fs::File::create_new(target).map(drop),
    }
}

/// Opens a sub path of a volume, and creates missing directories. Follows links within the volume; fails at links that
/// lead out of it.
fn open(volume: &Path, sub_path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, volume, flags, Mode::empty())?;
    let beneath = |path: &Path| {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&root, path, flags, Mode::empty(), resolve)
    };
    let (mut so_far, mut parent) = (PathBuf::new(), openat(&root, ".", flags, Mode::empty())?);
    for component in sub_path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(io::Error::other("it must stay within the volume")),
        };
        so_far.push(name);
        let opened = match beneath(&so_far) {
            Err(Errno::NOENT) => {
                create_dir(volume, &parent, name)?;
                beneath(&so_far)
            }
            opened => opened,
        };
        parent = opened.map_err(|error| match error {
            Errno::XDEV => io::Error::other("it leads out of the volume"),
            error => error.into(),
        })?;
    }
    Ok(parent)
}

/// Creates a directory with the volume's mode.
fn create_dir(volume: &Path, parent: &OwnedFd, name: &std::ffi::OsStr) -> io::Result<()> {
    match mkdirat(parent, name, Mode::RWXU) {
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    let mode = fs::metadata(volume)?.mode() & 0o7777;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let made = fs::File::from(openat(parent, name, flags, Mode::empty())?);
    made.set_permissions(fs::Permissions::from_mode(mode))
}
