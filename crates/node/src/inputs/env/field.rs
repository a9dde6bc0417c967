//! `fieldRef`: what a pod tells its containers about itself.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde_json::Value;

use crate::inputs::tree::text;
use crate::pods::Pod;

/// What a pod's object does not say, or says too late.
#[derive(Clone, Copy, Debug)]
pub(in crate::inputs) struct Place<'a> {
    /// The node's name.
    pub node: &'a str,
    /// The node's addresses.
    pub host: &'a [IpAddr],
    /// The pod's addresses.
    pub pod: &'a [IpAddr],
}

/// The value of a field, or why there is none. `metadata.labels` and `metadata.annotations` are written as files
/// of volumes have them.
pub(in crate::inputs) fn value(pod: &Pod, path: &str, place: &Place<'_>) -> Result<String, String> {
    if let Some((map, key)) = subscript(path) {
        return match map {
            "metadata.labels" => Ok(text(&pod.metadata()["labels"], key).to_owned()),
            "metadata.annotations" => Ok(text(&pod.metadata()["annotations"], key).to_owned()),
            _ => Err(format!("invalid fieldPath with subscript {path}")),
        };
    }
    let spec = pod.raw_spec();
    Ok(match path {
        "metadata.name" => pod.id.name.clone(),
        "metadata.namespace" => pod.id.namespace.clone(),
        "metadata.uid" => pod.id.uid.clone(),
        "metadata.labels" => lines(&pod.metadata()["labels"]),
        "metadata.annotations" => lines(&pod.metadata()["annotations"]),
        "spec.nodeName" => match text(spec, "nodeName") {
            "" => place.node.to_owned(),
            name => name.to_owned(),
        },
        "spec.serviceAccountName" => text(spec, "serviceAccountName").to_owned(),
        "status.hostIP" => first(place.host),
        "status.hostIPs" => all(place.host),
        "status.podIP" => first(place.pod),
        "status.podIPs" => all(place.pod),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

/// `metadata.labels['key']` in its two parts.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    Some((map, key))
}

fn first(addresses: &[IpAddr]) -> String {
    addresses.first().map(IpAddr::to_string).unwrap_or_default()
}

fn all(addresses: &[IpAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    addresses.join(",")
}

/// `key="value"`, a line for each, sorted.
fn lines(map: &Value) -> String {
    let entries = map.as_object().into_iter().flatten();
    let lines: Vec<String> = entries
        .filter_map(|(key, value)| Some(format!("{key}={}", quote(value.as_str()?))))
        .collect();
    lines.join("\n")
}

/// As Go quotes texts.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            other if other.is_ascii_control() => {
                let number = u32::from(other);
                write!(quoted, "\\x{number:02x}").expect("a text takes everything");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inputs::testing::pod;

    #[test]
    fn every_field_that_upstream_offers() {
        let mut object = json!({"serviceAccountName": "robot", "containers": []});
        object["nodeName"] = json!("n1");
        let mut pod = pod(object);
        pod.object["metadata"]["labels"] = json!({"app": "web", "tier.io/x": "a\"b\n"});
        pod.object["metadata"]["annotations"] = json!({"note": "hi"});
        let host = ["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let own = ["10.1.0.7".parse().unwrap(), "fd01::7".parse().unwrap()];
        let place = Place {
            node: "other",
            host: &host,
            pod: &own,
        };
        let check = |path: &str, expected: &str| {
            assert_eq!(value(&pod, path, &place).as_deref(), Ok(expected), "{path}");
        };
        check("metadata.name", "web");
        check("metadata.namespace", "shop");
        check("metadata.uid", "u1");
        check("metadata.labels['app']", "web");
        check("metadata.labels['absent']", "");
        check("metadata.annotations['note']", "hi");
        check("metadata.labels", "app=\"web\"\ntier.io/x=\"a\\\"b\\n\"");
        check("metadata.annotations", "note=\"hi\"");
        check("spec.nodeName", "n1");
        check("spec.serviceAccountName", "robot");
        check("status.hostIP", "10.0.0.1");
        check("status.hostIPs", "10.0.0.1,fd00::1");
        check("status.podIP", "10.1.0.7");
        check("status.podIPs", "10.1.0.7,fd01::7");
        let wrong = value(&pod, "spec.priority", &place);
        assert_eq!(wrong, Err("unsupported fieldPath: spec.priority".into()));
    }
}
