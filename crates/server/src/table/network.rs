//! The printers of services, endpoints and network policies.

use std::collections::BTreeSet;

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, text as column, wide};
use super::duration::since;
use super::format::{NONE, first_few, joined, labels, or_none, selector};
use crate::tree::{list, map, number, text, text_or, texts, time};

pub(super) const SERVICE: &[Column] = &[
    NAME,
    column("Type", "How the service is reached."),
    column("Cluster-IP", "Its address inside the cluster."),
    column("External-IP", "Its addresses outside the cluster."),
    column("Port(s)", "Its ports, with node ports."),
    AGE,
    wide("Selector", "The labels of the pods behind it."),
];

pub(super) const ENDPOINTS: &[Column] = &[
    NAME,
    column("Endpoints", "The addresses behind the service."),
    AGE,
];

pub(super) const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    column("AddressType", "The family of its addresses."),
    column("Ports", "The ports of every endpoint."),
    column("Endpoints", "The addresses of its endpoints."),
    AGE,
];

pub(super) const NETWORK_POLICY: &[Column] =
    &[NAME, column("Pod-Selector", "The pods it applies to."), AGE];

pub(super) const SERVICE_CIDR: &[Column] = &[
    NAME,
    column("CIDRs", "The ranges that cluster IPs are allocated from."),
    AGE,
];

/// As upstream, without the age.
pub(super) const IP_ADDRESS: &[Column] = &[
    NAME,
    column("ParentRef", "The object that has the address."),
];

pub(super) fn service_cidr(range: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(range, "metadata.name")),
        json!(texts(range, "spec.cidrs").collect::<Vec<_>>().join(",")),
        json!(since(time(range, "metadata.creationTimestamp"), now)),
    ]
}

pub(super) fn ip_address(address: &Value, _: Timestamp) -> Vec<Value> {
    let parent =
        ["resource", "namespace", "name"].map(|part| text(&address["spec"]["parentRef"], part));
    vec![
        json!(text(address, "metadata.name")),
        json!(parent.join("/")),
    ]
}

pub(super) fn network_policy(policy: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(policy, "metadata.name")),
        json!(selector(policy, "spec.podSelector")),
        json!(since(time(policy, "metadata.creationTimestamp"), now)),
    ]
}

pub(super) fn service(service: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(service, "metadata.name")),
        json!(text(service, "spec.type")),
        json!(cluster_ip(service)),
        json!(external_ip(service)),
        json!(ports(service)),
        json!(since(time(service, "metadata.creationTimestamp"), now)),
        json!(labels(map(service, "spec.selector"))),
    ]
}

fn cluster_ip(service: &Value) -> &str {
    let first = texts(service, "spec.clusterIPs").next().unwrap_or_default();
    if first.is_empty() {
        return text_or(service, "spec.clusterIP", NONE);
    }
    first
}

fn external_ip(service: &Value) -> String {
    let given = joined(service, "spec.externalIPs");
    match text(service, "spec.type") {
        "ClusterIP" | "NodePort" => or_none(given),
        "LoadBalancer" => {
            let mut addresses = balancer_addresses(service);
            addresses.extend(texts(service, "spec.externalIPs"));
            if addresses.is_empty() {
                return "<pending>".to_owned();
            }
            addresses.join(",")
        }
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses a load balancer reports, each once, sorted; names where there is no address.
fn balancer_addresses(service: &Value) -> Vec<&str> {
    let ingress = list(service, "status.loadBalancer.ingress").iter();
    let addresses: BTreeSet<&str> = ingress
        .map(|i| text_or(i, "ip", text(i, "hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect()
}

fn ports(service: &Value) -> String {
    let ports = list(service, "spec.ports").iter().map(|port| {
        let (own, protocol) = (number(port, "port"), text(port, "protocol"));
        match number(port, "nodePort") {
            ..=0 => format!("{own}/{protocol}"),
            node_port => format!("{own}:{node_port}/{protocol}"),
        }
    });
    or_none(ports.collect::<Vec<_>>().join(","))
}

pub(super) fn endpoints(endpoints: &Value, now: Timestamp) -> Vec<Value> {
    let subsets = list(endpoints, "subsets");
    let shown = if subsets.is_empty() {
        NONE.to_owned()
    } else {
        let addresses: Vec<String> = subsets.iter().flat_map(subset_addresses).collect();
        first_few(&addresses)
    };
    vec![
        json!(text(endpoints, "metadata.name")),
        json!(shown),
        json!(since(time(endpoints, "metadata.creationTimestamp"), now)),
    ]
}

/// Every ready address of a subset with every port; bare addresses when there are no ports.
fn subset_addresses(subset: &Value) -> Vec<String> {
    let addresses = || list(subset, "addresses").iter().map(|a| text(a, "ip"));
    let ports = list(subset, "ports");
    if ports.is_empty() {
        return addresses().map(str::to_owned).collect();
    }
    let ports = ports.iter().map(|p| number(p, "port"));
    ports
        .flat_map(|port| addresses().map(move |ip| with_port(ip, port)))
        .collect()
}

fn with_port(ip: &str, port: i64) -> String {
    if ip.contains(':') {
        return format!("[{ip}]:{port}");
    }
    format!("{ip}:{port}")
}

pub(super) fn endpoint_slice(slice: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(slice, "ports").iter().map(slice_port).collect();
    let endpoints = list(slice, "endpoints").iter();
    let addresses: Vec<String> = endpoints
        .flat_map(|e| texts(e, "addresses").map(str::to_owned))
        .collect();
    vec![
        json!(text(slice, "metadata.name")),
        json!(text(slice, "addressType")),
        json!(few_or_unset(&ports)),
        json!(few_or_unset(&addresses)),
        json!(since(time(slice, "metadata.creationTimestamp"), now)),
    ]
}

fn slice_port(port: &Value) -> String {
    if port.get("port").is_some_and(|p| !p.is_null()) {
        return number(port, "port").to_string();
    }
    match port.get("name").and_then(Value::as_str) {
        Some(name) => name.to_owned(),
        None => "*".to_owned(),
    }
}

fn few_or_unset(entries: &[String]) -> String {
    match first_few(entries) {
        shown if shown.is_empty() => "<unset>".to_owned(),
        shown => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_cell};
    use serde_json::{Value, json};

    #[test]
    fn network_policies() {
        check(
            "networkpolicies",
            json!({"metadata": {"name": "deny"}, "spec": {"podSelector": {"matchLabels": {"app": "web"}}}}),
            json!(["deny", "app=web", "<unknown>"]),
        );
    }

    #[test]
    fn ranges_and_addresses_of_services() {
        check(
            "servicecidrs",
            json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}),
            json!(["kubernetes", "10.96.0.0/16", "<unknown>"]),
        );
        check(
            "ipaddresses",
            json!({"metadata": {"name": "10.96.0.1"}, "spec": {"parentRef": {
                "resource": "services", "namespace": "default", "name": "kubernetes",
            }}}),
            json!(["10.96.0.1", "services/default/kubernetes"]),
        );
    }

    #[test]
    fn services() {
        check(
            "services",
            json!({"metadata": {"name": "s"}, "spec": {
                "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "selector": {"app": "x", "a": "b"},
            }}),
            json!([
                "s",
                "ClusterIP",
                "10.0.0.1",
                "<none>",
                "80/TCP,53/UDP",
                "<unknown>",
                "a=b,app=x"
            ]),
        );
        check(
            "services",
            json!({"metadata": {"name": "n"}, "spec": {
                "type": "NodePort", "clusterIP": "None", "externalIPs": ["1.1.1.1", "2.2.2.2"],
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
            }}),
            json!([
                "n",
                "NodePort",
                "None",
                "1.1.1.1,2.2.2.2",
                "80:30080/TCP",
                "<unknown>",
                "<none>"
            ]),
        );
        check(
            "services",
            json!({"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "my.db"}}),
            json!([
                "e",
                "ExternalName",
                "<none>",
                "my.db",
                "<none>",
                "<unknown>",
                "<none>"
            ]),
        );
    }

    #[test]
    fn load_balancers_show_what_they_have() {
        let shown = |external: Value, ingress: Value, printed: &str| {
            let service = json!({
                "spec": {"type": "LoadBalancer", "externalIPs": external},
                "status": {"loadBalancer": {"ingress": ingress}},
            });
            check_cell("services", "External-IP", &service, printed);
        };
        shown(json!([]), json!([]), "<pending>");
        shown(
            json!([]),
            json!([{"ip": "9.9.9.9"}, {"hostname": "lb.x"}, {"ip": "1.1.1.1"}]),
            "1.1.1.1,9.9.9.9,lb.x",
        );
        shown(
            json!(["5.5.5.5"]),
            json!([{"ip": "9.9.9.9"}]),
            "9.9.9.9,5.5.5.5",
        );
        shown(json!(["5.5.5.5"]), json!([]), "5.5.5.5");
    }

    #[test]
    fn endpoints() {
        let shown = |subsets: Value, printed: &str| {
            check_cell(
                "endpoints",
                "Endpoints",
                &json!({"subsets": subsets}),
                printed,
            );
        };
        let ips = |n: u8| {
            (1..=n)
                .map(|i| json!({"ip": format!("10.0.0.{i}")}))
                .collect::<Vec<_>>()
        };
        shown(json!([]), "<none>");
        shown(
            json!([{"addresses": ips(2), "ports": [{"port": 80}]}]),
            "10.0.0.1:80,10.0.0.2:80",
        );
        shown(json!([{"addresses": ips(2)}]), "10.0.0.1,10.0.0.2");
        shown(
            json!([{"addresses": ips(2), "ports": [{"port": 80}, {"port": 443}]}, {"addresses": ips(1), "ports": [{"port": 1}]}]),
            "10.0.0.1:80,10.0.0.2:80,10.0.0.1:443 + 2 more...",
        );
        shown(
            json!([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]),
            "[fd00::1]:80",
        );
        shown(
            json!([{"notReadyAddresses": ips(1), "ports": [{"port": 80}]}]),
            "",
        );
    }

    #[test]
    fn endpoint_slices() {
        check(
            "endpointslices",
            json!({"metadata": {"name": "s"}, "addressType": "IPv4", "ports": [], "endpoints": []}),
            json!(["s", "IPv4", "<unset>", "<unset>", "<unknown>"]),
        );
        check(
            "endpointslices",
            json!({"metadata": {"name": "s"}, "addressType": "IPv4",
                   "ports": [{"port": 80}, {"name": "web"}, {"protocol": "TCP"}, {"port": 1}],
                   "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3"]}]}),
            json!([
                "s",
                "IPv4",
                "80,web,* + 1 more...",
                "10.0.0.1,10.0.0.2,10.0.0.3",
                "<unknown>"
            ]),
        );
    }
}
