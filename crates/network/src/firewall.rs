//! Rules of others that refuse packets: which chains do, and which services have node ports. Changes nothing.

use std::collections::BTreeSet;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use kennel_core::cidr::Cidr;
use kennel_nftables::netlink::{Failure, Socket};
use kennel_nftables::nft::{
    BaseChain, Outcome, Packets, Verdict, element_messages, elements_in, outcome_in, rule_messages,
};

use crate::Error;
use crate::masquerade::{dump_chains, failure, open};

/// Names of iptables tables of the old kernel interface, which nftables does not show.
const LEGACY_TABLES: &str = "/proc/net/ip_tables_names";
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;
/// Chains that call each other: as many as the kernel allows.
const DEPTH_MAX: usize = 16;
/// The table of services, its map of cluster IPs, and those of node ports.
const SERVICES: &str = "kennel-services";
const CLUSTER_IPS: &str = "cluster-ips";
const NODE_PORTS: [&str; 2] = ["node-ports", "host-node-ports"];

/// Chains that refuse packets which this machine forwards from or to `pods`, or which no rule of them accepts if there is no such
/// range: `table filter, chain forward`.
pub fn refusing_forwarded(pods: Option<Cidr>) -> Result<Vec<String>, Error> {
    let kinds = pods.map_or(vec![Packets::Any], |pods| {
        let (block, mask) = (pods.base(), pods.mask());
        vec![Packets::From { block, mask }, Packets::To { block, mask }]
    });
    refusing(BaseChain::sees_forwarded, &kinds)
}

/// Chains that refuse packets for this machine which no rule of them accepts.
pub fn refusing_incoming() -> Result<Vec<String>, Error> {
    refusing(BaseChain::sees_incoming, &[Packets::Any])
}

fn refusing(sees: fn(&BaseChain) -> bool, kinds: &[Packets]) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut socket = open()?;
    for chain in dump_chains()?.iter().filter(|chain| sees(chain)) {
        for packets in kinds {
            let ends = follow(&mut socket, chain, &chain.name, *packets, 0)?;
            if ends.unwrap_or(chain.policy()) == Verdict::Refuse {
                names.push(format!("table {}, chain {}", chain.table, chain.name));
                break;
            }
        }
    }
    Ok(names)
}

/// What a chain does with every one of the packets; `None` if they come to its end, as far as is known.
fn follow(
    socket: &mut Socket,
    base: &BaseChain,
    name: &str,
    packets: Packets,
    depth: usize,
) -> Result<Option<Verdict>, Error> {
    if depth == DEPTH_MAX {
        return Ok(None);
    }
    let mut outcomes = Vec::new();
    let request = rule_messages(socket.request(), base, name);
    let done = socket.dump(&request, |rule| outcomes.extend(outcome_in(rule, packets)));
    done.map_err(|error| failure("read the rules of nftables", error))?;
    for outcome in outcomes {
        let ends = match &outcome {
            Outcome::Ends(verdict) => return Ok(Some(*verdict)),
            Outcome::Return => return Ok(None),
            Outcome::Jump(to) | Outcome::Goto(to) => follow(socket, base, to, packets, depth + 1)?,
        };
        if ends.is_some() || matches!(outcome, Outcome::Goto(_)) {
            return Ok(ends);
        }
    }
    Ok(None)
}

/// Whether the rules of services on this machine have node ports.
pub(crate) fn has_node_ports() -> Result<bool, Error> {
    let mut socket = open()?;
    let mut count = 0;
    for map in NODE_PORTS {
        let request = element_messages(socket.request(), SERVICES, map);
        match socket.dump(&request, |message| count += elements_in(message).count()) {
            Err(Failure::Refused(error)) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|error| failure("read the rules of services", error))?,
        }
    }
    Ok(count > 0)
}

/// Whether the agent routes services on this machine.
pub(crate) fn has_services() -> Result<bool, Error> {
    Ok(dump_chains()?.iter().any(|chain| chain.table == SERVICES))
}

/// The cluster IPs with a port for DNS over UDP, of the services that are routed here.
pub(crate) fn dns_services() -> Result<Vec<Ipv4Addr>, Error> {
    let mut socket = open()?;
    let mut found = BTreeSet::new();
    let request = element_messages(socket.request(), SERVICES, CLUSTER_IPS);
    let read = socket.dump(&request, |message| {
        found.extend(elements_in(message).filter_map(|one| dns_address(one.key.bytes())));
    });
    match read {
        Err(Failure::Refused(error)) if error.kind() == io::ErrorKind::NotFound => {}
        read => read.map_err(|error| failure("read the rules of services", error))?,
    }
    Ok(found.into_iter().collect())
}

/// The address of a key with an address, a protocol and a port, in words of four bytes, if they are those of DNS.
fn dns_address(key: &[u8]) -> Option<Ipv4Addr> {
    let (address, rest) = key.split_first_chunk::<4>()?;
    let is_dns = rest.first() == Some(&UDP) && rest.get(4..6) == Some(&DNS_PORT.to_be_bytes());
    is_dns.then_some(Ipv4Addr::from(*address))
}

/// What the rules of iptables-legacy do with forwarded packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Legacy {
    /// There are none, or they let them pass.
    Forwards,
    Refuses,
    /// There are some, and no program that lists them.
    NotSeen,
}

/// `pods` as for [`refusing_forwarded`].
pub(crate) fn legacy(pods: Option<Cidr>) -> Legacy {
    let tables = std::fs::read_to_string(LEGACY_TABLES).unwrap_or_default();
    if !tables.lines().any(|table| table == "filter") {
        return Legacy::Forwards;
    }
    // The kernel has no other interface for them than the program's own.
    let listed = Command::new("iptables-legacy").arg("-S").output();
    match listed {
        Ok(listed) if listed.status.success() => {
            legacy_rules(&String::from_utf8_lossy(&listed.stdout), pods)
        }
        _ => Legacy::NotSeen,
    }
}

/// `listing` is that of `iptables-legacy -S`: policies and chains, then rules.
fn legacy_rules(listing: &str, pods: Option<Cidr>) -> Legacy {
    let policy = listing.contains("-P FORWARD DROP");
    let accepts = |side: Option<&str>| {
        let ends = legacy_chain(listing, "FORWARD", side.zip(pods), 0);
        ends.unwrap_or(!policy)
    };
    let is_fine = match pods {
        Some(_) => accepts(Some("-s")) && accepts(Some("-d")),
        None => accepts(None),
    };
    if is_fine {
        Legacy::Forwards
    } else {
        Legacy::Refuses
    }
}

/// Whether a chain accepts every packet of which this end lies in this range; `None` if they come to its end, as far as is known.
fn legacy_chain(
    listing: &str,
    chain: &str,
    packets: Option<(&str, Cidr)>,
    depth: usize,
) -> Option<bool> {
    if depth == DEPTH_MAX {
        return None;
    }
    for line in listing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["-A", of, rest @ ..] = words.as_slice() else {
            continue;
        };
        let target = match (rest, packets) {
            _ if *of != chain => continue,
            (["-j" | "-g", target, ..], _) => *target,
            ([side, range, "-j" | "-g", target, ..], Some((known, pods)))
                if *side == known && is_within(pods, range) =>
            {
                *target
            }
            _ => continue,
        };
        let ends = match target {
            "ACCEPT" => Some(true),
            "DROP" | "REJECT" => Some(false),
            "RETURN" => return None,
            other => legacy_chain(listing, other, packets, depth + 1),
        };
        if ends.is_some() || rest.contains(&"-g") {
            return ends;
        }
    }
    None
}

fn is_within(pods: Cidr, range: &str) -> bool {
    let range = range.parse::<Cidr>();
    range.is_ok_and(|range| range.bits() <= pods.bits() && range.contains(pods.base()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_or_a_rule_for_all_packets_decides() {
        let check = |listing: &str, expected| {
            assert_eq!(legacy_rules(listing, None), expected, "{listing}");
        };
        check("", Legacy::Forwards);
        check("-P FORWARD ACCEPT\n", Legacy::Forwards);
        check(
            "-P FORWARD DROP\n-A FORWARD -s 10.0.0.0/8 -j ACCEPT\n",
            Legacy::Refuses,
        );
        check("-P FORWARD DROP\n-A FORWARD -j ACCEPT\n", Legacy::Forwards);
        let reject = "-A FORWARD -j REJECT --reject-with icmp-host-prohibited\n";
        check(
            &format!("-P FORWARD ACCEPT\n-A FORWARD -i lo -j DROP\n{reject}"),
            Legacy::Refuses,
        );
        check(
            "-P FORWARD ACCEPT\n-A FORWARD -i lo -j DROP\n",
            Legacy::Forwards,
        );
    }

    #[test]
    fn rules_that_accept_the_pods_in_both_directions_suffice() {
        let pods: Cidr = "10.128.3.0/24".parse().unwrap();
        let check = |rules: &[&str], expected| {
            let listing = format!("-P FORWARD DROP\n-N ours\n-N other\n{}\n", rules.join("\n"));
            assert_eq!(legacy_rules(&listing, Some(pods)), expected, "{listing}");
        };
        let (from, to) = (
            "-A ours -s 10.128.0.0/9 -j ACCEPT",
            "-A ours -d 10.128.3.0/24 -j ACCEPT",
        );
        check(&["-A FORWARD -j ours", from, to], Legacy::Forwards);
        check(&["-A FORWARD -j ours", from], Legacy::Refuses);
        check(&[from, to], Legacy::Refuses);
        check(&["-A FORWARD -o eth0 -j ours", from, to], Legacy::Refuses);
        check(
            &[
                "-A FORWARD -j other",
                "-A other -j RETURN",
                "-A FORWARD -g ours",
                from,
                to,
            ],
            Legacy::Forwards,
        );
        check(
            &["-A FORWARD -j DROP", "-A FORWARD -j ours", from, to],
            Legacy::Refuses,
        );
        let less = "-A ours -d 10.128.3.0/25 -j ACCEPT";
        check(&["-A FORWARD -j ours", from, less], Legacy::Refuses);
    }

    #[test]
    fn chains_of_nftables_are_followed() {
        if !crate::tests::own_network() {
            return;
        }
        let pods: Cidr = "10.128.3.0/24".parse().unwrap();
        let check = |rules: &str, pods: Option<Cidr>, expected: bool| {
            let table = format!(
                "flush ruleset; table ip filter {{ chain ours {{ {rules} }}; chain forward {{ type filter hook forward \
                 priority 0; policy drop; ct state established accept; counter jump ours; }}; }}"
            );
            let done = Command::new("nft").arg(&table).status().unwrap();
            assert!(done.success(), "{table}");
            let refusing = refusing_forwarded(pods).unwrap();
            assert_eq!(refusing.is_empty(), expected, "{rules}: {refusing:?}");
        };
        let of = Some(pods);
        check("", of, false);
        check("accept;", of, true);
        check("accept;", None, true);
        let both = "ip saddr 10.128.0.0/9 counter accept; ip daddr 10.128.3.0/24 accept;";
        check(both, of, true);
        check(both, None, false);
        check(&format!("ip saddr 10.0.0.0/8 drop; {both}"), of, false);
        check(&format!("ip saddr 192.0.2.0/24 drop; {both}"), of, true);
        check(&format!("return; {both}"), of, false);
        check("ip saddr 10.128.0.0/9 accept;", of, false);
        check(
            "ip saddr 10.128.0.0/9 accept; ip daddr 10.128.3.0/25 accept;",
            of,
            false,
        );
        check(
            "ip saddr 10.128.0.0/16 accept; ip daddr != 10.0.0.0/8 accept;",
            of,
            false,
        );
        check(
            "iifname \"eth0\" ip saddr 10.128.0.0/9 accept; ip daddr 10.128.0.0/9 accept;",
            of,
            false,
        );
    }
}
