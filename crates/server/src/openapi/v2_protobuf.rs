//! Swagger 2.0 as the protobuf message that Go's clients read (gnostic's `openapi.v2.Document`).
//! The numbers below are those of its public schema.

use std::sync::LazyLock;

use serde_json::Value;

use super::Dialect;
use super::packed::Packed;
use super::parameters::path_item;
use super::protobuf::Message;
use super::v2::{all_definitions, all_paths};
use crate::tree::{list, map, text, texts};

/// `GET /openapi/v2` as protobuf.
pub fn v2_protobuf() -> &'static Packed {
    static DOCUMENT: LazyLock<Packed> = LazyLock::new(|| Packed::new(&generate()));
    &DOCUMENT
}

fn generate() -> Vec<u8> {
    let all = all_paths();
    let info = super::info();
    let info = Message::default()
        .text(1, text(&info, "title"))
        .text(2, text(&info, "version"));
    let paths = all
        .iter()
        .map(|path| named(&path.path, &encoded_path(&path_item(path, Dialect::V2))));
    let paths = Message::default().messages(2, paths);
    let definitions = all_definitions(&all);
    let definitions = definitions
        .iter()
        .map(|(name, definition)| named(name, &schema(definition)));
    let definitions = Message::default().messages(1, definitions);
    let document = Message::default()
        .text(1, "2.0")
        .message(2, &info)
        .message(8, &paths)
        .message(9, &definitions);
    document.into_bytes()
}

/// A name and a value, as every map of this schema is written.
fn named(name: &str, value: &Message) -> Message {
    Message::default().text(1, name).message(2, value)
}

/// Any value, as YAML; JSON is YAML.
fn any(value: &Value) -> Message {
    Message::default().text(2, &value.to_string())
}

/// The vendor extensions of a tree: its members that start with `x-`.
fn extensions(tree: &Value) -> impl Iterator<Item = Message> {
    let members = tree.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| name.starts_with("x-"))
        .map(|(name, value)| named(name, &any(value)))
}

fn encoded_path(item: &Value) -> Message {
    const METHODS: [(&str, u32); 5] = [
        ("get", 2),
        ("put", 3),
        ("post", 4),
        ("delete", 5),
        ("patch", 8),
    ];
    let mut message = Message::default();
    for (method, field) in METHODS {
        if let Some(found) = item.get(method) {
            message = message.message(field, &operation(found));
        }
    }
    message.messages(9, list(item, "parameters").iter().map(parameter))
}

fn operation(operation: &Value) -> Message {
    let responses = map(operation, "responses").iter().map(|(code, response)| {
        let mut message = Message::default().text(1, text(response, "description"));
        if let Some(body) = response.get("schema") {
            message = message.message(2, &Message::default().message(1, &schema(body)));
        }
        let response = message;
        named(code, &Message::default().message(1, &response))
    });
    let (tags, consumes) = (texts(operation, "tags"), texts(operation, "consumes"));
    let message = tags
        .fold(Message::default(), |message, one| message.text(1, one))
        .text(3, text(operation, "description"))
        .text(5, text(operation, "operationId"));
    consumes
        .fold(message, |message, one| message.text(7, one))
        .messages(8, list(operation, "parameters").iter().map(parameter))
        .message(9, &Message::default().messages(1, responses))
        .messages(13, extensions(operation))
}

fn parameter(parameter: &Value) -> Message {
    let parameter = match parameter.get("schema") {
        Some(body) => Message::default().message(1, &body_parameter(parameter, body)),
        None => Message::default().message(2, &plain_parameter(parameter)),
    };
    Message::default().message(1, &parameter)
}

fn body_parameter(parameter: &Value, body: &Value) -> Message {
    Message::default()
        .text(2, text(parameter, "name"))
        .text(3, text(parameter, "in"))
        .flag(4, parameter.get("required") == Some(&Value::Bool(true)))
        .message(5, &schema(body))
}

/// A parameter that is not a body: wrapped twice, once per `oneof` of the schema.
fn plain_parameter(parameter: &Value) -> Message {
    let in_query = text(parameter, "in") == "query";
    // The two types of parameters have different field numbers and positions.
    let (kind_field, place_field) = if in_query { (6, 3) } else { (5, 4) };
    let required = parameter.get("required") == Some(&Value::Bool(true));
    let inner = Message::default()
        .flag(1, required)
        .text(2, text(parameter, "in"))
        .text(3, text(parameter, "description"))
        .text(4, text(parameter, "name"))
        .text(kind_field, text(parameter, "type"));
    Message::default().message(place_field, &inner)
}

fn schema(tree: &Value) -> Message {
    let mut message = Message::default()
        .text(1, text(tree, "$ref"))
        .text(2, text(tree, "format"))
        .text(4, text(tree, "description"));
    if let Some(default) = tree.get("default") {
        message = message.message(5, &any(default));
    }
    for required in texts(tree, "required") {
        message = message.text(19, required);
    }
    for value in list(tree, "enum") {
        message = message.message(20, &any(value));
    }
    if let Some(values) = tree.get("additionalProperties") {
        let values = Message::default().message(1, &schema(values));
        message = message.message(21, &values);
    }
    let kind = text(tree, "type");
    if !kind.is_empty() {
        message = message.message(22, &Message::default().text(1, kind));
    }
    if let Some(items) = tree.get("items") {
        let items = Message::default().message(1, &schema(items));
        message = message.message(23, &items);
    }
    if tree.get("properties").is_some() {
        let properties = map(tree, "properties")
            .iter()
            .map(|(name, tree)| named(name, &schema(tree)));
        message = message.message(25, &Message::default().messages(1, properties));
    }
    message.messages(31, extensions(tree))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_written_by_the_public_numbers() {
        let tree = json!({"$ref": "#/d", "required": ["a"], "type": "object", "x-k": 1});
        let expected = [
            &[0x0a, 3][..],
            b"#/d",
            &[0x9a, 1, 1],
            b"a",
            &[0xb2, 1, 8, 0x0a, 6],
            b"object",
            &[0xfa, 1, 10, 0x0a, 3],
            b"x-k",
            &[0x12, 3, 0x12, 1],
            b"1",
        ]
        .concat();
        assert_eq!(schema(&tree).into_bytes(), expected);
    }

    #[test]
    fn a_query_parameter_is_wrapped_where_kubectl_looks() {
        let tree = json!({"in": "query", "name": "dryRun", "type": "string"});
        let inner = [
            &[0x12, 5][..],
            b"query",
            &[0x22, 6],
            b"dryRun",
            &[0x32, 6],
            b"string",
        ]
        .concat();
        let mut expected = inner;
        for tag in [0x1a, 0x12, 0x0a] {
            let length = u8::try_from(expected.len()).expect("short");
            expected = [&[tag, length][..], &expected].concat();
        }
        assert_eq!(parameter(&tree).into_bytes(), expected);
    }

    #[test]
    fn the_document_opens_with_its_version_and_keeps_its_tag() {
        let document = v2_protobuf().document();
        assert_eq!(document.body[..5], *b"\x0a\x032.0");
        assert!(*document.body == *generate());
        let text = String::from_utf8_lossy(&document.body);
        assert!(text.contains("io.k8s.api.apps.v1.DaemonSetSpec"));
        assert!(text.contains(r#"{"group":"apps","kind":"DaemonSet","version":"v1"}"#));
    }
}
