//! Classification: lanes, flows and widths.

use std::hash::RandomState;

use super::*;
use crate::request::query::Query;
use crate::request::{ConnectionIdentity, path};

fn check(user: &User, verb: Verb<'_>, path: &str, expected: Lane) {
    let route = path::parse(path).unwrap();
    let shown = format!("{} {verb} {path}", user.name);
    assert_eq!(lane(user, false, &route, verb), expected, "{shown}");
}

const PODS: &str = "/api/v1/pods";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n";
const OTHER_LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/n";

#[test]
fn reading_and_writing_are_apart_for_everybody() {
    let user = User::authenticated("jane", vec![]);
    for verb in [Verb::Get, Verb::List, Verb::Watch] {
        check(&user, verb, PODS, Lane::Reading);
    }
    for verb in [
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
    ] {
        check(&user, verb, PODS, Lane::Mutating);
    }
    check(&user, Verb::Update, LEASE, Lane::Mutating);
    check(&User::master("admin"), Verb::List, PODS, Lane::Reading);
}

#[test]
fn heartbeats_have_seats_of_their_own() {
    let node = User::authenticated("system:node:n", vec![NODES.to_owned()]);
    for verb in [Verb::Get, Verb::Create, Verb::Update, Verb::Patch] {
        check(&node, verb, LEASE, Lane::Heartbeats);
    }
    check(
        &node,
        Verb::Patch,
        "/api/v1/nodes/n/status",
        Lane::Heartbeats,
    );
    check(&node, Verb::Get, "/api/v1/nodes/n", Lane::Heartbeats);
    check(&node, Verb::List, PODS, Lane::Reading);
    check(&node, Verb::Update, OTHER_LEASE, Lane::Mutating);
    check(&node, Verb::Patch, "/api/v1/nodes/n", Lane::Mutating);
    check(&node, Verb::List, "/api/v1/nodes", Lane::Reading);
}

#[test]
fn controllers_have_seats_of_their_own() {
    let scheduler = User::authenticated("system:kube-scheduler", vec![]);
    check(&scheduler, Verb::Create, PODS, Lane::ControllersMutating);
    let account = User::service_account("kube-system", "daemon-set-controller");
    check(&account, Verb::List, PODS, Lane::ControllersReading);
    let pretender = User::service_account("kube-systems", "x");
    check(&pretender, Verb::List, PODS, Lane::Reading);
    let route = path::parse(PODS).unwrap();
    let inside = lane(&User::master("x"), true, &route, Verb::Create);
    assert_eq!(inside, Lane::ControllersMutating);
}

#[test]
fn large_bodies_take_more_seats() {
    for (bytes, expected) in [
        (0, 1),
        (limits::SEAT_BYTES, 1),
        (limits::SEAT_BYTES + 1, 2),
        (limits::BODY_BYTES_MAX as u64, 12),
        (u64::MAX, 12),
    ] {
        assert_eq!(width(bytes), expected, "{bytes}");
    }
}

#[test]
fn strangers_go_by_their_network_and_others_by_their_name() {
    let keys = RandomState::new();
    let key = |user: &User, address: &str| {
        let caller = Caller::remote(
            format!("{address}:1").parse().unwrap(),
            ConnectionIdentity::Anonymous,
        );
        flow(user, &caller, &keys)
    };
    let (jane, nobody) = (User::authenticated("jane", vec![]), User::anonymous());
    assert_eq!(key(&jane, "192.0.2.1"), key(&jane, "192.0.2.2"));
    assert_ne!(key(&nobody, "192.0.2.1"), key(&nobody, "192.0.2.2"));
    let (one, same) = ("[2001:db8::1]", "[2001:db8::2]");
    assert_eq!(key(&nobody, one), key(&nobody, same));
    assert_ne!(key(&nobody, one), key(&nobody, "[2001:db8:0:1::1]"));
    let mapped = "[::ffff:192.0.2.1]";
    assert_eq!(key(&nobody, mapped), key(&nobody, "192.0.2.1"));
    assert!(is_local("::ffff:127.0.0.1".parse().unwrap()));
}

/// What a request to read pods, or to do something else, asks for.
fn seats(user: User, caller: &Caller, verb: Verb<'static>, path: &str) -> Option<SeatRequest> {
    let (parts, ()) = http::Request::new(()).into_parts();
    let asked = AuthorizedRequest {
        user,
        query: Query::parse(None),
        route: path::parse(path).unwrap(),
        verb,
        parts,
    };
    request(&asked, caller, 0, &RandomState::new())
}

/// The shares that the page about limits promises.
#[test]
fn shares_are_as_promised() {
    let outside = Caller::remote(
        "192.0.2.1:1".parse().unwrap(),
        ConnectionIdentity::Anonymous,
    );
    let inside = Caller::from(User::master("part"));
    let node = || User::authenticated("system:node:n", vec![NODES.to_owned()]);
    let jane = || User::authenticated("jane", vec![]);
    let scheduler = || User::authenticated("system:kube-scheduler", vec![]);
    for (user, caller, verb, path, expected) in [
        (jane(), &outside, Verb::List, PODS, (1, 100)),
        (jane(), &outside, Verb::Create, PODS, (1, 50)),
        (User::master("admin"), &outside, Verb::List, PODS, (1, 300)),
        (
            User::master("admin"),
            &outside,
            Verb::Create,
            PODS,
            (1, 150),
        ),
        (scheduler(), &outside, Verb::Create, PODS, (1, 100)),
        (node(), &outside, Verb::Update, LEASE, (1, 10)),
        (User::master("part"), &inside, Verb::Create, PODS, (1, 200)),
        (User::master("part"), &inside, Verb::Update, LEASE, (1, 100)),
    ] {
        let shown = format!("{} {verb} {path}", user.name);
        let Ask { width, share, .. } = seats(user, caller, verb, path).unwrap().ask;
        assert_eq!((width, share), expected, "{shown}");
    }
    assert!(seats(User::anonymous(), &outside, Verb::Get, "/readyz").is_none());
    assert!(seats(User::anonymous(), &outside, Verb::Get, "/version").is_some());
}
