//! Looks names up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::endpoints::{Port, ReadyEndpoint, ServiceEndpoints};
use super::{Holder, Key, Service, Zone};
use crate::question::record_type;

/// More records than any packet holds. A larger service is sampled before names are built for it, so that the cost
/// of a query is bounded.
const MAX_RECORDS: usize = 4096;

/// The version of the Kubernetes DNS specification.
const VERSION: &str = "1.1.0";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Address(IpAddr),
    /// A port, and the name that listens there.
    Service(u16, String),
    Pointer(String),
    Text(&'static str),
    Authority,
    NameServer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Never empty.
    Records(Vec<Record>),
    /// The name exists, but has no record of this type.
    NoData,
    NxDomain,
    Cname(String),
    OutOfZone,
}

fn records_or_no_data(records: Vec<Record>) -> Lookup {
    if records.is_empty() {
        Lookup::NoData
    } else {
        Lookup::Records(records)
    }
}

fn matches(asked: u16, qtype: u16) -> bool {
    asked == qtype || asked == record_type::ANY
}

impl Zone {
    /// `name` in lower case.
    pub(crate) fn lookup(&self, name: &[String], asked: u16) -> Lookup {
        if let Some(address) = reverse(name) {
            return self.lookup_address(address, asked);
        }
        let Some(below) = name.strip_suffix(self.domain.as_slice()) else {
            return Lookup::OutOfZone;
        };
        let texts: Vec<&str> = below.iter().map(String::as_str).collect();
        match texts.as_slice() {
            [] => records_or_no_data(apex(asked)),
            ["dns-version"] if matches(asked, record_type::TXT) => {
                Lookup::Records(vec![Record::Text(VERSION)])
            }
            ["svc" | "dns-version" | "dns"] | ["ns", "dns"] => Lookup::NoData,
            [namespace, "svc"] => self.lookup_namespace(namespace),
            [rest @ .., service, namespace, "svc"] => {
                let key = ((*namespace).into(), (*service).into());
                self.lookup_service(&key, rest, asked)
            }
            _ => Lookup::NxDomain,
        }
    }

    fn lookup_namespace(&self, namespace: &str) -> Lookup {
        let first: Key = (namespace.into(), "".into());
        let mut after = self.services.range(first..);
        match after.next() {
            Some(((found, _), _)) if **found == *namespace => Lookup::NoData,
            _ => Lookup::NxDomain,
        }
    }

    fn lookup_service(&self, key: &Key, rest: &[&str], asked: u16) -> Lookup {
        let Some(service) = self.services.get(key) else {
            return Lookup::NxDomain;
        };
        if let Some(alias) = &service.external_name {
            return match rest {
                [] => Lookup::Cname(alias.clone()),
                _ => Lookup::NxDomain,
            };
        }
        let empty = ServiceEndpoints::default();
        let service = ServiceLookup {
            zone: self,
            key,
            service,
            endpoints: self.endpoints.get(key).unwrap_or(&empty),
        };
        match rest {
            [] => service.itself(asked),
            [protocol] if protocol.starts_with('_') => service.protocol(protocol),
            [port, protocol] if port.starts_with('_') && protocol.starts_with('_') => {
                service.port(port, protocol, asked)
            }
            _ => service.endpoint(&rest.join("."), asked),
        }
    }

    fn lookup_address(&self, address: IpAddr, asked: u16) -> Lookup {
        let Some(all) = self.by_address.get(&address) else {
            return Lookup::OutOfZone;
        };
        if !matches(asked, record_type::PTR) {
            return Lookup::NoData;
        }
        let name = |(key, label): &Holder| Record::Pointer(self.name_of(key, label.as_deref()));
        Lookup::Records(sample(all.keys()).into_iter().map(name).collect())
    }

    /// The full name of a service, or of its endpoint with this label.
    fn name_of(&self, (namespace, name): &Key, label: Option<&str>) -> String {
        let domain = self.domain.join(".");
        let service = format!("{name}.{namespace}.svc.{domain}");
        match label {
            Some(label) => format!("{label}.{service}"),
            None => service,
        }
    }
}

struct ServiceLookup<'a> {
    zone: &'a Zone,
    key: &'a Key,
    service: &'a Service,
    endpoints: &'a ServiceEndpoints,
}

impl ServiceLookup<'_> {
    fn is_headless(&self) -> bool {
        self.service.addresses.is_empty()
    }

    fn itself(&self, asked: u16) -> Lookup {
        let mut records: Vec<Record> = if self.is_headless() {
            addresses(self.endpoints.addresses(), asked)
        } else {
            addresses(self.service.addresses.iter().copied(), asked)
        };
        if self.is_headless() && self.endpoints.addresses().next().is_none() {
            // By the specification, the name does not exist without ready endpoints.
            return Lookup::NxDomain;
        }
        if matches(asked, record_type::SRV) {
            records.extend(self.srv_records(self.listeners(|_| true)));
        }
        records_or_no_data(records)
    }

    fn protocol(&self, protocol: &str) -> Lookup {
        let of_protocol = |port: &Port| protocol.strip_prefix('_') == Some(&port.protocol);
        if self.listeners(of_protocol).next().is_none() {
            Lookup::NxDomain
        } else {
            Lookup::NoData
        }
    }

    fn port(&self, name: &str, protocol: &str, asked: u16) -> Lookup {
        let wanted = |port: &Port| {
            name.strip_prefix('_') == Some(&port.name)
                && protocol.strip_prefix('_') == Some(&port.protocol)
        };
        let mut listeners = self.listeners(wanted).peekable();
        if listeners.peek().is_none() {
            return Lookup::NxDomain;
        }
        if matches(asked, record_type::SRV) {
            return Lookup::Records(self.srv_records(listeners));
        }
        Lookup::NoData
    }

    /// The listeners of matching ports: the service itself (`None`), or each endpoint of a headless service.
    fn listeners(
        &self,
        wanted: impl Fn(&Port) -> bool + Copy,
    ) -> impl Iterator<Item = (u16, Option<&ReadyEndpoint>)> {
        let headless = self.is_headless();
        let itself = self.service.ports.iter().filter(move |_| !headless);
        let itself = itself.filter(move |port| wanted(port));
        let slices = self.endpoints.slices().filter(move |_| headless);
        let endpoints = slices.flat_map(move |slice| {
            let ports = slice.ports.iter().filter(move |port| wanted(port));
            ports.flat_map(|port| {
                let endpoints = slice.endpoints.iter();
                endpoints.map(|endpoint| (port.number, Some(endpoint)))
            })
        });
        itself.map(|port| (port.number, None)).chain(endpoints)
    }

    fn srv_records<'a>(
        &self,
        listeners: impl Iterator<Item = (u16, Option<&'a ReadyEndpoint>)>,
    ) -> Vec<Record> {
        let service = self.zone.name_of(self.key, None);
        let name = |endpoint: Option<&ReadyEndpoint>| match endpoint {
            Some(endpoint) => format!("{}.{service}", endpoint.label()),
            None => service.clone(),
        };
        let records = sample(listeners).into_iter();
        records
            .map(|(port, endpoint)| Record::Service(port, name(endpoint)))
            .collect()
    }

    fn endpoint(&self, name: &str, asked: u16) -> Lookup {
        let found = self.endpoints.by_label(name);
        if !found.is_empty() {
            return records_or_no_data(addresses(found.into_iter(), asked));
        }
        if self.endpoints.has_below(name) {
            return Lookup::NoData;
        }
        Lookup::NxDomain
    }
}

fn addresses(all: impl Iterator<Item = IpAddr>, asked: u16) -> Vec<Record> {
    let of_kind = |address: &IpAddr| match address {
        IpAddr::V4(_) => matches(asked, record_type::A),
        IpAddr::V6(_) => matches(asked, record_type::AAAA),
    };
    let of_kind = sample(all.filter(of_kind)).into_iter();
    of_kind.map(Record::Address).collect()
}

/// A uniform sample of at most [`MAX_RECORDS`].
fn sample<T>(mut all: impl Iterator<Item = T>) -> Vec<T> {
    let mut chosen: Vec<T> = all.by_ref().take(MAX_RECORDS).collect();
    for (before, item) in (MAX_RECORDS..).zip(all) {
        if let Some(endpoint) = chosen.get_mut(fastrand::usize(..=before)) {
            *endpoint = item;
        }
    }
    chosen
}

fn apex(asked: u16) -> Vec<Record> {
    let mut records = Vec::new();
    if matches(asked, record_type::SOA) {
        records.push(Record::Authority);
    }
    if matches(asked, record_type::NS) {
        records.push(Record::NameServer);
    }
    records
}

/// The address of a name such as `4.3.2.1.in-addr.arpa`.
fn reverse(name: &[String]) -> Option<IpAddr> {
    let (zone, labels) = match name {
        [labels @ .., zone, arpa] if arpa == "arpa" => (zone.as_str(), labels),
        _ => return None,
    };
    match (zone, labels.len()) {
        ("in-addr", 4) => {
            let mut octets = [0; 4];
            for (octet, label) in octets.iter_mut().rev().zip(labels) {
                // `parse` would accept a sign.
                label.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
                *octet = label.parse().ok()?;
            }
            Some(Ipv4Addr::from(octets).into())
        }
        ("ip6", 32) => {
            let mut bits: u128 = 0;
            for label in labels.iter().rev() {
                (label.len() == 1).then_some(())?;
                bits = bits << 4 | u128::from_str_radix(label, 16).ok()?;
            }
            Some(Ipv6Addr::from(bits).into())
        }
        _ => None,
    }
}
