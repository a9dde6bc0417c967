//! Where the processes of a pod listen. All pods share the machine's network, so port-forward must not connect to what
//! others listen on.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use kennel_core::procfs;
use kennel_shim::cgroup::Cgroups;
use kennel_shim::kill::ContainerProcesses;
use kennel_shim::state::{Dir, Status};

use super::spec::Spec;
use super::store::Store;

/// The addresses to reach a port of a sandbox's containers at; none if no process of theirs listens on it.
pub(super) fn addresses(store: &Store, sandbox: &str, port: u16) -> Vec<SocketAddr> {
    let Some((_, _, containers)) = store.sandbox(sandbox) else {
        return Vec::new();
    };
    let cgroups = Cgroups::find();
    let pids: Vec<i32> = containers
        .iter()
        .flat_map(|dir| processes(dir, &cgroups))
        .collect();
    let Some(first) = pids.first() else {
        return Vec::new();
    };
    let own: BTreeSet<u64> = pids.iter().flat_map(|pid| sockets(*pid)).collect();
    let tables = ["tcp", "tcp6"].map(|table| {
        std::fs::read_to_string(format!("/proc/{first}/net/{table}")).unwrap_or_default()
    });
    let listening = tables.iter().flat_map(|table| procfs::listening(table));
    let listening = listening.filter(|socket| socket.port == port && own.contains(&socket.inode));
    let mut addresses: Vec<SocketAddr> = listening
        .flat_map(|socket| reachable(socket.address))
        .map(|address| SocketAddr::new(address, port))
        .collect();
    addresses.dedup();
    addresses
}

fn processes(dir: &Dir, cgroups: &Cgroups) -> BTreeSet<i32> {
    let Status::Supervised(Some(start)) = dir.status() else {
        return BTreeSet::new();
    };
    let group = Spec::read(dir.path()).ok().and_then(|spec| spec.cgroup);
    let group = group.map(|path| cgroups.group(&path));
    ContainerProcesses {
        id: &dir.id(),
        group: group.as_ref(),
        parent: None,
        process: Some(&start.process),
    }
    .find()
}

/// The inodes of a process's sockets.
fn sockets(pid: i32) -> Vec<u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten().flatten();
    let inodes = entries.filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    });
    inodes.collect()
}

/// Where a socket that is bound to an address can be reached from this machine.
fn reachable(bound: IpAddr) -> Vec<IpAddr> {
    match bound {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => vec![Ipv4Addr::LOCALHOST.into()],
        // It may be for both.
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]
        }
        bound => vec![bound],
    }
}
