//! Classifies requests: the lane by verb and importance, the flow by user or address, the width by size.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use kennel_types::Verb;

use super::pool::Ask;
use crate::limits;
use crate::registry::Heartbeat;
use crate::request::path::Route;
use crate::request::{AuthorizedRequest, Caller, MASTERS, User};

/// The group of nodes.
pub(crate) const NODES: &str = "system:nodes";
const NODE_LEASES: &str = "kube-node-lease";

/// A priority level with seats of its own.
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
    /// Heartbeats of nodes.
    Heartbeats,
    /// Open watches.
    Watches,
    /// Open log, exec, attach and port-forward sessions.
    Sessions,
    Connections,
    /// TLS handshakes under way.
    Handshakes,
}

impl Lane {
    /// All lanes, in the order of their discriminants.
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

    pub(super) fn seats(self) -> u32 {
        match self {
            Self::Reading => limits::READING_SEATS,
            Self::Mutating => limits::MUTATING_SEATS,
            Self::ControllersReading | Self::ControllersMutating => limits::CONTROLLER_SEATS,
            Self::Heartbeats => limits::HEARTBEAT_SEATS,
            Self::Watches => limits::WATCHES_MAX,
            Self::Sessions => limits::SESSIONS_MAX,
            // The listener limits their number before it accepts them.
            Self::Connections => u32::MAX,
            Self::Handshakes => limits::HANDSHAKES,
        }
    }
}

/// A request for seats of a lane, and how long it may be queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeatRequest {
    pub(super) lane: Lane,
    pub(super) ask: Ask,
    pub(super) wait: Duration,
}

/// The seats of a request; `None` for a health check, which must work even when the server is overloaded.
pub(super) fn request(
    request: &AuthorizedRequest,
    caller: &Caller,
    bytes: u64,
    keys: &impl BuildHasher,
) -> Option<SeatRequest> {
    if matches!(request.route, Route::Health(..)) {
        return None;
    }
    let in_process = caller.address.is_none();
    let lane = lane(&request.user, in_process, &request.route, request.verb);
    let part = match lane {
        _ if in_process => (1, 1),
        Lane::Heartbeats => limits::HEARTBEAT_SHARE,
        Lane::ControllersReading | Lane::ControllersMutating => limits::CONTROLLER_SHARE,
        _ if request.user.is_in(MASTERS) => limits::MASTER_SHARE,
        _ => limits::USER_SHARE,
    };
    let ask = Ask {
        flow: flow(&request.user, caller, keys),
        width: width(bytes),
        share: lane.seats() * part.0 / part.1,
        queue: if in_process {
            limits::QUEUE_IN_PROCESS
        } else {
            limits::QUEUE_PER_USER
        },
    };
    let wait = if in_process {
        limits::QUEUE_WAIT_IN_PROCESS
    } else {
        limits::QUEUE_WAIT
    };
    Some(SeatRequest { lane, ask, wait })
}

/// The seat of a watch. It is never queued, because watches last long.
pub(super) fn watch(
    request: &AuthorizedRequest,
    caller: &Caller,
    keys: &impl BuildHasher,
) -> SeatRequest {
    let shares = (limits::WATCHES_PER_USER, limits::WATCHES_PRIVILEGED);
    long_lived(Lane::Watches, shares, request, caller, keys)
}

/// The seat of a log, exec, attach or port-forward session.
pub(super) fn session(
    request: &AuthorizedRequest,
    caller: &Caller,
    keys: &impl BuildHasher,
) -> SeatRequest {
    let shares = (limits::SESSIONS_PER_USER, limits::SESSIONS_PRIVILEGED);
    long_lived(Lane::Sessions, shares, request, caller, keys)
}

fn long_lived(
    lane: Lane,
    (per_user, per_privileged): (u32, u32),
    request: &AuthorizedRequest,
    caller: &Caller,
    keys: &impl BuildHasher,
) -> SeatRequest {
    let user = &request.user;
    let in_process = caller.address.is_none();
    let privileged = in_process || user.is_in(MASTERS) || is_controller(user);
    let ask = Ask {
        flow: flow(user, caller, keys),
        width: 1,
        share: if privileged { per_privileged } else { per_user },
        queue: 0,
    };
    SeatRequest {
        lane,
        ask,
        wait: Duration::ZERO,
    }
}

pub(super) fn connection(address: IpAddr, keys: &impl BuildHasher) -> SeatRequest {
    let share = if is_local(address) {
        limits::CONNECTIONS_LOCAL
    } else {
        limits::CONNECTIONS_PER_ADDRESS
    };
    SeatRequest {
        lane: Lane::Connections,
        ask: Ask {
            flow: keys.hash_one(subnet(address)),
            width: 1,
            share,
            queue: 0,
        },
        wait: Duration::ZERO,
    }
}

pub(super) fn handshake(address: IpAddr, wait: Duration, keys: &impl BuildHasher) -> SeatRequest {
    let share = if is_local(address) {
        limits::HANDSHAKES_LOCAL
    } else {
        limits::HANDSHAKES_PER_ADDRESS
    };
    SeatRequest {
        lane: Lane::Handshakes,
        ask: Ask {
            flow: keys.hash_one(subnet(address)),
            width: 1,
            share,
            // The number of connections bounds the queue.
            queue: limits::CONNECTIONS_MAX,
        },
        wait,
    }
}

fn lane(user: &User, in_process: bool, route: &Route, verb: Verb<'_>) -> Lane {
    let reads = matches!(verb, Verb::Get | Verb::List | Verb::Watch);
    if (in_process || user.is_in(NODES)) && is_heartbeat(route, verb) {
        return Lane::Heartbeats;
    }
    match (in_process || is_controller(user), reads) {
        (true, true) => Lane::ControllersReading,
        (true, false) => Lane::ControllersMutating,
        (false, true) => Lane::Reading,
        (false, false) => Lane::Mutating,
    }
}

/// Whether this is a heartbeat of a node: its lease, its status, and reading its own Node.
fn is_heartbeat(route: &Route, verb: Verb<'_>) -> bool {
    let Route::Objects(place) = route else {
        return false;
    };
    match (place.row.heartbeat, place.subresource.as_deref()) {
        (Some(Heartbeat::Lease), None) => {
            place.namespace.as_deref() == Some(NODE_LEASES)
                && matches!(verb, Verb::Get | Verb::Create | Verb::Update | Verb::Patch)
        }
        (Some(Heartbeat::Status), Some("status")) => matches!(verb, Verb::Update | Verb::Patch),
        (Some(Heartbeat::Status), None) => verb == Verb::Get,
        _ => false,
    }
}

/// Whether the user is a controller of the control plane.
pub(crate) fn is_controller(user: &User) -> bool {
    matches!(
        user.name.as_str(),
        "system:kube-scheduler" | "system:kube-controller-manager"
    ) || user.name.starts_with("system:serviceaccount:kube-system:")
}

/// The flow of a request: its user, or its address if the user is anonymous.
fn flow(user: &User, caller: &Caller, keys: &impl BuildHasher) -> u64 {
    match caller.address {
        Some(address) if user.is_anonymous() => keys.hash_one(subnet(address.ip())),
        _ => keys.hash_one(&user.name),
    }
}

/// How many seats a body or list of this size takes.
fn width(bytes: u64) -> u32 {
    let seats = bytes.div_ceil(limits::SEAT_BYTES);
    let seats = u32::try_from(seats).unwrap_or(limits::WIDTH_MAX);
    seats.clamp(1, limits::WIDTH_MAX)
}

/// An IPv4 address, or the /64 of an IPv6 address, which one host usually has for itself.
fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
