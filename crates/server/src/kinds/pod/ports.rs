//! Validates container ports and host ports.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{PROTOCOLS, choice, each, form, require};
use crate::names;
use crate::tree::{flag, list, number, text};

/// Checks the ports of one container.
pub(super) fn container(errors: &mut Errors, container: &Value, at: &Path) {
    let mut seen = BTreeSet::new();
    for (port, at) in each(container, at, "ports") {
        name(errors, text(port, "name"), &at, &mut seen);
        let own = number(port, "containerPort");
        if own == 0 {
            require(errors, &at, "containerPort");
        } else {
            port_number(errors, &at, "containerPort", own);
        }
        let host = number(port, "hostPort");
        if host != 0 {
            port_number(errors, &at, "hostPort", host);
        }
        choice(errors, port, &at, "protocol", &PROTOCOLS);
    }
}

fn name<'a>(errors: &mut Errors, name: &'a str, at: &Path, seen: &mut BTreeSet<&'a str>) {
    if name.is_empty() {
        return;
    }
    let mistakes = names::port_name(name);
    if !mistakes.is_empty() {
        form(errors, at, "name", name, mistakes);
    } else if !seen.insert(name) {
        errors.duplicate(&at.child("name"), name);
    }
}

fn port_number(errors: &mut Errors, at: &Path, name: &'static str, port: i64) {
    errors.invalid_each(&at.child(name), port, names::is_valid_port_num(port));
}

/// Checks that no two of these containers have the same host port. `at` is the path of the
/// list.
pub(super) fn host_conflicts(errors: &mut Errors, containers: &[Value], at: &Path) {
    let mut taken = BTreeSet::new();
    for (c, container) in containers.iter().enumerate() {
        for (p, port) in list(container, "ports").iter().enumerate() {
            let number = number(port, "hostPort");
            if number == 0 {
                continue;
            }
            let (protocol, ip) = (text(port, "protocol"), text(port, "hostIP"));
            let key = format!("{protocol}/{ip}/{number}");
            if taken.contains(&key) {
                errors.duplicate(&at.index(c).child("ports").index(p).child("hostPort"), key);
            } else {
                taken.insert(key);
            }
        }
    }
}

/// With host networking the container port must equal the host port. A template may omit the host port,
/// which is defaulted when the pod is created.
pub(super) fn host_network(errors: &mut Errors, spec: &Value, at: &Path, is_pod: bool) {
    if !flag(spec, "hostNetwork") {
        return;
    }
    for (c, container) in list(spec, "containers").iter().enumerate() {
        for (p, port) in list(container, "ports").iter().enumerate() {
            let (own, host) = (number(port, "containerPort"), number(port, "hostPort"));
            if (is_pod || host != 0) && host != own {
                let at = at.child("containers").index(c).child("ports").index(p);
                errors.invalid(
                    &at.child("hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                );
            }
        }
    }
}
