//! `fieldRef` of the downward API.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde_json::Value;

use crate::json::text;
use crate::pods::Pod;

/// Field values that the pod's object does not have yet when a container starts.
#[derive(Clone, Copy, Debug)]
pub(in crate::inputs) struct RuntimeFields<'a> {
    pub node_name: &'a str,
    pub host_ips: &'a [IpAddr],
    pub pod_ips: &'a [IpAddr],
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::inputs) enum FieldError {
    #[error("invalid fieldPath with subscript {0}")]
    Subscript(String),
    #[error("unsupported fieldPath: {0}")]
    Unsupported(String),
}

/// `metadata.labels` and `metadata.annotations` have the format of downward API volumes.
pub(in crate::inputs) fn value(
    pod: &Pod,
    path: &str,
    fields: &RuntimeFields<'_>,
) -> Result<String, FieldError> {
    if let Some((map, key)) = subscript(path) {
        return match map {
            "metadata.labels" => Ok(entry(&pod.metadata()["labels"], key)),
            "metadata.annotations" => Ok(entry(&pod.metadata()["annotations"], key)),
            _ => Err(FieldError::Subscript(path.to_owned())),
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
            "" => fields.node_name.to_owned(),
            name => name.to_owned(),
        },
        "spec.serviceAccountName" => text(spec, "serviceAccountName").to_owned(),
        "status.hostIP" => first(fields.host_ips),
        "status.hostIPs" => join(fields.host_ips),
        "status.podIP" => first(fields.pod_ips),
        "status.podIPs" => join(fields.pod_ips),
        _ => return Err(FieldError::Unsupported(path.to_owned())),
    })
}

/// Splits `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    Some((map, key))
}

fn first(addresses: &[IpAddr]) -> String {
    addresses.first().map(IpAddr::to_string).unwrap_or_default()
}

fn join(addresses: &[IpAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    addresses.join(",")
}

/// Lines of `key="value"`, sorted.
fn lines(map: &Value) -> String {
    let entries = map.as_object().into_iter().flatten();
    let lines: Vec<String> = entries
        .filter_map(|(key, value)| Some(format!("{key}={}", quote(value.as_str()?))))
        .collect();
    lines.join("\n")
}

/// Quotes like Go's `strconv.Quote`.
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
                write!(quoted, "\\x{number:02x}").expect("writing to a string cannot fail");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// An entry of a map; its key may have dots.
fn entry(map: &Value, key: &str) -> String {
    map[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inputs::tests::fixture::pod;

    #[test]
    fn every_field_of_upstream_has_a_value() {
        let mut object = json!({"serviceAccountName": "robot", "containers": []});
        object["nodeName"] = json!("n1");
        let mut pod = pod(object);
        pod.object["metadata"]["labels"] = json!({"app": "web", "tier.io/x": "a\"b\n"});
        pod.object["metadata"]["annotations"] = json!({"note": "hi"});
        let host = ["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let own = ["10.1.0.7".parse().unwrap(), "fd01::7".parse().unwrap()];
        let fields = RuntimeFields {
            node_name: "other",
            host_ips: &host,
            pod_ips: &own,
        };
        let check = |path: &str, expected: &str| {
            assert_eq!(value(&pod, path, &fields).unwrap(), expected, "{path}");
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
        let wrong = value(&pod, "spec.priority", &fields).unwrap_err();
        assert_eq!(wrong.to_string(), "unsupported fieldPath: spec.priority");
    }
}
