//! Validates a service.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::addresses::check_addresses;
use super::{
    is_external, is_headless, is_load_balancer, needs_cluster_ip, needs_health_check_port,
    node_port,
};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::kinds::check::{PROTOCOLS, choice, each, labels, optional_form, port_or_name, require};
use crate::kinds::endpoints::{check_app_protocol, check_port_number};
use crate::kinds::show::go_struct;
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

/// Checks a text of the spec, which must be one of `known`.
fn check_choice(errors: &mut Errors, object: &Value, field: &'static str, known: &[&str]) {
    choice(errors, at(object, "spec"), &Path::new("spec"), field, known);
}

/// Validates a service, whether new or changed.
pub(super) fn service(errors: &mut Errors, object: &Value) {
    let no_ports = list(object, "spec.ports").is_empty();
    if no_ports && !is_headless(object) && text(object, "spec.type") != "ExternalName" {
        errors.required(&spec("ports"), "");
    }
    check_type(errors, object);
    check_ports(errors, object);
    labels(errors, &Path::default(), "spec.selector", object);
    check_affinity(errors, object);
    check_addresses(errors, object);
    for (i, ip) in texts(object, "spec.externalIPs").enumerate() {
        let mut wrong = names::ip(ip);
        if wrong.is_empty() {
            wrong = names::special_ip(ip);
        }
        errors.invalid_each(&spec("externalIPs").index(i), ip, wrong);
    }
    check_choice(errors, object, "type", &TYPES);
    check_node_ports(errors, object);
    check_repeated_ports(errors, object);
    check_balancer(errors, object);
    check_traffic(errors, object);
}

fn check_type(errors: &mut Errors, object: &Value) {
    let kind = text(object, "spec.type");
    if kind == "LoadBalancer" {
        for (port, path) in each(object, &Path::default(), "spec.ports") {
            if int(port, "port") == Some(KUBELET_PORT) {
                let words = format!(
                    "may not expose port {KUBELET_PORT} externally since it is used by kubelet"
                );
                errors.invalid(&path, KUBELET_PORT, &words);
            }
        }
    }
    if matches!(kind, "LoadBalancer" | "NodePort") && is_headless(object) {
        let words = format!("may not be set to 'None' for {kind} services");
        errors.invalid(&spec("clusterIPs").index(0), "None", &words);
    }
    if kind == "ExternalName" {
        check_external_name(errors, object);
    }
}

fn check_external_name(errors: &mut Errors, object: &Value) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if has(at(object, "spec"), field) {
            errors.forbidden(&spec(field), "may not be set for ExternalName services");
        }
    }
    let name = text(object, "spec.externalName");
    // A final dot marks the name as complete.
    let name = name.strip_suffix('.').unwrap_or(name);
    let path = spec("externalName");
    if name.is_empty() {
        errors.required(&path, "");
    } else {
        errors.invalid_each(&path, name, names::dns1123_subdomain(name));
    }
}

fn check_ports(errors: &mut Errors, object: &Value) {
    let is_only = list(object, "spec.ports").len() < 2;
    let mut seen = BTreeSet::new();
    for (port, path) in each(object, &Path::default(), "spec.ports") {
        let name = text(port, "name");
        optional_form(errors, port, &path, "name", names::dns1123_label);
        if name.is_empty() && !is_only {
            require(errors, &path, "name");
        } else if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        check_port_number(errors, port, &path);
        choice(errors, port, &path, "protocol", &PROTOCOLS);
        let target = match at(port, "targetPort") {
            Value::Null => &json!(0),
            target => target,
        };
        port_or_name(errors, &path.child("targetPort"), target);
        check_app_protocol(errors, port, &path);
    }
}

fn check_affinity(errors: &mut Errors, object: &Value) {
    check_choice(errors, object, "sessionAffinity", &AFFINITIES);
    let path = spec("sessionAffinityConfig");
    let config = at(object, "spec.sessionAffinityConfig");
    match text(object, "spec.sessionAffinity") {
        "None" if !config.is_null() => {
            errors.forbidden(&path, "must not be set when session affinity is None");
        }
        "ClientIP" => {
            let path = path.child("clientIP").child("timeoutSeconds");
            let seconds = number(config, "clientIP.timeoutSeconds");
            if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) {
                let words = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                errors.invalid(&path, seconds, &words);
            }
        }
        _ => {}
    }
}

fn check_node_ports(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (port, path) in each(object, &Path::default(), "spec.ports") {
        let Some(value) = node_port(port) else {
            continue;
        };
        let path = path.child("nodePort");
        if text(object, "spec.type") == "ClusterIP" {
            errors.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
        }
        if !seen.insert((text(port, "protocol"), value)) {
            errors.duplicate(&path, value);
        }
    }
}

fn check_repeated_ports(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (port, path) in each(object, &Path::default(), "spec.ports") {
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
            errors.push(FieldError::duplicate_shown(&path, shown, ""));
        }
    }
}

/// Fields that only load balancers have.
fn check_balancer(errors: &mut Errors, object: &Value) {
    let balancer = is_load_balancer(object);
    let path = spec("LoadBalancerSourceRanges");
    let sources: Vec<&str> = texts(object, "spec.loadBalancerSourceRanges").collect();
    if !sources.is_empty() && !balancer {
        errors.forbidden(&path, BALANCER_ONLY);
    }
    for (i, source) in sources.iter().enumerate() {
        let source = source.trim();
        errors.invalid_each(&path.index(i), source, names::cidr(source));
    }
    if has(object, "spec.allocateLoadBalancerNodePorts") && !balancer {
        errors.forbidden(&spec("allocateLoadBalancerNodePorts"), BALANCER_ONLY);
    }
    if has(object, "spec.loadBalancerClass") {
        let class = text(object, "spec.loadBalancerClass");
        let path = spec("loadBalancerClass");
        if balancer {
            errors.invalid_each(&path, class, names::qualified_name(class));
        } else {
            errors.forbidden(&path, BALANCER_ONLY);
        }
    }
}

fn check_traffic(errors: &mut Errors, object: &Value) {
    let external = text(object, "spec.externalTrafficPolicy");
    if is_external(object) {
        check_choice(errors, object, "externalTrafficPolicy", &TRAFFIC_POLICIES);
    } else if !external.is_empty() {
        let words = "may only be set for externally-accessible services";
        errors.invalid(&spec("externalTrafficPolicy"), external, words);
    }
    let health = int(object, "spec.healthCheckNodePort").filter(|port| *port != 0);
    if let Some(port) = health {
        let path = spec("healthCheckNodePort");
        if needs_health_check_port(object) {
            errors.invalid_each(&path, port, names::is_valid_port_num(port));
        } else {
            let words = "may only be set when `type` is 'LoadBalancer' and \
                         `externalTrafficPolicy` is 'Local'";
            errors.invalid(&path, port, words);
        }
    }
    if has(object, "spec.internalTrafficPolicy") || needs_cluster_ip(object) {
        check_choice(errors, object, "internalTrafficPolicy", &TRAFFIC_POLICIES);
    }
    if has(object, "spec.trafficDistribution") {
        check_choice(errors, object, "trafficDistribution", &DISTRIBUTIONS);
    }
}

/// Validates the addresses a load balancer reported.
pub(super) fn load_balancer_status(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let field = "status.loadBalancer.ingress";
    for (ingress, path) in each(object, &Path::default(), field) {
        optional_form(&mut errors, ingress, &path, "ip", names::ip);
        let rule = names::dns1123_subdomain;
        optional_form(&mut errors, ingress, &path, "hostname", rule);
        let host = text(ingress, "hostname");
        if names::ip_address(host).is_some() {
            let words = "must be a DNS name, not an IP address";
            errors.invalid(&path.child("hostname"), host, words);
        }
    }
    errors
}
