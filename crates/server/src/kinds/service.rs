//! The rules of Service.
//!
//! This file fills in what users leave out. [`validate`] judges, [`transition`] carries an update
//! over from the old service, and [`allocate`] chooses addresses and ports from what the caller
//! knows to be free. Nothing here reads the store.

mod addresses;
pub mod allocate;
mod transition;
mod validate;

use serde_json::{Value, json};

use super::Strategy;
use super::tree::{
    at, carry, default_to, flag, has, list, list_mut, map, number, remove, set, text,
};
use crate::field::FieldError;

/// The cluster IP of a service that wants none.
pub const HEADLESS: &str = "None";
/// How long a client sticks to an endpoint unless told otherwise: three hours.
const AFFINITY_SECONDS: i64 = 10_800;

/// The rules of Service.
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
        carry(new, old, "status");
        transition::keep_allocated(new, old);
        transition::sync_cluster_ips(new, old);
        transition::drop_what_the_type_left(new, old);
        default_families(new);
        if is_load_balancer(old) && !is_load_balancer(new) {
            set(new, "status.loadBalancer", json!({}));
        }
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        carry(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = validate::service(object);
        errors.extend(addresses::single_stack(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = transition::cluster_ip_errors(new, old);
        errors.extend(transition::family_errors(new, old));
        errors.extend(transition::class_error(new, old));
        errors.extend(validate::service(new));
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
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

/// A cluster has one family, IPv4. A headless service without selector still has both: someone
/// else makes its endpoints, of whatever family.
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

/// Whether the service has an address in the cluster, be it "None".
pub fn needs_cluster_ip(service: &Value) -> bool {
    matches!(
        text(service, "spec.type"),
        "ClusterIP" | "NodePort" | "LoadBalancer"
    )
}

/// Whether the service's ports are open on the nodes.
pub fn needs_node_ports(service: &Value) -> bool {
    let field = "spec.allocateLoadBalancerNodePorts";
    match text(service, "spec.type") {
        "NodePort" => true,
        "LoadBalancer" => !has(service, field) || flag(service, field),
        _ => false,
    }
}

/// Whether a load balancer asks nodes if they have endpoints.
pub fn needs_health_check_port(service: &Value) -> bool {
    is_load_balancer(service) && text(service, "spec.externalTrafficPolicy") == "Local"
}

/// Whether the service asks for no address at all.
pub fn is_headless(service: &Value) -> bool {
    text(service, "spec.clusterIP") == HEADLESS
}

fn is_load_balancer(service: &Value) -> bool {
    text(service, "spec.type") == "LoadBalancer"
}

/// Whether traffic can come from outside the cluster.
fn is_external(service: &Value) -> bool {
    match text(service, "spec.type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(service, "spec.externalIPs").is_empty(),
        _ => false,
    }
}

/// The node port of a port, if it has one. Zero is none.
fn node_port(port: &Value) -> Option<i64> {
    number(port, "nodePort").filter(|port| *port != 0)
}

#[cfg(test)]
mod tests;
