//! The strategy of Service.
//!
//! This file has the defaults; [`validate`] validates, [`transition`] handles updates, and [`allocate`]
//! allocates cluster IPs and node ports.

mod addresses;
pub mod allocate;
mod cidr;
mod transition;
mod validate;

use serde_json::{Value, json};

pub use cidr::{Cidr, CidrError};

use super::Strategy;
use crate::field::Errors;
use crate::tree::{
    at, copy_from_old, default_to, flag, has, int, list, list_mut, map, remove, set, text,
};

/// The cluster IP of a headless service.
pub const HEADLESS: &str = "None";
/// The default timeout of session affinity: three hours.
const AFFINITY_SECONDS: i64 = 10_800;

#[derive(Debug)]
pub struct Service;

impl Strategy for Service {
    fn default(&self, object: &mut Value) {
        default_affinity(object);
        default_to(object, "spec.type", "ClusterIP");
        for port in list_mut(object, "spec.ports") {
            default_port(port);
        }
        if is_external(object) {
            default_to(object, "spec.externalTrafficPolicy", "Cluster");
        }
        if needs_cluster_ip(object) {
            default_to(object, "spec.internalTrafficPolicy", "Cluster");
        }
        if is_load_balancer(object) {
            default_to(object, "spec.allocateLoadBalancerNodePorts", true);
        }
        default_to(object, "status.loadBalancer", json!({}));
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"loadBalancer": {}}));
        let ip = text(object, "spec.clusterIP").to_owned();
        if !ip.is_empty() && list(object, "spec.clusterIPs").is_empty() {
            set(object, "spec.clusterIPs", json!([ip]));
        }
        default_families(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "status");
        transition::keep_allocated(new, old);
        transition::sync_cluster_ips(new, old);
        transition::drop_what_the_type_left(new, old);
        default_families(new);
        if is_load_balancer(old) && !is_load_balancer(new) {
            set(new, "status.loadBalancer", json!({}));
        }
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        validate::service(&mut errors, object);
        addresses::single_stack(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        transition::check_addresses(&mut errors, new, old);
        transition::check_class(&mut errors, new, old);
        transition::check_health_check_port(&mut errors, new, old);
        validate::service(&mut errors, new);
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Errors {
        validate::load_balancer_status(new)
    }
}

fn default_affinity(object: &mut Value) {
    default_to(object, "spec.sessionAffinity", "None");
    match text(object, "spec.sessionAffinity") {
        "None" => {
            remove(object, "spec.sessionAffinityConfig");
        }
        "ClientIP" => {
            let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            default_to(object, path, AFFINITY_SECONDS);
        }
        _ => {}
    }
}

fn default_port(port: &mut Value) {
    default_to(port, "protocol", "TCP");
    let target = at(port, "targetPort");
    if target.is_null() || *target == json!(0) || *target == json!("") {
        let number = at(port, "port").clone();
        if !number.is_null() {
            set(port, "targetPort", number);
        }
    }
}

/// A cluster has one family, IPv4. A headless service without selector has both, since its endpoints are
/// created by others.
fn default_families(object: &mut Value) {
    if !needs_cluster_ip(object) {
        return;
    }
    let open = is_headless(object) && map(object, "spec.selector").is_empty();
    let policy = if open {
        "RequireDualStack"
    } else {
        "SingleStack"
    };
    default_to(object, "spec.ipFamilyPolicy", policy);
    if list(object, "spec.ipFamilies").is_empty() {
        set(object, "spec.ipFamilies", json!(["IPv4"]));
    }
    let both = text(object, "spec.ipFamilyPolicy") != "SingleStack";
    if open && both && list(object, "spec.ipFamilies").len() == 1 {
        let families = match at(object, "spec.ipFamilies").get(0) {
            Some(first) if first == "IPv6" => json!(["IPv6", "IPv4"]),
            _ => json!(["IPv4", "IPv6"]),
        };
        set(object, "spec.ipFamilies", families);
    }
}

/// Whether the type has a cluster IP, including `None`.
pub fn needs_cluster_ip(service: &Value) -> bool {
    matches!(
        text(service, "spec.type"),
        "ClusterIP" | "NodePort" | "LoadBalancer"
    )
}

/// Whether the service has node ports.
pub fn needs_node_ports(service: &Value) -> bool {
    let field = "spec.allocateLoadBalancerNodePorts";
    match text(service, "spec.type") {
        "NodePort" => true,
        "LoadBalancer" => !has(service, field) || flag(service, field),
        _ => false,
    }
}

/// Whether load balancers check the health of nodes.
pub fn needs_health_check_port(service: &Value) -> bool {
    is_load_balancer(service) && text(service, "spec.externalTrafficPolicy") == "Local"
}

pub fn is_headless(service: &Value) -> bool {
    text(service, "spec.clusterIP") == HEADLESS
}

fn is_load_balancer(service: &Value) -> bool {
    text(service, "spec.type") == "LoadBalancer"
}

fn is_external(service: &Value) -> bool {
    match text(service, "spec.type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(service, "spec.externalIPs").is_empty(),
        _ => false,
    }
}

/// `None` if it is 0.
fn node_port(port: &Value) -> Option<i64> {
    int(port, "nodePort").filter(|port| *port != 0)
}

#[cfg(test)]
mod tests;
