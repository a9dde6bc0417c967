//! Random changes: after each, the kernel must have what the services say, whatever was there before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kennel_core::services::{Action, Backend, Protocol, Route, Scope, ServiceName};

use super::{Services, cluster_ip, name, nft, own_network, put, route};
use crate::kernel::Kernel;
use crate::plan::{affinity_name, slots};
use crate::ruleset::Family;

const STEPS: u32 = 60;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[test]
fn n2_7_differences_lead_to_the_table_of_the_services_in_random_histories() {
    kennel_test_support::with_seeds([1, 2, 3], |seed| {
        // One namespace per history: seeds run one after the other.
        if !own_network() {
            return;
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kernel = Kernel::open().unwrap();
        let mut services = Services::new();
        put(&mut kernel, &services, &[]);
        for _ in 0..STEPS {
            let count = random.usize(1..3);
            let changed: BTreeSet<ServiceName> = (0..count)
                .map(|_| name(random.choice(NAMES).unwrap()))
                .collect();
            for name in &changed {
                change(name, &mut services, &mut random);
            }
            let changed: Vec<&ServiceName> = changed.iter().collect();
            put(&mut kernel, &services, &changed);
            check(&services);
        }
    });
}

/// Each service has addresses of its own.
fn change(name: &ServiceName, services: &mut Services, random: &mut fastrand::Rng) {
    services.remove(name);
    if random.u8(0..6) == 0 {
        return;
    }
    let number = NAMES.iter().position(|one| **one == *name.name).unwrap();
    let number = u8::try_from(number).unwrap();
    let mut routes = Vec::new();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let scopes = [
            cluster_ip(&format!("10.96.0.{number}")),
            Scope::NodePort,
            Scope::NodePortFromHost,
        ];
        for scope in scopes {
            if random.bool() {
                let port = 30_000 + u16::from(number);
                let mut route = route(scope, protocol, port, action(random));
                route.affinity =
                    (random.u8(0..3) == 0).then(|| Duration::from_secs(random.u64(1..3)));
                routes.push(route);
            }
        }
    }
    services.insert(name.clone(), routes);
}

fn action(random: &mut fastrand::Rng) -> Action {
    let all: BTreeSet<u8> = (0..random.usize(0..6)).map(|_| random.u8(1..9)).collect();
    match random.u8(0..8) {
        0 => Action::Drop,
        _ if all.is_empty() => Action::Refuse,
        _ => Action::Forward(
            all.into_iter()
                .map(|number| Backend {
                    address: [10, 1, 0, number].into(),
                    port: 8080,
                    may_be_here: random.bool(),
                })
                .collect(),
        ),
    }
}

/// The words of elements in the listing of a set: one text per element.
fn elements(kind: &str, set: &str) -> Vec<String> {
    let listing = nft(&["list", kind, "ip", "kennel-services", set]);
    let Some((_, elements)) = listing.split_once("elements = {") else {
        return Vec::new();
    };
    let (elements, _) = elements.split_once('}').unwrap();
    let elements = elements.split(',');
    elements
        .map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn key(route: &Route) -> String {
    let (protocol, port) = (route.destination.protocol.as_str(), route.destination.port);
    match route.destination.scope {
        Scope::ClusterIp(address) => format!("{address} . {protocol} . {port}"),
        _ => format!("{protocol} . {port}"),
    }
}

fn check(services: &Services) {
    let routes: Vec<&Route> = services.values().flatten().collect();
    let listing = nft(&["list", "table", "ip", "kennel-services"]);
    let mut chains = BTreeSet::new();
    for family in Family::ALL {
        let own = || {
            routes
                .iter()
                .filter(|route| Family::of(route.destination.scope) == family)
        };
        let mut expected = BTreeSet::new();
        let mut endpoints: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for route in own() {
            let target = match &route.action {
                Action::Refuse => "goto refuse".to_owned(),
                Action::Drop => "drop".to_owned(),
                Action::Forward(backends) if route.affinity.is_some() => {
                    let chain = affinity_name(&route.destination);
                    chains.extend((0..backends.len()).map(|index| format!("{chain}-{index}")));
                    chains.insert(chain.clone());
                    format!("goto {chain}")
                }
                Action::Forward(backends) => {
                    let chain = family.chain(slots(backends.len()));
                    let all = backends
                        .iter()
                        .map(|one| format!("{} . {}", one.address, one.port));
                    endpoints.insert(key(route), all.collect());
                    chains.insert(chain.clone());
                    format!("goto {chain}")
                }
            };
            expected.insert(format!("{} : {target}", key(route)));
        }
        let found: BTreeSet<String> = elements("map", family.destinations()).into_iter().collect();
        assert_eq!(found, expected);
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut indexes: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for element in elements("map", family.endpoints()) {
            let (index, rest) = element.split_once(" . ").unwrap();
            let (key, endpoint) = rest.split_once(" : ").unwrap();
            let index = u32::from_str_radix(index.trim_start_matches("0x"), 16).unwrap();
            indexes.entry(key.to_owned()).or_default().insert(index);
            found
                .entry(key.to_owned())
                .or_default()
                .insert(endpoint.to_owned());
        }
        assert_eq!(found, endpoints);
        for (key, indexes) in indexes {
            let all: BTreeSet<u32> = (0..).take(endpoints[&key].len()).collect();
            assert_eq!(indexes, all, "{key}");
        }
    }
    let found: BTreeSet<String> = listing
        .lines()
        .filter_map(|line| line.trim().strip_prefix("chain "))
        .map(|line| line.trim_end_matches(" {").to_owned())
        .filter(|chain| chain.ends_with(|last: char| last.is_ascii_digit()))
        .collect();
    assert_eq!(found, chains);
    check_sets(&routes);
}

fn check_sets(routes: &[&Route]) {
    let mut hairpins = BTreeSet::new();
    let (mut addresses, mut masqueraded) = (BTreeSet::new(), BTreeSet::new());
    for route in routes {
        if let Action::Forward(backends) = &route.action {
            let here = backends.iter().filter(|one| one.may_be_here);
            hairpins.extend(here.map(|one| format!("{0} . {0}", one.address)));
        }
        match route.destination.scope {
            Scope::ClusterIp(address) => drop(addresses.insert(address.to_string())),
            Scope::NodePort => drop(masqueraded.insert(key(route))),
            Scope::NodePortFromHost => {}
        }
    }
    let set = |name: &str| -> BTreeSet<String> { elements("set", name).into_iter().collect() };
    assert_eq!(set("hairpins"), hairpins);
    assert_eq!(set("cluster-addresses"), addresses);
    assert_eq!(set("masqueraded-node-ports"), masqueraded);
}
