//! Facts about this machine, read once at start. What cannot be read is left empty: a missing file must not keep the
//! agent from starting.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

use kennel_core::procfs;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub hostname: String,
    /// `/etc/machine-id`: stays the same until the system is installed again.
    pub machine_id: String,
    /// From the firmware.
    pub system_uuid: String,
    /// Changes with each boot.
    pub boot_id: String,
    /// The kernel's version.
    pub kernel: String,
    /// The distribution's name.
    pub os_image: String,
    pub cpus: u64,
    /// In bytes.
    pub memory: u64,
    /// The size of the disk that pods write to, in bytes.
    pub disk: u64,
}

impl Machine {
    /// `data` is on the disk that pods write to.
    pub fn read(data: &Path) -> Self {
        let names = rustix::system::uname();
        let machine_id = line("/etc/machine-id").or_else(|| line("/var/lib/dbus/machine-id"));
        let machine_id = machine_id.unwrap_or_default();
        let system_uuid = line("/sys/class/dmi/id/product_uuid");
        Self {
            hostname: names.nodename().to_string_lossy().into_owned(),
            system_uuid: system_uuid.unwrap_or_else(|| machine_id.clone()),
            machine_id,
            boot_id: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            kernel: names.release().to_string_lossy().into_owned(),
            os_image: os_image(&read("/etc/os-release")),
            cpus: processors(&read("/proc/cpuinfo")),
            memory: total_memory(),
            disk: rustix::fs::statvfs(data).map_or(0, |disk| disk.f_blocks * disk.f_frsize),
        }
    }

    /// The default name of its node.
    pub fn node_name(&self) -> String {
        self.hostname.trim().to_ascii_lowercase()
    }
}

/// In Kubernetes' spelling.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn os_image(os_release: &str) -> String {
    let mut lines = os_release.lines();
    let name = lines.find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("Linux").trim_matches('"').to_owned()
}

fn processors(cpuinfo: &str) -> u64 {
    let lines = cpuinfo.lines();
    let counted = lines.filter(|line| line.starts_with("processor")).count();
    match counted {
        0 => std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        counted => counted as u64,
    }
}

/// In bytes; 0 if unknown.
pub(crate) fn total_memory() -> u64 {
    memory(&read("/proc/meminfo"))
}

fn memory(meminfo: &str) -> u64 {
    procfs::memory_bytes(meminfo, "MemTotal").unwrap_or(0)
}

/// The address that this machine reaches `peer` from; if both are on one machine, the address that it reaches the
/// internet from. Sends nothing.
pub fn address(peer: Option<SocketAddr>) -> IpAddr {
    /// Addresses for documentation, which only the default route leads to.
    const OUTSIDE: [&str; 2] = ["198.51.100.1:9", "[2001:db8::1]:9"];
    let outside = OUTSIDE.iter().filter_map(|text| text.parse().ok());
    let mut found = peer.into_iter().chain(outside).filter_map(source_address);
    let found = found.find(|address| !address.is_loopback() && !address.is_unspecified());
    found.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

/// The address that the kernel would send from.
fn source_address(peer: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if peer.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_files_are_parsed() {
        assert_eq!(
            os_image("NAME=\"Debian\"\nPRETTY_NAME=\"Debian 12\"\n"),
            "Debian 12"
        );
        assert_eq!(os_image(""), "Linux");
        assert_eq!(
            processors("processor\t: 0\nmodel: x\n\nprocessor\t: 1\n"),
            2
        );
        assert!(processors("") > 0);
        assert_eq!(
            memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            16 << 20
        );
        assert_eq!(
            memory("MemTotal:       24682416 kB\nMemFree: 1 kB\n"),
            25_274_793_984
        );
        assert_eq!(memory("nothing"), 0);
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read(Path::new("/"));
        assert!(!machine.hostname.is_empty() && !machine.kernel.is_empty());
        assert!(machine.cpus > 0 && machine.memory > 0 && machine.disk > 0);
        assert!(!address(Some(([127, 0, 0, 1], 1).into())).is_unspecified());
    }
}
