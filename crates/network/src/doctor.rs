//! Checks the pod network of this machine from outside, and says what to do. Changes nothing.

mod packets;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use kennel_core::cidr::Cidr;
pub(crate) use packets::VxlanMtu;
use serde_json::Value;

use crate::kernel::{HostRoute, Kernel};
use crate::{Error, cni, firewall, lock, masquerade, sysctl};

/// For one answer of a name server.
const DNS_TIMEOUT: Duration = Duration::from_secs(2);

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
    findings.push(packets::forwarded(
        &firewall::refusing_forwarded()?,
        firewall::legacy(),
    ));
    if vxlan.is_some() {
        findings.extend(packets::checksums());
        findings.extend(packets::vxlan(&kernel, &routes).await?);
    }
    findings.push(packets::reverse_path());
    findings.push(names(options));
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
                "CNI: the plugin {} is missing, so that host ports of pods lead nowhere: install it (Debian: \
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

fn names(options: &Options) -> Finding {
    let (server, name) = (options.dns, &options.name);
    match resolve(server, name) {
        Ok(addresses) if addresses.is_empty() => Finding::problem(format!(
            "names: {server} answers, and knows no {name}: is its domain another one (--cluster-domain)?"
        )),
        Ok(addresses) => {
            let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            Finding::ok(format!(
                "names: {server} says that {name} is {}",
                shown.join(", ")
            ))
        }
        Err(error) => Finding::problem(format!(
            "names: the cluster's DNS at {server} does not answer ({error}): check `kubectl get service -n kube-system kube-dns`, and \
             the agent's service proxy"
        )),
    }
}

fn resolve(server: Ipv4Addr, name: &str) -> io::Result<Vec<Ipv4Addr>> {
    use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, TYPE, rdata::RData};
    let invalid = |error: simple_dns::SimpleDnsError| io::Error::other(error.to_string());
    let mut query = Packet::new_query(0x6b65);
    query.set_flags(simple_dns::PacketFlag::RECURSION_DESIRED);
    let kind = (QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN));
    let name = Name::new(name).map_err(invalid)?;
    query
        .questions
        .push(Question::new(name, kind.0, kind.1, false));
    let socket = UdpSocket::bind(SocketAddr::from(([0; 4], 0)))?;
    socket.set_read_timeout(Some(DNS_TIMEOUT))?;
    socket.connect(SocketAddr::new(IpAddr::V4(server), 53))?;
    socket.send(&query.build_bytes_vec().map_err(invalid)?)?;
    let mut bytes = [0; 1500];
    let length = socket.recv(&mut bytes)?;
    let answer = Packet::parse(&bytes[..length]).map_err(invalid)?;
    let addresses = answer
        .answers
        .iter()
        .filter_map(|record| match &record.rdata {
            RData::A(a) => Some(Ipv4Addr::from(a.address)),
            _ => None,
        });
    Ok(addresses.collect())
}
