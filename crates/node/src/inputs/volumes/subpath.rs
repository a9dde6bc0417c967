//! A part of a volume that a container sees alone.
//!
//! Containers may write to the volume and make links that lead out of it, at any time. So the part is opened
//! beneath the volume by the kernel itself, and what was opened is mounted, not what is found at its path later.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::mount_bind;

use super::mounted;

/// What to mount for a part of a volume; it is made, if it is missing. It is held at `hold`, where we may mount.
pub(super) fn hold(volume: &Path, part: &Path, hold: &Path) -> io::Result<PathBuf> {
    let open = open(volume, part)?;
    let source = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    prepare(hold, FileType::from_raw_mode(fstat(&open)?.st_mode))?;
    match mount_bind(&source, hold) {
        Ok(()) => Ok(hold.to_owned()),
        // Who may not mount, runs nothing that could move things under somebody else's feet.
        Err(Errno::PERM | Errno::ACCESS) => fs::read_link(source),
        Err(error) => Err(error.into()),
    }
}

/// A thing of the same kind to mount on, with nothing mounted there.
fn prepare(hold: &Path, kind: FileType) -> io::Result<()> {
    if let Some(parent) = hold.parent() {
        super::make(parent)?;
    }
    if fs::symlink_metadata(hold).is_ok() {
        while mounted::is_point(hold)? {
            mounted::take_away(hold)?;
        }
        if fs::symlink_metadata(hold)?.is_dir() {
            fs::remove_dir(hold)?;
        } else {
            fs::remove_file(hold)?;
        }
    }
    match kind {
        FileType::Directory => fs::create_dir(hold),
        _ => fs::File::create_new(hold).map(drop),
    }
}

/// Opens a part of a volume. Links within the volume are followed, those that lead out are refused.
fn open(volume: &Path, part: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, volume, flags, Mode::empty())?;
    let beneath = |path: &Path| {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&root, path, flags, Mode::empty(), resolve)
    };
    let (mut so_far, mut parent) = (PathBuf::new(), openat(&root, ".", flags, Mode::empty())?);
    for component in part.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(io::Error::other("it must stay within the volume")),
        };
        so_far.push(name);
        let opened = match beneath(&so_far) {
            Err(Errno::NOENT) => {
                make(volume, &parent, name)?;
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

/// Makes a directory with the volume's own mode.
fn make(volume: &Path, parent: &OwnedFd, name: &std::ffi::OsStr) -> io::Result<()> {
    match mkdirat(parent, name, Mode::RWXU) {
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    let mode = fs::metadata(volume)?.mode() & 0o7777;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let made = fs::File::from(openat(parent, name, flags, Mode::empty())?);
    made.set_permissions(fs::Permissions::from_mode(mode))
}
