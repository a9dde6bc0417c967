//! What a name leads to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::places::{Place, PlacePort, Places};
use super::{Holder, Key, Service, Zone};
use crate::question::kind;

/// As many records as any packet holds, and more. What a service has beyond is drawn by lot, before names
/// are made for it: a short question must not cost as much as the largest service is large.
const MOST: usize = 4096;

/// What Kubernetes calls the rules that these names follow.
const VERSION: &str = "1.1.0";

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Address(IpAddr),
    /// A port, and the name of who listens there.
    Service(u16, String),
    Pointer(String),
    Text(&'static str),
    /// Who answers for the domain.
    Authority,
    NameServer,
}

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// To these, of the kind that was asked for.
    Records(Vec<Record>),
    /// The name exists, but nothing of that kind.
    Nothing,
    /// There is no such name.
    Missing,
    /// Another name is to be asked for.
    Alias(String),
    /// It is none of our names.
    Foreign,
}

fn found(records: Vec<Record>) -> Found {
    if records.is_empty() {
        Found::Nothing
    } else {
        Found::Records(records)
    }
}

fn wants(asked: u16, kind: u16) -> bool {
    asked == kind || asked == kind::ANY
}

impl Zone {
    /// What a name, in lower case, leads to, of the kind that is asked for.
    pub(crate) fn find(&self, name: &[String], asked: u16) -> Found {
        if let Some(address) = reverse(name) {
            return self.find_address(address, asked);
        }
        let Some(below) = name.strip_suffix(self.domain.as_slice()) else {
            return Found::Foreign;
        };
        let texts: Vec<&str> = below.iter().map(String::as_str).collect();
        match texts.as_slice() {
            [] => found(apex(asked)),
            ["dns-version"] if wants(asked, kind::TXT) => {
                Found::Records(vec![Record::Text(VERSION)])
            }
            ["svc" | "dns-version" | "dns"] | ["ns", "dns"] => Found::Nothing,
            [namespace, "svc"] => self.find_namespace(namespace),
            [rest @ .., service, namespace, "svc"] => {
                let key = ((*namespace).into(), (*service).into());
                self.find_service(&key, rest, asked)
            }
            _ => Found::Missing,
        }
    }

    fn find_namespace(&self, namespace: &str) -> Found {
        let first: Key = (namespace.into(), "".into());
        let mut after = self.services.range(first..);
        match after.next() {
            Some(((found, _), _)) if **found == *namespace => Found::Nothing,
            _ => Found::Missing,
        }
    }

    fn find_service(&self, key: &Key, rest: &[&str], asked: u16) -> Found {
        let Some(service) = self.services.get(key) else {
            return Found::Missing;
        };
        if let Some(alias) = &service.alias {
            return match rest {
                [] => Found::Alias(alias.clone()),
                _ => Found::Missing,
            };
        }
        let empty = Places::default();
        let of = Of {
            zone: self,
            key,
            service,
            places: self.places.get(key).unwrap_or(&empty),
        };
        match rest {
            [] => of.itself(asked),
            [protocol] if protocol.starts_with('_') => of.protocol(protocol),
            [port, protocol] if port.starts_with('_') && protocol.starts_with('_') => {
                of.port(port, protocol, asked)
            }
            _ => of.endpoint(&rest.join("."), asked),
        }
    }

    fn find_address(&self, address: IpAddr, asked: u16) -> Found {
        let Some(all) = self.by_address.get(&address) else {
            return Found::Foreign;
        };
        if !wants(asked, kind::PTR) {
            return Found::Nothing;
        }
        let name = |(key, label): &Holder| Record::Pointer(self.name_of(key, label.as_deref()));
        Found::Records(some(all.keys()).into_iter().map(name).collect())
    }

    /// The whole name of a service, or of what is called `label` below it.
    fn name_of(&self, (namespace, name): &Key, label: Option<&str>) -> String {
        let domain = self.domain.join(".");
        let service = format!("{name}.{namespace}.svc.{domain}");
        match label {
            Some(label) => format!("{label}.{service}"),
            None => service,
        }
    }
}

/// A service, and all that is needed to answer for it.
struct Of<'a> {
    zone: &'a Zone,
    key: &'a Key,
    service: &'a Service,
    places: &'a Places,
}

impl Of<'_> {
    fn is_headless(&self) -> bool {
        self.service.addresses.is_empty()
    }

    fn itself(&self, asked: u16) -> Found {
        let mut records: Vec<Record> = if self.is_headless() {
            addresses(self.places.addresses(), asked)
        } else {
            addresses(self.service.addresses.iter().copied(), asked)
        };
        if self.is_headless() && self.places.addresses().next().is_none() {
            // As Kubernetes wants it: without ready endpoints there is no such name.
            return Found::Missing;
        }
        if wants(asked, kind::SRV) {
            records.extend(self.names(self.listeners(|_| true)));
        }
        found(records)
    }

    fn protocol(&self, protocol: &str) -> Found {
        let of_protocol = |port: &PlacePort| protocol.strip_prefix('_') == Some(&port.protocol);
        if self.listeners(of_protocol).next().is_none() {
            Found::Missing
        } else {
            Found::Nothing
        }
    }

    fn port(&self, name: &str, protocol: &str, asked: u16) -> Found {
        let wanted = |port: &PlacePort| {
            name.strip_prefix('_') == Some(&port.name)
                && protocol.strip_prefix('_') == Some(&port.protocol)
        };
        let mut listeners = self.listeners(wanted).peekable();
        if listeners.peek().is_none() {
            return Found::Missing;
        }
        if wants(asked, kind::SRV) {
            return Found::Records(self.names(listeners));
        }
        Found::Nothing
    }

    /// Who listens at such ports: the service itself (no place), or each endpoint of a headless one.
    fn listeners(
        &self,
        wanted: impl Fn(&PlacePort) -> bool + Copy,
    ) -> impl Iterator<Item = (u16, Option<&Place>)> {
        let headless = self.is_headless();
        let itself = self.service.ports.iter().filter(move |_| !headless);
        let itself = itself.filter(move |port| wanted(port));
        let slices = self.places.slices().filter(move |_| headless);
        let endpoints = slices.flat_map(move |slice| {
            let ports = slice.ports.iter().filter(move |port| wanted(port));
            ports.flat_map(|port| {
                let places = slice.places.iter();
                places.map(|place| (port.number, Some(place)))
            })
        });
        itself.map(|port| (port.number, None)).chain(endpoints)
    }

    /// The names of those who listen.
    fn names<'a>(&self, listeners: impl Iterator<Item = (u16, Option<&'a Place>)>) -> Vec<Record> {
        let service = self.zone.name_of(self.key, None);
        let name = |place: Option<&Place>| match place {
            Some(place) => format!("{}.{service}", place.label()),
            None => service.clone(),
        };
        let records = some(listeners).into_iter();
        records
            .map(|(port, place)| Record::Service(port, name(place)))
            .collect()
    }

    fn endpoint(&self, name: &str, asked: u16) -> Found {
        let called = self.places.called(name);
        if !called.is_empty() {
            return found(addresses(called.into_iter(), asked));
        }
        if self.places.has_below(name) {
            return Found::Nothing;
        }
        Found::Missing
    }
}

fn addresses(all: impl Iterator<Item = IpAddr>, asked: u16) -> Vec<Record> {
    let of_kind = |address: &IpAddr| match address {
        IpAddr::V4(_) => wants(asked, kind::A),
        IpAddr::V6(_) => wants(asked, kind::AAAA),
    };
    let of_kind = some(all.filter(of_kind)).into_iter();
    of_kind.map(Record::Address).collect()
}

/// All, or of too many [`MOST`], each as likely as the others.
fn some<T>(mut all: impl Iterator<Item = T>) -> Vec<T> {
    let mut chosen: Vec<T> = all.by_ref().take(MOST).collect();
    for (before, item) in (MOST..).zip(all) {
        if let Some(place) = chosen.get_mut(fastrand::usize(..=before)) {
            *place = item;
        }
    }
    chosen
}

fn apex(asked: u16) -> Vec<Record> {
    let mut records = Vec::new();
    if wants(asked, kind::SOA) {
        records.push(Record::Authority);
    }
    if wants(asked, kind::NS) {
        records.push(Record::NameServer);
    }
    records
}

/// The address that a name such as `4.3.2.1.in-addr.arpa` is of.
fn reverse(name: &[String]) -> Option<IpAddr> {
    let (zone, labels) = match name {
        [labels @ .., zone, arpa] if arpa == "arpa" => (zone.as_str(), labels),
        _ => return None,
    };
    match (zone, labels.len()) {
        ("in-addr", 4) => {
            let mut octets = [0; 4];
            for (octet, label) in octets.iter_mut().rev().zip(labels) {
                // Not all that reads as a number is written as one.
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
