//! Validates a service.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::addresses::cluster_ip_errors;
use super::{
    is_external, is_headless, is_load_balancer, needs_cluster_ip, needs_health_check_port,
    node_port,
};
use crate::field::{FieldError, Path};
use crate::kinds::endpoints::{app_protocol_errors, protocol_error};
use crate::kinds::meta::{invalid_each, labels};
use crate::kinds::show::{duplicate_shown, go_struct};
use crate::names;
use crate::tree::{at, has, int, list, number, text, texts};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const TRAFFIC_POLICIES: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameNode", "PreferSameZone"];
const AFFINITY_SECONDS_MAX: i64 = 86_400;
const KUBELET_PORT: i64 = 10_250;
const BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn spec(field: &'static str) -> Path {
    Path::new("spec").child(field)
}

pub(super) fn one_of(object: &Value, field: &'static str, known: &[&str]) -> Option<FieldError> {
    let value = text(at(object, "spec"), field);
    match value {
        "" => Some(FieldError::required(&spec(field), "")),
        _ if known.contains(&value) => None,
        _ => Some(FieldError::not_supported(
            &spec(field),
            &json!(value),
            known,
        )),
    }
}

/// Validates a service, whether new or changed.
pub(super) fn service(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let no_ports = list(object, "spec.ports").is_empty();
    if no_ports && !is_headless(object) && text(object, "spec.type") != "ExternalName" {
        errors.push(FieldError::required(&spec("ports"), ""));
    }
    errors.extend(type_errors(object));
    errors.extend(port_errors(object));
    errors.extend(labels(at(object, "spec.selector"), &spec("selector")));
    errors.extend(affinity_errors(object));
    errors.extend(cluster_ip_errors(object));
    for (i, ip) in texts(object, "spec.externalIPs").enumerate() {
        let mut wrong = names::ip(ip);
        if wrong.is_empty() {
            wrong = names::special_ip(ip);
        }
        let path = spec("externalIPs").index(i);
        errors.extend(invalid_each(&path, &json!(ip), wrong));
    }
    errors.extend(one_of(object, "type", &TYPES));
    errors.extend(node_port_errors(object));
    errors.extend(repeated_port_errors(object));
    errors.extend(balancer_errors(object));
    errors.extend(traffic_errors(object));
    errors
}

fn type_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(object, "spec.type");
    if kind == "LoadBalancer" {
        for (i, port) in list(object, "spec.ports").iter().enumerate() {
            if int(port, "port") == Some(KUBELET_PORT) {
                let words = format!(
                    "may not expose port {KUBELET_PORT} externally since it is used by kubelet"
                );
                let path = spec("ports").index(i);
                errors.push(FieldError::invalid(&path, &json!(KUBELET_PORT), &words));
            }
        }
    }
    if matches!(kind, "LoadBalancer" | "NodePort") && is_headless(object) {
        let words = format!("may not be set to 'None' for {kind} services");
        let path = spec("clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, &json!("None"), &words));
    }
    if kind == "ExternalName" {
        errors.extend(external_name_errors(object));
    }
    errors
}

fn external_name_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if has(at(object, "spec"), field) {
            let words = "may not be set for ExternalName services";
            errors.push(FieldError::forbidden(&spec(field), words));
        }
    }
    let name = text(object, "spec.externalName");
    // A final dot marks the name as complete.
    let name = name.strip_suffix('.').unwrap_or(name);
    let path = spec("externalName");
    if name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        errors.extend(invalid_each(
            &path,
            &json!(name),
            names::dns1123_subdomain(name),
        ));
    }
    errors
}

fn port_errors(object: &Value) -> Vec<FieldError> {
    let ports = list(object, "spec.ports");
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        let path = spec("ports").index(i);
        let name = text(port, "name");
        let at_name = path.child("name");
        if !name.is_empty() {
            errors.extend(invalid_each(
                &at_name,
                &json!(name),
                names::dns1123_label(name),
            ));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&at_name, &json!(name)));
            }
        } else if ports.len() > 1 {
            errors.push(FieldError::required(&at_name, ""));
        }
        let value = number(port, "port");
        let wrong = names::is_valid_port_num(value);
        errors.extend(invalid_each(&path.child("port"), &json!(value), wrong));
        errors.extend(protocol_error(port, &path));
        errors.extend(target_errors(
            at(port, "targetPort"),
            &path.child("targetPort"),
        ));
        errors.extend(app_protocol_errors(port, &path));
    }
    errors
}

fn target_errors(target: &Value, path: &Path) -> Vec<FieldError> {
    if let Value::String(name) = target {
        return invalid_each(path, target, names::port_name(name));
    }
    let value = target.as_i64().unwrap_or(0);
    invalid_each(path, &json!(value), names::is_valid_port_num(value))
}

fn affinity_errors(object: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = one_of(object, "sessionAffinity", &AFFINITIES)
        .into_iter()
        .collect();
    let path = spec("sessionAffinityConfig");
    let config = at(object, "spec.sessionAffinityConfig");
    match text(object, "spec.sessionAffinity") {
        "None" if !config.is_null() => {
            let words = "must not be set when session affinity is None";
            errors.push(FieldError::forbidden(&path, words));
        }
        "ClientIP" => {
            let path = path.child("clientIP").child("timeoutSeconds");
            let seconds = number(config, "clientIP.timeoutSeconds");
            if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) {
                let words = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                errors.push(FieldError::invalid(&path, &json!(seconds), &words));
            }
        }
        _ => {}
    }
    errors
}

fn node_port_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, port) in list(object, "spec.ports").iter().enumerate() {
        let Some(value) = node_port(port) else {
            continue;
        };
        let path = spec("ports").index(i).child("nodePort");
        if text(object, "spec.type") == "ClusterIP" {
            let words = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&path, words));
        }
        if !seen.insert((text(port, "protocol"), value)) {
            errors.push(FieldError::duplicate(&path, &json!(value)));
        }
    }
    errors
}

fn repeated_port_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, port) in list(object, "spec.ports").iter().enumerate() {
        let (protocol, value) = (text(port, "protocol"), number(port, "port"));
        if !seen.insert((protocol, value)) {
            let shown = go_struct(&[
                ("Name", &json!("")),
                ("Protocol", &json!(protocol)),
                ("AppProtocol", &Value::Null),
                ("Port", &json!(value)),
                ("TargetPort", &json!(0)),
                ("NodePort", &json!(0)),
            ]);
            errors.push(duplicate_shown(&spec("ports").index(i), &shown, ""));
        }
    }
    errors
}

/// Fields that only load balancers have.
fn balancer_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let balancer = is_load_balancer(object);
    let path = spec("LoadBalancerSourceRanges");
    let sources: Vec<&str> = texts(object, "spec.loadBalancerSourceRanges").collect();
    if !sources.is_empty() && !balancer {
        errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
    }
    for (i, source) in sources.iter().enumerate() {
        let source = source.trim();
        errors.extend(invalid_each(
            &path.index(i),
            &json!(source),
            names::cidr(source),
        ));
    }
    if has(object, "spec.allocateLoadBalancerNodePorts") && !balancer {
        let path = spec("allocateLoadBalancerNodePorts");
        errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
    }
    if has(object, "spec.loadBalancerClass") {
        let class = text(object, "spec.loadBalancerClass");
        let path = spec("loadBalancerClass");
        if balancer {
            errors.extend(invalid_each(
                &path,
                &json!(class),
                names::qualified_name(class),
            ));
        } else {
            errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
        }
    }
    errors
}

fn traffic_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let external = text(object, "spec.externalTrafficPolicy");
    if is_external(object) {
        errors.extend(one_of(object, "externalTrafficPolicy", &TRAFFIC_POLICIES));
    } else if !external.is_empty() {
        let words = "may only be set for externally-accessible services";
        let path = spec("externalTrafficPolicy");
        errors.push(FieldError::invalid(&path, &json!(external), words));
    }
    let health = int(object, "spec.healthCheckNodePort").filter(|port| *port != 0);
    if let Some(port) = health {
        let path = spec("healthCheckNodePort");
        if needs_health_check_port(object) {
            let wrong = names::is_valid_port_num(port);
            errors.extend(invalid_each(&path, &json!(port), wrong));
        } else {
            let words = "may only be set when `type` is 'LoadBalancer' and \
                         `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&path, &json!(port), words));
        }
    }
    if has(object, "spec.internalTrafficPolicy") || needs_cluster_ip(object) {
        errors.extend(one_of(object, "internalTrafficPolicy", &TRAFFIC_POLICIES));
    }
    if has(object, "spec.trafficDistribution") {
        errors.extend(one_of(object, "trafficDistribution", &DISTRIBUTIONS));
    }
    errors
}

/// Validates the addresses a load balancer reported.
pub(super) fn load_balancer_status(object: &Value) -> Vec<FieldError> {
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let mut errors = Vec::new();
    for (i, ingress) in list(object, "status.loadBalancer.ingress")
        .iter()
        .enumerate()
    {
        let path = path.index(i);
        let (ip, host) = (text(ingress, "ip"), text(ingress, "hostname"));
        if !ip.is_empty() {
            errors.extend(invalid_each(&path.child("ip"), &json!(ip), names::ip(ip)));
        }
        if host.is_empty() {
            continue;
        }
        let path = path.child("hostname");
        errors.extend(invalid_each(
            &path,
            &json!(host),
            names::dns1123_subdomain(host),
        ));
        if names::ip_address(host).is_some() {
            let words = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(&path, &json!(host), words));
        }
    }
    errors
}
