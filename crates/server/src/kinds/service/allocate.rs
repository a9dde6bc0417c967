//! Allocates cluster IPs and node ports.
//!
//! The caller passes what is in use; the choice is deterministic: the first free one. The low end of each
//! range is for services that ask for a certain value, and is used only when the rest is full. The caller
//! must allocate and store atomically.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use kennel_core::cidr::Cidr;
use serde_json::{Value, json};

use super::{
    HEADLESS, is_load_balancer, needs_cluster_ip, needs_health_check_port, needs_node_ports,
    node_port,
};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::kinds::check::each;
use crate::names;
use crate::tree::{at, int, list, list_mut, number, set, text, texts};

/// The range of node ports.
pub const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;

/// The addresses and ports there are.
#[derive(Clone, Debug)]
pub struct Ranges {
    base: u32,
    /// Without the first and the last address.
    size: u32,
    node_ports: RangeInclusive<u16>,
}

impl Ranges {
    /// `None` if `cidr` is not an IPv4 CIDR or too small.
    pub fn new(cidr: &str, node_ports: RangeInclusive<u16>) -> Option<Self> {
        let (IpAddr::V4(address), bits) = names::parse_cidr(cidr)? else {
            return None;
        };
        let host_bits = 32_u32.checked_sub(bits.into())?;
        let count = 1_u64 << host_bits;
        let size = u32::try_from(count.checked_sub(2)?).ok()?;
        let mask = !u32::try_from(count - 1).ok()?;
        (size > 0).then_some(Self {
            base: u32::from(address) & mask,
            size,
            node_ports,
        })
    }

    /// Its prefix length: both ends of the range are in its size of addresses.
    fn prefix_length(&self) -> u32 {
        32 - (u64::from(self.size) + 2).ilog2()
    }

    /// The whole range.
    pub fn block(&self) -> Cidr {
        let bits = u8::try_from(self.prefix_length()).unwrap_or(32);
        Cidr::containing(self.base.into(), bits)
    }

    /// The first address: that of the Service `kubernetes`.
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    /// The address at this place; the first one is at 1.
    pub fn nth(&self, place: u32) -> Option<Ipv4Addr> {
        let is_inside = (1..=self.size).contains(&place);
        is_inside.then(|| Ipv4Addr::from(self.base + place))
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.base);
        (1..=self.size).contains(&offset)
    }

    /// In the order of allocation.
    fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let band = (self.size / 16).clamp(16, 256).min(self.size);
        let base = self.base;
        (band + 1..=self.size)
            .chain(1..=band)
            .map(move |offset| Ipv4Addr::from(base + offset))
    }

    /// Why a service cannot have the node port that it asks for, if so.
    fn unavailable(&self, port: i64, is_taken: impl Fn(&u16) -> bool) -> Option<String> {
        match u16::try_from(port) {
            Ok(port) if is_taken(&port) => Some("provided port is already allocated".to_owned()),
            Ok(port) if self.node_ports.contains(&port) => None,
            _ => Some(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                self.node_ports.start(),
                self.node_ports.end()
            )),
        }
    }

    /// In the order of allocation.
    fn ports(&self) -> impl Iterator<Item = u16> {
        let (low, high) = (*self.node_ports.start(), *self.node_ports.end());
        let count = high.saturating_sub(low).saturating_add(1);
        let band = (count / 32).clamp(16, 128).min(count);
        let middle = low.saturating_add(band);
        (middle..=high).chain(low..middle.min(high.saturating_add(1)))
    }
}

/// The range of addresses, as CIDR.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.prefix_length())
    }
}

/// The addresses and node ports of other services.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    addresses: BTreeSet<Ipv4Addr>,
    node_ports: BTreeSet<u16>,
}

impl Taken {
    pub fn add(&mut self, service: &Value) {
        let addresses = texts(service, "spec.clusterIPs").chain([text(service, "spec.clusterIP")]);
        self.addresses
            .extend(addresses.filter_map(|ip| ip.parse::<Ipv4Addr>().ok()));
        self.node_ports.extend(ports_of(service));
    }
}

/// All node ports a service has, the one for health checks included.
fn ports_of(service: &Value) -> BTreeSet<u16> {
    list(service, "spec.ports")
        .iter()
        .filter_map(node_port)
        .chain(int(service, "spec.healthCheckNodePort").filter(|port| *port != 0))
        .filter_map(|port| u16::try_from(port).ok())
        .collect()
}

/// Allocates what `service` needs and lacks, and refuses requested values that are not available.
///
/// `taken` are the values of all other services. Values that `old`, the service before the update, already had
/// are not checked again.
pub fn allocate(
    service: &mut Value,
    old: Option<&Value>,
    taken: &Taken,
    ranges: &Ranges,
) -> Errors {
    let mut errors = Errors::new();
    errors.extend(allocate_address(service, old, taken, ranges));
    // A load balancer that needs none may ask for some nevertheless.
    if needs_node_ports(service) || is_load_balancer(service) {
        check_asked_ports(&mut errors, service, old, taken, ranges);
    }
    if needs_node_ports(service) {
        allocate_ports(&mut errors, service, taken, ranges);
    }
    errors
}

/// Why a service cannot have a health check port. Upstream does not refer to the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HealthCheckPortError {
    #[error("failed to allocate requested HealthCheck NodePort {port}: {problem}")]
    Requested { port: i64, problem: String },
    #[error("failed to allocate a HealthCheck NodePort 0: range is full")]
    Full,
}

/// Allocates the health check port, after [`allocate`].
pub fn allocate_health_check_port(
    service: &mut Value,
    old: Option<&Value>,
    taken: &Taken,
    ranges: &Ranges,
) -> Result<(), HealthCheckPortError> {
    const FIELD: &str = "spec.healthCheckNodePort";
    if !needs_health_check_port(service) {
        return Ok(());
    }
    let port = number(service, FIELD);
    let kept = old.is_some_and(|old| needs_health_check_port(old) && number(old, FIELD) == port);
    if port != 0 && kept {
        return Ok(());
    }
    let node_ports: BTreeSet<u16> = list(service, "spec.ports")
        .iter()
        .filter_map(node_port)
        .filter_map(|port| u16::try_from(port).ok())
        .collect();
    let is_taken = |port: &u16| taken.node_ports.contains(port) || node_ports.contains(port);
    if port != 0 {
        let problem = ranges.unavailable(port, is_taken);
        let refuse = |problem| Err(HealthCheckPortError::Requested { port, problem });
        return problem.map_or(Ok(()), refuse);
    }
    let free = ranges.ports().find(|port| !is_taken(port));
    let free = free.ok_or(HealthCheckPortError::Full)?;
    set(service, FIELD, json!(free));
    Ok(())
}

fn allocate_address(
    service: &mut Value,
    old: Option<&Value>,
    taken: &Taken,
    ranges: &Ranges,
) -> Option<FieldError> {
    let asked = text(service, "spec.clusterIP").to_owned();
    let kept = old.is_some_and(|old| text(old, "spec.clusterIP") == asked);
    if !needs_cluster_ip(service) || asked == HEADLESS || (kept && !asked.is_empty()) {
        return None;
    }
    let path = Path::new("spec").child("clusterIPs");
    if asked.is_empty() {
        let free = ranges
            .addresses()
            .find(|address| !taken.addresses.contains(address));
        let Some(address) = free else {
            let words = "failed to allocate a serviceIP: range is full";
            return Some(FieldError::invalid(&path, json!([]), words));
        };
        set(service, "spec.clusterIP", json!(address.to_string()));
        set(service, "spec.clusterIPs", json!([address.to_string()]));
        return None;
    }
    let why = match asked.parse::<Ipv4Addr>() {
        Ok(address) if taken.addresses.contains(&address) => "provided IP is already allocated",
        Ok(address) if ranges.contains(address) => return None,
        _ => "the provided network does not match the current range",
    };
    let words = format!("failed to allocate IP {asked}: {why}");
    let shown = at(service, "spec.clusterIPs");
    Some(FieldError::invalid(&path, shown, &words))
}

fn check_asked_ports(
    errors: &mut Errors,
    service: &Value,
    old: Option<&Value>,
    taken: &Taken,
    ranges: &Ranges,
) {
    let kept = old.map(ports_of).unwrap_or_default();
    for (port, path) in each(service, &Path::default(), "spec.ports") {
        let Some(asked) = node_port(port) else {
            continue;
        };
        if u16::try_from(asked).is_ok_and(|asked| kept.contains(&asked)) {
            continue;
        }
        if let Some(words) = ranges.unavailable(asked, |port| taken.node_ports.contains(port)) {
            errors.invalid(&path.child("nodePort"), asked, &words);
        }
    }
}

/// One port number with two protocols, as for DNS, gets one node port.
fn allocate_ports(errors: &mut Errors, service: &mut Value, taken: &Taken, ranges: &Ranges) {
    let mut own = ports_of(service);
    let mut by_number: Vec<(i64, String, i64)> = Vec::new();
    for port in list(service, "spec.ports") {
        if let Some(given) = node_port(port) {
            let number = number(port, "port");
            by_number.push((number, text(port, "protocol").to_owned(), given));
        }
    }
    for (i, port) in list_mut(service, "spec.ports").iter_mut().enumerate() {
        if node_port(port).is_some() {
            continue;
        }
        let wanted = number(port, "port");
        let protocol = text(port, "protocol").to_owned();
        let shared = by_number
            .iter()
            .find(|(number, other, _)| *number == wanted && *other != protocol)
            .map(|(_, _, given)| *given);
        let free = || {
            ranges
                .ports()
                .find(|p| !taken.node_ports.contains(p) && !own.contains(p))
        };
        let Some(given) = shared.or_else(|| free().map(i64::from)) else {
            let path = Path::new("spec").child("ports").index(i).child("nodePort");
            let words = "failed to allocate a nodePort: range is full";
            errors.invalid(&path, 0, words);
            continue;
        };
        own.extend(u16::try_from(given));
        set(port, "nodePort", json!(given));
        by_number.push((wanted, protocol, given));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::check;

    fn ranges() -> Ranges {
        Ranges::new("10.96.0.0/16", NODE_PORTS).unwrap()
    }

    fn service(spec: &Value) -> Value {
        json!({ "spec": spec })
    }

    #[test]
    fn the_first_free_address_above_the_band_is_given() {
        let mut taken = Taken::default();
        for expected in ["10.96.1.1", "10.96.1.2"] {
            let mut object = service(&json!({"type": "ClusterIP"}));
            check(&allocate(&mut object, None, &taken, &ranges()), &[]);
            assert_eq!(object["spec"]["clusterIP"], expected);
            assert_eq!(object["spec"]["clusterIPs"], json!([expected]));
            taken.add(&object);
        }
        assert_eq!(ranges().first().to_string(), "10.96.0.1");
        let tenth = ranges().nth(10).map(|ip| ip.to_string());
        assert_eq!(tenth.as_deref(), Some("10.96.0.10"));
        assert_eq!(
            Ranges::new("10.0.0.0/29", NODE_PORTS).unwrap().nth(10),
            None
        );
    }

    #[test]
    fn a_small_block_is_used_up_band_and_all() {
        let ranges = Ranges::new("10.0.0.0/29", NODE_PORTS).unwrap();
        let mut taken = Taken::default();
        for _ in 0..6 {
            let mut object = service(&json!({"type": "ClusterIP"}));
            check(&allocate(&mut object, None, &taken, &ranges), &[]);
            taken.add(&object);
        }
        let mut object = service(&json!({"type": "ClusterIP"}));
        check(
            &allocate(&mut object, None, &taken, &ranges),
            &["spec.clusterIPs: Invalid value: []: failed to allocate a serviceIP: range is full"],
        );
    }

    #[test]
    fn asked_addresses() {
        let mut taken = Taken::default();
        taken.add(&service(&json!({"clusterIP": "10.96.0.5"})));
        let ask =
            |ip: &str| service(&json!({"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip]}));
        check(
            &allocate(&mut ask("10.96.0.6"), None, &taken, &ranges()),
            &[],
        );
        check(&allocate(&mut ask("None"), None, &taken, &ranges()), &[]);
        check(
            &allocate(&mut ask("10.96.0.5"), None, &taken, &ranges()),
            &[
                "spec.clusterIPs: Invalid value: [\"10.96.0.5\"]: failed to allocate IP 10.96.0.5: \
               provided IP is already allocated",
            ],
        );
        check(
            &allocate(&mut ask("10.97.0.5"), None, &taken, &ranges()),
            &[
                "spec.clusterIPs: Invalid value: [\"10.97.0.5\"]: failed to allocate IP 10.97.0.5: \
               the provided network does not match the current range",
            ],
        );
        let old = ask("10.97.0.5");
        check(
            &allocate(&mut old.clone(), Some(&old), &taken, &ranges()),
            &[],
        );
    }

    #[test]
    fn node_ports() {
        let mut taken = Taken::default();
        taken.add(&service(
            &json!({"ports": [{"nodePort": 30086}, {"nodePort": 30001}]}),
        ));
        let mut object = service(&json!({"type": "NodePort", "clusterIP": "None", "ports": [
            {"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}, {"port": 80}]}));
        check(&allocate(&mut object, None, &taken, &ranges()), &[]);
        let given: Vec<&Value> = list(&object, "spec.ports")
            .iter()
            .map(|p| &p["nodePort"])
            .collect();
        assert_eq!(given, [30087, 30087, 30088]);
        let mut object = service(&json!({"type": "NodePort", "clusterIP": "None", "ports": [
            {"port": 1, "nodePort": 30001}, {"port": 2, "nodePort": 80}]}));
        check(
            &allocate(&mut object, None, &taken, &ranges()),
            &[
                "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated",
                "spec.ports[1].nodePort: Invalid value: 80: provided port is not in the valid \
                 range. The range of valid ports is 30000-32767",
            ],
        );
    }

    #[test]
    fn a_local_load_balancer_gets_a_health_check_port() {
        let mut object = service(
            &json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
            "ports": [{"port": 80, "protocol": "TCP"}]}),
        );
        check(
            &allocate(&mut object, None, &Taken::default(), &ranges()),
            &[],
        );
        assert_eq!(object["spec"]["ports"][0]["nodePort"], 30086);
        let allocated = allocate_health_check_port(&mut object, None, &Taken::default(), &ranges());
        assert_eq!(allocated, Ok(()));
        assert_eq!(object["spec"]["healthCheckNodePort"], 30087);
    }

    #[test]
    fn n2_3_a_health_check_port_that_is_asked_for_must_be_free() {
        let mut taken = Taken::default();
        taken.add(&service(
            &json!({"ports": [{"port": 80, "nodePort": 30100}]}),
        ));
        let asks = |port: u16| {
            service(
                &json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
                "healthCheckNodePort": port, "ports": [{"port": 80, "nodePort": 30200}]}),
            )
        };
        let check = |port: u16, old: Option<&Value>, expected: Option<&str>| {
            let found = allocate_health_check_port(&mut asks(port), old, &taken, &ranges());
            let found = found.err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), expected, "{port}");
        };
        check(30_101, None, None);
        for port in [30_100, 30_200] {
            let words = format!(
                "failed to allocate requested HealthCheck NodePort {port}: provided port is already allocated"
            );
            check(port, None, Some(&words));
        }
        check(
            80,
            None,
            Some(
                "failed to allocate requested HealthCheck NodePort 80: provided port is not in the valid range. \
                 The range of valid ports is 30000-32767",
            ),
        );
        // A service keeps what it has.
        check(30_100, Some(&asks(30_100)), None);
    }

    #[test]
    fn a_load_balancer_without_node_ports_may_ask_for_one_that_is_free() {
        let mut taken = Taken::default();
        taken.add(&service(
            &json!({"ports": [{"port": 80, "nodePort": 30100}]}),
        ));
        let asks = |port: u16| {
            service(
                &json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
                "ports": [{"port": 80, "nodePort": port}]}),
            )
        };
        check(&allocate(&mut asks(30_101), None, &taken, &ranges()), &[]);
        check(
            &allocate(&mut asks(30_100), None, &taken, &ranges()),
            &["spec.ports[0].nodePort: Invalid value: 30100: provided port is already allocated"],
        );
    }
}
