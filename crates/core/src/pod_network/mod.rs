//! How packets travel between the pods of different nodes: what a node publishes of its network ([`Member`]), which path two
//! nodes use, and what the kernel of a node needs ([`plan`]). Both ends decide from the same two published objects, so that
//! they decide alike: reverse-path filters drop packets of a pair whose ends differ.

pub mod object;
pub mod plan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::cidr::Cidr;

/// The Node's annotation with its [`Mode`], by which it asks for a pod range.
pub const MODE_ANNOTATION: &str = "network.kennel.dev/mode";
/// The Node's annotation with the address that others send to, and the prefix length of its link: `10.0.0.2/24`.
pub const LINK_ANNOTATION: &str = "network.kennel.dev/link";
/// The Node's annotation that says whether its link carries packets of pods, as a probe has found.
pub const DIRECT_ANNOTATION: &str = "network.kennel.dev/direct";
/// What a node with a CNI daemon that needs `spec.podCIDR` is annotated with: it gets a range, and no routes.
pub const EXTERNAL: &str = "external";

/// How a node wants to reach the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Direct routes where they work, VXLAN to the others.
    Auto,
    /// Direct routes alone: all nodes are on one link.
    HostGw,
    /// VXLAN alone.
    Vxlan,
}

impl Mode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::HostGw => "host-gw",
            Self::Vxlan => "vxlan",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Auto, Self::HostGw, Self::Vxlan];
        all.into_iter().find(|mode| mode.as_str() == text)
    }

    /// Whether packets may travel in VXLAN, which makes them 50 bytes larger.
    pub const fn has_vxlan(self) -> bool {
        !matches!(self, Self::HostGw)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an annotation value asks for a pod range.
pub fn asks_for_range(mode: &str) -> bool {
    mode == EXTERNAL || Mode::parse(mode).is_some()
}

/// What a node publishes of its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: Arc<str>,
    /// The range of its pods.
    pub range: Cidr,
    /// Where others send to.
    pub address: Ipv4Addr,
    /// The addresses that it reaches without a router.
    pub link: Cidr,
    pub mode: Mode,
    /// Whether its link carries packets of pods; unknown until a probe has found out.
    pub direct: Option<bool>,
}

impl Member {
    /// The address of its VXLAN device, which hosts send from and which routes name.
    pub fn tunnel_address(&self) -> Ipv4Addr {
        self.range.base()
    }

    /// The address that probes use. IPAM plugins never give the last one to a pod.
    pub fn probe_address(&self) -> Ipv4Addr {
        self.range.last()
    }

    /// The link-layer address of its VXLAN device. It follows from the range, so that nobody needs to publish it.
    pub fn tunnel_mac(&self) -> [u8; 6] {
        let [a, b, c, d] = self.range.base().octets();
        // Locally administered, unicast.
        [0x0a, 0x6b, a, b, c, d]
    }
}

/// How a node sends to the pods of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// By a route over the link that both are on.
    Direct,
    Vxlan,
    /// Not at all: one has no VXLAN, and they are not on one link.
    None,
}

/// Symmetric: both ends get the same.
pub fn path(one: &Member, other: &Member) -> Path {
    let both = [one, other];
    if !shares_link(one, other) {
        let has_vxlan = both.iter().all(|member| member.mode.has_vxlan());
        return if has_vxlan { Path::Vxlan } else { Path::None };
    }
    match both.map(|member| member.mode) {
        [Mode::Vxlan, Mode::HostGw] | [Mode::HostGw, Mode::Vxlan] => Path::None,
        [Mode::Vxlan, _] | [_, Mode::Vxlan] => Path::Vxlan,
        [Mode::HostGw, _] | [_, Mode::HostGw] => Path::Direct,
        [Mode::Auto, Mode::Auto] if both.iter().all(|m| m.direct == Some(true)) => Path::Direct,
        [Mode::Auto, Mode::Auto] => Path::Vxlan,
    }
}

/// Whether each reaches the other without a router.
pub fn shares_link(one: &Member, other: &Member) -> bool {
    one.link.contains(other.address) && other.link.contains(one.address)
}
