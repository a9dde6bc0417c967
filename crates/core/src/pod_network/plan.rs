//! What the kernel of a node needs, so that its pods reach all others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::{Member, Mode, Path, path, shares_link};
use crate::cidr::Cidr;

/// By which device a route leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// The one with the node's address.
    Underlay,
    Vxlan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    pub destination: Cidr,
    pub via: Ipv4Addr,
    pub device: Device,
    /// The address that this host sends from; by default that of the device.
    pub source: Option<Ipv4Addr>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub routes: BTreeSet<Route>,
    /// The VXLAN devices of other nodes: their address and link-layer address.
    pub neighbours: BTreeMap<Ipv4Addr, [u8; 6]>,
    /// The nodes that the devices with these link-layer addresses are on.
    pub forwarding: BTreeMap<[u8; 6], Ipv4Addr>,
    /// Nodes that pods reach with their own address.
    pub direct_nodes: BTreeSet<Ipv4Addr>,
    /// Nodes whose pods cannot be reached, and those that are left out because another one has their range or address.
    pub unreachable: BTreeSet<String>,
    /// The addresses to probe: the node's, and that of the probe.
    pub probes: BTreeMap<Ipv4Addr, Ipv4Addr>,
}

/// The plan of the node `own`. `others` are all published members; of two with overlapping ranges, the one that is first by
/// name counts on every node.
pub fn plan<'a>(own: &Member, others: impl IntoIterator<Item = &'a Member>) -> Plan {
    let mut plan = Plan::default();
    for other in distinct(own, others, &mut plan.unreachable) {
        match path(own, other) {
            Path::Direct => {
                plan.routes.insert(Route {
                    destination: other.range,
                    via: other.address,
                    device: Device::Underlay,
                    source: None,
                });
                plan.direct_nodes.insert(other.address);
            }
            Path::Vxlan => {
                plan.routes.insert(Route {
                    destination: other.range,
                    via: other.tunnel_address(),
                    device: Device::Vxlan,
                    source: Some(own.tunnel_address()),
                });
                plan.neighbours
                    .insert(other.tunnel_address(), other.tunnel_mac());
                plan.forwarding.insert(other.tunnel_mac(), other.address);
            }
            Path::None => drop(plan.unreachable.insert(other.node.to_string())),
        }
        if own.mode == Mode::Auto && other.mode == Mode::Auto && shares_link(own, other) {
            // More specific than the range, so that a probe is direct whatever the path.
            plan.routes.insert(Route {
                destination: Cidr::host(other.probe_address()),
                via: other.address,
                device: Device::Underlay,
                source: Some(own.probe_address()),
            });
            plan.probes.insert(other.address, other.probe_address());
        }
    }
    plan
}

fn distinct<'a>(
    own: &Member,
    others: impl IntoIterator<Item = &'a Member>,
    left_out: &mut BTreeSet<String>,
) -> Vec<&'a Member> {
    let mut others: Vec<&Member> = others
        .into_iter()
        .filter(|one| one.node != own.node)
        .collect();
    others.sort_by(|one, other| (one.range, &one.node).cmp(&(other.range, &other.node)));
    let mut kept: Vec<&Member> = Vec::with_capacity(others.len());
    for other in others {
        // Sorted by base: only the one before can overlap.
        let overlaps = kept
            .last()
            .is_some_and(|last| last.range.overlaps(other.range));
        if overlaps || other.range.overlaps(own.range) || other.address == own.address {
            left_out.insert(other.node.to_string());
        } else {
            kept.push(other);
        }
    }
    kept
}
