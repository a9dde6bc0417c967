//! Validates hostname, DNS settings, host aliases, readiness gates and scheduling gates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, each, form, form_each, label_name, optional_form};
use crate::names;
use crate::tree::{flag, list, opt_text, text, texts};

const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARS_MAX: usize = 2048;
const HOSTNAME_OVERRIDE_MAX: usize = 64;

/// Checks `dnsPolicy`.
pub(super) fn dns_policy(errors: &mut Errors, spec: &Value, at: &Path) {
    choice(errors, spec, at, "dnsPolicy", &DNS_POLICIES);
}

/// Checks `dnsConfig`, which the policy `None` requires.
pub(super) fn dns_config(errors: &mut Errors, spec: &Value, at: &Path) {
    let none = text(spec, "dnsPolicy") == "None";
    let config = spec.get("dnsConfig");
    let at = at.child("dnsConfig");
    let Some(config) = config else {
        if none {
            errors.required(&at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        return;
    };
    if none && list(config, "nameservers").is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.required(&at.child("nameservers"), why);
        return;
    }
    nameservers(errors, config, &at);
    searches(errors, config, &at);
    for (i, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.required(&at.child("options").index(i), "must not be empty");
        }
    }
}

fn nameservers(errors: &mut Errors, config: &Value, at: &Path) {
    if list(config, "nameservers").len() > NAMESERVERS_MAX {
        let why = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.invalid(&at.child("nameservers"), &config["nameservers"], &why);
    }
    form_each(errors, config, at, "nameservers", names::ip);
}

fn searches(errors: &mut Errors, config: &Value, at: &Path) {
    let at = at.child("searches");
    let count = list(config, "searches").len();
    if count > SEARCHES_MAX {
        let why = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.invalid(&at, &config["searches"], &why);
    }
    let chars = texts(config, "searches").map(str::len).sum::<usize>() + count.saturating_sub(1);
    if chars > SEARCH_CHARS_MAX {
        let why = format!(
            "must not have more than {SEARCH_CHARS_MAX} characters (including spaces) in the search list"
        );
        errors.invalid(&at, &config["searches"], &why);
    }
    for (i, search) in texts(config, "searches").enumerate() {
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            errors.invalid_each(&at.index(i), search, search_mistakes(search));
        }
    }
}

/// Search paths are subdomains that may also have underscores.
fn search_mistakes(search: &str) -> Vec<String> {
    const FORM: &str = "[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*";
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(|byte| edge(*byte))
            && bytes.last().is_some_and(|byte| edge(*byte))
            && bytes.iter().all(|byte| edge(*byte) || *byte == b'-')
    };
    let mut mistakes = Vec::new();
    if search.len() > names::SUBDOMAIN_LENGTH_MAX {
        mistakes.push(names::length_error(names::SUBDOMAIN_LENGTH_MAX));
    }
    if !search.split('.').all(is_label) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        mistakes.push(names::form_error(words, FORM, &["example.com"]));
    }
    mistakes
}

/// Checks `hostAliases`.
pub(super) fn host_aliases(errors: &mut Errors, spec: &Value, at: &Path) {
    for (alias, at) in each(spec, at, "hostAliases") {
        let ip = text(alias, "ip");
        form(errors, &at, "ip", ip, names::ip(ip));
        form_each(errors, alias, &at, "hostnames", names::dns1123_subdomain);
    }
}

/// Checks `hostname` and `subdomain`.
pub(super) fn hostname(errors: &mut Errors, spec: &Value, at: &Path) {
    for name in ["hostname", "subdomain"] {
        optional_form(errors, spec, at, name, names::dns1123_label);
    }
}

/// Checks `hostnameOverride`.
pub(super) fn hostname_override(errors: &mut Errors, spec: &Value, at: &Path) {
    let Some(name) = opt_text(spec, "hostnameOverride") else {
        return;
    };
    if name.len() > HOSTNAME_OVERRIDE_MAX {
        errors.too_long(&at.child("hostnameOverride"), HOSTNAME_OVERRIDE_MAX);
    }
    let mistakes = names::dns1123_subdomain(name);
    form(errors, at, "hostnameOverride", name, mistakes);
    let why = "may not be specified when `hostnameOverride` is set";
    if flag(spec, "setHostnameAsFQDN") {
        errors.forbidden(&at.child("setHostnameAsFQDN"), why);
    }
    if flag(spec, "hostNetwork") {
        errors.forbidden(&at.child("hostNetwork"), why);
    }
}

/// Checks `readinessGates`.
pub(super) fn readiness_gates(errors: &mut Errors, spec: &Value, at: &Path) {
    for (gate, at) in each(spec, at, "readinessGates") {
        label_name(errors, &at, "conditionType", text(gate, "conditionType"));
    }
}

/// Checks `schedulingGates`.
pub(super) fn scheduling_gates(errors: &mut Errors, spec: &Value, at: &Path) {
    let mut seen = BTreeSet::new();
    for (gate, at) in each(spec, at, "schedulingGates") {
        let name = text(gate, "name");
        errors.invalid_each(&at, name, names::qualified_name(name));
        if !seen.insert(name) {
            errors.duplicate(&at, name);
        }
    }
}
