//! Finds a DaemonSet in a file of manifests.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("it has no DaemonSet{}", .0.as_ref().map(|name| format!(" {name}")).unwrap_or_default())]
    None(Option<String>),
    #[error("it has the DaemonSets {}: name one, as ds/NAME", .0.join(" and "))]
    Several(Vec<String>),
    #[error(
        "its namespace is {in_file}, but -n says {asked}; leave -n out, or change the manifest"
    )]
    Namespace { in_file: String, asked: String },
}

/// The DaemonSet of this name in a file, or its only one.
pub(super) fn daemon_set(path: &Path, name: Option<&str>) -> anyhow::Result<Value> {
    let context = || format!("cannot use {}", path.display());
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).with_context(context)?;
    pick(objects, name).with_context(context)
}

fn pick(objects: Vec<Value>, name: Option<&str>) -> Result<Value, ManifestError> {
    let objects = objects.into_iter().flat_map(items);
    let name_of = |object: &Value| {
        let name = object["metadata"]["name"].as_str();
        name.unwrap_or_default().to_owned()
    };
    let mut sets: Vec<Value> = objects
        .filter(|object| object["kind"] == "DaemonSet")
        .filter(|object| name.is_none_or(|name| name == name_of(object)))
        .collect();
    match sets.len() {
        0 => Err(ManifestError::None(name.map(str::to_owned))),
        1 => Ok(sets.remove(0)),
        _ => Err(ManifestError::Several(sets.iter().map(name_of).collect())),
    }
}

/// The objects of a `List`, or the object itself.
fn items(mut object: Value) -> Vec<Value> {
    let is_list = object["kind"] == "List";
    match object.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![object],
    }
}

/// The namespace of a manifest, as `kubectl apply` takes it.
pub(super) fn namespace(
    object: &mut Value,
    asked: Option<&String>,
    default: &str,
) -> Result<String, ManifestError> {
    let in_file = object["metadata"]["namespace"].as_str().map(str::to_owned);
    let namespace = match (in_file, asked) {
        (Some(in_file), Some(asked)) if in_file != *asked => {
            let asked = asked.clone();
            return Err(ManifestError::Namespace { in_file, asked });
        }
        (Some(in_file), _) => in_file,
        (None, Some(asked)) => asked.clone(),
        (None, None) => default.to_owned(),
    };
    object["metadata"]["namespace"] = namespace.clone().into();
    Ok(namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(name: &str) -> Value {
        json!({"kind": "DaemonSet", "metadata": {"name": name}})
    }

    #[test]
    fn the_only_daemon_set_or_the_one_that_is_named() {
        let other = json!({"kind": "ConfigMap", "metadata": {"name": "a"}});
        assert_eq!(pick(vec![other.clone(), set("a")], None), Ok(set("a")));
        let list = json!({"kind": "List", "items": [set("a"), set("b")]});
        assert_eq!(pick(vec![list.clone()], Some("b")), Ok(set("b")));
        let message = |found: Result<Value, ManifestError>| found.unwrap_err().to_string();
        assert_eq!(
            message(pick(vec![list.clone()], None)),
            "it has the DaemonSets a and b: name one, as ds/NAME"
        );
        assert_eq!(message(pick(vec![other], None)), "it has no DaemonSet");
        assert_eq!(
            message(pick(vec![list], Some("c"))),
            "it has no DaemonSet c"
        );
    }

    #[test]
    fn the_namespace_is_the_manifests_the_flags_or_the_contexts() {
        let mut plain = set("a");
        assert_eq!(namespace(&mut plain, None, "d"), Ok("d".to_owned()));
        let mut plain = set("a");
        let asked = "n".to_owned();
        assert_eq!(namespace(&mut plain, Some(&asked), "d"), Ok(asked.clone()));
        assert_eq!(plain["metadata"]["namespace"], "n");
        plain["metadata"]["namespace"] = "m".into();
        assert_eq!(namespace(&mut plain, None, "d"), Ok("m".to_owned()));
        assert!(namespace(&mut plain, Some(&asked), "d").is_err());
    }
}
