//! Operations in a document: query parameters, bodies, responses.

use serde_json::{Map, Value, json};

use super::Dialect;
use super::operations::{Action, Operation, Path};
use super::query_parameters::{Parameter, path_parameter, query_parameters};
use super::schemas::{DELETE_OPTIONS, PATCH, STATUS, definition_name, list_name};

/// The content types of patches that the server takes.
const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// An entry of `paths`.
pub(super) fn path_item(path: &Path, dialect: Dialect) -> Value {
    let mut item = Map::new();
    for operation in &path.operations {
        item.insert(
            operation.action.method().to_owned(),
            rendered(operation, dialect),
        );
    }
    let parameters: Vec<Value> = path
        .parameters()
        .map(|name| parameter("path", path_parameter(name), dialect))
        .collect();
    if !parameters.is_empty() {
        item.insert("parameters".to_owned(), json!(parameters));
    }
    Value::Object(item)
}

fn rendered(operation: &Operation, dialect: Dialect) -> Value {
    let parameters: Vec<Value> = query_parameters(operation)
        .map(|query| parameter("query", query, dialect))
        .collect();
    let mut rendered = json!({
        "description": operation.description,
        "operationId": operation.id,
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "tags": [operation.tag],
        "x-kubernetes-action": operation.action.name(),
        "x-kubernetes-group-version-kind": operation.kind.to_json(),
    });
    add_contents(&mut rendered, operation, dialect);
    rendered
}

/// The definitions of the request and response bodies.
fn add_contents(rendered: &mut Value, operation: &Operation, dialect: Dialect) {
    let Some(schema) = operation.kind.schema() else {
        return;
    };
    let name = definition_name(schema.name);
    let answer = match operation.action {
        Action::List => list_name(&name),
        Action::Get | Action::Post | Action::Put | Action::Patch => name.clone(),
        Action::Delete | Action::DeleteCollection => definition_name(STATUS),
        Action::Log | Action::Connect(..) => return,
    };
    let reference = json!({"$ref": dialect.reference(&answer)});
    let responses = &mut rendered["responses"];
    match dialect {
        Dialect::V2 => responses["200"]["schema"] = reference,
        Dialect::V3 => {
            responses["200"]["content"] = json!({"application/json": {"schema": reference}});
        }
    }
    // An apply creates what is not there, and a deletion may take its time.
    let further = match operation.action {
        Action::Post | Action::Patch => Some(("201", "Created")),
        Action::Delete => Some(("202", "Accepted")),
        _ => None,
    };
    if let Some((code, description)) = further {
        responses[code] = responses["200"].clone();
        responses[code]["description"] = json!(description);
    }
    match operation.action {
        Action::Post | Action::Put => add_body(rendered, &name, &["application/json"], dialect),
        Action::Patch => add_body(rendered, PATCH, &PATCHES, dialect),
        Action::Delete | Action::DeleteCollection => {
            let options = definition_name(DELETE_OPTIONS);
            add_body(rendered, &options, &["application/json"], dialect);
            let optional = json!(false);
            match dialect {
                Dialect::V2 => rendered["parameters"][0]["required"] = optional,
                Dialect::V3 => rendered["requestBody"]["required"] = optional,
            }
        }
        _ => {}
    }
}

/// A body of some definition that must be there, in each of some content types.
fn add_body(rendered: &mut Value, name: &str, content_types: &[&str], dialect: Dialect) {
    let reference = json!({"$ref": dialect.reference(name)});
    match dialect {
        Dialect::V2 => {
            let body = json!({"in": "body", "name": "body", "required": true, "schema": reference});
            if let Some(parameters) = rendered["parameters"].as_array_mut() {
                parameters.insert(0, body);
            }
            rendered["consumes"] = json!(content_types);
        }
        Dialect::V3 => {
            let content: Map<String, Value> = content_types
                .iter()
                .map(|content_type| ((*content_type).to_owned(), json!({"schema": reference})))
                .collect();
            rendered["requestBody"] = json!({"content": content, "required": true});
        }
    }
}

fn parameter(place: &str, about: Parameter, dialect: Dialect) -> Value {
    let mut parameter = json!({"description": about.description, "in": place, "name": about.name});
    if place == "path" {
        parameter["required"] = json!(true);
    }
    match dialect {
        Dialect::V2 => parameter["type"] = json!(about.kind),
        Dialect::V3 => parameter["schema"] = json!({"type": about.kind}),
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::super::operations::paths;
    use super::*;

    fn item(dialect: Dialect) -> Value {
        let paths = paths("apps", "v1");
        let path = "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}";
        let path = paths.iter().find(|p| p.path == path).expect("served");
        path_item(path, dialect)
    }

    #[test]
    fn a_patch_names_its_parameters_and_the_types_of_its_body() {
        let item = item(Dialect::V3);
        let patch = &item["patch"];
        let content = patch["requestBody"]["content"]
            .as_object()
            .expect("content");
        assert!(content.keys().eq(PATCHES), "{content:?}");
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "apps", "version": "v1", "kind": "DaemonSet"})
        );
        assert_eq!(patch["x-kubernetes-action"], "patch");
        assert_eq!(patch["tags"], json!(["apps_v1"]));
        assert_eq!(patch["responses"]["201"]["description"], "Created");
        let parameters = patch["parameters"].as_array().expect("parameters");
        for name in ["dryRun", "fieldValidation", "fieldManager", "force"] {
            let found = parameters.iter().find(|p| p["name"] == name).expect(name);
            assert_eq!(found["in"], "query");
            assert!(found["description"].is_string(), "{name}");
        }
        assert_eq!(item["parameters"][1]["name"], "namespace");
        assert_eq!(item["put"]["requestBody"]["required"], true);
        let old = self::item(Dialect::V2);
        assert_eq!(old["patch"]["consumes"], json!(PATCHES));
    }

    #[test]
    fn a_deletion_may_have_options_as_its_body() {
        let (new, old) = (item(Dialect::V3), item(Dialect::V2));
        let body = &new["delete"]["requestBody"];
        let options = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
        let schema = &body["content"]["application/json"]["schema"];
        assert_eq!(schema["$ref"], options);
        assert_eq!(body["required"], false);
        let body = &old["delete"]["parameters"][0];
        assert_eq!(
            (&body["in"], &body["required"]),
            (&json!("body"), &json!(false))
        );
        assert_eq!(new["delete"]["responses"]["202"]["description"], "Accepted");
    }

    #[test]
    fn older_documents_put_the_type_beside_the_name() {
        let name = path_parameter("name");
        let of = |dialect| parameter("path", name, dialect);
        assert_eq!(of(Dialect::V2)["type"], "string");
        assert_eq!(of(Dialect::V3)["schema"], json!({"type": "string"}));
        assert_eq!(of(Dialect::V3)["required"], true);
    }
}
