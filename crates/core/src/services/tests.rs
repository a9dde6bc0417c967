//! Tables of what is routed where.

use std::collections::BTreeSet;

use kennel_types::service as api;
use serde_json::{Value, json};

use super::*;

/// The node, its zone, and the only service.
const NODE: &str = "here";
const ZONE: &str = "east";

fn service(spec: &Value) -> api::Service {
    let mut whole = json!({"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5"], "type": "ClusterIP",
        "ports": [{"name": "web", "protocol": "TCP", "port": 80}]});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({"metadata": {"namespace": "ns", "name": "s", "uid": "1"}, "spec": whole});
    serde_json::from_value(object).unwrap()
}

fn slice(name: &str, endpoints: &Value) -> api::EndpointSlice {
    let object = json!({"metadata": {"namespace": "ns", "name": name, "uid": name,
        "labels": {"kubernetes.io/service-name": "s"}}, "addressType": "IPv4",
        "ports": [{"name": "web", "protocol": "TCP", "port": 8080}], "endpoints": endpoints});
    serde_json::from_value(object).unwrap()
}

/// An endpoint: `10.0.0.1 here ready`, with hints such as `node:here` and `zone:east`. `-` is no node.
fn endpoint(text: &str) -> Value {
    let mut words = text.split(' ');
    let mut endpoint = json!({"addresses": [words.next().unwrap()]});
    let node = words.next().filter(|node| *node != "-");
    endpoint["nodeName"] = node.map_or(Value::Null, Into::into);
    let state = words.next().unwrap_or("ready");
    endpoint["conditions"] = match state {
        "ready" => json!({"ready": true, "serving": true, "terminating": false}),
        "default" => json!({}),
        "starting" => json!({"ready": false, "serving": false, "terminating": false}),
        "terminating" => json!({"ready": false, "serving": true, "terminating": true}),
        "ended" => json!({"ready": false, "serving": false, "terminating": true}),
        other => panic!("no state: {other}"),
    };
    for hint in words {
        let (kind, name) = hint.split_once(':').unwrap();
        let field = if kind == "node" {
            "forNodes"
        } else {
            "forZones"
        };
        endpoint["hints"][field] = json!([{ "name": name }]);
    }
    endpoint
}

fn endpoints(all: &[&str]) -> Value {
    all.iter().map(|text| endpoint(text)).collect()
}

fn table(spec: &Value, all: &[&str]) -> ServiceTable {
    let mut table = ServiceTable::new(NODE);
    table.set_zone(Some(ZONE));
    table.put_service(&service(spec));
    table.put_slice(&slice("a", &endpoints(all)));
    table
}

fn name() -> ServiceName {
    ServiceName::new("ns", "s")
}

/// The last numbers of addresses that packets to a destination go to, or `refuse` or `drop`.
fn show(action: &Action) -> String {
    match action {
        Action::Refuse => "refuse".to_owned(),
        Action::Drop => "drop".to_owned(),
        Action::Forward(backends) => {
            let last = |backend: &Backend| {
                let text = backend.address.to_string();
                text.rsplit('.').next().unwrap_or_default().to_owned()
            };
            backends.iter().map(last).collect::<Vec<_>>().join(" ")
        }
    }
}

fn routed(table: &ServiceTable, scope: Scope) -> Option<String> {
    let routes = table.routes(&name());
    let route = routes.iter().find(|route| route.destination.scope == scope);
    route.map(|route| show(&route.action))
}

fn cluster_ip() -> Scope {
    Scope::ClusterIp("10.96.0.5".parse().unwrap())
}

fn check(spec: &Value, all: &[&str], expected: &str) {
    let found = routed(&table(spec, all), cluster_ip());
    assert_eq!(found.as_deref(), Some(expected), "{spec} {all:?}");
}

#[test]
fn n2_1_ready_endpoints_and_else_serving_and_terminating_ones() {
    let check = |all: &[&str], expected: &str| check(&json!({}), all, expected);
    check(&["10.0.0.1 here", "10.0.0.2 there"], "1 2");
    check(&["10.0.0.1 here default"], "1");
    check(&["10.0.0.1 here starting", "10.0.0.2 there"], "2");
    check(&["10.0.0.1 here terminating", "10.0.0.2 there"], "2");
    check(
        &["10.0.0.1 here terminating", "10.0.0.2 there starting"],
        "1",
    );
    check(
        &["10.0.0.1 here ended", "10.0.0.2 there starting"],
        "refuse",
    );
    check(&[], "refuse");
}

#[test]
fn n2_1_a_port_is_that_of_its_name_and_protocol() {
    let spec = json!({"ports": [{"name": "dns", "protocol": "UDP", "port": 53}, {"name": "web", "port": 80},
        {"name": "web", "protocol": "SCTP", "port": 80}]});
    let table = table(&spec, &["10.0.0.1 here"]);
    let found: Vec<String> = table
        .routes(&name())
        .iter()
        .map(|route| {
            let destination = route.destination;
            format!(
                "{}/{} {}",
                destination.port,
                destination.protocol.as_str(),
                show(&route.action)
            )
        })
        .collect();
    assert_eq!(found, ["80/tcp 1", "53/udp refuse", "80/sctp refuse"]);
}

#[test]
fn n2_1_an_endpoint_that_moves_between_slices_counts_once() {
    let mut table = table(&json!({}), &["10.0.0.1 here", "10.0.0.2 here"]);
    table.put_slice(&slice("b", &endpoints(&["10.0.0.2 here", "10.0.0.3 here"])));
    assert_eq!(routed(&table, cluster_ip()).unwrap(), "1 2 3");
}

#[test]
fn n2_2_internal_traffic_that_is_local_reaches_this_node_or_nothing() {
    let local = json!({"internalTrafficPolicy": "Local"});
    let check = |all: &[&str], expected: &str| check(&local, all, expected);
    check(&["10.0.0.1 here", "10.0.0.2 there"], "1");
    check(&["10.0.0.1 here terminating", "10.0.0.2 there"], "1");
    check(&["10.0.0.2 there"], "drop");
    check(&["10.0.0.2 there terminating"], "drop");
    check(&["10.0.0.2 there starting"], "refuse");
    check(&[], "refuse");
    // Hints say nothing about this policy.
    check(
        &[
            "10.0.0.1 here ready node:there",
            "10.0.0.2 there ready node:here",
        ],
        "1",
    );
}

#[test]
fn n2_2_hints_count_only_if_every_ready_endpoint_has_one_node_else_zone_else_any() {
    let check = |all: &[&str], expected: &str| check(&json!({}), all, expected);
    check(
        &[
            "10.0.0.1 here ready node:here",
            "10.0.0.2 there ready node:there",
        ],
        "1",
    );
    check(&["10.0.0.1 here ready node:here", "10.0.0.2 there"], "1 2");
    check(
        &["10.0.0.1 here ready node:here", "10.0.0.2 there starting"],
        "1",
    );
    // None for this node: the zone decides.
    let node_elsewhere = [
        "10.0.0.1 a ready node:a zone:east",
        "10.0.0.2 b ready node:b zone:west",
    ];
    check(&node_elsewhere, "1");
    check(
        &["10.0.0.1 a ready node:a", "10.0.0.2 b ready node:b"],
        "1 2",
    );
    check(
        &["10.0.0.1 a ready zone:east", "10.0.0.2 b ready zone:west"],
        "1",
    );
    check(
        &["10.0.0.1 a ready zone:north", "10.0.0.2 b ready zone:west"],
        "1 2",
    );
    check(&["10.0.0.1 a ready zone:east", "10.0.0.2 b"], "1 2");
    // Of endpoints that are not ready, hints are ignored.
    check(
        &[
            "10.0.0.1 a terminating zone:west",
            "10.0.0.2 b terminating zone:east",
        ],
        "1 2",
    );
}

#[test]
fn n2_2_a_node_without_a_zone_ignores_hints_for_zones() {
    let mut table = table(
        &json!({}),
        &["10.0.0.1 a ready zone:east", "10.0.0.2 b ready zone:west"],
    );
    table.take_changed();
    table.set_zone(None);
    assert_eq!(table.take_changed().len(), 1);
    assert_eq!(routed(&table, cluster_ip()).unwrap(), "1 2");
    table.set_zone(Some("west"));
    assert_eq!(routed(&table, cluster_ip()).unwrap(), "2");
}

fn node_port(more: &Value) -> Value {
    let mut spec =
        json!({"type": "NodePort", "ports": [{"name": "web", "port": 80, "nodePort": 30080}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

#[test]
fn n2_3_node_ports_lead_anywhere_with_this_nodes_address() {
    let table = table(&node_port(&json!({})), &["10.0.0.1 here", "10.0.0.2 there"]);
    assert_eq!(routed(&table, Scope::NodePort).unwrap(), "1 2");
    assert_eq!(routed(&table, Scope::NodePortFromHost), None);
    let routes = table.routes(&name());
    let masquerades = |scope: Scope| {
        let route = routes.iter().find(|route| route.destination.scope == scope);
        route.unwrap().masquerade
    };
    assert!(masquerades(Scope::NodePort) && !masquerades(cluster_ip()));
}

#[test]
fn n2_3_external_traffic_that_is_local_keeps_its_source_and_the_node_itself_reaches_all() {
    let spec = node_port(&json!({"externalTrafficPolicy": "Local"}));
    let check = |all: &[&str], outside: &str, host: &str| {
        let table = table(&spec, all);
        assert_eq!(routed(&table, Scope::NodePort).unwrap(), outside, "{all:?}");
        assert_eq!(
            routed(&table, Scope::NodePortFromHost).unwrap(),
            host,
            "{all:?}"
        );
        assert_eq!(routed(&table, cluster_ip()).unwrap(), host, "{all:?}");
        let routes = table.routes(&name());
        let outside = routes
            .iter()
            .find(|route| route.destination.scope == Scope::NodePort);
        assert!(!outside.unwrap().masquerade);
    };
    check(&["10.0.0.1 here", "10.0.0.2 there"], "1", "1 2");
    check(&["10.0.0.2 there"], "drop", "2");
    check(&[], "refuse", "refuse");
}

#[test]
fn n2_3_health_checks_count_ready_endpoints_on_this_node() {
    let spec = |kind: &str, policy: &str| {
        json!({"type": kind, "externalTrafficPolicy": policy, "healthCheckNodePort": 31000,
            "ports": [{"name": "web", "port": 80, "nodePort": 30080}]})
    };
    let all = [
        "10.0.0.1 here",
        "10.0.0.2 here terminating",
        "10.0.0.3 there",
    ];
    let check = |kind, policy, expected| {
        let found = table(&spec(kind, policy), &all).health_check(&name());
        assert_eq!(
            found.map(|check| (check.port, check.local_endpoints)),
            expected,
            "{kind} {policy}"
        );
    };
    check("LoadBalancer", "Local", Some((31000, 1)));
    check("LoadBalancer", "Cluster", None);
    check("NodePort", "Local", None);
}

#[test]
fn n2_3_affinity_has_upstreams_default_timeout() {
    let affinity = |spec: Value| table(&spec, &["10.0.0.1 here"]).routes(&name())[0].affinity;
    assert_eq!(affinity(json!({})), None);
    assert_eq!(affinity(json!({"sessionAffinity": "None"})), None);
    let client_ip = json!({"sessionAffinity": "ClientIP"});
    assert_eq!(affinity(client_ip), Some(Duration::from_hours(3)));
    let short = json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 7}}});
    assert_eq!(affinity(short), Some(Duration::from_secs(7)));
}

#[test]
fn services_without_an_address_are_not_routed() {
    for spec in [
        json!({"clusterIP": "None", "clusterIPs": ["None"]}),
        json!({"type": "ExternalName", "externalName": "a.example", "clusterIP": "", "clusterIPs": []}),
        json!({"clusterIP": "", "clusterIPs": null}),
    ] {
        let table = table(&spec, &["10.0.0.1 here"]);
        assert_eq!(table.routes(&name()), [], "{spec}");
        assert_eq!(table.names().count(), 0);
    }
}

#[test]
fn n2_7_a_change_costs_its_own_service_and_repetitions_cost_nothing() {
    let mut table = table(&json!({}), &["10.0.0.1 here"]);
    assert_eq!(table.take_changed(), BTreeSet::from([name()]));
    table.put_service(&service(&json!({})));
    table.put_slice(&slice("a", &endpoints(&["10.0.0.1 here"])));
    assert!(!table.has_changed());
    table.put_slice(&slice("a", &endpoints(&["10.0.0.1 here starting"])));
    assert_eq!(table.take_changed(), BTreeSet::from([name()]));
    assert_eq!(table.endpoints(), 1);
    let id = |name: &str| kennel_types::Identity::new("ns", name, "1");
    table.remove_slice(&id("a"));
    assert_eq!((table.take_changed().len(), table.endpoints()), (1, 0));
    table.remove_service(&id("s"));
    assert_eq!(table.take_changed(), BTreeSet::from([name()]));
    assert_eq!(table.routes(&name()), []);
}

#[test]
fn a_slice_that_changes_its_service_changes_both() {
    let mut table = table(&json!({}), &["10.0.0.1 here"]);
    table.take_changed();
    let mut moved = slice("a", &endpoints(&["10.0.0.1 here"]));
    let other = [("kubernetes.io/service-name".to_owned(), "other".to_owned())];
    moved.metadata.labels = Some(other.into());
    table.put_slice(&moved);
    assert_eq!(
        table.take_changed(),
        BTreeSet::from([name(), ServiceName::new("ns", "other")])
    );
    assert_eq!(routed(&table, cluster_ip()).unwrap(), "refuse");
    // No service at all.
    moved.metadata.labels = None;
    table.put_slice(&moved);
    assert_eq!((table.take_changed().len(), table.endpoints()), (1, 0));
}
