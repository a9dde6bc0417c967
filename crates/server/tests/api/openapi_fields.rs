//! The definitions in the OpenAPI documents of all group-versions, field by field, against the facts that the schema table is
//! generated from (`src/schema/fields.json`).

use std::collections::BTreeSet;

use kennel_server::registry::{CREATE_ONLY, MEASURED, RESOURCES};
use serde_json::{Map, Value, json};

use crate::fixture::TestServer;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Types that JSON has in a form of its own, and the types of that form: in the document of version 2 and in those of version 3.
const LEAVES: [(&str, &str, &[&str]); 6] = [
    ("intstr.IntOrString", "string", &["integer", "string"]),
    ("meta.v1.FieldsV1", "object", &["object"]),
    ("meta.v1.MicroTime", "string", &["string"]),
    ("meta.v1.Time", "string", &["string"]),
    ("resource.Quantity", "string", &["string", "number"]),
    ("runtime.RawExtension", "object", &["object"]),
];

/// One document of those that the server has.
struct Document {
    /// As it is named in the index; `v2` for the one that has all.
    name: String,
    tree: Value,
}

impl Document {
    fn is_v2(&self) -> bool {
        self.name == "v2"
    }

    fn definitions(&self) -> &Map<String, Value> {
        let definitions = if self.is_v2() {
            &self.tree["definitions"]
        } else {
            &self.tree["components"]["schemas"]
        };
        definitions.as_object().expect("it has definitions")
    }

    /// The definition that a schema refers to.
    fn target(schema: &Value) -> &str {
        let reference = match &schema["allOf"] {
            Value::Array(all) => &all[0]["$ref"],
            _ => &schema["$ref"],
        };
        let reference = reference.as_str().unwrap_or_default();
        reference.rsplit('/').next().unwrap_or_default()
    }
}

async fn documents(server: &TestServer) -> Vec<Document> {
    let mut all = vec![Document {
        name: "v2".to_owned(),
        tree: server.get("/openapi/v2").await.ok(),
    }];
    let index = server.get("/openapi/v3").await.ok();
    for (name, entry) in index["paths"].as_object().unwrap() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        all.push(Document {
            name: name.clone(),
            tree: server.get(url).await.ok(),
        });
    }
    all
}

fn facts() -> Map<String, Value> {
    let facts = include_str!("../../src/schema/fields.json");
    serde_json::from_str(facts).unwrap()
}

/// Upstream's name of the definition of a type.
fn definition_name(fact: &str) -> String {
    match fact {
        "resource.Quantity" => "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
        "intstr.IntOrString" => "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
        "runtime.RawExtension" => "io.k8s.apimachinery.pkg.runtime.RawExtension".to_owned(),
        _ => match fact.split_once('.') {
            Some(("meta", rest)) => format!("{}.{}", META.trim_end_matches(".v1"), rest),
            Some(("metrics", _)) => format!("io.k8s.metrics.pkg.apis.{fact}"),
            _ => format!("io.k8s.api.{fact}"),
        },
    }
}

fn strings(value: &Value) -> BTreeSet<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// The members of a type in JSON, which inlines some.
fn members<'a>(facts: &'a Map<String, Value>, of: &'a Value) -> Vec<&'a Value> {
    let inlined = strings(&of["inlined_in_json"]);
    let mut members = Vec::new();
    for field in of["fields"].as_array().unwrap() {
        if inlined.contains(field["name"].as_str().unwrap()) {
            let part = &facts[field["type"].as_str().unwrap()];
            members.extend(part["fields"].as_array().unwrap());
        } else {
            members.push(field);
        }
    }
    members
}

/// What is wrong with a definition.
struct Mistakes<'a> {
    document: &'a Document,
    place: String,
    found: &'a mut Vec<String>,
}

impl Mistakes<'_> {
    fn equal(&mut self, what: &str, shown: &Value, expected: &Value) {
        if shown != expected {
            let (document, place) = (&self.document.name, &self.place);
            self.found.push(format!(
                "{document}: {place}: {what} is {shown}, not {expected}"
            ));
        }
    }

    /// A definition as a whole; its fields are checked one by one.
    fn check_type(&mut self, shown: &Value, fact: &Value, members: &[&Value]) {
        self.equal("type", &shown["type"], &json!("object"));
        let map_type = &shown["x-kubernetes-map-type"];
        self.equal("map type", map_type, &fact["map_type"]);
        let mut expected: BTreeSet<String> = members
            .iter()
            .map(|field| field["name"].as_str().unwrap().to_owned())
            .collect();
        if fact["kind"] == true {
            expected.extend(["apiVersion", "kind"].map(str::to_owned));
            for name in ["apiVersion", "kind"] {
                let shown = &shown["properties"][name]["type"];
                self.equal(name, shown, &json!("string"));
            }
        }
        let properties = shown["properties"].as_object();
        let properties: BTreeSet<String> = properties
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        self.equal("the set of fields", &json!(properties), &json!(expected));
        let required = members.iter().filter(|field| field["required"] == true);
        let required: BTreeSet<String> = required
            .map(|field| field["name"].as_str().unwrap().to_owned())
            .collect();
        let shown_required = strings(&shown["required"]);
        self.equal("required", &json!(shown_required), &json!(required));
        let union = &shown["x-kubernetes-unions"][0];
        let discriminated = union["fields-to-discriminateBy"].as_object();
        let discriminated: BTreeSet<String> = discriminated
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        let expected = strings(&fact["union"]["members"]);
        self.equal("union", &json!(discriminated), &json!(expected));
        let discriminator = &fact["union"]["discriminator"];
        self.equal("discriminator", &union["discriminator"], discriminator);
    }

    fn check_field(&mut self, shown: &Value, fact: &Value) {
        for (what, extension, name) in [
            ("list type", "x-kubernetes-list-type", "list_type"),
            ("map keys", "x-kubernetes-list-map-keys", "list_map_keys"),
            ("map type", "x-kubernetes-map-type", "map_type"),
            (
                "patch strategy",
                "x-kubernetes-patch-strategy",
                "patch_strategy",
            ),
            (
                "merge key",
                "x-kubernetes-patch-merge-key",
                "patch_merge_key",
            ),
        ] {
            self.equal(what, &shown[extension], &fact[name]);
        }
        let (one, of) = if fact["list"] == true {
            self.equal("type", &shown["type"], &json!("array"));
            (&shown["items"], &fact["type"])
        } else if fact["map"].is_string() {
            self.equal("type", &shown["type"], &json!("object"));
            (&shown["additionalProperties"], &fact["map"])
        } else {
            (shown, &fact["type"])
        };
        self.check_value(one, of.as_str().unwrap());
        self.equal("enum", &one["enum"], &fact["enum"]);
        self.check_default(&shown["default"], fact);
    }

    /// One value of a field.
    fn check_value(&mut self, shown: &Value, of: &str) {
        let (kind, format) = match of {
            "string" => ("string", Value::Null),
            "bool" => ("boolean", Value::Null),
            "int32" | "int64" => ("integer", json!(of)),
            "bytes" => ("string", json!("byte")),
            _ if of.ends_with(".ExtraValue") => {
                self.equal("type of items", &shown["items"]["type"], &json!("string"));
                ("array", Value::Null)
            }
            _ => {
                let name = definition_name(of);
                let target = Document::target(shown);
                self.equal("reference", &json!(target), &json!(name));
                // A sibling of a reference is lost in 3.0.
                let has_siblings =
                    shown["$ref"].is_string() && shown.as_object().unwrap().len() > 1;
                let may = self.document.is_v2();
                self.equal("siblings", &json!(has_siblings && !may), &json!(false));
                return;
            }
        };
        self.equal("type", &shown["type"], &json!(kind));
        self.equal("format", &shown["format"], &format);
    }

    /// Documents of version 3 also have the empty values of what Go always writes.
    fn check_default(&mut self, shown: &Value, fact: &Value) {
        let empty = [json!(""), json!(0), json!(false), json!({})];
        match fact["default"].as_str() {
            Some(default) if fact["type"] == "string" => {
                self.equal("default", shown, &json!(default));
            }
            Some(default) => {
                let default: Value = serde_json::from_str(default).unwrap();
                self.equal("default", shown, &default);
            }
            None if !self.document.is_v2() && empty.contains(shown) => {}
            None => self.equal("default", shown, &Value::Null),
        }
    }
}

fn check_leaf(document: &Document, name: &str, (_, in_v2, in_v3): (&str, &str, &[&str])) {
    let shown = &document.definitions()[name];
    let shown_types: Vec<&str> = match shown["oneOf"].as_array() {
        Some(all) => all.iter().filter_map(|one| one["type"].as_str()).collect(),
        None => shown["type"].as_str().into_iter().collect(),
    };
    let expected = if document.is_v2() {
        vec![in_v2]
    } else {
        in_v3.to_vec()
    };
    assert_eq!(shown_types, expected, "{}: {name}", document.name);
    let format = match name.rsplit('.').next() {
        Some("Time" | "MicroTime") => json!("date-time"),
        Some("IntOrString") => json!("int-or-string"),
        _ => Value::Null,
    };
    assert_eq!(shown["format"], format, "{}: {name}", document.name);
}

#[tokio::test]
async fn every_field_of_every_kind_is_as_the_schema_has_it() {
    let (server, facts) = (TestServer::new().await, facts());
    let (mut mistakes, mut fields) = (Vec::new(), BTreeSet::new());
    for document in documents(&server).await {
        let definitions = document.definitions();
        for (fact_name, fact) in &facts {
            let name = definition_name(fact_name);
            let Some(shown) = definitions.get(&name) else {
                continue;
            };
            if let Some(leaf) = LEAVES.iter().find(|(leaf, ..)| leaf == fact_name) {
                check_leaf(&document, &name, *leaf);
                continue;
            }
            let members = members(&facts, fact);
            let mut of_type = Mistakes {
                document: &document,
                place: name.clone(),
                found: &mut mistakes,
            };
            of_type.check_type(shown, fact, &members);
            for field in members {
                let field_name = field["name"].as_str().unwrap();
                let mut of_field = Mistakes {
                    document: &document,
                    place: format!("{name}.{field_name}"),
                    found: &mut mistakes,
                };
                of_field.check_field(&shown["properties"][field_name], field);
                fields.insert(of_field.place);
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(fields.len() > 1200, "{} fields were compared", fields.len());
}

/// The definitions that lists, patches and leaves have, too.
#[tokio::test]
async fn every_definition_has_a_type_and_every_reference_leads_somewhere() {
    let server = TestServer::new().await;
    for document in documents(&server).await {
        let definitions = document.definitions();
        for (name, definition) in definitions {
            let has_type = definition["type"].is_string() || definition["oneOf"].is_array();
            assert!(has_type, "{}: {name}: {definition}", document.name);
        }
        let (mut pending, mut references) = (vec![&document.tree], 0);
        while let Some(next) = pending.pop() {
            if let Some(reference) = next.get("$ref").and_then(Value::as_str) {
                // Relative to the document.
                let target = document.tree.pointer(reference.trim_start_matches('#'));
                assert!(target.is_some(), "{}: {reference}", document.name);
                references += 1;
            }
            match next {
                Value::Object(members) => pending.extend(members.values()),
                Value::Array(items) => pending.extend(items),
                _ => {}
            }
        }
        assert!(references > 10, "{}: {references}", document.name);
    }
}

#[tokio::test]
async fn every_served_kind_is_defined_in_the_documents_of_its_version() {
    let server = TestServer::new().await;
    let stored = RESOURCES
        .iter()
        .map(|row| (row.group, row.version, row.kind));
    let posted = CREATE_ONLY
        .iter()
        .map(|row| (row.group, row.version, row.kind));
    let measured = MEASURED
        .iter()
        .map(|row| (row.group, row.version, row.kind));
    let served: Vec<_> = stored.chain(posted).chain(measured).collect();
    let documents = documents(&server).await;
    for (group, version, kind) in served {
        let of_version = if group.is_empty() {
            format!("api/{version}")
        } else {
            format!("apis/{group}/{version}")
        };
        let about = json!({"group": group, "version": version, "kind": kind});
        for name in ["v2", &of_version] {
            let mut documents = documents.iter();
            let document = documents.find(|document| document.name == name);
            let document = document.unwrap_or_else(|| panic!("there is no document {name}"));
            let mut definitions = document.definitions().values();
            let found = definitions.find(|definition| {
                let kinds = definition["x-kubernetes-group-version-kind"].as_array();
                kinds.is_some_and(|kinds| kinds.contains(&about))
            });
            let found = found.unwrap_or_else(|| panic!("{name}: no {about}"));
            assert!(found["properties"]["kind"].is_object(), "{name}: {about}");
        }
    }
}
