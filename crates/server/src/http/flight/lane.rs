//! Which seats a request asks for: whether it reads or writes, whether somebody depends on its being
//! served, on whose account it goes and how wide it is. Pure.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use kennel_types::Verb;

use super::super::limits;
use super::pool::Ask;
use crate::api::Entry;
use crate::request::path::{Place, Route};
use crate::request::{Caller, MASTERS, User};

/// The group of the nodes.
const NODES: &str = "system:nodes";
/// The namespace of the nodes' leases.
const NODE_LEASES: &str = "kube-node-lease";

/// A sort of seats; no sort ever takes another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Requests that read.
    Reading,
    /// Requests that write.
    Mutating,
    /// The controllers' requests that read.
    ControllersReading,
    /// The controllers' requests that write.
    ControllersMutating,
    /// Signs of life of the nodes.
    Heartbeats,
    /// Watches under way.
    Watches,
    /// Logs, shells and tunnels under way.
    Sessions,
    /// Connections.
    Connections,
    /// Handshakes under way.
    Handshakes,
}

impl Lane {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 9] = [
        Self::Reading,
        Self::Mutating,
        Self::ControllersReading,
        Self::ControllersMutating,
        Self::Heartbeats,
        Self::Watches,
        Self::Sessions,
        Self::Connections,
        Self::Handshakes,
    ];

    /// Its name in the metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Mutating => "mutating",
            Self::ControllersReading => "controllers_reading",
            Self::ControllersMutating => "controllers_mutating",
            Self::Heartbeats => "heartbeats",
            Self::Watches => "watches",
            Self::Sessions => "sessions",
            Self::Connections => "connections",
            Self::Handshakes => "handshakes",
        }
    }

    /// How many seats it has.
    pub(super) fn seats(self) -> u32 {
        match self {
            Self::Reading => limits::READING_SEATS,
            Self::Mutating => limits::MUTATING_SEATS,
            Self::ControllersReading | Self::ControllersMutating => limits::CONTROLLER_SEATS,
            Self::Heartbeats => limits::HEARTBEAT_SEATS,
            Self::Watches => limits::WATCHES_MAX,
            Self::Sessions => limits::SESSIONS_MAX,
            // How many there are in all is seen to before they are accepted.
            Self::Connections => u32::MAX,
            Self::Handshakes => limits::HANDSHAKES,
        }
    }
}

/// What is asked of a lane, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(super) lane: Lane,
    pub(super) ask: Ask,
    pub(super) wait: Duration,
}

/// What a request asks for; nothing when it is a health check, which must work when nothing else does.
pub(super) fn request(
    entry: &Entry,
    caller: &Caller,
    bytes: u64,
    keys: &impl BuildHasher,
) -> Option<Wish> {
    if matches!(entry.route, Route::Health(_)) {
        return None;
    }
    let inside = caller.address.is_none();
    let lane = lane(&entry.user, inside, &entry.route, entry.verb);
    let part = match lane {
        _ if inside => (1, 1),
        Lane::Heartbeats => limits::HEARTBEAT_SHARE,
        Lane::ControllersReading | Lane::ControllersMutating => limits::CONTROLLER_SHARE,
        _ if entry.user.is_in(MASTERS) => limits::MASTER_SHARE,
        _ => limits::USER_SHARE,
    };
    let ask = Ask {
        flow: account(&entry.user, caller, keys),
        width: width(bytes),
        share: lane.seats() * part.0 / part.1,
        queue: if inside {
            limits::QUEUE_INSIDE
        } else {
            limits::QUEUE_PER_USER
        },
    };
    let wait = if inside {
        limits::QUEUE_WAIT_INSIDE
    } else {
        limits::QUEUE_WAIT
    };
    Some(Wish { lane, ask, wait })
}

/// What a watch asks for once it has begun: there is nothing to wait for, since watches are long.
pub(super) fn watch(entry: &Entry, caller: &Caller, keys: &impl BuildHasher) -> Wish {
    let shares = (limits::WATCHES_PER_USER, limits::WATCHES_PRIVILEGED);
    lasting(Lane::Watches, shares, entry, caller, keys)
}

/// What a log, a shell or a tunnel asks for once it has begun.
pub(super) fn session(entry: &Entry, caller: &Caller, keys: &impl BuildHasher) -> Wish {
    let shares = (limits::SESSIONS_PER_USER, limits::SESSIONS_PRIVILEGED);
    lasting(Lane::Sessions, shares, entry, caller, keys)
}

fn lasting(
    lane: Lane,
    (of_a_user, of_the_privileged): (u32, u32),
    entry: &Entry,
    caller: &Caller,
    keys: &impl BuildHasher,
) -> Wish {
    let user = &entry.user;
    let inside = caller.address.is_none();
    let privileged = inside || user.is_in(MASTERS) || is_controller(user);
    let ask = Ask {
        flow: account(user, caller, keys),
        width: 1,
        share: if privileged {
            of_the_privileged
        } else {
            of_a_user
        },
        queue: 0,
    };
    Wish {
        lane,
        ask,
        wait: Duration::ZERO,
    }
}

/// What a new connection asks for.
pub(super) fn connection(address: IpAddr, keys: &impl BuildHasher) -> Wish {
    let share = if is_here(address) {
        limits::CONNECTIONS_FROM_HERE
    } else {
        limits::CONNECTIONS_PER_ADDRESS
    };
    Wish {
        lane: Lane::Connections,
        ask: Ask {
            flow: keys.hash_one(neighbourhood(address)),
            width: 1,
            share,
            queue: 0,
        },
        wait: Duration::ZERO,
    }
}

/// What a handshake asks for.
pub(super) fn handshake(address: IpAddr, wait: Duration, keys: &impl BuildHasher) -> Wish {
    let share = if is_here(address) {
        limits::HANDSHAKES_FROM_HERE
    } else {
        limits::HANDSHAKES_PER_ADDRESS
    };
    Wish {
        lane: Lane::Handshakes,
        ask: Ask {
            flow: keys.hash_one(neighbourhood(address)),
            width: 1,
            share,
            // Each is a connection, and those are bounded.
            queue: limits::CONNECTIONS_MAX,
        },
        wait,
    }
}

fn lane(user: &User, inside: bool, route: &Route, verb: Verb<'_>) -> Lane {
    let reads = matches!(verb, Verb::Get | Verb::List | Verb::Watch);
    if (inside || user.is_in(NODES)) && is_heartbeat(route, verb) {
        return Lane::Heartbeats;
    }
    match (inside || is_controller(user), reads) {
        (true, true) => Lane::ControllersReading,
        (true, false) => Lane::ControllersMutating,
        (false, true) => Lane::Reading,
        (false, false) => Lane::Mutating,
    }
}

/// What a node does to be known as alive: its lease, its status, and looking itself up.
fn is_heartbeat(route: &Route, verb: Verb<'_>) -> bool {
    let Route::Objects(place) = route else {
        return false;
    };
    let Place { row, .. } = place;
    match (row.group, row.plural, place.subresource.as_deref()) {
        ("coordination.k8s.io", "leases", None) => {
            place.namespace.as_deref() == Some(NODE_LEASES)
                && matches!(verb, Verb::Get | Verb::Create | Verb::Update | Verb::Patch)
        }
        ("", "nodes", Some("status")) => matches!(verb, Verb::Update | Verb::Patch),
        ("", "nodes", None) => verb == Verb::Get,
        _ => false,
    }
}

/// Whether the cluster depends on this user.
fn is_controller(user: &User) -> bool {
    matches!(
        user.name.as_str(),
        "system:kube-scheduler" | "system:kube-controller-manager"
    ) || user.name.starts_with("system:serviceaccount:kube-system:")
}

/// On whose account a request goes: the user's, or where there is none the address's.
fn account(user: &User, caller: &Caller, keys: &impl BuildHasher) -> u64 {
    match caller.address {
        Some(address) if user.is_anonymous() => keys.hash_one(neighbourhood(address.ip())),
        _ => keys.hash_one(&user.name),
    }
}

/// How many seats so many bytes take.
fn width(bytes: u64) -> u32 {
    let seats = bytes.div_ceil(limits::SEAT_BYTES);
    let seats = u32::try_from(seats).unwrap_or(limits::WIDTH_MAX);
    seats.clamp(1, limits::WIDTH_MAX)
}

/// An address, or of IPv6 the network that one host usually has for itself.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
