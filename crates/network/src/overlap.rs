//! Ranges of the cluster that collide with routes of this machine.

use std::net::Ipv4Addr;

use kennel_core::cidr::Cidr;

use crate::Error;
use crate::kernel::{HostRoute, Kernel};

/// The main table of routes, of this thread's network namespace.
const ROUTES: &str = "/proc/thread-self/net/route";

/// The route of somebody else that the range of all pods overlaps. Routes of single addresses that lead to a device are those of
/// pods, which an earlier agent has started.
pub(crate) fn of_pods(routes: &[HostRoute], cluster: Cidr) -> Result<(), Error> {
    let mut foreign = routes.iter().filter(|route| is_foreign(route));
    match foreign.find(|route| route.destination.overlaps(cluster)) {
        Some(route) => Err(Error::Overlap {
            cluster: cluster.to_string(),
            route: route.destination.to_string(),
        }),
        None => Ok(()),
    }
}

/// Fails if a network of this machine lies in the range of services: hosts there whose address a service gets would be
/// unreachable. A route to more than the range, such as that of a company to 10.0.0.0/8, is no such network, and is usual beside
/// Kubernetes: rules for services apply before routes.
pub async fn of_services(range: Cidr) -> Result<(), Error> {
    // Nearly always this is the end. Agents without a pod network need no memory for netlink's routes.
    let is_certain = std::fs::read_to_string(ROUTES).is_ok_and(|table| {
        destinations(&table).all(|destination| !lies_within(destination, range))
    });
    if is_certain {
        return Ok(());
    }
    within_services(&Kernel::open()?.routes().await?, range)
}

fn within_services(routes: &[HostRoute], range: Cidr) -> Result<(), Error> {
    let mut foreign = routes.iter().filter(|route| is_foreign(route));
    match foreign.find(|route| lies_within(route.destination, range)) {
        Some(route) => Err(Error::ServicesOverlap {
            range: range.to_string(),
            route: route.destination.to_string(),
        }),
        None => Ok(()),
    }
}

fn lies_within(destination: Cidr, range: Cidr) -> bool {
    destination.overlaps(range) && destination.bits() >= range.bits()
}

/// The destinations in the text of [`ROUTES`]: addresses and masks are numbers as the machine has them in memory.
fn destinations(table: &str) -> impl Iterator<Item = Cidr> {
    let address = |text: &str| {
        let number = u32::from_str_radix(text, 16).ok()?;
        Some(Ipv4Addr::from(number.to_ne_bytes()))
    };
    table.lines().skip(1).filter_map(move |line| {
        let mut words = line.split_whitespace();
        let (destination, mask) = (words.nth(1)?, words.nth(5)?);
        let bits = u32::from(address(mask)?).leading_ones();
        Some(Cidr::containing(
            address(destination)?,
            u8::try_from(bits).ok()?,
        ))
    })
}

fn is_foreign(route: &HostRoute) -> bool {
    let is_default = route.destination.bits() == 0;
    !route.is_ours && !route.is_host && !is_default
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: &str) -> HostRoute {
        HostRoute::to(destination.parse().unwrap())
    }

    #[test]
    fn a_network_within_the_range_of_services_is_named() {
        let range: Cidr = "10.96.0.0/16".parse().unwrap();
        let check = |routes: &[HostRoute], expected: Option<&str>| {
            let found = within_services(routes, range).err();
            let found = found.map(|error| error.to_string());
            let names = |found: &String, expected: &str| {
                found.contains("10.96.0.0/16 (--service-cidr)") && found.contains(expected)
            };
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) if names(found, expected) => {}
                _ => panic!("{found:?}, {expected:?}"),
            }
        };
        check(&[], None);
        check(&[route("0.0.0.0/0"), route("10.0.0.0/8")], None);
        check(&[route("10.97.0.0/16"), route("192.0.2.0/24")], None);
        check(
            &[route("0.0.0.0/0"), route("10.96.40.0/24")],
            Some("10.96.40.0/24"),
        );
        check(&[route("10.96.0.0/16")], Some("the route 10.96.0.0/16"));
        let (mut ours, mut of_a_pod) = (route("10.96.40.0/24"), route("10.96.40.7/32"));
        (ours.is_ours, of_a_pod.is_host) = (true, true);
        check(&[ours, of_a_pod], None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn destinations_are_read_from_the_kernels_table() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     vpn0\t0028600A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let found: Vec<String> = destinations(table).map(|one| one.to_string()).collect();
        assert_eq!(found, ["0.0.0.0/0", "10.96.40.0/24"]);
    }
}
