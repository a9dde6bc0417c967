//! What our table contains, and the elements, chains and rules in which a changed service differs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};

use kennel_core::services::{Action, Backend, Destination, Route, Scope, ServiceName};

use crate::difference::{AffinityChain, Difference};
use crate::nft::{Data, Words};
use crate::ruleset::{CLUSTER_ADDRESSES, Family, HAIRPINS, MASQUERADED_PORTS, REFUSE};

/// An endpoint as the kernel keeps it.
pub(crate) type Endpoint = (Ipv4Addr, u16);

/// What our table contains, of services.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    routes: HashMap<Destination, Installed>,
    /// The destinations of each service.
    services: HashMap<ServiceName, Vec<Destination>>,
    /// Services that want a destination which another one has.
    contested: BTreeMap<Destination, BTreeSet<ServiceName>>,
    /// How many destinations have so many slots.
    counts: HashMap<(Family, u32), i32>,
    /// How many destinations have this address.
    addresses: HashMap<Ipv4Addr, i32>,
    hairpins: HashMap<Ipv4Addr, i32>,
}

/// A route in our table.
#[derive(Debug, PartialEq, Eq)]
struct Installed {
    owner: ServiceName,
    target: Target,
    masquerade: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// In the order of their indexes, and which of them may be here; for how many milliseconds clients keep theirs.
    Endpoints(Vec<(Endpoint, bool)>, Option<u64>),
    Refuse,
    Drop,
}

/// The chain and the map of a destination with session affinity.
pub(crate) fn affinity_name(destination: &Destination) -> String {
    let (protocol, port) = (destination.protocol.as_str(), destination.port);
    match destination.scope {
        Scope::ClusterIp(address) => format!("affinity-{address}-{protocol}-{port}"),
        Scope::NodePort => format!("affinity-node-{protocol}-{port}"),
        Scope::NodePortFromHost => format!("affinity-host-{protocol}-{port}"),
    }
}

impl Plan {
    /// Adds to `difference` what it takes to route a service like this. Services whose destinations become free are added
    /// to `freed`: they are to be put again.
    pub(crate) fn put(
        &mut self,
        service: &ServiceName,
        routes: &[Route],
        difference: &mut Difference,
        freed: &mut BTreeSet<ServiceName>,
    ) {
        let routes = || routes.iter().filter(|route| is_ipv4(route));
        let wanted: Vec<Destination> = routes().map(|route| route.destination).collect();
        let before = self.services.remove(service).unwrap_or_default();
        for destination in before {
            if wanted.contains(&destination) {
                continue;
            }
            self.remove(service, destination, difference, freed);
        }
        for route in routes() {
            self.put_route(service, route, difference);
        }
        if !wanted.is_empty() {
            self.services.insert(service.clone(), wanted);
        }
    }

    fn remove(
        &mut self,
        service: &ServiceName,
        destination: Destination,
        difference: &mut Difference,
        freed: &mut BTreeSet<ServiceName>,
    ) {
        if let Some(others) = self.contested.get_mut(&destination) {
            others.remove(service);
            freed.extend(others.iter().cloned());
            if others.is_empty() {
                self.contested.remove(&destination);
            }
        }
        let is_owner = |installed: &Installed| installed.owner == *service;
        if self.routes.get(&destination).is_some_and(is_owner) {
            let installed = self.routes.remove(&destination);
            self.change(destination, installed.as_ref(), None, difference);
        }
    }

    fn put_route(&mut self, service: &ServiceName, route: &Route, difference: &mut Difference) {
        let destination = route.destination;
        let before = self.routes.remove(&destination);
        if let Some(before) = &before
            && before.owner != *service
        {
            // A deletion that is known later: whoever comes last is right.
            let others = self.contested.entry(destination).or_default();
            others.insert(before.owner.clone());
            others.remove(service);
        }
        let new = Installed {
            owner: service.clone(),
            target: Self::target(route, before.as_ref().map(|before| &before.target)),
            masquerade: route.masquerade,
        };
        self.change(destination, before.as_ref(), Some(&new), difference);
        self.routes.insert(destination, new);
    }

    /// Endpoints keep their indexes where that is possible.
    fn target(route: &Route, before: Option<&Target>) -> Target {
        let backends = match &route.action {
            Action::Refuse => return Target::Refuse,
            Action::Drop => return Target::Drop,
            Action::Forward(backends) => backends,
        };
        let mut wanted: BTreeMap<Endpoint, bool> = backends
            .iter()
            .filter_map(|one| Some((endpoint(one)?, one.may_be_here)))
            .collect();
        let before = before.map_or(&[][..], Target::endpoints);
        let kept = before.iter().take(wanted.len());
        let kept: Vec<Option<(Endpoint, bool)>> = kept
            .map(|(one, _)| wanted.remove(one).map(|here| (*one, here)))
            .collect();
        let mut rest = wanted.into_iter();
        let mut endpoints: Vec<(Endpoint, bool)> = kept
            .into_iter()
            .filter_map(|kept| kept.or_else(|| rest.next()))
            .collect();
        endpoints.extend(rest);
        let timeout = route
            .affinity
            .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        Target::Endpoints(endpoints, timeout)
    }

    /// The elements and chains in which two routes of a destination differ.
    fn change(
        &mut self,
        destination: Destination,
        before: Option<&Installed>,
        after: Option<&Installed>,
        difference: &mut Difference,
    ) {
        let family = Family::of(destination.scope);
        let verdict = |one: Option<&Installed>| Some(one?.target.verdict(&destination));
        let own = key(&destination);
        difference.replace(family.destinations(), own, verdict(before), verdict(after));
        let masquerades = |one: Option<&Installed>| {
            let marks = one?.masquerade && family == Family::NodePorts;
            marks.then_some(Data::None)
        };
        difference.replace(
            MASQUERADED_PORTS,
            own,
            masquerades(before),
            masquerades(after),
        );
        if let Scope::ClusterIp(IpAddr::V4(address)) = destination.scope {
            let step = i32::from(after.is_some()) - i32::from(before.is_some());
            let presence = count(&mut self.addresses, address, step);
            difference.appear(CLUSTER_ADDRESSES, Words::new(&[address.octets()]), presence);
        }
        self.change_endpoints(destination, before, after, difference);
        for (one, step) in [(after, 1), (before, -1)] {
            let Some(chain) = one.and_then(|one| one.target.chain()) else {
                continue;
            };
            let presence = count(&mut self.counts, (family, chain), step);
            *difference.chains.entry((family, chain)).or_default() += presence.step();
        }
        change_affinity(destination, before, after, difference);
    }

    fn change_endpoints(
        &mut self,
        destination: Destination,
        before: Option<&Installed>,
        after: Option<&Installed>,
        difference: &mut Difference,
    ) {
        let indexed = |one: Option<&Installed>| {
            one.map_or_else(Vec::new, |one| one.target.indexed().to_vec())
        };
        let (before_indexed, after_indexed) = (indexed(before), indexed(after));
        let map = Family::of(destination.scope).endpoints();
        for index in 0..before_indexed.len().max(after_indexed.len()) {
            let data =
                |all: &[(Endpoint, bool)]| all.get(index).map(|one| Data::Value(backend(one.0)));
            let (old, new) = (data(&before_indexed), data(&after_indexed));
            difference.replace(map, indexed_key(&destination, index), old, new);
        }
        let endpoints = |one: Option<&Installed>| {
            one.map_or_else(Vec::new, |one| one.target.endpoints().to_vec())
        };
        let (before, after) = (endpoints(before), endpoints(after));
        for (all, step) in [(&after, 1), (&before, -1)] {
            for ((address, _), _) in all.iter().filter(|one| one.1) {
                let presence = count(&mut self.hairpins, *address, step);
                difference.appear(HAIRPINS, Words::new(&[address.octets(); 2]), presence);
            }
        }
        let (old, new) = (set_of(&before), set_of(&after));
        if old != new && (old.is_empty() || !old.is_subset(&new)) {
            difference.redirected.push((destination, new));
        }
    }

    /// All destinations and their endpoints.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = (Destination, BTreeSet<Endpoint>)> {
        self.routes
            .iter()
            .map(|(destination, installed)| (*destination, set_of(installed.target.endpoints())))
    }

    /// How many services are routed.
    pub(crate) fn services(&self) -> usize {
        self.services.len()
    }
}

/// Chains and maps of session affinity.
fn change_affinity(
    destination: Destination,
    before: Option<&Installed>,
    after: Option<&Installed>,
    difference: &mut Difference,
) {
    let affinity = |one: Option<&Installed>| match &one?.target {
        Target::Endpoints(endpoints, Some(timeout)) => {
            let endpoints: Vec<Endpoint> = endpoints.iter().map(|one| one.0).collect();
            Some((endpoints, *timeout))
        }
        _ => None,
    };
    let (was, is) = (affinity(before), affinity(after));
    if was == is {
        return;
    }
    let chain = difference.affinity.entry(destination);
    let chain = chain.or_insert_with(|| AffinityChain {
        before: was.map(|was| was.0),
        after: None,
    });
    chain.after = is;
}

impl Target {
    /// As [`Family::destinations`] has it.
    fn verdict(&self, destination: &Destination) -> Data {
        match self {
            Self::Endpoints(_, Some(_)) => Data::Goto(affinity_name(destination)),
            Self::Endpoints(endpoints, None) => {
                Data::Goto(Family::of(destination.scope).chain(slots(endpoints.len())))
            }
            Self::Refuse => Data::Goto(REFUSE.to_owned()),
            Self::Drop => Data::Drop,
        }
    }

    /// The number of slots, if their chain is used.
    fn chain(&self) -> Option<u32> {
        match self {
            Self::Endpoints(endpoints, None) => Some(slots(endpoints.len())),
            _ => None,
        }
    }

    fn endpoints(&self) -> &[(Endpoint, bool)] {
        match self {
            Self::Endpoints(endpoints, _) => endpoints,
            Self::Refuse | Self::Drop => &[],
        }
    }

    /// Those that the map of a family has: with session affinity, rules have them.
    fn indexed(&self) -> &[(Endpoint, bool)] {
        match self {
            Self::Endpoints(endpoints, None) => endpoints,
            _ => &[],
        }
    }
}

/// Of which so many endpoints fill more than half.
pub(crate) fn slots(endpoints: usize) -> u32 {
    let endpoints = u32::try_from(endpoints).ok();
    let slots = endpoints.and_then(u32::checked_next_power_of_two);
    slots.unwrap_or(1 << 31)
}

fn set_of(endpoints: &[(Endpoint, bool)]) -> BTreeSet<Endpoint> {
    endpoints.iter().map(|one| one.0).collect()
}

fn is_ipv4(route: &Route) -> bool {
    match route.destination.scope {
        Scope::ClusterIp(address) => address.is_ipv4(),
        Scope::NodePort | Scope::NodePortFromHost => true,
    }
}

fn endpoint(backend: &Backend) -> Option<Endpoint> {
    match backend.address {
        IpAddr::V4(address) => Some((address, backend.port)),
        IpAddr::V6(_) => None,
    }
}

fn port(number: u16) -> [u8; 4] {
    let [high, low] = number.to_be_bytes();
    [high, low, 0, 0]
}

/// The key of a destination.
fn key(destination: &Destination) -> Words {
    let protocol = [destination.protocol.number(), 0, 0, 0];
    let port = port(destination.port);
    match destination.scope {
        Scope::ClusterIp(IpAddr::V4(address)) => Words::new(&[address.octets(), protocol, port]),
        _ => Words::new(&[protocol, port]),
    }
}

/// The key of an endpoint of a destination.
fn indexed_key(destination: &Destination, index: usize) -> Words {
    let index = u32::try_from(index).unwrap_or(u32::MAX).to_ne_bytes();
    let protocol = [destination.protocol.number(), 0, 0, 0];
    let port = port(destination.port);
    match destination.scope {
        Scope::ClusterIp(IpAddr::V4(address)) => {
            Words::new(&[index, address.octets(), protocol, port])
        }
        _ => Words::new(&[index, protocol, port]),
    }
}

/// The value of an endpoint in a map.
pub(crate) fn backend((address, number): Endpoint) -> Words {
    Words::new(&[address.octets(), port(number)])
}

/// Whether something that is counted has appeared or disappeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Appeared,
    Disappeared,
    Unchanged,
}

impl Presence {
    fn step(self) -> i32 {
        match self {
            Self::Appeared => 1,
            Self::Disappeared => -1,
            Self::Unchanged => 0,
        }
    }
}

fn count<K: Eq + Hash + Clone>(counts: &mut HashMap<K, i32>, key: K, step: i32) -> Presence {
    let before = counts.get(&key).copied().unwrap_or_default();
    let after = before + step;
    if after == 0 {
        counts.remove(&key);
    } else {
        counts.insert(key, after);
    }
    match (before, after) {
        (0, 1..) => Presence::Appeared,
        (1.., 0) => Presence::Disappeared,
        _ => Presence::Unchanged,
    }
}
