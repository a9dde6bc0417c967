//! The forms that upstream gives slices and Endpoints.

use serde_json::{Value, json};

use super::super::*;
use super::world::World;
use super::{pod, service};

#[test]
fn a_slice_has_upstreams_form() {
    let spec = json!({"clusterIP": "None", "ports": [
        {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "h2c"}]});
    let mut facts = service(&spec);
    facts.labels.insert("team".into(), "a".into());
    let mut member = pod(1);
    (member.hostname, member.subdomain) = (Some("host".into()), Some("web".into()));
    let world = World::of(facts, [member]);
    assert_eq!(
        *world.slice(),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "web-00001", "generateName": "web-", "namespace": "ns",
                "uid": "o1", "resourceVersion": "1",
                "labels": {
                    "team": "a", "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    "service.kubernetes.io/headless": ""},
                "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "t0"},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "uid-web",
                    "controller": true, "blockOwnerDeletion": true}]},
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": ["10.0.0.1"], "hostname": "host", "nodeName": "n1", "zone": "z1",
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": "ns", "name": "p001", "uid": "u001"}}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "h2c"}],
        })
    );
}

#[test]
fn endpoints_have_upstreams_form() {
    let spec = json!({"clusterIP": "10.96.0.9", "ports": [{"port": 80, "targetPort": 8080}]});
    let mut waiting = pod(2);
    waiting.ready = false;
    let mut leaving = pod(3);
    leaving.terminating = true;
    let world = World::of(service(&spec), [waiting, pod(1), leaving]);
    let target =
        |name: &str, uid: &str| json!({"kind": "Pod", "namespace": "ns", "name": name, "uid": uid});
    assert_eq!(
        world.endpoints()["subsets"],
        json!([{
            "addresses": [{"ip": "10.0.0.1", "nodeName": "n1", "targetRef": target("p001", "u001")}],
            "notReadyAddresses": [
                {"ip": "10.0.0.2", "nodeName": "n1", "targetRef": target("p002", "u002")}],
            "ports": [{"port": 8080, "protocol": "TCP"}],
        }])
    );
    let metadata = &world.endpoints()["metadata"];
    assert_eq!(metadata["name"], "web");
    let labels = json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
    assert_eq!(metadata["labels"], labels);
}

/// The conditions of the one endpoint: ready, serving, terminating; and where Endpoints list it.
fn check_conditions(
    (ready, terminating, publish): (bool, bool, bool),
    conditions: [bool; 3],
    side: Option<&str>,
) {
    let spec = json!({"publishNotReadyAddresses": publish, "ports": [{"port": 80}]});
    let member = PodFacts {
        ready,
        terminating,
        ..pod(1)
    };
    let world = World::of(service(&spec), [member]);
    let said = &world.slice()["endpoints"][0]["conditions"];
    let named = ["ready", "serving", "terminating"].map(|name| said[name].as_bool().unwrap());
    assert_eq!(named, conditions);
    let subset = &world.endpoints()["subsets"][0];
    for name in ["addresses", "notReadyAddresses"] {
        assert_eq!(
            subset[name].is_array(),
            side == Some(name),
            "{name}: {subset}"
        );
    }
}

#[test]
fn readiness_is_said_as_upstream_says_it() {
    let ready = Some("addresses");
    check_conditions((true, false, false), [true, true, false], ready);
    check_conditions(
        (false, false, false),
        [false, false, false],
        Some("notReadyAddresses"),
    );
    check_conditions((true, true, false), [false, true, true], None);
    check_conditions((false, false, true), [true, false, false], ready);
    check_conditions((true, true, true), [true, true, true], ready);
}

#[test]
fn pods_that_cannot_be_reached_are_left_out() {
    let without_address = PodFacts {
        addresses: Vec::new(),
        ..pod(1)
    };
    let ended = PodFacts {
        ended: true,
        ..pod(2)
    };
    let nowhere = PodFacts {
        node: Some("ghost".into()),
        ..pod(3)
    };
    let other_family = PodFacts {
        addresses: vec!["fd00::1".parse().unwrap()],
        ..pod(4)
    };
    let spec = json!({"ports": [{"port": 80}]});
    let pods = [without_address, ended, nowhere, other_family];
    let mut world = World::of(service(&spec), pods);
    // A service without endpoints has one slice all the same.
    assert_eq!(world.slice()["endpoints"], json!([]));
    assert_eq!(world.slice()["ports"], json!([]));
    assert!(world.endpoints()["subsets"].is_null());
    world.tracker.node(world.now, &"ghost".into(), None);
    world.settle();
    assert_eq!(world.slice()["endpoints"][0]["nodeName"], "ghost");
    assert_eq!(world.slice()["endpoints"][0]["zone"], Value::Null);
    world.tracker.node_gone(world.now, "ghost");
    world.settle();
    assert_eq!(world.slice()["endpoints"], json!([]));
}

#[test]
fn pods_with_different_ports_of_one_name_stand_in_different_slices() {
    let named = |number: u8, port: u16| PodFacts {
        ports: [NamedPort {
            name: "web".into(),
            protocol: "TCP".into(),
            number: port,
        }]
        .into(),
        ..pod(number)
    };
    let spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": "web"}]});
    let without = pod(4);
    let pods = [named(1, 8080), named(2, 9090), named(3, 8080), without];
    let world = World::of(service(&spec), pods);
    let mut ports: Vec<(Value, usize)> = Vec::new();
    for slice in world.api.slices() {
        let count = slice["endpoints"].as_array().unwrap().len();
        ports.push((slice["ports"][0]["port"].clone(), count));
    }
    ports.sort_by_key(|(port, _)| port.as_u64());
    assert_eq!(
        ports,
        [(Value::Null, 1), (json!(8080), 2), (json!(9090), 1)]
    );
    let subsets = world.endpoints()["subsets"].as_array().unwrap().len();
    assert_eq!(subsets, 2, "Endpoints list none without a port");
}

#[test]
fn both_families_have_slices_of_their_own() {
    let spec = json!({"ipFamilies": ["IPv6", "IPv4"], "clusterIP": "None"});
    let mut member = pod(1);
    member.addresses.push("fd00::1".parse().unwrap());
    let world = World::of(service(&spec), [member]);
    let families = world.api.slices();
    let mut families: Vec<String> = families
        .iter()
        .map(|slice| {
            format!(
                "{} {}",
                slice["addressType"], slice["endpoints"][0]["addresses"][0]
            )
        })
        .collect();
    families.sort();
    assert_eq!(families, [r#""IPv4" "10.0.0.1""#, r#""IPv6" "fd00::1""#]);
    let address = &world.endpoints()["subsets"][0]["addresses"][0]["ip"];
    assert_eq!(address, "fd00::1", "the service's first family");
}

#[test]
fn services_without_selector_and_aliases_are_left_alone() {
    for spec in [
        json!({"selector": {}, "ports": [{"port": 80}]}),
        json!({"type": "ExternalName", "externalName": "example.com"}),
    ] {
        let world = World::of(service(&spec), [pod(1)]);
        assert_eq!(world.api.objects.len(), 0, "{spec}");
    }
    // What somebody else made for it stays.
    let mut world = World::of(service(&json!({"selector": {}})), []);
    let endpoints = json!({"metadata": {"name": "web", "namespace": "ns"},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]});
    world.api.put(false, endpoints);
    assert_eq!(world.settle(), []);
}

#[test]
fn endpoints_are_cut_at_their_limit_and_say_so() {
    let over = "endpoints.kubernetes.io/over-capacity";
    let mut world = World::new(Limits {
        slice: 100,
        endpoints: 4,
    });
    world
        .tracker
        .service(0, service(&json!({"ports": [{"port": 80}]})));
    for number in 1..=3 {
        world.pod(pod(number));
    }
    for number in 4..=6 {
        world.pod(PodFacts {
            ready: false,
            ..pod(number)
        });
    }
    world.settle();
    let counts = |world: &World| {
        let subset = &world.endpoints()["subsets"][0];
        ["addresses", "notReadyAddresses"].map(|side| subset[side].as_array().map_or(0, Vec::len))
    };
    assert_eq!(counts(&world), [3, 1]);
    assert_eq!(
        world.endpoints()["metadata"]["annotations"][over],
        "truncated"
    );
    for number in 4..=6 {
        world.pod(pod(number));
    }
    world.settle();
    assert_eq!(counts(&world), [4, 0]);
    for number in ["u005", "u006"] {
        world.tracker.pod_gone(world.now, number);
    }
    world.settle();
    assert_eq!(counts(&world), [4, 0]);
    assert!(world.endpoints()["metadata"]["annotations"][over].is_null());
}
