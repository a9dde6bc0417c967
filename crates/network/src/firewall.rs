//! Rules of others that refuse packets: which chains do, and which services have node ports. Changes nothing.

use std::io;
use std::process::Command;

use kennel_nftables::netlink::Failure;
use kennel_nftables::nft::{
    BaseChain, Verdict, element_messages, elements_in, rule_messages, verdict_in,
};

use crate::Error;
use crate::masquerade::{dump_chains, failure, open};

/// Names of iptables tables of the old kernel interface, which nftables does not show.
const LEGACY_TABLES: &str = "/proc/net/ip_tables_names";
/// The table of services, and its maps of node ports.
const SERVICES: &str = "kennel-services";
const NODE_PORTS: [&str; 2] = ["node-ports", "host-node-ports"];

/// Chains that refuse packets which this machine forwards and no rule of them accepts: `table filter, chain forward`.
pub fn refusing_forwarded() -> Result<Vec<String>, Error> {
    refusing(BaseChain::sees_forwarded)
}

/// The same, for packets that this machine is to get itself.
pub fn refusing_incoming() -> Result<Vec<String>, Error> {
    refusing(BaseChain::sees_incoming)
}

fn refusing(sees: fn(&BaseChain) -> bool) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for chain in dump_chains()?.iter().filter(|chain| sees(chain)) {
        if last_word(chain)? == Verdict::Refuse {
            names.push(format!("table {}, chain {}", chain.table, chain.name));
        }
    }
    Ok(names)
}

/// What happens to packets that no rule of a chain takes: the first rule for all of them says so, or else the policy.
fn last_word(chain: &BaseChain) -> Result<Verdict, Error> {
    let mut socket = open()?;
    let mut verdict = None;
    let request = rule_messages(socket.request(), chain);
    let done = socket.dump(&request, |rule| verdict = verdict.or(verdict_in(rule)));
    done.map_err(|error| failure("read the rules of nftables", error))?;
    Ok(verdict.unwrap_or(chain.policy()))
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

/// What the rules of iptables-legacy do with forwarded packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Legacy {
    /// There are none, or they let them pass.
    Forwards,
    Refuses,
    /// There are some, and no program that lists them.
    NotSeen,
}

pub(crate) fn legacy() -> Legacy {
    let tables = std::fs::read_to_string(LEGACY_TABLES).unwrap_or_default();
    if !tables.lines().any(|table| table == "filter") {
        return Legacy::Forwards;
    }
    // The kernel has no other interface for them than the program's own.
    let listed = Command::new("iptables-legacy")
        .args(["-S", "FORWARD"])
        .output();
    match listed {
        Ok(listed) if listed.status.success() => {
            legacy_rules(&String::from_utf8_lossy(&listed.stdout))
        }
        _ => Legacy::NotSeen,
    }
}

/// `listing` is that of `iptables-legacy -S FORWARD`: the policy, then rules.
fn legacy_rules(listing: &str) -> Legacy {
    let mut refuses = false;
    for line in listing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["-P", _, policy] => refuses = *policy == "DROP",
            ["-A", _, "-j", "ACCEPT"] => return Legacy::Forwards,
            ["-A", _, "-j", "DROP" | "REJECT", ..] => return Legacy::Refuses,
            _ => {}
        }
    }
    if refuses {
        Legacy::Refuses
    } else {
        Legacy::Forwards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_or_a_rule_for_all_packets_decides() {
        let check = |listing: &str, expected| {
            assert_eq!(legacy_rules(listing), expected, "{listing}");
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
}
