//! A network namespace: what a test thinks of as another machine, with an address that the test reaches.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::disk::Disk;
use super::reaper::Reaper;
use super::run;

/// Tells apart the namespaces of one test process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// So many addresses are tried: others may have taken some.
const TRIES: u32 = 50;

/// See the [module](self).
#[derive(Debug)]
pub struct Network {
    name: String,
    /// Its address, as the test sees it.
    address: Ipv4Addr,
    /// The test's address, as it sees it.
    gateway: Ipv4Addr,
    disk: Option<Disk>,
    /// A process whose mounts its programs see.
    mounts_of: Option<u32>,
    _reaper: Option<Reaper>,
}

impl Network {
    /// Makes one. Its only way out is to the test's own namespace.
    pub fn new() -> Self {
        let mut network = Self::bare(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        (network.gateway, network.address) = connect(&network.name);
        network
    }

    /// Makes one with no interface but that of the loop. The caller gives it this address, and a way to the test's.
    pub(super) fn bare(address: Ipv4Addr, gateway: Ipv4Addr) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("kennel-{}-{number}", std::process::id());
        let reaper = Reaper::of_network(&name);
        run(Command::new("ip").args(["netns", "add", &name]));
        run(Command::new("ip").args(["-n", &name, "link", "set", "lo", "up"]));
        Self {
            name,
            address,
            gateway,
            disk: None,
            mounts_of: None,
            _reaper: Some(reaper),
        }
    }

    /// The network of a machine that somebody else takes away, with the files that a process there sees.
    pub(super) fn of_machine(name: &str, address: Ipv4Addr, process: u32) -> Self {
        Self {
            name: name.to_owned(),
            address,
            gateway: Ipv4Addr::UNSPECIFIED,
            disk: None,
            mounts_of: Some(process),
            _reaper: None,
        }
    }

    /// Makes one with a [`Disk`] of its own: what is written there to `/dev`, `/etc`, `/opt`, `/run`, `/usr` and `/var`,
    /// and whatever is mounted, is seen there alone, and goes with it.
    pub fn with_disk() -> Self {
        Self {
            disk: Some(Disk::new()),
            ..Self::new()
        }
    }

    /// Was it made by [`Self::with_disk`]?
    pub fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// What `ip netns` calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, for the test and for other networks.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Where it finds the test's own namespace.
    pub fn gateway(&self) -> Ipv4Addr {
        self.gateway
    }

    /// A command that will run in it. Processes are the test's, and files are unless it has a disk.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        // Not `ip netns exec`: that puts a new /sys over the one with the control groups.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name));
        command.args(self.disk.as_ref().map(Disk::flag));
        let mounts = self.mounts_of;
        command.args(mounts.map(|process| format!("--mount=/proc/{process}/ns/mnt")));
        command.arg("--").arg(program);
        command
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

/// Gives a namespace a line to ours: our address and its own.
fn connect(name: &str) -> (Ipv4Addr, Ipv4Addr) {
    // Interfaces have names of at most 15 bytes.
    let ours = format!("kt{:08x}", fastrand::u32(..));
    let pair = ["type", "veth", "peer", "name", "eth0", "netns", name];
    run(Command::new("ip").args(["link", "add", &ours]).args(pair));
    let (gateway, address) = (0..TRIES)
        .find_map(|_| claim(&ours))
        .expect("one of many networks is free");
    run(Command::new("ip").args(["link", "set", &ours, "up"]));
    let its = ["-n", name];
    run(Command::new("ip").args(its).args([
        "addr",
        "add",
        &format!("{address}/30"),
        "dev",
        "eth0",
    ]));
    run(Command::new("ip")
        .args(its)
        .args(["link", "set", "eth0", "up"]));
    let route = ["route", "add", "default", "via", &gateway.to_string()];
    run(Command::new("ip").args(its).args(route));
    (gateway, address)
}

/// Takes four addresses nobody has: the network's, ours, the machine's, all.
fn claim(interface: &str) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let start = u32::from(Ipv4Addr::new(10, 213, 0, 0)) + fastrand::u32(..1 << 14) * 4;
    let (gateway, address) = (Ipv4Addr::from(start + 1), Ipv4Addr::from(start + 2));
    let routes = run(Command::new("ip").args(["-4", "route", "show", &format!("{address}/32")]));
    let network = format!("{}/30", Ipv4Addr::from(start));
    let taken = run(Command::new("ip").args(["-4", "route", "show", &network]));
    if !routes.trim().is_empty() || !taken.trim().is_empty() {
        return None;
    }
    let ours = format!("{gateway}/30");
    let added = Command::new("ip")
        .args(["addr", "add", &ours, "dev", interface])
        .stderr(Stdio::null())
        .status();
    added.ok()?.success().then_some((gateway, address))
}
