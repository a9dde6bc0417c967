//! Creates the Node object, or updates the existing one.

use kennel_client::write::{Call, Content, Failure, Writer};
use serde_json::{Map, Value, json};

const NODES: &str = "/api/v1/nodes";

pub(super) fn path(name: &str) -> String {
    format!("{NODES}/{name}")
}

/// Returns the stored object, and whether it is new. Taints are only set on new nodes, so that one that an
/// administrator has removed stays removed.
pub(super) async fn register(writer: &Writer, object: &Value) -> Result<(Value, bool), Failure> {
    match writer.send(&Call::create(NODES, object.to_string())).await {
        Ok(answer) => return Ok((answer.tree()?, true)),
        Err(failure) if failure.is(409) => {}
        Err(failure) => return Err(failure),
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let stored = writer.send(&Call::get(path(name))).await?.tree()?;
    let mut patch = Map::new();
    for field in ["labels", "annotations"] {
        let desired = object["metadata"][field].as_object();
        let differing = desired.map(|desired| differing(desired, &stored["metadata"][field]));
        if let Some(differing) = differing.filter(|differing| !differing.is_empty()) {
            patch.insert(field.to_owned(), differing.into());
        }
    }
    if patch.is_empty() {
        return Ok((stored, false));
    }
    let call = Call::patch(path(name), Content::Merge, &json!({ "metadata": patch }));
    Ok((writer.send(&call).await?.tree()?, false))
}

fn differing(desired: &Map<String, Value>, stored: &Value) -> Map<String, Value> {
    let differ = desired
        .iter()
        .filter(|(key, value)| stored[*key] != **value);
    differ
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// `status` is without conditions.
pub(super) async fn write_status(
    writer: &Writer,
    name: &str,
    status: &Value,
    conditions: Vec<Value>,
) -> Result<Value, Failure> {
    let mut status = status.clone();
    status["conditions"] = conditions.into();
    // A strategic merge would merge addresses by type, and two may have the same: replace the list.
    if let Some(addresses) = status["addresses"].as_array_mut() {
        addresses.push(json!({"$patch": "replace"}));
    }
    let patch = json!({ "status": status });
    let call = Call::patch(format!("{}/status", path(name)), Content::Strategic, &patch);
    writer.send(&call).await?.tree()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_that_differ_are_written() {
        let wanted = json!({"a": "1", "b": "2"});
        let wanted = wanted.as_object().unwrap();
        let wrong = differing(wanted, &json!({"a": "1", "b": "3", "c": "4"}));
        assert_eq!(Value::from(wrong), json!({"b": "2"}));
        assert!(differing(wanted, &json!({"a": "1", "b": "2"})).is_empty());
    }
}
