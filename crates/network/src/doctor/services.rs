//! Checks of services from this machine: the rules that route them, a way to their addresses, and their names.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::io::Errno;

use super::{Finding, Options};
use crate::{Error, firewall};

/// For one answer of a name server.
const DNS_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the agent routes services, and this machine's own programs can reach them: rules change the destination of a packet that has
/// a route already. `address` is one of the range of services.
pub(super) fn rules(address: Ipv4Addr) -> Result<Finding, Error> {
    if !firewall::has_services()? {
        return Ok(Finding::ok(
            "services: there is no nftables table kennel-services, so the agent routes none here (--proxy=none, or not as root)",
        ));
    }
    Ok(way(address, has_route(address)))
}

fn way(address: Ipv4Addr, has_route: bool) -> Finding {
    if has_route {
        return Finding::ok("services: by the nftables table kennel-services");
    }
    Finding::problem(format!(
        "services: this machine has no route to {address}, so that what runs on it outside of pods reaches no service: add a default \
         route, or one to the range of services by any device"
    ))
}

/// Asks the kernel, and sends nothing.
fn has_route(address: Ipv4Addr) -> bool {
    let socket = UdpSocket::bind(SocketAddr::from(([0; 4], 0)));
    let connected = socket.and_then(|socket| socket.connect((address, 53)));
    let unreachable = Some(Errno::NETUNREACH.raw_os_error());
    !connected.is_err_and(|error| error.raw_os_error() == unreachable)
}

/// `known` are the addresses of services with a port for DNS.
pub(super) fn names(options: &Options, known: &[Ipv4Addr]) -> Finding {
    answer(options, known, resolve(options.dns, &options.name))
}

pub(super) fn answer(
    options: &Options,
    known: &[Ipv4Addr],
    resolved: io::Result<Vec<Ipv4Addr>>,
) -> Finding {
    let (server, name) = (options.dns, &options.name);
    let show = |all: &[Ipv4Addr]| {
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        shown.join(", ")
    };
    match resolved {
        Ok(addresses) if addresses.is_empty() => Finding::problem(format!(
            "names: {server} answers, and knows no {name}: if the cluster's domain is another one, repeat this with its \
             --cluster-domain; pods need the same with the agent"
        )),
        Ok(addresses) => Finding::ok(format!(
            "names: {server} says that {name} is {}",
            show(&addresses)
        )),
        Err(error) if !known.is_empty() && !known.contains(&server) => Finding::problem(format!(
            "names: {server} does not answer ({error}), and no service here has that address and port 53; {} has: if that is the \
             cluster's DNS, repeat this with --cluster-dns {}",
            show(known),
            show(&known[..1])
        )),
        Err(error) => Finding::problem(format!(
            "names: the cluster's DNS at {server} does not answer ({error}): check `kubectl get service -n kube-system kube-dns`, and \
             the agent's service proxy; if the Service has another address, repeat this with --cluster-dns"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni;

    fn options() -> Options {
        Options {
            places: cni::Places::default(),
            dns: Ipv4Addr::new(10, 96, 0, 10),
            name: "kubernetes.default.svc.cluster.local".to_owned(),
        }
    }

    #[test]
    fn answers_say_what_to_do() {
        let check = |known: &[Ipv4Addr], resolved: Option<&[Ipv4Addr]>, is_ok, said: &str| {
            let resolved = resolved.ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut));
            let found = answer(&options(), known, resolved.map(<[Ipv4Addr]>::to_vec));
            assert!(
                found.is_ok == is_ok && found.text.contains(said),
                "{found:?}"
            );
        };
        let (usual, other) = (Ipv4Addr::new(10, 96, 0, 10), Ipv4Addr::new(10, 50, 0, 10));
        check(
            &[],
            Some(&[Ipv4Addr::new(10, 96, 0, 1)]),
            true,
            "is 10.96.0.1",
        );
        let unknown = "10.96.0.10 answers, and knows no kubernetes.default.svc.cluster.local";
        check(&[usual], Some(&[]), false, unknown);
        check(
            &[],
            None,
            false,
            "kubectl get service -n kube-system kube-dns",
        );
        check(&[usual], None, false, "the agent's service proxy");
        check(
            &[other],
            None,
            false,
            "repeat this with --cluster-dns 10.50.0.10",
        );
    }

    #[test]
    fn a_machine_without_a_route_to_services_is_told() {
        let address = Ipv4Addr::new(10, 96, 0, 10);
        assert!(way(address, true).is_ok);
        let found = way(address, false);
        assert!(
            !found.is_ok && found.text.contains("no route to 10.96.0.10"),
            "{found:?}"
        );
        if crate::tests::own_network() {
            assert!(!has_route(address));
            let script = "ip link add eth0 type bridge; ip link set eth0 up; ip addr add 10.0.0.1/24 dev eth0; ip route add 10.96.0.0/16 dev eth0";
            crate::tests::lines(script);
            assert!(has_route(address));
        }
    }
}
