//! Warnings about duplicate ports.

use std::collections::BTreeMap;

use serde_json::Value;

use super::containers::each_container;
use crate::field::Path;
use crate::kinds::check::each;
use crate::tree::{number, text};

/// Ports of any container that overlap, and host addresses without a host port.
pub(super) fn overlapping(found: &mut Vec<String>, spec: &Value, at: &Path) {
    let mut seen: BTreeMap<String, Vec<(Path, Value)>> = BTreeMap::new();
    each_container(spec, at, |container, at| {
        for (port, at) in each(container, at, "ports") {
            if !text(port, "hostIP").is_empty() && number(port, "hostPort") == 0 {
                found.push(format!(
                    "{at}: hostIP set without hostPort: {}",
                    spelled(port)
                ));
            }
            let key = format!(
                "{}/{}",
                number(port, "containerPort"),
                text(port, "protocol")
            );
            let others = seen.entry(key).or_default();
            for (other_at, other) in others.iter() {
                if let Some(relation) = relation(port, other) {
                    found.push(format!("{at}: {relation} port definition with {other_at}"));
                }
            }
            others.push((at, port.clone()));
        }
    });
}

fn relation(port: &Value, other: &Value) -> Option<&'static str> {
    let (ip, other_ip) = (text(port, "hostIP"), text(other, "hostIP"));
    let (host, other_host) = (number(port, "hostPort"), number(other, "hostPort"));
    if ip == other_ip && host == other_host {
        Some("duplicate")
    } else if host == 0 || other_host == 0 {
        Some("overlapping")
    } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// A port as upstream prints it.
fn spelled(port: &Value) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(port, "name"),
        number(port, "hostPort"),
        number(port, "containerPort"),
        text(port, "protocol"),
        text(port, "hostIP")
    )
}
