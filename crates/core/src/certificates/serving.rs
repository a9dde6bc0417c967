//! Automatic approval of the serving certificates of nodes. Upstream leaves them to the administrator.
//!
//! A node reports its own addresses. So that a compromised node cannot impersonate another server, it gets no
//! certificate for names and addresses of the API server, for names of services, and for names that are not its own. An
//! address counts as its own if its request came from there, or if an administrator has confirmed it.

use std::net::IpAddr;

use super::{CertificateRequest, NODE_USER, Signer};

/// The key in a requester's `extra` with the address that the request came from.
pub const SOURCE_ADDRESS: &str = "kennel.dev/source-address";
/// The annotation of a Node with the addresses that an administrator has confirmed, comma-separated. Nodes may not
/// write it.
pub const CONFIRMED_ADDRESSES: &str = "kennel.dev/confirmed-addresses";

/// Of the approval.
pub const MESSAGE: &str =
    "Auto approving kubelet serving certificate for the node's own addresses.";

/// Of a node, from the Node object; or those that no node gets a certificate for, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Host names and DNS names.
    pub names: Vec<String>,
    pub addresses: Vec<IpAddr>,
}

/// The addresses in a comma-separated list. Others are ignored.
pub fn addresses_in(text: &str) -> Vec<IpAddr> {
    let all = text.split(',').map(str::trim);
    all.filter_map(|one| one.parse().ok()).collect()
}

/// The name of the node, if it requests a serving certificate for itself.
pub fn node_of(asked: &CertificateRequest) -> Option<&str> {
    let own = asked.username == asked.common_name;
    let valid = own && asked.rejection(Signer::KubeletServing).is_none();
    let name = asked.username.strip_prefix(NODE_USER)?;
    (valid && is_name(name)).then_some(name)
}

/// Whether the name is valid, so that it can be used in a request path.
fn is_name(name: &str) -> bool {
    let allowed = |one: char| matches!(one, 'a'..='z' | '0'..='9' | '-' | '.');
    name.starts_with(|one: char| one.is_ascii_alphanumeric()) && name.chars().all(allowed)
}

/// Why the request is not approved automatically. `shown` are the addresses that the node has shown to be its own.
pub fn rejection(
    asked: &CertificateRequest,
    node: &str,
    own: &Names,
    shown: &[IpAddr],
    reserved: &Names,
) -> Option<String> {
    let names = asked.dns_names.iter();
    let by_name = names.filter_map(|name| name_rejection(name, node, own, reserved));
    let addresses = asked.addresses.iter();
    let by_address =
        addresses.filter_map(|address| address_rejection(*address, own, shown, reserved));
    by_name.chain(by_address).next()
}

fn name_rejection(name: &str, node: &str, own: &Names, reserved: &Names) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let node = node.to_ascii_lowercase();
    let is_own = || own.names.iter().any(|own| own.eq_ignore_ascii_case(&name));
    let of_own = name
        .strip_prefix(&*node)
        .is_some_and(|rest| rest.starts_with('.'));
    if reserved.names.contains(&name) || is_service(&name) || !is_name(&name) {
        Some(format!("{name} is not a node's name"))
    } else if name == node || (of_own && is_own()) {
        None
    } else {
        Some(format!("{name} is not a name of node {node}"))
    }
}

/// Names of services: `a.b.svc` and all below a cluster's domain.
fn is_service(name: &str) -> bool {
    name.split('.').any(|label| label == "svc") || name.ends_with(".cluster.local")
}

fn address_rejection(
    address: IpAddr,
    own: &Names,
    shown: &[IpAddr],
    reserved: &Names,
) -> Option<String> {
    // Many readers of certificates take an IPv4 address written as an IPv6 one for the former.
    let among = |all: &[IpAddr]| {
        let mut all = all.iter();
        all.any(|one| one.to_canonical() == address.to_canonical())
    };
    if !own.addresses.contains(&address) {
        Some(format!("{address} is not an address of the node"))
    } else if among(&reserved.addresses) && !address.to_canonical().is_loopback() {
        // A loopback address impersonates no other machine.
        Some(format!("{address} is the API server's"))
    } else if among(shown) || address.to_canonical().is_loopback() {
        None
    } else {
        Some(format!(
            "the node has not shown that {address} is its own: the request came from another address. To confirm it, \
             annotate the Node with {CONFIRMED_ADDRESSES}={address}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::NODES;
    use super::*;

    fn asked(user: &str, names: &[&str], addresses: &[&str]) -> CertificateRequest {
        CertificateRequest {
            username: user.to_owned(),
            usages: vec!["digital signature".to_owned(), "server auth".to_owned()],
            common_name: "system:node:n1".to_owned(),
            organisations: vec![NODES.to_owned()],
            dns_names: names.iter().map(|name| (*name).to_owned()).collect(),
            addresses: addresses.iter().map(|one| one.parse().unwrap()).collect(),
            ..CertificateRequest::default()
        }
    }

    #[test]
    fn a_node_asks_for_itself() {
        let check = |user: &str, names: &[&str], expected: Option<&str>| {
            let mut asked = asked(user, names, &[]);
            if user.starts_with("system:node:n1") {
                asked.common_name = user.to_owned();
            }
            assert_eq!(node_of(&asked), expected, "{user} {names:?}");
        };
        check("system:node:n1?x=", &["n1"], None);
        check("system:node:n1/status", &["n1"], None);
        check("system:node:n1/../n2", &["n1"], None);
        check("system:node:n1", &["n1"], Some("n1"));
        check("system:node:n2", &["n1"], None);
        check("alice", &["n1"], None);
        check("system:node:n1", &[], None);
    }

    #[test]
    fn only_what_is_surely_the_nodes_own() {
        let own = Names {
            names: ["n1", "n1.lan", "other", "n1.ns.svc", "n1.cluster.local"]
                .map(str::to_owned)
                .to_vec(),
            addresses: [
                "10.0.0.1",
                "10.0.0.9",
                "::ffff:10.0.0.9",
                "127.0.0.1",
                "fd00::1",
            ]
            .map(|text| text.parse().unwrap())
            .to_vec(),
        };
        let reserved = Names {
            names: vec!["kubernetes".to_owned()],
            addresses: ["10.0.0.9", "127.0.0.1"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
        };
        let check = |names: &[&str], addresses: &[&str], expected: Option<&str>| {
            let asked = asked("system:node:n1", names, addresses);
            let shown = ["10.0.0.1", "10.0.0.9", "fd00::1"].map(|text| text.parse().unwrap());
            let found = rejection(&asked, "n1", &own, &shown, &reserved);
            assert_eq!(found.as_deref(), expected, "{names:?} {addresses:?}");
        };
        check(&["n1", "N1.lan"], &["10.0.0.1", "fd00::1"], None);
        check(&["n1"], &["127.0.0.1"], None);
        check(&["n2"], &[], Some("n2 is not a name of node n1"));
        check(&["n1.wan"], &[], Some("n1.wan is not a name of node n1"));
        check(&["n1.*"], &[], Some("n1.* is not a node's name"));
        // It says so itself, but it is not made of its name.
        check(&["other"], &[], Some("other is not a name of node n1"));
        check(&["n1.ns.svc"], &[], Some("n1.ns.svc is not a node's name"));
        let local = "n1.cluster.local";
        check(&[local], &[], Some("n1.cluster.local is not a node's name"));
        check(
            &[],
            &["10.0.0.2"],
            Some("10.0.0.2 is not an address of the node"),
        );
        check(&[], &["10.0.0.9"], Some("10.0.0.9 is the API server's"));
        let mapped = "::ffff:10.0.0.9";
        check(&[], &[mapped], Some("::ffff:10.0.0.9 is the API server's"));
        check(
            &["n1"],
            &["10.0.0.1", "10.0.0.2"],
            Some("10.0.0.2 is not an address of the node"),
        );
    }

    #[test]
    fn a_node_with_a_name_of_the_server_is_rejected() {
        let reserved = Names {
            names: vec!["kubernetes".to_owned()],
            ..Names::default()
        };
        let own = Names::default();
        for node in ["kubernetes", "kubernetes.default.svc"] {
            let asked = asked("system:node:kubernetes", &[node], &[]);
            assert!(
                rejection(&asked, node, &own, &[], &reserved).is_some(),
                "{node}"
            );
        }
    }

    #[test]
    fn an_address_must_be_shown() {
        let own = Names {
            addresses: addresses_in("10.0.0.1, 10.0.0.2,::1"),
            ..Names::default()
        };
        let check = |address: &str, shown: &str, approved: bool| {
            let asked = asked("system:node:n1", &["n1"], &[address]);
            let shown = addresses_in(shown);
            let found = rejection(&asked, "n1", &own, &shown, &Names::default());
            assert_eq!(found.is_none(), approved, "{address} {shown:?} {found:?}");
        };
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "::ffff:10.0.0.1", true);
        // Another node's, though its own Node object claims it.
        check("10.0.0.2", "10.0.0.1", false);
        check("10.0.0.2", "10.0.0.1,10.0.0.2", true);
        check("10.0.0.2", "nonsense,", false);
        check("::1", "", true);
    }
}
