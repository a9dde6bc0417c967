//! Slices and Endpoints have upstream's form.

use kennel_types::Monotonic;
use serde_json::{Value, json};

use super::super::*;
use super::fixture::Fixture;
use super::{pod, service};

#[test]
fn a_slice_has_upstreams_form() {
    let spec = json!({"clusterIP": "None", "ports": [
        {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "h2c"}]});
    let mut facts = service(&spec);
    facts.labels.insert("team".into(), "a".into());
    let mut member = pod(1);
    (member.hostname, member.subdomain) = (Some("host".into()), Some("web".into()));
    let fixture = Fixture::of(facts, [member]);
    assert_eq!(
        *fixture.slice(),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "web-00001", "generateName": "web-", "namespace": "ns",
                "uid": "o1", "resourceVersion": "1",
                "labels": {
                    "team": "a", "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    "service.kubernetes.io/headless": ""},
                "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "1970-01-01T00:00:00Z"},
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
    let fixture = Fixture::of(service(&spec), [waiting, pod(1), leaving]);
    let target =
        |name: &str, uid: &str| json!({"kind": "Pod", "namespace": "ns", "name": name, "uid": uid});
    assert_eq!(
        fixture.endpoints()["subsets"],
        json!([{
            "addresses": [{"ip": "10.0.0.1", "nodeName": "n1", "targetRef": target("p001", "u001")}],
            "notReadyAddresses": [
                {"ip": "10.0.0.2", "nodeName": "n1", "targetRef": target("p002", "u002")}],
            "ports": [{"port": 8080, "protocol": "TCP"}],
        }])
    );
    let metadata = &fixture.endpoints()["metadata"];
    assert_eq!(metadata["name"], "web");
    let labels = json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
    assert_eq!(metadata["labels"], labels);
}

/// Checks the conditions of the one endpoint (ready, serving, terminating) and where the Endpoints object lists it.
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
    let fixture = Fixture::of(service(&spec), [member]);
    let said = &fixture.slice()["endpoints"][0]["conditions"];
    let named = ["ready", "serving", "terminating"].map(|name| said[name].as_bool().unwrap());
    assert_eq!(named, conditions);
    let subset = &fixture.endpoints()["subsets"][0];
    for name in ["addresses", "notReadyAddresses"] {
        assert_eq!(
            subset[name].is_array(),
            side == Some(name),
            "{name}: {subset}"
        );
    }
}

#[test]
fn conditions_are_upstreams() {
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

/// Checks the hints of the one endpoint, on node `n1` in zone `z1`.
fn check_hints(distribution: &Value, member: PodFacts, expected: &Value) {
    let spec = json!({"trafficDistribution": distribution, "ports": [{"port": 80}]});
    let fixture = Fixture::of(service(&spec), [member]);
    let hints = &fixture.slice()["endpoints"][0]["hints"];
    assert_eq!(hints, expected, "{distribution}");
}

#[test]
fn n2_2_hints_name_the_zone_and_the_node_of_ready_endpoints() {
    let zone = json!({"forZones": [{"name": "z1"}]});
    let both = json!({"forZones": [{"name": "z1"}], "forNodes": [{"name": "n1"}]});
    check_hints(&json!("PreferSameZone"), pod(1), &zone);
    check_hints(&json!("PreferClose"), pod(1), &zone);
    check_hints(&json!("PreferSameNode"), pod(1), &both);
    check_hints(&Value::Null, pod(1), &Value::Null);
    let unready = PodFacts {
        ready: false,
        ..pod(1)
    };
    check_hints(&json!("PreferSameNode"), unready, &Value::Null);
    let leaving = PodFacts {
        terminating: true,
        ..pod(1)
    };
    check_hints(&json!("PreferSameNode"), leaving, &Value::Null);
}

#[test]
fn n2_2_hints_follow_the_service_and_the_node() {
    let spec = |distribution: Value| {
        service(&json!({"trafficDistribution": distribution, "ports": [{"port": 80}]}))
    };
    let mut fixture = Fixture::of(spec(json!("PreferSameNode")), [pod(1)]);
    let hints = |fixture: &Fixture| fixture.slice()["endpoints"][0]["hints"].clone();
    // A node without a zone.
    fixture.tracker.node(fixture.now, &"n1".into(), None);
    fixture.converge();
    assert_eq!(hints(&fixture), json!({"forNodes": [{"name": "n1"}]}));
    fixture
        .tracker
        .service(fixture.now, spec(json!("PreferSameZone")));
    fixture.converge();
    assert_eq!(hints(&fixture), Value::Null);
    let zone = Some("z2".into());
    fixture.tracker.node(fixture.now, &"n1".into(), zone);
    fixture.converge();
    assert_eq!(hints(&fixture), json!({"forZones": [{"name": "z2"}]}));
    fixture.tracker.service(fixture.now, spec(Value::Null));
    fixture.converge();
    assert_eq!(hints(&fixture), Value::Null);
}

#[test]
fn pods_that_cannot_be_reached_are_left_out() {
    let without_address = PodFacts {
        addresses: Vec::new(),
        ..pod(1)
    };
    let ended = PodFacts {
        terminal: true,
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
    let mut fixture = Fixture::of(service(&spec), pods);
    // A service without endpoints has one slice nevertheless.
    assert_eq!(fixture.slice()["endpoints"], json!([]));
    assert_eq!(fixture.slice()["ports"], json!([]));
    assert!(fixture.endpoints()["subsets"].is_null());
    fixture.tracker.node(fixture.now, &"ghost".into(), None);
    fixture.converge();
    assert_eq!(fixture.slice()["endpoints"][0]["nodeName"], "ghost");
    assert_eq!(fixture.slice()["endpoints"][0]["zone"], Value::Null);
    fixture.tracker.node_gone(fixture.now, "ghost");
    fixture.converge();
    assert_eq!(fixture.slice()["endpoints"], json!([]));
}

#[test]
fn pods_with_different_ports_of_one_name_are_in_different_slices() {
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
    let fixture = Fixture::of(service(&spec), pods);
    let mut ports: Vec<(Value, usize)> = Vec::new();
    for slice in fixture.fake_api.slices() {
        let count = slice["endpoints"].as_array().unwrap().len();
        ports.push((slice["ports"][0]["port"].clone(), count));
    }
    ports.sort_by_key(|(port, _)| port.as_u64());
    assert_eq!(
        ports,
        [(Value::Null, 1), (json!(8080), 2), (json!(9090), 1)]
    );
    let subsets = fixture.endpoints()["subsets"].as_array().unwrap().len();
    assert_eq!(subsets, 2, "Endpoints list none without a port");
}

#[test]
fn both_families_have_slices_of_their_own() {
    let spec = json!({"ipFamilies": ["IPv6", "IPv4"], "clusterIP": "None"});
    let mut member = pod(1);
    member.addresses.push("fd00::1".parse().unwrap());
    let fixture = Fixture::of(service(&spec), [member]);
    let families = fixture.fake_api.slices();
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
    let address = &fixture.endpoints()["subsets"][0]["addresses"][0]["ip"];
    assert_eq!(address, "fd00::1", "the service's first family");
}

#[test]
fn services_without_selector_and_external_names_are_left_alone() {
    for spec in [
        json!({"selector": {}, "ports": [{"port": 80}]}),
        json!({"type": "ExternalName", "externalName": "example.com"}),
    ] {
        let fixture = Fixture::of(service(&spec), [pod(1)]);
        assert_eq!(fixture.fake_api.objects.len(), 0, "{spec}");
    }
    // Endpoints of other managers stay.
    let mut fixture = Fixture::of(service(&json!({"selector": {}})), []);
    let endpoints = json!({"metadata": {"name": "web", "namespace": "ns"},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]});
    fixture.fake_api.put(false, endpoints);
    assert_eq!(fixture.converge(), []);
}

#[test]
fn endpoints_are_truncated_at_their_limit_and_annotated() {
    let over = "endpoints.kubernetes.io/over-capacity";
    let mut fixture = Fixture::new(Limits {
        slice: 100,
        endpoints: 4,
    });
    fixture
        .tracker
        .service(Monotonic::START, service(&json!({"ports": [{"port": 80}]})));
    for number in 1..=3 {
        fixture.pod(pod(number));
    }
    for number in 4..=6 {
        fixture.pod(PodFacts {
            ready: false,
            ..pod(number)
        });
    }
    fixture.converge();
    let counts = |fixture: &Fixture| {
        let subset = &fixture.endpoints()["subsets"][0];
        ["addresses", "notReadyAddresses"].map(|side| subset[side].as_array().map_or(0, Vec::len))
    };
    assert_eq!(counts(&fixture), [3, 1]);
    assert_eq!(
        fixture.endpoints()["metadata"]["annotations"][over],
        "truncated"
    );
    for number in 4..=6 {
        fixture.pod(pod(number));
    }
    fixture.converge();
    assert_eq!(counts(&fixture), [4, 0]);
    for number in ["u005", "u006"] {
        fixture.tracker.pod_gone(fixture.now, number);
    }
    fixture.converge();
    assert_eq!(counts(&fixture), [4, 0]);
    assert!(fixture.endpoints()["metadata"]["annotations"][over].is_null());
}
