//! The data of a revision (rule 4.5): a strategic merge patch that restores the template.

use serde_json::{Map, Value, json};

use crate::go::json as go;

/// The data for a template, in upstream's exact bytes.
pub fn of_template(template: &Value) -> String {
    let mut inner = match template {
        Value::Object(members) => members.clone(),
        _ => Map::new(),
    };
    remove_null_creation_timestamp(&mut inner);
    inner.insert("$patch".to_owned(), "replace".into());
    go::to_string(&json!({"spec": {"template": inner}}))
}

/// A canonical form to compare the data of different writers: sorted and compact, without the null
/// `creationTimestamp` that Kubernetes up to 1.33 wrote.
pub fn canonical(data: &Value) -> String {
    let Some(Value::Object(template)) = data.pointer("/spec/template") else {
        return go::to_string(data);
    };
    let metadata = template.get("metadata");
    if metadata.is_none_or(|metadata| metadata.get("creationTimestamp").is_none()) {
        return go::to_string(data);
    }
    let mut data = data.clone();
    if let Some(Value::Object(template)) = data.pointer_mut("/spec/template") {
        remove_null_creation_timestamp(template);
    }
    go::to_string(&data)
}

/// The template that data restores.
pub fn template(data: &str) -> Option<Value> {
    let mut data: Value = serde_json::from_str(data).ok()?;
    let mut template = data.pointer_mut("/spec/template")?.take();
    template.as_object_mut()?.remove("$patch");
    Some(template)
}

fn remove_null_creation_timestamp(template: &mut Map<String, Value>) {
    if let Some(Value::Object(metadata)) = template.get_mut("metadata")
        && metadata
            .get("creationTimestamp")
            .is_some_and(Value::is_null)
    {
        metadata.remove("creationTimestamp");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_5_data_is_the_whole_template_to_replace_and_nothing_else() {
        let template = json!({
            "spec": {"containers": [{"name": "c", "image": "i", "args": ["a && b"]}], "new": 1},
            "metadata": {"labels": {"app": "x"}}});
        assert_eq!(
            of_template(&template),
            r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"args":["a \u0026\u0026 b"],"image":"i","name":"c"}],"new":1}}}}"#
        );
    }

    #[test]
    fn s4_5_a_null_creation_time_is_neither_written_nor_compared() {
        let old = json!({"metadata": {"creationTimestamp": null, "labels": {"a": "b"}}});
        let new = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(of_template(&old), of_template(&new));
        let kept = |inner: &Value| {
            let mut inner = inner.clone();
            inner["$patch"] = "replace".into();
            canonical(&json!({"spec": {"template": inner}}))
        };
        assert_eq!(kept(&old), of_template(&new));
        assert_eq!(kept(&new), of_template(&new));
        let set = json!({"metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"}});
        assert!(kept(&set).contains("2026-01-02"));
    }

    #[test]
    fn s4_5_data_of_another_writer_compares_semantically() {
        let text =
            "{ \"spec\": {\"template\": {\"spec\": {\"a\": \"<\"}, \"$patch\": \"replace\"}}}";
        let theirs = canonical(&serde_json::from_str(text).unwrap());
        assert_eq!(theirs, of_template(&json!({"spec": {"a": "<"}})));
    }

    #[test]
    fn data_restores_the_template() {
        let template_before = json!({"metadata": {"labels": {"a": "<"}}, "spec": {"x": 1}});
        assert_eq!(
            template(&of_template(&template_before)),
            Some(template_before)
        );
        assert_eq!(template("null"), None);
        assert_eq!(template("{\"spec\":{\"template\":7}}"), None);
    }

    #[test]
    fn data_without_a_template_is_compared_unchanged() {
        assert_eq!(canonical(&json!({"x": [1]})), r#"{"x":[1]}"#);
        assert_eq!(canonical(&Value::Null), "null");
    }
}
