//! The mount namespace of a container: an overlay of the host's root, the host's other mounts in their places, a private
//! `/dev` and `/run` ([`devices`]), then the container's volumes. The kernel removes it with the container's last process.
//!
//! Nothing is mounted or created on the host: missing mount points are created in the overlay (see
//! [`mount_points`](super::mount_points) for those on other mounts).

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;
use rustix::thread::UnshareFlags;

use super::super::spec::Spec;
use super::mount_points::MountPoints;
use super::{InitError, Result, devices, failed};
use crate::mountinfo;
use crate::runtime::{Mount, Propagation, READ_ONLY_PATHS};

/// The host's root in the container's, until all volumes are mounted.
const HOST_ROOT: &str = ".kennel-machine";
/// Masked paths of the OCI default.
const MASKED: [&str; 9] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];

/// Creates and enters the mount namespace. `dir` is the container's directory and the working directory.
pub(super) fn enter(dir: &Path, spec: &Spec) -> Result {
    let terminal = devices::terminal().filter(|_| spec.tty);
    kennel_shim::unshare(UnshareFlags::NEWNS).map_err(failed("mount namespace"))?;
    // Cloned before the propagation changes: mounts below a bidirectional volume must propagate to the host.
    let sources: Vec<(OwnedFd, &Mount)> = spec
        .mounts
        .iter()
        .map(|mount| Ok((clone_tree(&mount.host_path)?, mount)))
        .collect::<Result<_>>()?;
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(failed("mounts"))?;
    let host_mounts = host_mounts(spec)?;
    mount_root_overlay()?;
    for (tree, mount_point) in &host_mounts {
        let relative = mount_point.strip_prefix("/").unwrap_or(mount_point);
        // Fails for mounts that are hidden by others.
        let _hidden = attach(tree, &Path::new("root").join(relative));
    }
    pivot_to_root()?;
    let host_root = Path::new("/").join(HOST_ROOT);
    if spec.private_devices {
        devices::mount_private(&host_root, spec, terminal.as_deref())?;
    }
    if spec.own_processes {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None).map_err(failed("/proc"))?;
    }
    if spec.private_devices {
        make_nodev(&host_root)?;
    }
    if spec.masked {
        mask_paths()?;
    }
    mask(&spec.hidden)?;
    let layers = host_root.join(dir.strip_prefix("/").unwrap_or(dir));
    let mut mount_points = MountPoints::new(&layers);
    if spec.private_devices {
        mount_points.add_private(devices::PRIVATE.map(PathBuf::from));
    }
    mount_volumes(&sources, &mut mount_points, spec.private_devices)?;
    if spec.read_only_root {
        make_read_only_except(&spec.mounts)?;
    }
    unmount_host_root(spec.read_only_root)
}

/// Clones a mount of the host with all below it, to attach it elsewhere.
pub(super) fn clone_tree(path: &Path) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).map_err(failed(&path.display().to_string()))
}

pub(super) fn attach(tree: &OwnedFd, to: &Path) -> rustix::io::Result<()> {
    move_mount(tree, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Clones the mounts directly on the host's root.
fn host_mounts(spec: &Spec) -> Result<Vec<(OwnedFd, PathBuf)>> {
    let entries = mountinfo::read().map_err(failed("mounts"))?;
    let Some(root) = mountinfo::containing(&entries, Path::new("/")) else {
        return Ok(Vec::new());
    };
    let mounts = mountinfo::children(&entries, root).into_iter();
    let mounts = mounts.map(|entry| entry.mount_point);
    let replaced = |point: &PathBuf| {
        let is_private = devices::PRIVATE.iter().any(|dir| point.starts_with(dir));
        (spec.own_processes && point == Path::new("/proc")) || (spec.private_devices && is_private)
    };
    let mounts = mounts.filter(|point| !replaced(point));
    Ok(mounts
        .filter_map(|point| Some((clone_tree(&point).ok()?, point)))
        .collect())
}

/// Mounts an overlay of the host's root, which takes what the container writes.
fn mount_root_overlay() -> Result {
    for dir in ["upper", "work", "root"] {
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
    }
    let layers = c"lowerdir=/,upperdir=upper,workdir=work";
    mount(
        "overlay",
        "root",
        "overlay",
        MountFlags::empty(),
        Some(layers),
    )
    .map_err(InitError::RootOverlay)
}

/// Makes the overlay the root. The host's root stays mounted until the volumes are.
fn pivot_to_root() -> Result {
    let host_root = Path::new("root").join(HOST_ROOT);
    std::fs::create_dir_all(&host_root).map_err(failed("root"))?;
    pivot_root("root", &host_root).map_err(failed("pivot_root"))?;
    std::env::set_current_dir("/").map_err(failed("/"))
}

fn unmount_host_root(read_only: bool) -> Result {
    let host_root = Path::new("/").join(HOST_ROOT);
    unmount(&host_root, UnmountFlags::DETACH).map_err(failed("the machine's root"))?;
    let removed = if read_only {
        Ok(())
    } else {
        std::fs::remove_dir(&host_root)
    };
    removed.map_err(failed("the machine's root"))
}

fn mount_volumes(
    sources: &[(OwnedFd, &Mount)],
    mount_points: &mut MountPoints,
    private_devices: bool,
) -> Result {
    for (tree, volume) in sources {
        let is_dir = rustix::fs::fstat(tree).is_ok_and(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
        });
        let mount_point = mount_points.prepare(&volume.container_path, is_dir)?;
        let name = volume.container_path.display().to_string();
        attach(tree, &mount_point).map_err(failed(&name))?;
        let recursive = MountPropagationFlags::REC;
        let propagation = match volume.propagation {
            Propagation::Private => Some(MountPropagationFlags::PRIVATE),
            Propagation::HostToContainer => Some(MountPropagationFlags::DOWNSTREAM),
            Propagation::Bidirectional => None,
        };
        if let Some(propagation) = propagation {
            mount_change(&mount_point, propagation | recursive).map_err(failed(&name))?;
        }
        if volume.read_only {
            make_read_only(&mount_point).map_err(failed(&name))?;
        }
        // A volume that is a device, or a directory of devices, is there to be used.
        if private_devices && is_dir && !volume.host_path.starts_with("/dev") {
            make_volume_nodev(&mount_point).map_err(failed(&name))?;
        }
    }
    Ok(())
}

/// No device node on a volume works, whoever created it: cgroups of version 2 have no files for device rules.
fn make_volume_nodev(mount_point: &Path) -> rustix::io::Result<()> {
    remount(mount_point, MountFlags::NODEV)?;
    let entries = mountinfo::read().map_err(|_| rustix::io::Errno::IO)?;
    let below = |point: &Path| point.starts_with(mount_point) && point != mount_point;
    for entry in entries.iter().filter(|entry| below(&entry.mount_point)) {
        // Fails for mounts that are hidden by others.
        let _hidden = remount(&entry.mount_point, MountFlags::NODEV);
    }
    Ok(())
}

/// Mounts an empty directory or `/dev/null` over a path.
fn mask(path: &Path) -> Result {
    let masked = if path.is_dir() {
        mount("tmpfs", path, "tmpfs", MountFlags::RDONLY, Some(c"size=4k"))
    } else if path.exists() {
        mount_bind("/dev/null", path)
    } else {
        Ok(())
    };
    masked.map_err(failed(&path.display().to_string()))
}

fn mask_paths() -> Result {
    for path in MASKED {
        mask(Path::new(path))?;
    }
    for path in READ_ONLY_PATHS
        .map(Path::new)
        .into_iter()
        .filter(|path| path.exists())
    {
        let remounted = mount_bind(path, path).and_then(|()| make_read_only(path));
        remounted.map_err(failed(&path.display().to_string()))?;
    }
    for entry in mountinfo::read().map_err(failed("mounts"))? {
        if entry.mount_point.starts_with("/sys") {
            // Fails for mounts that are hidden by others.
            let _hidden = make_read_only(&entry.mount_point);
        }
    }
    Ok(())
}

/// Makes all mounts read-only except the container's volumes and `/proc`, `/dev` and `/sys`.
fn make_read_only_except(volumes: &[Mount]) -> Result {
    let volumes: Vec<PathBuf> = volumes
        .iter()
        .filter_map(|volume| volume.container_path.canonicalize().ok())
        .collect();
    let excepted = |point: &Path| {
        let special = ["/proc", "/dev", "/sys"]
            .iter()
            .any(|special| point.starts_with(special));
        special || volumes.iter().any(|volume| point.starts_with(volume))
    };
    let host_root = Path::new("/").join(HOST_ROOT);
    for entry in mountinfo::read().map_err(failed("mounts"))? {
        if entry.mount_point.starts_with(&host_root) || excepted(&entry.mount_point) {
            continue;
        }
        let remounted = make_read_only(&entry.mount_point);
        if entry.mount_point == Path::new("/") {
            remounted.map_err(failed("readOnlyRootFilesystem"))?;
        }
    }
    Ok(())
}

/// No device node works outside of `/dev`, whoever created it.
fn make_nodev(host_root: &Path) -> Result {
    for entry in mountinfo::read().map_err(failed("mounts"))? {
        let point = &entry.mount_point;
        if point.starts_with(host_root) || point.starts_with("/dev") {
            continue;
        }
        let remounted = remount(point, MountFlags::NODEV);
        // Fails for mounts that are hidden by others.
        if point == Path::new("/") {
            remounted.map_err(failed("nodev"))?;
        }
    }
    Ok(())
}

fn make_read_only(point: &Path) -> rustix::io::Result<()> {
    remount(point, MountFlags::RDONLY)
}

/// Adds a mount flag, and keeps the others.
fn remount(point: &Path, added: MountFlags) -> rustix::io::Result<()> {
    let now = rustix::fs::statvfs(point)?.f_flag;
    let kept = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept
        .iter()
        .filter(|(is, _)| now.contains(*is))
        .map(|(_, flag)| *flag);
    let flags = kept.fold(MountFlags::BIND | added, |all, flag| all | flag);
    mount_remount(point, flags, c"")
}

pub(super) fn create_mount_point(mount_point: &Path, is_dir: bool) -> std::io::Result<()> {
    if is_dir {
        return std::fs::create_dir_all(mount_point);
    }
    if let Some(parent) = mount_point.parent() {
        std::fs::create_dir_all(parent)?;
    }
    File::options()
        .create(true)
        .append(true)
        .open(mount_point)
        .map(drop)
}
