//! The network between the nodes: a bridge with an address of this machine, and a veth pair to each node. Created and
//! removed with `ip`, whose error messages are the best available. Interface names are random, so that no other
//! interface is taken or removed.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::args::node_name;
use super::journal::Journal;
use super::node_namespace::{FileOverrides, NodeNamespace};
use super::subnet::Subnet;

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

#[derive(Clone, Debug)]
pub(super) struct Network {
    /// Interface name.
    pub(super) bridge: String,
    pub(super) subnet: Subnet,
}

impl Network {
    /// Chooses names and addresses, and creates nothing.
    pub(super) fn choose() -> anyhow::Result<Self> {
        let used = format!(
            "{} {}",
            ip("-4 route show table all")?,
            ip("-4 -oneline addr show")?
        );
        let mut bridge = random_name();
        while link_exists(&bridge) {
            bridge = random_name();
        }
        let subnet = Subnet::free(&used, uuid::Uuid::new_v4().as_bytes()[0]);
        Ok(Self {
            bridge,
            subnet: subnet.context("all of 10.87.0.0/16 is in use on this machine")?,
        })
    }

    /// The journal to record before [`Self::create_bridge`].
    pub(super) fn journal(&self, nodes: u32) -> Journal {
        Journal {
            bridge: Some(self.bridge.clone()),
            nodes,
        }
    }

    pub(super) fn create_bridge(&self) -> anyhow::Result<()> {
        let (bridge, gateway) = (&self.bridge, self.subnet.gateway());
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {gateway}/24 dev {bridge}"))?;
        ip(&format!("link set {bridge} up"))?;
        Ok(())
    }

    /// Writes the nodes' `/etc/hosts` and `/etc/resolv.conf`.
    pub(super) fn write_files(&self, data: &Path, nodes: u32) -> std::io::Result<FileOverrides> {
        let machine = std::fs::read_to_string(HOSTS).unwrap_or_default();
        let others =
            (1..=nodes).map(|number| format!("{}\t{}\n", self.address(number), node_name(number)));
        let hosts = format!("{}\n{}", machine.trim_end(), others.collect::<String>());
        let resolver = format!("nameserver {}\n", self.subnet.gateway());
        let write = |file: &'static str, name: &str, content: String| {
            let path: PathBuf = data.join(name);
            std::fs::write(&path, content)?;
            Ok((file, path))
        };
        [
            (HOSTS, "hosts", hosts),
            (RESOLV_CONF, "resolv.conf", resolver),
        ]
        .into_iter()
        // A bind mount needs an existing target.
        .filter(|(file, ..)| Path::new(file).exists())
        .map(|(file, name, content)| write(file, name, content))
        .collect()
    }

    /// Connects a network namespace to the bridge, as the node with this number.
    pub(super) async fn connect(&self, node: &NodeNamespace, number: u32) -> anyhow::Result<()> {
        let (veth, thread) = (veth_name(&self.bridge, number), node.thread());
        ip(&format!(
            "link add {veth} type veth peer name eth0 netns {thread}"
        ))?;
        ip(&format!("link set {veth} master {} up", self.bridge))?;
        let (address, gateway) = (self.address(number), self.subnet.gateway());
        let configure = async move {
            ip("link set lo up")?;
            ip(&format!("addr add {address}/24 dev eth0"))?;
            ip("link set eth0 up")?;
            ip(&format!("route add default via {gateway}")).map(drop)
        };
        node.run(configure).await
    }

    pub(super) fn address(&self, number: u32) -> Ipv4Addr {
        self.subnet.node(number)
    }
}

/// Removes the interfaces in the journal that exist; returns those that could not be removed.
pub(super) fn remove(journal: &Journal) -> Vec<String> {
    let Some(bridge) = &journal.bridge else {
        return Vec::new();
    };
    let veths = (1..=journal.nodes).map(|number| veth_name(bridge, number));
    let all = veths.chain([bridge.clone()]);
    let remaining = all.filter(|link| {
        link_exists(link) && ip(&format!("link delete {link}")).is_err() && link_exists(link)
    });
    remaining
        .map(|link| format!("network interface {link}"))
        .collect()
}

fn random_name() -> String {
    let [first, second, ..] = *uuid::Uuid::new_v4().as_bytes();
    format!("kennel-{first:02x}{second:02x}")
}

/// The kernel allows 15 characters.
fn veth_name(bridge: &str, number: u32) -> String {
    format!("{bridge}-{number}")
}

fn link_exists(link: &str) -> bool {
    Path::new("/sys/class/net").join(link).exists()
}

/// Runs `ip` in a process group of its own, so that Ctrl-C does not interrupt it.
fn ip(arguments: &str) -> anyhow::Result<String> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .context("cannot run `ip`; install Debian's package iproute2 (apt-get install iproute2)")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "`ip {arguments}`: {}",
        stderr.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
