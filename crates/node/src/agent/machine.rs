//! What this machine is: read once at start, from where Linux says it. What cannot be read is left empty; a
//! machine is not kept from being a node by a file that it lacks.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its host name.
    pub hostname: String,
    /// `/etc/machine-id`: stays for the life of an installation.
    pub machine_id: String,
    /// What its firmware calls it.
    pub system_uuid: String,
    /// Another one after each boot.
    pub boot_id: String,
    /// The kernel's version.
    pub kernel: String,
    /// The distribution, in words.
    pub os_image: String,
    /// Processors.
    pub cpus: u64,
    /// Memory, in bytes.
    pub memory: u64,
    /// The size of the disk that pods write to, in bytes.
    pub disk: u64,
}

impl Machine {
    /// Looks at this machine; `data` is on the disk that pods write to.
    pub fn look(data: &Path) -> Self {
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
            memory: memory(&read("/proc/meminfo")),
            disk: rustix::fs::statvfs(data).map_or(0, |disk| disk.f_blocks * disk.f_frsize),
        }
    }

    /// What is likely to be taken for the name of its node.
    pub fn node_name(&self) -> String {
        self.hostname.trim().to_ascii_lowercase()
    }
}

/// The architecture, as Kubernetes calls it.
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

fn memory(meminfo: &str) -> u64 {
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// This machine's address as others see it: the one that it speaks to `peer` from, unless both are on one
/// machine; then the one that it would speak to the world from. Nothing is sent.
pub fn address(peer: Option<SocketAddr>) -> IpAddr {
    const WORLD: [&str; 2] = ["198.51.100.1:9", "[2001:db8::1]:9"];
    let world = WORLD.iter().filter_map(|text| text.parse().ok());
    let mut found = peer.into_iter().chain(world).filter_map(from);
    let found = found.find(|address| !address.is_loopback() && !address.is_unspecified());
    found.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

/// Which address the kernel would send from.
fn from(peer: SocketAddr) -> Option<IpAddr> {
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
    fn files_of_linux_are_read() {
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
        assert_eq!(memory("nothing"), 0);
    }

    #[test]
    fn this_machine_has_a_name_a_kernel_and_a_size() {
        let machine = Machine::look(Path::new("/"));
        assert!(!machine.hostname.is_empty() && !machine.kernel.is_empty());
        assert!(machine.cpus > 0 && machine.memory > 0 && machine.disk > 0);
        assert!(!address(Some(([127, 0, 0, 1], 1).into())).is_unspecified());
    }
}
