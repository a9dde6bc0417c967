//! Validates the addresses of a service, and with their families.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::validate::{one_of, spec};
use super::{HEADLESS, is_headless, needs_cluster_ip};
use crate::field::{FieldError, Path};
use crate::kinds::meta::invalid_each;
use crate::names;
use crate::tree::{at, has, map, text, texts};

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const FAMILY_POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Validates the addresses and families of a service.
pub(super) fn cluster_ip_errors(object: &Value) -> Vec<FieldError> {
    if text(object, "spec.type") == "ExternalName" {
        return Vec::new();
    }
    let path = spec("clusterIPs");
    let shown = at(object, "spec.clusterIPs");
    let (ip, ips) = (
        text(object, "spec.clusterIP"),
        texts(object, "spec.clusterIPs").collect::<Vec<_>>(),
    );
    let mut errors = Vec::new();
    match ips.first() {
        None if !ip.is_empty() => errors.push(FieldError::required(&path, "")),
        Some(_) if ip.is_empty() => {
            let words = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&path, shown, words));
        }
        Some(first) if *first != ip => {
            let words = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(&path, shown, words));
        }
        _ => {}
    }
    errors.extend(family_errors(object));
    let malformed = address_errors(&ips, shown, &path);
    if malformed.is_empty() {
        errors.extend(address_family_errors(object, &ips, &path));
    }
    errors.extend(malformed);
    errors
}

fn family_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, family) in texts(object, "spec.ipFamilies").enumerate() {
        let path = spec("ipFamilies").index(i);
        if !FAMILIES.contains(&family) {
            errors.push(FieldError::not_supported(&path, &json!(family), &FAMILIES));
        }
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(&path, &json!(family)));
        }
    }
    if has(object, "spec.ipFamilyPolicy") {
        errors.extend(one_of(object, "ipFamilyPolicy", &FAMILY_POLICIES));
    }
    errors
}

fn address_errors(ips: &[&str], shown: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, ip) in ips.iter().enumerate() {
        if i == 0 && *ip == HEADLESS {
            if ips.len() > 1 {
                let words = "'None' must be the first and only value";
                errors.push(FieldError::invalid(path, shown, words));
            }
            continue;
        }
        errors.extend(invalid_each(&path.index(i), &json!(ip), names::ip(ip)));
    }
    if ips.len() > 2 {
        errors.push(FieldError::invalid(
            path,
            shown,
            "may only hold up to 2 values",
        ));
    }
    errors
}

fn address_family_errors(object: &Value, ips: &[&str], path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let of = |ip: &str| names::ip_address(ip).map(|ip| if ip.is_ipv4() { "IPv4" } else { "IPv6" });
    let families: BTreeSet<_> = ips.iter().filter_map(|ip| of(ip)).collect();
    if ips.len() > 1 && families.len() < 2 {
        let words = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(
            path,
            at(object, "spec.clusterIPs"),
            words,
        ));
    }
    let expected = texts(object, "spec.ipFamilies");
    for (i, (ip, family)) in ips.iter().zip(expected).enumerate() {
        if of(ip).is_some_and(|actual| actual != family) {
            let words = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(FieldError::invalid(&path.index(i), &json!(ip), &words));
        }
    }
    errors
}

/// Refuses what a single-stack cluster does not have.
pub(super) fn single_stack(object: &Value) -> Vec<FieldError> {
    let open = is_headless(object) && map(object, "spec.selector").is_empty();
    if open || !needs_cluster_ip(object) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let policy = text(object, "spec.ipFamilyPolicy");
    let families: Vec<&str> = texts(object, "spec.ipFamilies").collect();
    if policy == "RequireDualStack" {
        let words = "this cluster is not configured for dual-stack services";
        let path = spec("ipFamilyPolicy");
        errors.push(FieldError::invalid(&path, &json!(policy), words));
    }
    if families.len() > 1 && policy == "SingleStack" {
        let words = "must be RequireDualStack or PreferDualStack when multiple `ipFamilies` are \
                     specified";
        let path = spec("ipFamilyPolicy");
        errors.push(FieldError::invalid(&path, &json!(policy), words));
    }
    for (i, family) in families.iter().enumerate() {
        if *family == "IPv6" {
            let path = spec("ipFamilies").index(i);
            let words = "not configured on this cluster";
            errors.push(FieldError::invalid(&path, &json!(family), words));
        }
    }
    errors
}
