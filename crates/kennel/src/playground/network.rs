//! What joins the nodes: a bridge with an address of this machine's, and a line to each node. Made and removed with
//! `ip`, which says best why it cannot. Names are random, so that nobody else's is ever taken or removed.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::args::name;
use super::ledger::Ledger;
use super::range::Range;
use super::room::{Files, Room};

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// The bridge's name.
    pub(super) bridge: String,
    pub(super) range: Range,
}

impl Network {
    /// Chooses names and addresses. Nothing is made yet.
    pub(super) fn choose() -> anyhow::Result<Self> {
        let used = format!(
            "{} {}",
            ip("-4 route show table all")?,
            ip("-4 -oneline addr show")?
        );
        let mut bridge = bridge();
        while is_there(&bridge) {
            bridge = self::bridge();
        }
        let range = Range::free(&used, uuid::Uuid::new_v4().as_bytes()[0]);
        Ok(Self {
            bridge,
            range: range.context("all of 10.87.0.0/16 is in use on this machine")?,
        })
    }

    /// What to note before it is made.
    pub(super) fn ledger(&self, nodes: u32) -> Ledger {
        Ledger {
            bridge: Some(self.bridge.clone()),
            nodes,
        }
    }

    /// Makes the bridge.
    pub(super) fn make(&self) -> anyhow::Result<()> {
        let (bridge, gateway) = (&self.bridge, self.range.gateway());
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {gateway}/24 dev {bridge}"))?;
        ip(&format!("link set {bridge} up"))?;
        Ok(())
    }

    /// Writes the files that tell the nodes of each other and of other names.
    pub(super) fn files(&self, data: &Path, nodes: u32) -> std::io::Result<Files> {
        let machine = std::fs::read_to_string(HOSTS).unwrap_or_default();
        let others =
            (1..=nodes).map(|number| format!("{}\t{}\n", self.address(number), name(number)));
        let hosts = format!("{}\n{}", machine.trim_end(), others.collect::<String>());
        let resolver = format!("nameserver {}\n", self.range.gateway());
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
        // A machine that has no such file needs none.
        .filter(|(file, ..)| Path::new(file).exists())
        .map(|(file, name, content)| write(file, name, content))
        .collect()
    }

    /// Joins a room that has a network of its own, as the node with this number.
    pub(super) async fn join(&self, room: &Room, number: u32) -> anyhow::Result<()> {
        let (line, thread) = (line(&self.bridge, number), room.thread());
        ip(&format!(
            "link add {line} type veth peer name eth0 netns {thread}"
        ))?;
        ip(&format!("link set {line} master {} up", self.bridge))?;
        let (address, gateway) = (self.address(number), self.range.gateway());
        let within = async move {
            ip("link set lo up")?;
            ip(&format!("addr add {address}/24 dev eth0"))?;
            ip("link set eth0 up")?;
            ip(&format!("route add default via {gateway}")).map(drop)
        };
        room.run(within).await
    }

    /// A node's address.
    pub(super) fn address(&self, number: u32) -> Ipv4Addr {
        self.range.node(number)
    }
}

/// Removes what was noted, and tells what could not be. What is not there is fine.
pub(super) fn remove(ledger: &Ledger) -> Vec<String> {
    let Some(bridge) = &ledger.bridge else {
        return Vec::new();
    };
    let lines = (1..=ledger.nodes).map(|number| line(bridge, number));
    let all = lines.chain([bridge.clone()]);
    let stays = all.filter(|link| {
        is_there(link) && ip(&format!("link delete {link}")).is_err() && is_there(link)
    });
    stays
        .map(|link| format!("network interface {link}"))
        .collect()
}

/// A name that hardly anybody else has.
fn bridge() -> String {
    let [first, second, ..] = *uuid::Uuid::new_v4().as_bytes();
    format!("kennel-{first:02x}{second:02x}")
}

/// The name of the line to a node; the kernel allows 15 letters.
fn line(bridge: &str, number: u32) -> String {
    format!("{bridge}-{number}")
}

fn is_there(link: &str) -> bool {
    Path::new("/sys/class/net").join(link).exists()
}

/// Runs `ip`. Not as part of our process group: Ctrl-C is for us alone.
fn ip(words: &str) -> anyhow::Result<String> {
    let output = Command::new("ip")
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .context(
            "`ip` cannot be run; it is in Debian's package iproute2 (apt-get install iproute2)",
        )?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "`ip {words}`: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
