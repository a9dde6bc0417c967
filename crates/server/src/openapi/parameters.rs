//! Operations in a document: query parameters, bodies, responses.

use serde_json::{Map, Value, json};

use super::Dialect;
use super::operations::{Action, Operation, Path};
use super::schemas::{STATUS, definition_name, list_name};

/// A query parameter: its name and its type.
type Parameter = (&'static str, &'static str);

const DRY_RUN: Parameter = ("dryRun", "string");
const WRITE: &[Parameter] = &[
    DRY_RUN,
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("pretty", "string"),
];
const DELETE: &[Parameter] = &[
    DRY_RUN,
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("pretty", "string"),
    ("propagationPolicy", "string"),
];
const SELECT: &[Parameter] = &[
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];
const WATCH: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean"),
    ("pretty", "string"),
    ("watch", "boolean"),
];

const LOG: &[Parameter] = &[
    ("container", "string"),
    ("follow", "boolean"),
    ("limitBytes", "integer"),
    ("previous", "boolean"),
    ("sinceSeconds", "integer"),
    ("sinceTime", "string"),
    ("stream", "string"),
    ("tailLines", "integer"),
    ("timestamps", "boolean"),
];
const STREAMS: &[Parameter] = &[
    ("container", "string"),
    ("stderr", "boolean"),
    ("stdin", "boolean"),
    ("stdout", "boolean"),
    ("tty", "boolean"),
];

fn query_parameters(operation: &Operation) -> impl Iterator<Item = Parameter> {
    let (first, second): (&[Parameter], &[Parameter]) = match operation.action {
        Action::Log => (LOG, &[]),
        Action::Connect(_) => match operation.kind.kind {
            "PodExecOptions" => (&[("command", "string")], STREAMS),
            "PodAttachOptions" => (STREAMS, &[]),
            "PodPortForwardOptions" => (&[("ports", "integer")], &[]),
            _ => (&[], &[]),
        },
        Action::Get => (&[("pretty", "string")], &[]),
        Action::List => (SELECT, WATCH),
        Action::Post | Action::Put => (WRITE, &[]),
        Action::Patch => (WRITE, &[("force", "boolean")]),
        Action::Delete => (DELETE, &[]),
        Action::DeleteCollection => (DELETE, SELECT),
    };
    first.iter().chain(second).copied()
}

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
        .map(|name| parameter("path", (name, "string"), dialect))
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
        "operationId": operation.id,
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
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
        Action::Log | Action::Connect(_) => return,
    };
    let schema = |name: &str| json!({"schema": {"$ref": dialect.reference(name)}});
    let takes_itself = matches!(operation.action, Action::Post | Action::Put);
    let responses = &mut rendered["responses"];
    match dialect {
        Dialect::V2 => responses["200"]["schema"] = schema(&answer)["schema"].take(),
        Dialect::V3 => responses["200"]["content"] = json!({"application/json": schema(&answer)}),
    }
    if operation.action == Action::Post {
        responses["201"] = responses["200"].clone();
        responses["201"]["description"] = json!("Created");
    }
    if !takes_itself {
        return;
    }
    match dialect {
        Dialect::V2 => {
            let mut body = json!({"in": "body", "name": "body", "required": true});
            body["schema"] = schema(&name)["schema"].take();
            if let Some(parameters) = rendered["parameters"].as_array_mut() {
                parameters.push(body);
            }
        }
        Dialect::V3 => {
            let content = json!({"application/json": schema(&name)});
            rendered["requestBody"] = json!({"content": content, "required": true});
        }
    }
}

fn parameter(place: &str, (name, kind): Parameter, dialect: Dialect) -> Value {
    let mut parameter = json!({"in": place, "name": name});
    if place == "path" {
        parameter["required"] = json!(true);
    }
    match dialect {
        Dialect::V2 => parameter["type"] = json!(kind),
        Dialect::V3 => parameter["schema"] = json!({"type": kind}),
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::super::operations::paths;
    use super::*;

    #[test]
    fn a_patch_names_its_parameters_and_not_its_body() {
        let paths = paths("apps", "v1");
        let path = paths
            .iter()
            .find(|p| p.path == "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}")
            .expect("served");
        let item = path_item(path, Dialect::V3);
        let patch = &item["patch"];
        assert_eq!(patch.get("requestBody"), None);
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "apps", "version": "v1", "kind": "DaemonSet"})
        );
        assert_eq!(patch["x-kubernetes-action"], "patch");
        let parameters = patch["parameters"].as_array().expect("parameters");
        for name in ["dryRun", "fieldValidation", "fieldManager", "force"] {
            let found = parameters.iter().find(|p| p["name"] == name).expect(name);
            assert_eq!(found["in"], "query");
        }
        assert_eq!(item["parameters"][1]["name"], "namespace");
        assert_eq!(item["put"]["requestBody"]["required"], true);
    }

    #[test]
    fn older_documents_put_the_type_beside_the_name() {
        let old = parameter("query", DRY_RUN, Dialect::V2);
        assert_eq!(
            old,
            json!({"in": "query", "name": "dryRun", "type": "string"})
        );
        let new = parameter("path", ("name", "string"), Dialect::V3);
        let expected =
            json!({"in": "path", "name": "name", "required": true, "schema": {"type": "string"}});
        assert_eq!(new, expected);
    }
}
