//! Checks the pod network of this machine from outside, and says what to do. Changes nothing.

mod packets;
mod paths;
mod services;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

use kennel_core::cidr::Cidr;
pub(crate) use packets::VxlanMtu;
use serde_json::Value;

use crate::kernel::{HostRoute, Kernel};
use crate::{Error, cni, firewall, lock, masquerade, sysctl};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub is_ok: bool,
    pub text: String,
}

impl Finding {
    fn ok(text: impl Into<String>) -> Self {
        Self {
            is_ok: true,
            text: text.into(),
        }
    }

    fn problem(text: impl Into<String>) -> Self {
        Self {
            is_ok: false,
            text: text.into(),
        }
    }
}

/// What to check with.
#[derive(Clone, Debug)]
pub struct Options {
    pub places: cni::Places,
    /// A name server for names of services, and such a name.
    pub dns: Ipv4Addr,
    pub name: String,
}

/// Checks everything. Fails where the kernel cannot be asked.
pub async fn examine(options: &Options) -> Result<Vec<Finding>, Error> {
    let kernel = Kernel::open()?;
    let routes = kernel.routes().await?;
    let vxlan = kernel.vxlan_underlay().await?;
    let configuration = options.places.own_configuration();
    let has_network =
        vxlan.is_some() || configuration.is_some() || routes.iter().any(|route| route.is_ours);
    let mut findings = vec![agent(has_network)];
    findings.push(cni_finding(options, configuration.as_ref(), has_network));
    findings.push(forwarding(has_network, firewall::has_node_ports()?));
    if has_network {
        let links = packets::links(&kernel, &routes).await?;
        findings.push(packets::mtu(configuration.as_ref(), vxlan.as_ref(), &links));
        findings.push(masquerading()?);
    }
    findings.push(route_finding(&routes, configuration.as_ref()));
    let pods = configuration.as_ref().and_then(own_range);
    findings.push(packets::forwarded(
        &firewall::refusing_forwarded(pods)?,
        firewall::legacy(pods),
    ));
    if vxlan.is_some() {
        findings.extend(packets::checksums());
        findings.extend(paths::vxlan(&kernel, &routes).await?);
    }
    findings.extend(paths::direct(&kernel, &routes).await?);
    findings.push(packets::reverse_path());
    findings.push(services::rules(options.dns)?);
    findings.push(services::names(options, &firewall::dns_services()?));
    Ok(findings)
}

fn agent(has_network: bool) -> Finding {
    match (lock::Lock::take(), has_network) {
        (Err(_), _) => Finding::ok("agent: one manages the pod network of this machine"),
        (Ok(_), true) => Finding::problem(
            "agent: there is a pod network and no agent that keeps it up to date: start the agent, or remove the network with \
             `kennel agent --cleanup`",
        ),
        (Ok(_), false) => Finding::ok(
            "agent: none manages a pod network on this machine (--network=none, the process runtime, or another CNI configuration)",
        ),
    }
}

fn cni_finding(options: &Options, own: Option<&Value>, has_network: bool) -> Finding {
    let places = &options.places;
    let dir = places.configurations.display();
    match places.foreign() {
        Err(error) => return Finding::problem(format!("CNI: cannot read {dir}: {error}")),
        Ok(Some(foreign)) if own.is_some() => {
            return Finding::problem(format!(
                "CNI: {} is there beside our {}; the container runtime uses the first by name: delete it, or start the agent with \
                 --network=none",
                foreign.display(),
                cni::FILE
            ));
        }
        Ok(Some(foreign)) => {
            return Finding::ok(format!(
                "CNI: {} belongs to another network",
                foreign.display()
            ));
        }
        Ok(None) => {}
    }
    let missing = places.missing_plugins();
    match own {
        Some(_) if missing.is_empty() && !places.has_plugin(cni::PORTMAP) => {
            Finding::problem(format!(
                "CNI: the plugin {} is missing, so that host ports of pods are not forwarded: install it (Debian: \
             containernetworking-plugins), and restart the agent",
                cni::PORTMAP
            ))
        }
        Some(_) if missing.is_empty() => Finding::ok(format!("CNI: {dir}/{}", cni::FILE)),
        Some(_) => Finding::problem(format!(
            "CNI: the plugins {} are missing: install them (Debian: containernetworking-plugins)",
            missing.join(" and ")
        )),
        None if has_network => {
            Finding::ok("CNI: no configuration, so pods have this machine's network")
        }
        None => Finding::ok(format!("CNI: no configuration in {dir}")),
    }
}

fn forwarding(has_network: bool, has_node_ports: bool) -> Finding {
    let remedy =
        "sysctl -w net.ipv4.ip_forward=1, and look for what turned it off in /etc/sysctl.d";
    match sysctl::read(sysctl::FORWARDING) {
        Ok(value) if value == "1" => Finding::ok("forwarding: on"),
        Ok(_) if has_network => Finding::problem(format!(
            "forwarding: off, so that no packet of a pod leaves this machine: {remedy}"
        )),
        Ok(_) if has_node_ports => Finding::problem(format!(
            "forwarding: off, so that packets to node ports reach no endpoints but those with this machine's network: {remedy}"
        )),
        Ok(_) => Finding::ok("forwarding: off, and neither a pod network nor node ports need it"),
        Err(error) => Finding::problem(format!("forwarding: cannot be read: {error}")),
    }
}

fn masquerading() -> Result<Finding, Error> {
    Ok(if masquerade::exists()? {
        Finding::ok(format!(
            "masquerading: by the nftables table {}",
            masquerade::TABLE
        ))
    } else {
        Finding::problem(format!(
            "masquerading: the nftables table {} is missing, so that pods reach nothing outside the cluster: restart the agent, and \
             look for a firewall that deletes the tables of others",
            masquerade::TABLE
        ))
    })
}

/// Routes of others that overlap those to the pods of other nodes, or the range of this node's own pods.
fn route_finding(routes: &[HostRoute], configuration: Option<&Value>) -> Finding {
    let to_nodes: Vec<Cidr> = routes
        .iter()
        .filter(|route| route.is_ours)
        .map(|route| route.destination)
        .collect();
    let own = configuration.and_then(own_range);
    let mut others = routes
        .iter()
        .filter(|route| !route.is_ours && !route.is_host && route.destination.bits() > 0)
        .map(|route| route.destination);
    let hiding = others.find_map(|route| {
        let mut pods = to_nodes.iter().chain(&own);
        Some((route, *pods.find(|pods| pods.overlaps(route))?))
    });
    match hiding {
        Some((route, pods)) => Finding::problem(format!(
            "routes: the route {route} overlaps the pods' range {pods}: remove it, or start `kennel up` with another --cluster-cidr"
        )),
        None => Finding::ok(format!("routes: {} to pods of other nodes", to_nodes.len())),
    }
}

/// The range of this node's pods, as our CNI configuration has it.
fn own_range(configuration: &Value) -> Option<Cidr> {
    let subnet = &configuration["plugins"][0]["ipam"]["ranges"][0][0]["subnet"];
    subnet.as_str()?.parse().ok()
}
