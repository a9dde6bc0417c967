//! Connections of UDP that lead to endpoints that are gone: as long as packets come, the kernel keeps them, and clients such
//! as DNS resolvers would never reach another endpoint.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use kennel_core::services::{Destination, Protocol, Scope};

use crate::netlink::{ACK, Attributes, DUMP, Failure, Message, Socket, attributes};
use crate::plan::Endpoint;

const IPV4: u8 = 2;
const SUBSYSTEM: u16 = 1;
const GET: u16 = SUBSYSTEM << 8 | 1;
const DELETE: u16 = SUBSYSTEM << 8 | 2;

const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const ID: u16 = 12;
const FILTER: u16 = 25;
/// Answer with connections of the protocol in the tuple only. Older kernels answer with all.
const FILTER_PROTOCOL: u32 = 1 << 3;

/// The connection's destination was changed.
const DESTINATION_CHANGED: u32 = 1 << 5;

/// A connection.
#[derive(Debug, PartialEq, Eq)]
struct Connection {
    /// The tuple of its first packet, as the kernel wrote it.
    original: Vec<u8>,
    id: Option<Vec<u8>>,
    destination: Endpoint,
    /// The source of replies: the endpoint.
    endpoint: Endpoint,
    is_redirected: bool,
}

/// Deletes the connections of these destinations that lead to other endpoints than these. Returns how many.
pub(crate) fn clean(
    socket: &mut Socket,
    destinations: impl Iterator<Item = (Destination, BTreeSet<Endpoint>)>,
) -> Result<usize, Failure> {
    let udp = destinations.filter(|(destination, _)| destination.protocol == Protocol::Udp);
    let mut wanted: HashMap<(Option<Ipv4Addr>, u16), BTreeSet<Endpoint>> = HashMap::new();
    for (destination, endpoints) in udp {
        let address = match destination.scope {
            Scope::ClusterIp(IpAddr::V4(address)) => Some(address),
            Scope::ClusterIp(IpAddr::V6(_)) => continue,
            // Packets of the node itself may go to more endpoints: what one of both allows stays.
            Scope::NodePort | Scope::NodePortFromHost => None,
        };
        wanted
            .entry((address, destination.port))
            .or_default()
            .extend(endpoints);
    }
    if wanted.is_empty() {
        return Ok(0);
    }
    let mut stale = Vec::new();
    let mut request = socket.request();
    request.push(GET, DUMP, IPV4, 0, |message| {
        message.nested(TUPLE_ORIGINAL, |tuple| {
            tuple.nested(2, |protocol| protocol.byte(1, Protocol::Udp.number()));
        });
        message.nested(FILTER, |filter| {
            filter.bytes(1, &FILTER_PROTOCOL.to_ne_bytes());
            filter.bytes(2, &0_u32.to_ne_bytes());
        });
    });
    socket.dump(&request, |message| {
        stale.extend(Connection::read(message).filter(|one| is_stale(one, &wanted)));
    })?;
    let count = stale.len();
    for connection in stale {
        delete(socket, &connection)?;
    }
    Ok(count)
}

fn is_stale(
    connection: &Connection,
    wanted: &HashMap<(Option<Ipv4Addr>, u16), BTreeSet<Endpoint>>,
) -> bool {
    let (address, port) = connection.destination;
    if let Some(endpoints) = wanted.get(&(Some(address), port)) {
        // Also one that was begun before the service existed.
        return !endpoints.contains(&connection.endpoint);
    }
    let endpoints = wanted.get(&(None, port));
    connection.is_redirected
        && endpoints.is_some_and(|endpoints| !endpoints.contains(&connection.endpoint))
}

fn delete(socket: &mut Socket, connection: &Connection) -> Result<(), Failure> {
    let mut request = socket.request();
    request.push(DELETE, ACK, IPV4, 0, |message: &mut Attributes<'_>| {
        message.nested(TUPLE_ORIGINAL, |tuple| tuple.raw(&connection.original));
        if let Some(id) = &connection.id {
            message.bytes(ID, id);
        }
    });
    match socket.execute(&request) {
        // It has ended by itself.
        Err(Failure::Refused(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

impl Connection {
    /// `None` for other protocols.
    fn read(message: &Message<'_>) -> Option<Self> {
        let (mut original, mut reply, mut id, mut status) = (None, None, None, 0);
        for (kind, value) in message.attributes() {
            match kind {
                TUPLE_ORIGINAL => original = Some(value),
                TUPLE_REPLY => reply = Some(value),
                STATUS => status = u32::from_be_bytes(*value.first_chunk()?),
                ID => id = Some(value.to_vec()),
                _ => {}
            }
        }
        let (original, reply) = (original?, Tuple::read(reply?)?);
        Some(Self {
            destination: Tuple::read(original)?.destination,
            original: original.to_vec(),
            id,
            endpoint: reply.source,
            is_redirected: status & DESTINATION_CHANGED != 0,
        })
    }
}

struct Tuple {
    source: Endpoint,
    destination: Endpoint,
}

impl Tuple {
    /// `None` unless it is UDP.
    fn read(bytes: &[u8]) -> Option<Self> {
        let find = |nested: u16, kind: u16| {
            let (_, all) = attributes(bytes).find(|(found, _)| *found == nested)?;
            attributes(all)
                .find(|(found, _)| *found == kind)
                .map(|(_, value)| value)
        };
        let address = |kind| Some(Ipv4Addr::from(*find(1, kind)?.first_chunk::<4>()?));
        let port = |kind| Some(u16::from_be_bytes(*find(2, kind)?.first_chunk()?));
        if find(2, 1)? != [Protocol::Udp.number()] {
            return None;
        }
        Some(Self {
            source: (address(1)?, port(2)?),
            destination: (address(2)?, port(3)?),
        })
    }
}
