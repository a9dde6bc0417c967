//! Validates the addresses of a service, and with their families.

use std::collections::BTreeSet;

use serde_json::Value;

use super::validate::spec;
use super::{HEADLESS, is_headless, needs_cluster_ip};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, one_of};
use crate::names;
use crate::tree::{has, map, text, texts};

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const FAMILY_POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Validates the addresses and families of a service.
pub(super) fn check_addresses(errors: &mut Errors, object: &Value) {
    if text(object, "spec.type") == "ExternalName" {
        return;
    }
    let path = spec("clusterIPs");
    let ip = text(object, "spec.clusterIP");
    let ips: Vec<&str> = texts(object, "spec.clusterIPs").collect();
    match ips.first() {
        None if !ip.is_empty() => errors.required(&path, ""),
        Some(_) if ip.is_empty() => {
            let words = "must be empty when `clusterIP` is not specified";
            errors.invalid(&path, &ips, words);
        }
        Some(first) if *first != ip => {
            errors.invalid(&path, &ips, "first value must match `clusterIP`");
        }
        _ => {}
    }
    check_families(errors, object);
    let mut malformed = Errors::new();
    check_forms(&mut malformed, &ips, &path);
    if malformed.is_empty() {
        check_address_families(errors, object, &ips, &path);
    }
    errors.extend(malformed);
}

fn check_families(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (i, family) in texts(object, "spec.ipFamilies").enumerate() {
        let path = spec("ipFamilies").index(i);
        one_of(errors, &path, family, &FAMILIES);
        if !seen.insert(family) {
            errors.duplicate(&path, family);
        }
    }
    if has(object, "spec.ipFamilyPolicy") {
        let root = Path::default();
        choice(
            errors,
            object,
            &root,
            "spec.ipFamilyPolicy",
            &FAMILY_POLICIES,
        );
    }
}

fn check_forms(errors: &mut Errors, ips: &[&str], path: &Path) {
    for (i, ip) in ips.iter().enumerate() {
        if i == 0 && *ip == HEADLESS {
            if ips.len() > 1 {
                errors.invalid(path, ips, "'None' must be the first and only value");
            }
            continue;
        }
        errors.invalid_each(&path.index(i), ip, names::ip(ip));
    }
    if ips.len() > 2 {
        errors.invalid(path, ips, "may only hold up to 2 values");
    }
}

fn check_address_families(errors: &mut Errors, object: &Value, ips: &[&str], path: &Path) {
    let of = |ip: &str| names::ip_address(ip).map(|ip| if ip.is_ipv4() { "IPv4" } else { "IPv6" });
    let families: BTreeSet<_> = ips.iter().filter_map(|ip| of(ip)).collect();
    if ips.len() > 1 && families.len() < 2 {
        let words = "may specify no more than one IP for each IP family";
        errors.invalid(path, ips, words);
    }
    let expected = texts(object, "spec.ipFamilies");
    for (i, (ip, family)) in ips.iter().zip(expected).enumerate() {
        if of(ip).is_some_and(|actual| actual != family) {
            let words = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.invalid(&path.index(i), ip, &words);
        }
    }
}

/// Refuses what a single-stack cluster does not have.
pub(super) fn single_stack(errors: &mut Errors, object: &Value) {
    let open = is_headless(object) && map(object, "spec.selector").is_empty();
    if open || !needs_cluster_ip(object) {
        return;
    }
    let policy = text(object, "spec.ipFamilyPolicy");
    let families: Vec<&str> = texts(object, "spec.ipFamilies").collect();
    if policy == "RequireDualStack" {
        let words = "this cluster is not configured for dual-stack services";
        errors.invalid(&spec("ipFamilyPolicy"), policy, words);
    }
    if families.len() > 1 && policy == "SingleStack" {
        let words = "must be RequireDualStack or PreferDualStack when multiple `ipFamilies` are \
                     specified";
        errors.invalid(&spec("ipFamilyPolicy"), policy, words);
    }
    for (i, family) in families.iter().enumerate() {
        if *family == "IPv6" {
            let words = "not configured on this cluster";
            errors.invalid(&spec("ipFamilies").index(i), family, words);
        }
    }
}
