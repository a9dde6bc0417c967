//! The private `/dev` and `/run` of an unprivileged container: new file systems with the usual device nodes, instead of the
//! host's devices, terminals, shared memory and sockets.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::thread::UnshareFlags;

use super::super::spec::Spec;
use super::mounts::{attach, clone_tree};
use super::{Result, failed};

/// Paths that are private.
pub(super) const PRIVATE: [&str; 2] = ["/dev", "/run"];

/// The device nodes of every container, as in container runtimes.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Mounts both. `host_root` is where the host's root is mounted; `terminal` is the container's, on the host.
pub(super) fn mount_private(host_root: &Path, spec: &Spec, terminal: Option<&Path>) -> Result {
    let new = |dir: &str, options: &std::ffi::CStr| {
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        // The nodes below are mounts of their own: they work, and nodes that the container creates do not.
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("tmpfs", dir, "tmpfs", flags, Some(options)).map_err(failed(dir))
    };
    new("/dev", c"mode=755,size=64k")?;
    let host_dev = host_root.join("dev");
    for node in NODES {
        bind(&host_dev.join(node), &Path::new("/dev").join(node))?;
    }
    for device in &spec.devices {
        let relative = device.strip_prefix("/").unwrap_or(device);
        bind(&host_root.join(relative), device)?;
    }
    if let Some(terminal) = terminal {
        let relative = terminal.strip_prefix("/").unwrap_or(terminal);
        bind(&host_root.join(relative), Path::new("/dev/console"))?;
    }
    for (target, link) in LINKS {
        symlink(target, Path::new("/dev").join(link)).map_err(failed("/dev"))?;
    }
    std::fs::create_dir("/dev/pts").map_err(failed("/dev/pts"))?;
    let options = c"newinstance,ptmxmode=0666,mode=0620,gid=5";
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "/dev/pts", "devpts", flags, Some(options)).map_err(failed("/dev/pts"))?;
    mount_shared_memory(&host_dev, spec.host_ipc)?;
    new("/run", c"mode=755")?;
    make_lock_directory().map_err(failed("/run/lock"))
}

/// The host's with `hostIPC`.
fn mount_shared_memory(host_dev: &Path, host_ipc: bool) -> Result {
    for (dir, kind) in [("/dev/shm", "tmpfs"), ("/dev/mqueue", "mqueue")] {
        let host = host_dev.join(Path::new(dir).file_name().unwrap_or_default());
        let shared = host_ipc && host.is_dir();
        if kind == "mqueue" && !shared {
            continue;
        }
        std::fs::create_dir(dir).map_err(failed(dir))?;
        let mounted = if shared {
            mount_bind(&host, dir)
        } else {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount(kind, dir, kind, flags, Some(c"mode=1777,size=64m"))
        };
        mounted.map_err(failed(dir))?;
    }
    Ok(())
}

/// `/var/lock` is a link to it.
fn make_lock_directory() -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir("/run/lock")?;
    std::fs::set_permissions("/run/lock", std::fs::Permissions::from_mode(0o1777))
}

/// Mounts a device node of the host. Some hosts, containers themselves, lack one.
fn bind(source: &Path, target: &Path) -> Result {
    if !source.exists() {
        return Ok(());
    }
    let step = target.display().to_string();
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(failed(&step))?;
    }
    File::create(target).map_err(failed(&step))?;
    mount_bind(source, target).map_err(failed(&step))
}

/// The terminal on stdin, if it is one. Asked before the mount namespace changes, which changes the path.
pub(super) fn terminal() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/fd/0").ok();
    path.filter(|path| path.starts_with("/dev/pts"))
}

/// Clones the terminal of a command, before it joins the mount namespace of a container.
pub(super) fn clone_terminal() -> Result<Option<OwnedFd>> {
    terminal().map(|path| clone_tree(&path)).transpose()
}

/// Shows a command its terminal as `/dev/console`: programs look for its name there. In a mount namespace of its own, a copy of
/// the container's, which ends with the command.
pub(super) fn mount_console(terminal: &OwnedFd) -> Result {
    kennel_shim::unshare(UnshareFlags::NEWNS).map_err(failed("mount namespace"))?;
    let console = Path::new("/dev/console");
    let created = File::options().create(true).append(true).open(console);
    created.map_err(failed("/dev/console"))?;
    attach(terminal, console).map_err(failed("/dev/console"))
}
