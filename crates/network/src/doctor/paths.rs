//! Checks of the paths to other nodes, by probes.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::Finding;
use crate::kernel::{DEVICE, HostRoute, Kernel, PORT};
use crate::{Error, firewall, probe};

/// Nodes of each path that are asked. One answer suffices.
const NODES_ASKED: usize = 3;

/// Whether nodes answer through VXLAN, which takes UDP in both directions.
pub(super) async fn vxlan(kernel: &Kernel, routes: &[HostRoute]) -> Result<Option<Finding>, Error> {
    let (Some(device), Some(own)) = (kernel.vxlan_index().await?, kernel.tunnel_address().await?)
    else {
        return Ok(None);
    };
    let through = |route: &&HostRoute| route.is_ours && route.device == device;
    let mut nodes: Vec<Ipv4Addr> = routes
        .iter()
        .filter(through)
        .map(|route| route.destination.base())
        .collect();
    if nodes.is_empty() {
        return Ok(None);
    }
    fastrand::shuffle(&mut nodes);
    nodes.truncate(NODES_ASKED);
    for node in &nodes {
        match probe::answers(own, *node).await {
            Ok(true) => {
                return Ok(Some(Finding::ok(format!(
                    "VXLAN: the node with {node} answers"
                ))));
            }
            Ok(false) => {}
            Err(error) => {
                return Ok(Some(Finding::problem(format!(
                    "VXLAN: cannot ask other nodes: {error}"
                ))));
            }
        }
    }
    Ok(Some(silent(&nodes, &firewall::refusing_incoming()?)))
}

/// `refusing` are chains of this machine.
pub(super) fn silent(nodes: &[Ipv4Addr], refusing: &[String]) -> Finding {
    let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let here = if refusing.is_empty() {
        String::new()
    } else {
        format!(
            "; here, {} drops what no rule of it accepts",
            refusing.join("; ")
        )
    };
    Finding::problem(format!(
        "VXLAN: no answer from {} through {DEVICE}: accept UDP port {PORT} between all machines, and ICMP from {DEVICE}{here}",
        nodes.join(", ")
    ))
}

/// Whether nodes with direct routes answer a pod's address: the agent adds a route for probes to each node on its link.
pub(super) async fn direct(
    kernel: &Kernel,
    routes: &[HostRoute],
) -> Result<Option<Finding>, Error> {
    let vxlan = kernel.vxlan_index().await?;
    let mut probes = direct_probes(routes, vxlan);
    if probes.is_empty() {
        return Ok(None);
    }
    fastrand::shuffle(&mut probes);
    probes.truncate(NODES_ASKED);
    for probe in &probes {
        match probe::answers(probe.from, probe.to).await {
            Ok(true) => {
                return Ok(Some(Finding::ok(format!(
                    "direct routes: the node {} answers a pod's address",
                    probe.node
                ))));
            }
            Ok(false) => {}
            Err(error) => {
                return Ok(Some(Finding::problem(format!(
                    "direct routes: cannot ask other nodes: {error}"
                ))));
            }
        }
    }
    let nodes: Vec<String> = probes.iter().map(|probe| probe.node.to_string()).collect();
    Ok(Some(Finding::problem(format!(
        "direct routes: no answer to a pod's address from {}: if these nodes are up, the link drops packets of pods, as many clouds do; \
         with --network=auto agents find out within minutes, or start them with --network=vxlan",
        nodes.join(", ")
    ))))
}

struct DirectProbe {
    node: Ipv4Addr,
    from: Ipv4Addr,
    to: Ipv4Addr,
}

/// The probes of nodes whose pods have a direct route, too: on links that drop packets of pods, only probes are direct.
fn direct_probes(routes: &[HostRoute], vxlan: Option<u32>) -> Vec<DirectProbe> {
    let ours = || {
        let ours = routes.iter().filter(|route| route.is_ours);
        ours.filter(|route| Some(route.device) != vxlan)
    };
    let is_probe = |route: &HostRoute| route.destination.bits() == 32;
    let direct: BTreeSet<Ipv4Addr> = ours()
        .filter(|route| !is_probe(route))
        .filter_map(|route| route.via)
        .collect();
    let probes = ours().filter(|route| is_probe(route));
    let probes = probes.filter_map(|route| {
        Some(DirectProbe {
            node: route.via?,
            from: route.source?,
            to: route.destination.base(),
        })
    });
    probes
        .filter(|probe| direct.contains(&probe.node))
        .collect()
}
