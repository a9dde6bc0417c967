//! Our table without any service: its chains, sets and maps, and their names.
//!
//! ```text
//!   prerouting, output ─▶ cluster-ips: address, protocol, port ─▶ cluster-4: of 3 or 4 endpoints, a random one
//!     not a port of a service, but its address ─▶ unused-port       in cluster-endpoints: index, address, protocol, port
//!     an address of this machine ─▶ node-port-checks, likewise
//!   postrouting ─▶ masquerades what could not come back otherwise
//! ```
//!
//! A chain belongs to a number of slots, a power of two, and not to a service: services differ in elements of maps alone. The
//! endpoints of a service fill more than half of its slots; a chain tries a random slot until it finds an endpoint, which gives
//! each the same share. So a change of the endpoints seldom changes the chain: the kernel would validate the verdicts of all
//! services again. Session affinity takes chains of its own.

use kennel_core::services::Scope;

use crate::nft::{
    DESTINATION_CHANGED, Expression, Hook, LOCAL, MASQUERADE_MARK, MapData, Register, SetKind,
    Transaction,
};
use crate::plan::Endpoint;

/// The name of our table, of the family `ip`.
pub const TABLE: &str = "kennel-services";

/// Addresses of services.
pub(crate) const CLUSTER_ADDRESSES: &str = "cluster-addresses";
/// Pairs of an endpoint's address with itself: endpoints that may be on this node.
pub(crate) const HAIRPINS: &str = "hairpins";
/// Node ports whose endpoints see this node's address.
pub(crate) const MASQUERADED_PORTS: &str = "masqueraded-node-ports";

pub(crate) const REFUSE: &str = "refuse";
const UNUSED_PORT: &str = "unused-port";
const NODE_PORTS: &str = "node-port-checks";
const HOST_NODE_PORTS: &str = "host-node-port-checks";

/// Random slots that are tried. More than half are filled, so that one connection in a thousand, at most, ends with the first.
const TRIES: usize = 10;
/// Numbers of slots up to this are numbers of endpoints, too: all are filled.
const ALWAYS_FULL: u32 = 2;

/// Clients that a service with session affinity remembers.
const AFFINITY_CLIENTS_MAX: u32 = 65_536;

// As `nft` numbers types.
const ADDRESS: u32 = 7;
const PROTOCOL: u32 = 12;
const PORT: u32 = 13;
const NUMBER: u32 = 19;

const fn concatenated(types: &[u32]) -> u32 {
    let (mut all, mut index) = (0, 0);
    while index < types.len() {
        all = all << 6 | types[index];
        index += 1;
    }
    all
}

const BACKEND: MapData = MapData::Value {
    kind: concatenated(&[ADDRESS, PORT]),
    bytes: 8,
};

/// The maps of one kind of destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    ClusterIps,
    NodePorts,
    HostNodePorts,
}

impl Family {
    pub(crate) const ALL: [Self; 3] = [Self::ClusterIps, Self::NodePorts, Self::HostNodePorts];

    pub(crate) fn of(scope: Scope) -> Self {
        match scope {
            Scope::ClusterIp(_) => Self::ClusterIps,
            Scope::NodePort => Self::NodePorts,
            Scope::NodePortFromHost => Self::HostNodePorts,
        }
    }

    /// The map from destinations to chains.
    pub(crate) fn destinations(self) -> &'static str {
        match self {
            Self::ClusterIps => "cluster-ips",
            Self::NodePorts => "node-ports",
            Self::HostNodePorts => "host-node-ports",
        }
    }

    /// The map from indexes and destinations to endpoints.
    pub(crate) fn endpoints(self) -> &'static str {
        match self {
            Self::ClusterIps => "cluster-endpoints",
            Self::NodePorts => "node-port-endpoints",
            Self::HostNodePorts => "host-node-port-endpoints",
        }
    }

    /// The chain of destinations with so many slots.
    pub(crate) fn chain(self, slots: u32) -> String {
        match self {
            Self::ClusterIps => format!("cluster-{slots}"),
            Self::NodePorts => format!("node-port-{slots}"),
            Self::HostNodePorts => format!("host-node-port-{slots}"),
        }
    }

    fn key(self) -> (u32, u32) {
        match self {
            Self::ClusterIps => (concatenated(&[ADDRESS, PROTOCOL, PORT]), 12),
            Self::NodePorts | Self::HostNodePorts => (concatenated(&[PROTOCOL, PORT]), 8),
        }
    }

    /// Loads a packet's key into registers from this one on, of which it takes at most three.
    fn load_key(self, to: Register) -> Vec<Expression> {
        let rest = |to: Register| {
            [
                Expression::LoadProtocol(to),
                Expression::LoadDestinationPort(to.plus(1)),
            ]
        };
        match self {
            Self::ClusterIps => std::iter::once(Expression::LoadDestination(to))
                .chain(rest(to.plus(1)))
                .collect(),
            Self::NodePorts | Self::HostNodePorts => rest(to).into(),
        }
    }

    /// Goes to the chain of the destination.
    fn route(self) -> Vec<Expression> {
        let key = Register(0);
        let mut rule = self.load_key(key);
        rule.push(Expression::Follow(self.destinations().to_owned(), key));
        rule
    }

    /// The rules of the chain of so many slots: each chooses one, and the next is for those that find it empty.
    pub(crate) fn forward(self, slots: u32) -> Vec<Vec<Expression>> {
        if slots <= ALWAYS_FULL {
            return vec![self.forward_to_one_of(slots)];
        }
        let mut rules = vec![self.forward_to_one_of(slots); TRIES];
        rules.push(self.forward_to_one_of(1));
        rules
    }

    /// Forwards to the endpoint in a random one of the first slots, if there is one.
    fn forward_to_one_of(self, slots: u32) -> Vec<Expression> {
        let (key, mut rule) = (Register(0), self.mark());
        rule.push(Expression::LoadRandom(key, slots));
        rule.extend(self.load_key(key.plus(1)));
        rule.push(Expression::LoadFrom(
            self.endpoints().to_owned(),
            key,
            ENDPOINT,
        ));
        rule.push(Expression::Redirect(ENDPOINT, ENDPOINT.plus(1)));
        rule
    }

    /// What chains of this family begin with.
    fn mark(self) -> Vec<Expression> {
        match self {
            Self::ClusterIps | Self::NodePorts => Vec::new(),
            Self::HostNodePorts => mark(Register(0)),
        }
    }

    /// The rules of a destination with session affinity: chooses one of so many chains.
    pub(crate) fn choose(self, chain: &str, count: u32) -> Vec<Vec<Expression>> {
        let rules = (0..count).map(|index| {
            let mut rule = if index == 0 { self.mark() } else { Vec::new() };
            rule.push(Expression::LoadRandom(Register(0), count - index));
            rule.push(Expression::Equals(Register(0), 0));
            rule.push(Expression::Goto(affinity_chain(chain, index)));
            rule
        });
        rules.collect()
    }
}

/// The chain of an endpoint of a destination with session affinity.
pub(crate) fn affinity_chain(chain: &str, index: u32) -> String {
    format!("{chain}-{index}")
}

/// The rules of [`affinity_chain`]. A client that is new gets the endpoint; one that is known keeps its own, and for the whole
/// timeout again. Two connections at once of a new client go to the same endpoint: the second rule reads what the first of them
/// stored. Clients beyond the map's size get another endpoint each time.
pub(crate) fn keep(map: &str, (address, port): Endpoint, timeout: u64) -> [Vec<Expression>; 3] {
    let chosen = [
        Expression::LoadAddress(ENDPOINT, address),
        Expression::LoadPort(ENDPOINT.plus(1), port),
    ];
    let redirect = Expression::Redirect(ENDPOINT, ENDPOINT.plus(1));
    let mut remember = vec![Expression::LoadSource(CLIENT)];
    remember.extend(chosen.clone());
    remember.push(Expression::Remember {
        map: map.to_owned(),
        key: CLIENT,
        value: ENDPOINT,
        timeout,
    });
    let kept = vec![
        Expression::LoadSource(CLIENT),
        Expression::LoadFrom(map.to_owned(), CLIENT, ENDPOINT),
        redirect.clone(),
    ];
    let mut otherwise = chosen.to_vec();
    otherwise.push(redirect);
    [remember, kept, otherwise]
}

/// Has the packet masqueraded.
fn mark(register: Register) -> Vec<Expression> {
    vec![
        Expression::LoadMark(register),
        Expression::Bits(register, !MASQUERADE_MARK, MASQUERADE_MARK),
        Expression::StoreMark(register),
    ]
}

/// Where chains have the endpoint: its address, then its port.
const ENDPOINT: Register = Register(8);
/// Where chains have the client's address.
const CLIENT: Register = Register(12);

/// A map of clients, from their addresses to endpoints.
pub(crate) const AFFINITY_MAP: SetKind = SetKind {
    key: ADDRESS,
    key_bytes: 4,
    data: BACKEND,
    dynamic: Some(AFFINITY_CLIENTS_MAX),
};

/// Replaces the table by one without services.
pub(crate) fn replace(transaction: &mut Transaction<'_>) {
    remove(transaction);
    transaction.add_table();
    add_sets(transaction);
    add_chains(transaction);
    add_rules(transaction);
}

/// Removes the table, whether it exists or not.
pub(crate) fn remove(transaction: &mut Transaction<'_>) {
    transaction.add_table();
    transaction.delete_table();
}

fn add_sets(transaction: &mut Transaction<'_>) {
    let set = |key, key_bytes, data| SetKind {
        key,
        key_bytes,
        data,
        dynamic: None,
    };
    for family in Family::ALL {
        let (key, bytes) = family.key();
        transaction.add_set(family.destinations(), set(key, bytes, MapData::Verdict));
        // The number comes first, and keys have at most five types of six bits.
        let types = if bytes == 12 { 3 } else { 2 };
        let key = NUMBER << (6 * types) | key;
        transaction.add_set(family.endpoints(), set(key, bytes + 4, BACKEND));
    }
    transaction.add_set(CLUSTER_ADDRESSES, set(ADDRESS, 4, MapData::None));
    let pair = concatenated(&[ADDRESS, ADDRESS]);
    transaction.add_set(HAIRPINS, set(pair, 8, MapData::None));
    let (key, bytes) = Family::NodePorts.key();
    transaction.add_set(MASQUERADED_PORTS, set(key, bytes, MapData::None));
}

fn add_chains(transaction: &mut Transaction<'_>) {
    for chain in [REFUSE, UNUSED_PORT, NODE_PORTS, HOST_NODE_PORTS] {
        transaction.add_chain(chain);
    }
    transaction.add_base_chain("prerouting", Hook::Prerouting);
    transaction.add_base_chain("output", Hook::Output);
    transaction.add_base_chain("postrouting", Hook::Postrouting);
}

const TCP: u32 = 6;
const LOOPBACK: u32 = u32::from_ne_bytes([127, 0, 0, 0]);
const LOOPBACK_MASK: u32 = u32::from_ne_bytes([255, 0, 0, 0]);
/// The loopback interface of every network namespace.
const LOOPBACK_INTERFACE: u32 = 1;

fn add_rules(transaction: &mut Transaction<'_>) {
    let (one, two) = (Register(0), Register(4));
    for (chain, node_ports) in [("prerouting", NODE_PORTS), ("output", HOST_NODE_PORTS)] {
        transaction.add_rule(chain, &Family::ClusterIps.route());
        transaction.add_rule(
            chain,
            &[
                Expression::LoadDestination(one),
                Expression::In(CLUSTER_ADDRESSES.to_owned(), one),
                Expression::Goto(UNUSED_PORT.to_owned()),
            ],
        );
        transaction.add_rule(
            chain,
            &[
                Expression::LoadDestinationType(one),
                Expression::Equals(one, LOCAL),
                Expression::LoadDestination(two),
                Expression::Bits(two, LOOPBACK_MASK, 0),
                Expression::NotEquals(two, LOOPBACK),
                Expression::Goto(node_ports.to_owned()),
            ],
        );
    }
    add_node_port_rules(transaction);
    // A machine that has the address of a service serves other ports itself.
    transaction.add_rule(
        UNUSED_PORT,
        &[
            Expression::LoadDestinationType(one),
            Expression::Equals(one, LOCAL),
            Expression::Return,
        ],
    );
    transaction.add_rule(UNUSED_PORT, &[Expression::Goto(REFUSE.to_owned())]);
    transaction.add_rule(
        REFUSE,
        &[
            Expression::LoadProtocol(one),
            Expression::Equals(one, TCP),
            Expression::ResetTcp,
        ],
    );
    transaction.add_rule(REFUSE, &[Expression::Refuse]);
    add_masquerading(transaction);
}

fn add_node_port_rules(transaction: &mut Transaction<'_>) {
    let mut masquerade = Family::NodePorts.load_key(Register(0));
    masquerade.push(Expression::In(MASQUERADED_PORTS.to_owned(), Register(0)));
    masquerade.extend(mark(Register(4)));
    transaction.add_rule(NODE_PORTS, &masquerade);
    transaction.add_rule(NODE_PORTS, &Family::NodePorts.route());
    transaction.add_rule(HOST_NODE_PORTS, &Family::HostNodePorts.route());
    transaction.add_rule(HOST_NODE_PORTS, &[Expression::Goto(NODE_PORTS.to_owned())]);
}

fn add_masquerading(transaction: &mut Transaction<'_>) {
    let (one, two) = (Register(0), Register(1));
    let chain = "postrouting";
    transaction.add_rule(
        chain,
        &[
            Expression::LoadMark(one),
            Expression::Bits(one, MASQUERADE_MARK, 0),
            Expression::Equals(one, MASQUERADE_MARK),
            Expression::LoadMark(one),
            Expression::Bits(one, !MASQUERADE_MARK, 0),
            Expression::StoreMark(one),
            Expression::Masquerade,
        ],
    );
    transaction.add_rule(
        chain,
        &[
            Expression::LoadOutput(one),
            Expression::Equals(one, LOOPBACK_INTERFACE),
            Expression::Return,
        ],
    );
    let redirected = [
        Expression::LoadConnectionStatus(one),
        Expression::Bits(one, DESTINATION_CHANGED, 0),
        Expression::NotEquals(one, 0),
    ];
    // A pod that reaches itself.
    let mut hairpin = redirected.to_vec();
    hairpin.extend([
        Expression::LoadSource(one),
        Expression::LoadDestination(two),
        Expression::In(HAIRPINS.to_owned(), one),
        Expression::Masquerade,
    ]);
    transaction.add_rule(chain, &hairpin);
    // The machine chose its address by the route to the service, and the endpoint is behind another interface.
    let mut other_interface = redirected.to_vec();
    other_interface.extend([
        Expression::LoadOriginalDestination(one),
        Expression::In(CLUSTER_ADDRESSES.to_owned(), one),
        Expression::LoadSourceType(one),
        Expression::Equals(one, LOCAL),
        Expression::LoadSourceTypeAtOutput(one),
        Expression::NotEquals(one, LOCAL),
        Expression::Masquerade,
    ]);
    transaction.add_rule(chain, &other_interface);
}
