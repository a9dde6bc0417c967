//! The metrics of the whole machine, which cAdvisor calls the container `/`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kennel_core::procfs::{self, Interface};

/// The labels of its rows.
pub(super) const LABELS: [(&str, &str); 6] = [
    ("container", ""),
    ("id", "/"),
    ("image", ""),
    ("name", ""),
    ("namespace", ""),
    ("pod", ""),
];

/// The machine's ends of the networks of containers, which cAdvisor leaves out: their traffic is that of pods.
const ENDS_OF_CONTAINERS: [&str; 3] = ["docker", "nerdctl", "veth"];

/// A file system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileSystem {
    /// The file of its block device; the device's number if it has none.
    pub(super) device: String,
    /// In bytes.
    pub(super) used: u64,
    /// In bytes.
    pub(super) size: u64,
}

impl FileSystem {
    /// The one of a path; none if it does not count its bytes.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let device = fs::metadata(path).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let disk = rustix::fs::statvfs(path).ok()?;
        let used = disk.f_blocks.saturating_sub(disk.f_bfree);
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        (disk.f_blocks > 0).then(|| Self {
            device: device_file(&format!("{major}:{minor}")),
            used: bytes(used),
            size: bytes(disk.f_blocks),
        })
    }
}

/// The file of a block device, such as `/dev/sda` for `8:0`; its number if the kernel does not tell.
pub(super) fn device_file(number: &str) -> String {
    let about = fs::read_to_string(format!("/sys/dev/block/{number}/uevent"));
    let about = about.unwrap_or_default();
    let name = about.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map_or_else(|| number.to_owned(), |name| format!("/dev/{name}"))
}

/// The interfaces of the machine.
pub(super) fn interfaces() -> Vec<Interface> {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    own_interfaces(&table)
}

fn own_interfaces(table: &str) -> Vec<Interface> {
    let is_own = |interface: &Interface| {
        let name = interface.name.as_str();
        !ENDS_OF_CONTAINERS.iter().any(|of| name.starts_with(of))
    };
    procfs::interfaces(table).filter(is_own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_a_size_and_is_used() {
        let found = FileSystem::of(Path::new("/")).unwrap();
        assert!(found.used > 0 && found.used <= found.size, "{found:?}");
        let is_named = found.device.starts_with("/dev/") || found.device.contains(':');
        assert!(is_named, "{found:?}");
        assert_eq!(FileSystem::of(Path::new("/there/is/no/such/path")), None);
        // It counts no bytes.
        assert_eq!(FileSystem::of(Path::new("/proc")), None);
    }

    #[test]
    fn ends_of_the_networks_of_containers_are_left_out() {
        let line = |name: &str| format!("{name}: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n");
        let table: String = ["  lo", "eth0", "veth12", "docker0", "wg0"]
            .map(line)
            .concat();
        let names = own_interfaces(&table).into_iter().map(|one| one.name);
        assert_eq!(names.collect::<Vec<_>>(), ["eth0", "wg0"]);
    }
}
