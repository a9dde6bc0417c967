//! Which endpoints get the packets of a service port. The order of preference is upstream's.

use std::net::IpAddr;
use std::sync::Arc;

use super::read::{Endpoint, NodeHint, Place, Slice, State};
use super::{Action, Backend, Protocol};

/// An endpoint and its port.
struct Candidate<'a> {
    endpoint: &'a Endpoint,
    port: u16,
}

/// The endpoints of a service port, which its traffic policies choose from.
pub(super) struct Candidates<'a> {
    all: Vec<Candidate<'a>>,
    zone: Option<&'a str>,
}

/// Which hints are honoured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topology {
    Anywhere,
    SameNode,
    SameZone,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(
        slices: impl Iterator<Item = &'a Slice>,
        name: &str,
        protocol: Protocol,
        is_ipv4: bool,
        zone: Option<&'a str>,
    ) -> Self {
        let mut all = Vec::new();
        for slice in slices {
            let ports = slice.ports.iter();
            for port in ports.filter(|port| *port.name == *name && port.protocol == protocol) {
                let endpoints = slice.endpoints.iter();
                let endpoints = endpoints.filter(|one| one.address.is_ipv4() == is_ipv4);
                all.extend(endpoints.map(|endpoint| Candidate {
                    endpoint,
                    port: port.port,
                }));
            }
        }
        Self { all, zone }
    }

    /// For `Cluster` policies.
    pub(super) fn anywhere(&self) -> Action {
        let topology = self.topology();
        let ready = self.select(|one| one.state == State::Ready && self.suits(one, topology));
        if !ready.is_empty() {
            return Action::Forward(ready);
        }
        // No endpoint is ready: a topology is chosen only if it has one.
        let terminating = self.select(|one| one.state == State::ServingTerminating);
        if terminating.is_empty() {
            Action::Refuse
        } else {
            Action::Forward(terminating)
        }
    }

    /// For `Local` policies.
    pub(super) fn here(&self) -> Action {
        for state in [State::Ready, State::ServingTerminating] {
            let selected = self.select(|one| one.place == Place::Here && one.state == state);
            if !selected.is_empty() {
                return Action::Forward(selected);
            }
        }
        let usable = |one: &Candidate<'_>| one.endpoint.state != State::Unusable;
        if self.all.iter().any(usable) {
            Action::Drop
        } else {
            Action::Refuse
        }
    }

    /// The addresses of ready endpoints on this node.
    pub(super) fn ready_here(&self) -> impl Iterator<Item = IpAddr> {
        let ready = self.all.iter().map(|one| one.endpoint);
        let ready = ready.filter(|one| one.place == Place::Here && one.state == State::Ready);
        ready.map(|one| one.address)
    }

    /// Hints count only if every ready endpoint has one: node, else zone, else any.
    fn topology(&self) -> Topology {
        let ready = || {
            let all = self.all.iter().map(|one| one.endpoint);
            all.filter(|one| one.state == State::Ready)
        };
        if ready().all(|one| one.node_hint != NodeHint::Missing)
            && ready().any(|one| one.node_hint == NodeHint::Here)
        {
            return Topology::SameNode;
        }
        if ready().all(|one| !one.zones.is_empty()) && ready().any(|one| self.is_in_zone(one)) {
            return Topology::SameZone;
        }
        Topology::Anywhere
    }

    fn is_in_zone(&self, endpoint: &Endpoint) -> bool {
        let is_ours = |zone: &Arc<str>| Some(&**zone) == self.zone;
        endpoint.zones.iter().any(is_ours)
    }

    fn suits(&self, endpoint: &Endpoint, topology: Topology) -> bool {
        match topology {
            Topology::Anywhere => true,
            Topology::SameNode => endpoint.node_hint == NodeHint::Here,
            Topology::SameZone => self.is_in_zone(endpoint),
        }
    }

    /// Sorted, each address and port once: while endpoints move between slices, they are in two.
    fn select(&self, is_selected: impl Fn(&Endpoint) -> bool) -> Vec<Backend> {
        let selected = self.all.iter().filter(|one| is_selected(one.endpoint));
        let selected = selected.map(|one| Backend {
            address: one.endpoint.address,
            port: one.port,
            may_be_here: one.endpoint.place != Place::Elsewhere,
        });
        let mut selected: Vec<Backend> = selected.collect();
        selected.sort_unstable();
        // Of two that differ in `may_be_here`, the one that may is last.
        selected.reverse();
        selected.dedup_by_key(|one| (one.address, one.port));
        selected.reverse();
        selected
    }
}
