//! Updates of services: which allocated values are kept or released, and what is immutable.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    is_external, is_headless, is_load_balancer, needs_cluster_ip, needs_health_check_port,
    needs_node_ports, node_port,
};
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::{
    at, copy_from_old, is_empty, list, list_mut, number, remove, same, set, text, texts,
};

const CHANGED: &str = "may not change once set";

/// Copies allocated values that are still needed and that the user omitted.
pub(super) fn keep_allocated(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        if text(new, "spec.clusterIP").is_empty() {
            copy_from_old(new, old, "spec.clusterIP");
        }
        let same_ip = text(new, "spec.clusterIP") == text(old, "spec.clusterIP");
        if same_ip && list(new, "spec.clusterIPs").is_empty() {
            copy_from_old(new, old, "spec.clusterIPs");
        }
        for field in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if is_empty(at(new, field)) {
                copy_from_old(new, old, field);
            }
        }
    }
    if needs_node_ports(old) && needs_node_ports(new) {
        keep_node_ports(new, old);
    }
    let port = "spec.healthCheckNodePort";
    let both = needs_health_check_port(old) && needs_health_check_port(new);
    if both && number(new, port) == 0 {
        copy_from_old(new, old, port);
    }
}

/// Matches ports by name; does not copy a node port that the update gives to another port.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let before: BTreeMap<&str, i64> = list(old, "spec.ports")
        .iter()
        .filter_map(|port| Some((text(port, "name"), node_port(port)?)))
        .collect();
    let mut used = node_ports(new);
    for port in list_mut(new, "spec.ports") {
        if node_port(port).is_some() {
            continue;
        }
        let kept = before.get(text(port, "name")).copied();
        if let Some(kept) = kept.filter(|kept| used.insert(*kept)) {
            set(port, "nodePort", json!(kept));
        }
    }
}

fn node_ports(service: &Value) -> BTreeSet<i64> {
    list(service, "spec.ports")
        .iter()
        .filter_map(node_port)
        .collect()
}

/// `clusterIP` is the first of `clusterIPs`: a change of one is a change of the other.
pub(super) fn sync_cluster_ips(new: &mut Value, old: &Value) {
    let (ip, old_ip) = (
        text(new, "spec.clusterIP").to_owned(),
        text(old, "spec.clusterIP"),
    );
    let list_kept = same(at(new, "spec.clusterIPs"), at(old, "spec.clusterIPs"));
    let list_empty = list(new, "spec.clusterIPs").is_empty();
    if ip == old_ip {
        if !list_kept && list_empty {
            remove(new, "spec.clusterIP");
        }
    } else if ip.is_empty() && list_kept {
        remove(new, "spec.clusterIPs");
    } else if !ip.is_empty() && (list_kept || list_empty) {
        set(new, "spec.clusterIPs", json!([ip]));
    }
}

/// Removes fields of the old type that the new type does not have, unless the user changed them.
pub(super) fn drop_what_the_type_left(new: &mut Value, old: &Value) {
    let left = |needs: fn(&Value) -> bool| needs(old) && !needs(new);
    let mut fields: Vec<&str> = Vec::new();
    if left(needs_cluster_ip) {
        fields.extend(["spec.clusterIP", "spec.clusterIPs"]);
        fields.extend(["spec.ipFamilies", "spec.ipFamilyPolicy"]);
    }
    if left(needs_health_check_port) {
        fields.push("spec.healthCheckNodePort");
    }
    if left(is_load_balancer) {
        fields.extend([
            "spec.allocateLoadBalancerNodePorts",
            "spec.loadBalancerClass",
        ]);
    }
    if left(is_external) {
        fields.push("spec.externalTrafficPolicy");
    }
    if left(needs_node_ports) && node_ports(new) == node_ports(old) {
        for port in list_mut(new, "spec.ports") {
            remove(port, "nodePort");
        }
    }
    for field in fields {
        if same(at(new, field), at(old, field)) {
            remove(new, field);
        }
    }
}

/// Whether both services have cluster IPs, which are immutable then.
fn both_keep_addresses(new: &Value, old: &Value) -> bool {
    let external_name = |service: &Value| text(service, "spec.type") == "ExternalName";
    let stays_headless = is_headless(new) && is_headless(old);
    !external_name(new) && !external_name(old) && !stays_headless
}

/// The primary cluster IP is immutable; a secondary one may be added and removed. The primary IP family is
/// immutable, too.
pub(super) fn check_addresses(errors: &mut Errors, new: &Value, old: &Value) {
    if !both_keep_addresses(new, old) {
        return;
    }
    let path = Path::new("spec.clusterIPs");
    let after: Vec<&str> = texts(new, "spec.clusterIPs").collect();
    let before: Vec<&str> = texts(old, "spec.clusterIPs").collect();
    if after.is_empty() && !before.is_empty() {
        errors.invalid(&path.index(0), &after, "primary clusterIP can not be unset");
    }
    let compared = if after.len() == before.len() {
        before.len()
    } else {
        1
    };
    for (i, (a, b)) in after.iter().zip(&before).take(compared).enumerate() {
        if a != b {
            errors.invalid(&path.index(i), &after, CHANGED);
        }
    }
    let released = before.len() > after.len() && after.len() == 1;
    if released && text(new, "spec.ipFamilyPolicy") != "SingleStack" {
        let path = Path::new("spec.ipFamilyPolicy");
        let words = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.invalid(&path, at(new, "spec.ipFamilyPolicy"), words);
    }
    let primary = |service| texts(service, "spec.ipFamilies").next();
    if let (Some(after), Some(before)) = (primary(new), primary(old))
        && after != before
    {
        let path = Path::new("spec.ipFamilies").index(0);
        errors.invalid(&path, at(new, "spec.ipFamilies"), CHANGED);
    }
}

/// The load balancer class is immutable.
pub(super) fn check_class(errors: &mut Errors, new: &Value, old: &Value) {
    let field = "spec.loadBalancerClass";
    let both = is_load_balancer(new) && is_load_balancer(old);
    if both && !same(at(new, field), at(old, field)) {
        errors.invalid(&Path::new(field), at(new, field), CHANGED);
    }
}

/// The health check port is immutable while there is one.
pub(super) fn check_health_check_port(errors: &mut Errors, new: &Value, old: &Value) {
    let field = "spec.healthCheckNodePort";
    let both = needs_health_check_port(old) && needs_health_check_port(new);
    if both && number(new, field) != number(old, field) {
        errors.forbidden(&Path::new(field), "field is immutable");
    }
}
