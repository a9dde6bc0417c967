//! Machines on one link, or on several with a router between them, for tests with packets of pods.
//!
//! ```text
//!   test ── router ─┬─ link 0   10.x.0.0/24 ─┬─ machine .2
//!                   │                        └─ machine .3
//!                   └─ link 1   10.x.1.0/24 ─── machine .2
//! ```
//!
//! The router knows the links and the way to the test, and no pods. Reverse-path filters are strict, and bridges do not
//! hand packets to the rules of the network layer.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use super::{Network, run};

/// So many ranges are tried: others may have taken some.
const TRIES: u32 = 50;

/// See the [module](self).
#[derive(Debug)]
pub struct Links {
    router: Network,
    /// The second byte of all addresses.
    range: u8,
    machines: AtomicU8,
}

impl Links {
    /// So many links.
    pub fn new(count: u8) -> Self {
        let router = Network::new();
        let range = (0..TRIES)
            .map(|_| fastrand::u8(16..64))
            .find(|range| routes(&router, *range, count))
            .expect("one of many ranges is free");
        let script = strict("echo 1 > /proc/sys/net/ipv4/ip_forward");
        run(router.command("sh").args(["-ec", &script]));
        for link in 0..count {
            let device = format!("link{link}");
            let ip = |arguments: String| {
                run(Command::new("ip")
                    .args(["-n", router.name()])
                    .args(arguments.split(' ')));
            };
            ip(format!("link add {device} type bridge"));
            ip(format!("addr add 10.{range}.{link}.1/24 dev {device}"));
            ip(format!("link set {device} up"));
        }
        Self {
            router,
            range,
            machines: AtomicU8::new(2),
        }
    }

    /// A machine on a link. It reaches the test through the router.
    pub fn machine(&self, link: u8) -> Network {
        let number = self.machines.fetch_add(1, Ordering::Relaxed);
        let address = self.address(link, number);
        let machine = Network::bare(address, self.router.gateway());
        let (name, port) = (machine.name(), format!("port{number}"));
        let ip = |space: &str, arguments: &str| {
            run(Command::new("ip")
                .args(["-n", space])
                .args(arguments.split(' ')));
        };
        ip(
            self.router.name(),
            &format!("link add {port} type veth peer name eth0 netns {name}"),
        );
        ip(
            self.router.name(),
            &format!("link set {port} master link{link} up"),
        );
        ip(name, &format!("addr add {address}/24 dev eth0"));
        ip(name, "link set eth0 up");
        ip(
            name,
            &format!("route add default via {}", self.address(link, 1)),
        );
        run(machine.command("sh").args(["-ec", &strict(":")]));
        machine
    }

    /// An address on a link; the router's is number 1.
    pub fn address(&self, link: u8, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, self.range, link, number)
    }

    /// What runs on the router.
    pub fn router(&self) -> &Network {
        &self.router
    }

    /// From now on the links drop packets that come from no address of theirs, as many clouds do.
    pub fn drop_foreign_sources(&self) {
        let rules = format!(
            "table bridge cloud {{ chain forward {{ type filter hook forward priority 0; \
             ether type ip ip saddr != 10.{}.0.0/16 drop; }}; }};",
            self.range
        );
        run(self.router.command("nft").arg(rules));
    }
}

/// Strict reverse-path filters, and bridges that mind their own business, after a command.
fn strict(command: &str) -> String {
    format!(
        "{command}\nfor name in all default; do echo 1 > /proc/sys/net/ipv4/conf/$name/rp_filter; done\n\
         for call in /proc/sys/net/bridge/bridge-nf-call-*; do if [ -e \"$call\" ]; then echo 0 > \"$call\"; fi; done"
    )
}

/// Routes the range to the router, unless somebody has a part of it.
fn routes(router: &Network, range: u8, links: u8) -> bool {
    let all = format!("10.{range}.0.0/16");
    let taken = run(Command::new("ip").args(["-4", "route", "show", "root", &all]));
    if !taken.trim().is_empty() || links == 0 {
        return false;
    }
    let router = router.address().to_string();
    let added = Command::new("ip")
        .args(["route", "add", &all, "via", &router])
        .stderr(Stdio::null())
        .status();
    added.is_ok_and(|status| status.success())
}
