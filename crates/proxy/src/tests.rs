//! The table in a real kernel, as the real `nft` lists it. Each test has a network namespace of its own.

mod histories;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use kennel_core::services::{Action, Backend, Destination, Protocol, Route, Scope, ServiceName};
use rustix::thread::UnshareFlags;

use crate::kernel::{self, Kernel};

/// Services and their routes.
type Services = BTreeMap<ServiceName, Vec<Route>>;

/// Gives this thread a network namespace. False if it may not.
#[expect(
    deprecated,
    reason = "the safe function; it is deprecated because of CLONE_FILES, which is not used here"
)]
pub(crate) fn own_network() -> bool {
    if !rustix::process::geteuid().is_root() {
        kennel_test_support::skip("network namespaces need root");
        return false;
    }
    rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
    true
}

pub(crate) fn nft(arguments: &[&str]) -> String {
    let output = Command::new("nft").args(arguments).output();
    let output = output.expect("nft can be run: scripts/packages.sh installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn cluster_ip(text: &str) -> Scope {
    Scope::ClusterIp(text.parse().unwrap())
}

fn backends(all: &[&str]) -> Action {
    let all = all.iter().map(|text| Backend {
        address: text.parse().unwrap(),
        port: 8080,
        may_be_here: text.ends_with(".1"),
    });
    Action::Forward(all.collect())
}

fn route(scope: Scope, protocol: Protocol, port: u16, action: Action) -> Route {
    Route {
        destination: Destination {
            scope,
            protocol,
            port,
        },
        action,
        affinity: None,
        masquerade: !matches!(scope, Scope::ClusterIp(_)),
    }
}

fn put(kernel: &mut Kernel, services: &Services, changed: &[&ServiceName]) {
    let changed = changed.iter().map(|name| (*name).clone()).collect();
    let routes = |name: &ServiceName| services.get(name).cloned().unwrap_or_default();
    if let Err(error) = kernel.put(changed, routes) {
        panic!("{error}");
    }
}

fn name(text: &str) -> ServiceName {
    ServiceName::new("default", text)
}

#[test]
fn the_real_nft_lists_what_was_written() {
    if !own_network() {
        return;
    }
    let two = || backends(&["10.1.0.1", "10.2.0.2"]);
    let mut sticky = route(cluster_ip("10.96.0.3"), Protocol::Tcp, 80, two());
    sticky.affinity = Some(Duration::from_hours(3));
    let services = Services::from([
        (
            name("web"),
            vec![
                route(cluster_ip("10.96.0.1"), Protocol::Tcp, 80, two()),
                route(
                    Scope::NodePort,
                    Protocol::Tcp,
                    30080,
                    backends(&["10.1.0.1"]),
                ),
                route(Scope::NodePortFromHost, Protocol::Tcp, 30080, two()),
            ],
        ),
        (
            name("none"),
            vec![
                route(cluster_ip("10.96.0.2"), Protocol::Udp, 53, Action::Refuse),
                route(cluster_ip("10.96.0.2"), Protocol::Sctp, 53, Action::Drop),
            ],
        ),
        (name("sticky"), vec![sticky]),
    ]);
    let mut kernel = Kernel::open().unwrap();
    let names: Vec<&ServiceName> = services.keys().collect();
    put(&mut kernel, &services, &names);
    let listed = nft(&["list", "table", "ip", "kennel-services"]);
    let expected = include_str!("tests/listing.nft");
    assert_eq!(listed, expected, "{listed}");
    // Without services, what is left is the table of the start.
    put(&mut kernel, &Services::new(), &names);
    let left = nft(&["list", "table", "ip", "kennel-services"]);
    let mut kernel = Kernel::open().unwrap();
    put(&mut kernel, &Services::new(), &[]);
    assert_eq!(left, nft(&["list", "table", "ip", "kennel-services"]));
    assert!(
        !left.contains("elements") && !left.contains("affinity"),
        "{left}"
    );
    kernel::remove().unwrap();
    kernel::remove().unwrap();
    assert_eq!(nft(&["list", "ruleset"]), "");
}

#[test]
fn a_destination_belongs_to_the_service_that_came_last_until_that_goes() {
    if !own_network() {
        return;
    }
    let shared = |endpoint: &str| {
        vec![route(
            cluster_ip("10.96.0.1"),
            Protocol::Tcp,
            80,
            backends(&[endpoint]),
        )]
    };
    let (old, new) = (name("old"), name("new"));
    let mut services = Services::from([
        (old.clone(), shared("10.1.0.2")),
        (new.clone(), shared("10.1.0.3")),
    ]);
    let mut kernel = Kernel::open().unwrap();
    put(&mut kernel, &services, &[&old]);
    put(&mut kernel, &services, &[&new]);
    let leads_to = |endpoint: &str| {
        let map = nft(&["list", "map", "ip", "kennel-services", "cluster-endpoints"]);
        assert!(
            map.contains(&format!(": {endpoint} . 8080 }}")),
            "{endpoint}: {map}"
        );
    };
    leads_to("10.1.0.3");
    // The deletion of the other one is known late.
    let before = services.remove(&old).unwrap();
    put(&mut kernel, &services, &[&old]);
    leads_to("10.1.0.3");
    services.insert(old.clone(), before);
    put(&mut kernel, &services, &[&old]);
    leads_to("10.1.0.2");
    services.remove(&old);
    put(&mut kernel, &services, &[&old]);
    leads_to("10.1.0.3");
}

#[test]
fn n2_7_a_transaction_has_the_elements_that_changed() {
    if !own_network() {
        return;
    }
    let all: Vec<String> = (0..200).map(|number| format!("10.1.1.{number}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let service = |endpoints: &[&str]| {
        let route = route(
            cluster_ip("10.96.0.1"),
            Protocol::Tcp,
            80,
            backends(endpoints),
        );
        Services::from([(name("web"), vec![route])])
    };
    let mut kernel = Kernel::open().unwrap();
    put(&mut kernel, &service(&all), &[&name("web")]);
    let mut change = |endpoints: &[&str]| {
        let services = service(endpoints);
        let routes = |name: &ServiceName| services[name].clone();
        kernel
            .put(BTreeSet::from([name("web")]), routes)
            .unwrap()
            .len()
    };
    // The last endpoint takes the index of the one that goes. The verdict of the service stays.
    let without = [&all[..50], &all[51..]].concat();
    assert_eq!(change(&without), 2);
    assert_eq!(change(&all), 1);
    let replaced = [&["10.1.2.1"], &all[1..]].concat();
    assert_eq!(change(&replaced), 2);
    assert_eq!(change(&replaced), 0);
    // Until half of its slots are empty: then its chain is another one.
    assert_eq!(change(&all[..129]), 74);
    assert_eq!(change(&all[..128]), 2);
}

#[test]
fn n2_3_a_whole_write_keeps_clients_with_the_endpoints_that_remain() {
    if !own_network() {
        return;
    }
    let services = |endpoints: &[&str]| {
        let destination = cluster_ip("10.96.0.3");
        let mut sticky = route(destination, Protocol::Tcp, 80, backends(endpoints));
        sticky.affinity = Some(Duration::from_hours(3));
        Services::from([(name("sticky"), vec![sticky])])
    };
    let map = "affinity-10.96.0.3-tcp-80";
    let listed = || nft(&["list", "map", "ip", "kennel-services", map]);
    let mut kernel = Kernel::open().unwrap();
    put(
        &mut kernel,
        &services(&["10.1.0.1", "10.2.0.2"]),
        &[&name("sticky")],
    );
    nft(&[&format!(
        "add element ip kennel-services {map} {{ 192.0.2.1 timeout 3h expires 1h30m : 10.1.0.1 . 8080, \
         192.0.2.2 timeout 3h expires 1h30m : 10.2.0.2 . 8080 }}"
    )]);
    // An agent that starts finds one of the endpoints gone.
    let mut kernel = Kernel::open().unwrap();
    put(&mut kernel, &services(&["10.1.0.1"]), &[&name("sticky")]);
    let kept = listed();
    assert!(
        kept.contains("192.0.2.1 timeout 3h expires 1h29m")
            || kept.contains("192.0.2.1 timeout 3h expires 1h30m"),
        "{kept}"
    );
    assert!(!kept.contains("192.0.2.2"), "{kept}");
    // Another program deletes the table, and with it the clients.
    nft(&["flush", "ruleset"]);
    kernel.forget();
    put(&mut kernel, &services(&["10.1.0.1"]), &[&name("sticky")]);
    assert!(!listed().contains("192.0.2"), "{}", listed());
}
