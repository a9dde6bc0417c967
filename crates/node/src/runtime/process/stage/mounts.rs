//! The container's own view of the machine's files, in a mount namespace that goes with its last process:
//! the machine's root under a layer of its own, the machine's other mounts where they are, then the
//! container's volumes.
//!
//! Nothing of this is seen outside, and nothing is made outside: a mount point that is missing is made in
//! the layer (see [`covers`](super::covers) for those on other mounts).

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;

use super::super::spec::{Mount, Shared, Spec};
use super::covers::Covers;
use super::table;

/// Where the machine's own root is while the container's is being made, as the latter sees it.
const MACHINE: &str = ".kennel-machine";
/// What containers do not get to see, as everywhere.
const HIDDEN: [&str; 9] = [
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
/// What they cannot change.
const FIXED: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

type Done<T = ()> = Result<T, String>;

/// Makes it, and enters it. `dir` is the container's directory, and where we are.
pub(super) fn enter(dir: &Path, spec: &Spec) -> Done {
    own_namespace()?;
    // Held while they are still the machine's: what is mounted in one that is shared both ways must be
    // seen by the machine.
    let sources: Vec<(OwnedFd, &Mount)> = spec
        .mounts
        .iter()
        .map(|mount| Ok((hold(&mount.from)?, mount)))
        .collect::<Done<_>>()?;
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(told("mounts"))?;
    let others = others(spec)?;
    make_root()?;
    for (tree, point) in &others {
        // One that cannot be seen any more has no place.
        let _hidden = attach(
            tree,
            &Path::new("root").join(point.strip_prefix("/").unwrap_or(point)),
        );
    }
    turn_to_root()?;
    if spec.own_processes {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None).map_err(told("/proc"))?;
    }
    if spec.masked {
        mask()?;
    }
    hide(&spec.hidden)?;
    let layers = Path::new("/")
        .join(MACHINE)
        .join(dir.strip_prefix("/").unwrap_or(dir));
    volumes(&sources, &layers)?;
    if spec.read_only_root {
        fix_all_but(&spec.mounts)?;
    }
    forget_machine(spec.read_only_root)
}

#[expect(
    deprecated,
    reason = "the safe one; only a table of files must not be unshared, and is not"
)]
fn own_namespace() -> Done {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNS).map_err(told("mount namespace"))
}

/// A mount of the machine, and all below it, to be put elsewhere.
pub(super) fn hold(path: &Path) -> Done<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).map_err(told(&path.display().to_string()))
}

pub(super) fn attach(tree: &OwnedFd, to: &Path) -> rustix::io::Result<()> {
    move_mount(tree, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// The machine's mounts that are on its root.
fn others(spec: &Spec) -> Done<Vec<(OwnedFd, PathBuf)>> {
    let table = table::read().map_err(super::failed("mounts"))?;
    let Some(root) = table::holder(&table, Path::new("/")) else {
        return Ok(Vec::new());
    };
    let others = table::on(&table, root).into_iter().map(|entry| entry.point);
    let others = others.filter(|point| !(spec.own_processes && point == Path::new("/proc")));
    Ok(others
        .filter_map(|point| Some((hold(&point).ok()?, point)))
        .collect())
}

/// The machine's root under a layer that takes what is written.
fn make_root() -> Done {
    for dir in ["upper", "work", "root"] {
        std::fs::create_dir_all(dir).map_err(super::failed(dir))?;
    }
    let layers = c"lowerdir=/,upperdir=upper,workdir=work";
    mount(
        "overlay",
        "root",
        "overlay",
        MountFlags::empty(),
        Some(layers),
    )
    .map_err(|error| {
        format!(
            "overlay of /: {error}; the agent's data directory must be on a disk of the machine's, \
                 not on an overlay"
        )
    })
}

/// Makes it ours. The machine's stays in reach until volumes are mounted.
fn turn_to_root() -> Done {
    let machine = Path::new("root").join(MACHINE);
    std::fs::create_dir_all(&machine).map_err(super::failed("root"))?;
    pivot_root("root", &machine).map_err(told("pivot_root"))?;
    std::env::set_current_dir("/").map_err(super::failed("/"))
}

fn forget_machine(read_only: bool) -> Done {
    let machine = Path::new("/").join(MACHINE);
    unmount(&machine, UnmountFlags::DETACH).map_err(told("the machine's root"))?;
    let removed = if read_only {
        Ok(())
    } else {
        std::fs::remove_dir(&machine)
    };
    removed.map_err(super::failed("the machine's root"))
}

fn volumes(sources: &[(OwnedFd, &Mount)], layers: &Path) -> Done {
    let mut covers = Covers::new(layers);
    for (tree, volume) in sources {
        let is_dir = rustix::fs::fstat(tree).is_ok_and(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
        });
        let place = covers.place(&volume.to, is_dir)?;
        let name = volume.to.display().to_string();
        attach(tree, &place).map_err(told(&name))?;
        let below = MountPropagationFlags::REC;
        let propagation = match volume.shared {
            Shared::Not => Some(MountPropagationFlags::PRIVATE),
            Shared::In => Some(MountPropagationFlags::DOWNSTREAM),
            Shared::Both => None,
        };
        if let Some(propagation) = propagation {
            mount_change(&place, propagation | below).map_err(told(&name))?;
        }
        if volume.read_only {
            fix(&place).map_err(told(&name))?;
        }
    }
    Ok(())
}

/// What is there is seen as empty.
fn hide(path: &Path) -> Done {
    let hidden = if path.is_dir() {
        mount("tmpfs", path, "tmpfs", MountFlags::RDONLY, Some(c"size=4k"))
    } else if path.exists() {
        mount_bind("/dev/null", path)
    } else {
        Ok(())
    };
    hidden.map_err(told(&path.display().to_string()))
}

fn mask() -> Done {
    for path in HIDDEN {
        hide(Path::new(path))?;
    }
    for path in FIXED
        .map(Path::new)
        .into_iter()
        .filter(|path| path.exists())
    {
        let fixed = mount_bind(path, path).and_then(|()| fix(path));
        fixed.map_err(told(&path.display().to_string()))?;
    }
    for entry in table::read().map_err(super::failed("mounts"))? {
        if entry.point.starts_with("/sys") {
            // One under another cannot be reached, and need not be.
            let _hidden = fix(&entry.point);
        }
    }
    Ok(())
}

/// Makes everything unwritable but the container's volumes and what is no file.
fn fix_all_but(volumes: &[Mount]) -> Done {
    let volumes: Vec<PathBuf> = volumes
        .iter()
        .filter_map(|volume| volume.to.canonicalize().ok())
        .collect();
    let spared = |point: &Path| {
        let special = ["/proc", "/dev", "/sys"]
            .iter()
            .any(|special| point.starts_with(special));
        special || volumes.iter().any(|volume| point.starts_with(volume))
    };
    let machine = Path::new("/").join(MACHINE);
    for entry in table::read().map_err(super::failed("mounts"))? {
        if entry.point.starts_with(&machine) || spared(&entry.point) {
            continue;
        }
        let fixed = fix(&entry.point);
        if entry.point == Path::new("/") {
            fixed.map_err(told("readOnlyRootFilesystem"))?;
        }
    }
    Ok(())
}

/// Nobody can write through this mount any more. What else it forbids stays forbidden.
fn fix(point: &Path) -> rustix::io::Result<()> {
    let now = rustix::fs::statvfs(point)?.f_flag;
    let kept = [
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
    let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY, |all, flag| {
        all | flag
    });
    mount_remount(point, flags, c"")
}

pub(super) fn told(what: &str) -> impl Fn(rustix::io::Errno) -> String {
    move |error| format!("{what}: {error}")
}

/// A place to mount a directory or a file on.
pub(super) fn make_place(place: &Path, is_dir: bool) -> std::io::Result<()> {
    if is_dir {
        return std::fs::create_dir_all(place);
    }
    if let Some(above) = place.parent() {
        std::fs::create_dir_all(above)?;
    }
    File::options()
        .create(true)
        .append(true)
        .open(place)
        .map(drop)
}
