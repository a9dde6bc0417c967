//! Definitions: the types of the schema table as JSON schema, with upstream's names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Dialect;
use super::descriptions::Descriptions;
use super::extensions::{KINDS, discriminated, extend, name_kinds_of_answers};
use super::operations::{Action, GroupVersionKind, Path, kinds};
use crate::registry::package;
use crate::schema::{self, Field, Kind, Shape, Type};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const FIELDS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
/// The definition of the body of a patch, of which only the content type says what it is.
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Upstream's name of a type of the table: `apps.v1.DaemonSet` is `io.k8s.api.apps.v1.DaemonSet`.
pub(super) fn definition_name(schema: &str) -> String {
    if let Some(name) = schema.strip_prefix("meta.v1.") {
        return format!("{META}.{name}");
    }
    if schema.starts_with("metrics.") {
        return format!("io.k8s.metrics.pkg.apis.{schema}");
    }
    format!("io.k8s.api.{schema}")
}

/// Definitions by name.
pub(super) type Definitions = BTreeMap<String, Value>;

/// The definitions that some paths need beside those of every group-version. Omits kinds that are not in the table.
pub(super) fn definitions(
    paths: &[Path],
    dialect: Dialect,
    descriptions: &Descriptions,
    of_all: &Definitions,
) -> Definitions {
    // Upstream defines no options of connections: they are query parameters.
    let kinds: Vec<GroupVersionKind> = kinds(paths)
        .into_iter()
        .filter(|kind| !kind.kind.ends_with("Options"))
        .collect();
    let needed = kinds.iter().filter_map(GroupVersionKind::schema);
    let needed = needed.chain(schema::find(DELETE_OPTIONS)).collect();
    let mut found = reachable(needed, &kinds, dialect, descriptions, of_all);
    found.extend(lists(paths, dialect, descriptions));
    name_kinds_of_answers(&mut found, paths);
    found
}

/// The definitions that every group-version has, and has alike.
pub(super) fn definitions_of_all(dialect: Dialect, descriptions: &Descriptions) -> Definitions {
    let needed = OF_ALL.iter().filter_map(|name| schema::find(name));
    let none = Definitions::new();
    let mut found = reachable(needed.collect(), &[], dialect, descriptions, &none);
    for (name, mut leaf) in leaves(dialect) {
        describe(&mut leaf, descriptions.definition(name));
        found.insert(name.to_owned(), leaf);
    }
    name_kinds_of_answers(&mut found, &[]);
    found
}

/// The definitions of some types and of those that they refer to, except `known` ones.
fn reachable(
    mut pending: Vec<&'static Type>,
    kinds: &[GroupVersionKind],
    dialect: Dialect,
    descriptions: &Descriptions,
    known: &Definitions,
) -> Definitions {
    let mut found = Definitions::new();
    while let Some(next) = pending.pop() {
        let name = definition_name(next.name);
        if found.contains_key(&name) || known.contains_key(&name) {
            continue;
        }
        let own = |kind: &&GroupVersionKind| kind.schema().is_some_and(|t| t.name == next.name);
        let own = kinds.iter().find(own);
        let definition = definition(next, own, dialect, descriptions);
        found.insert(name, definition);
        pending.extend(next.fields.iter().filter_map(|field| match field.kind {
            Kind::Object(target) => Some(target),
            _ => None,
        }));
    }
    found
}

/// What every group-version refers to, with the same definition: the metadata of objects and lists, the outcome of deletions, and
/// what their options, which differ in their kinds, refer to.
const OF_ALL: [&str; 4] = [
    "meta.v1.ListMeta",
    "meta.v1.ObjectMeta",
    "meta.v1.Preconditions",
    STATUS,
];
pub(super) const STATUS: &str = "meta.v1.Status";
/// What deletions take.
pub(super) const DELETE_OPTIONS: &str = "meta.v1.DeleteOptions";

/// The definitions of the lists that operations answer with.
fn lists(paths: &[Path], dialect: Dialect, descriptions: &Descriptions) -> Definitions {
    let operations = paths.iter().flat_map(|path| &path.operations);
    let listed = operations.filter(|operation| operation.action == Action::List);
    let lists = listed.filter_map(|operation| {
        let kind = operation.kind;
        let item = definition_name(kind.schema()?.name);
        Some((
            list_name(&item),
            list_of(kind, &item, dialect, descriptions),
        ))
    });
    lists.collect()
}

/// The name of the definition of a list, by that of its items.
pub(super) fn list_name(item: &str) -> String {
    format!("{item}List")
}

fn list_of(
    kind: GroupVersionKind,
    item: &str,
    dialect: Dialect,
    descriptions: &Descriptions,
) -> Value {
    let name = format!("{}List", kind.kind);
    let (mut one, mut metadata) = (
        reference(item, dialect),
        reference(&format!("{META}.ListMeta"), dialect),
    );
    if dialect == Dialect::V3 {
        one["default"] = json!({});
        metadata["default"] = json!({});
    }
    let mut items = json!({"type": "array", "items": without_siblings(one, dialect)});
    describe(
        &mut items,
        Some(format!("The objects, each of them a {}.", kind.kind)),
    );
    describe(&mut metadata, Some("The list's own metadata.".to_owned()));
    let metadata = without_siblings(metadata, dialect);
    let text = || json!({"type": "string"});
    let (mut api_version, mut of_kind) = (text(), text());
    describe(&mut api_version, descriptions.field(item, "apiVersion"));
    describe(&mut of_kind, descriptions.field(item, "kind"));
    let (group, version) = (kind.group, kind.version);
    json!({
        "description": format!("{name} is a list of objects of the kind {}.", kind.kind),
        "type": "object",
        "properties": {
            "apiVersion": api_version, "items": items, "kind": of_kind, "metadata": metadata,
        },
        "required": ["items"],
        "x-kubernetes-group-version-kind": [{"group": group, "kind": name, "version": version}],
    })
}

fn describe(schema: &mut Value, text: Option<String>) {
    if let Some(text) = text {
        schema["description"] = Value::String(text);
    }
}

/// Types without fields that have names of their own, which `kubectl explain` shows.
fn leaves(dialect: Dialect) -> [(&'static str, Value); 7] {
    let object = || json!({"type": "object"});
    let patch = json!({
        "description": "The body of a PATCH request. Its content type says which kind of patch it is.",
        "type": "object",
    });
    let time = json!({"type": "string", "format": "date-time"});
    let (quantity, int_or_string) = match dialect {
        Dialect::V2 => (
            json!({"type": "string"}),
            json!({"type": "string", "format": "int-or-string"}),
        ),
        Dialect::V3 => (
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
    };
    [
        (QUANTITY, quantity),
        (INT_OR_STRING, int_or_string),
        (TIME, time.clone()),
        (MICRO_TIME, time),
        (FIELDS, object()),
        (RAW, object()),
        (PATCH, patch),
    ]
}

fn definition(
    of: &Type,
    kind: Option<&GroupVersionKind>,
    dialect: Dialect,
    descriptions: &Descriptions,
) -> Value {
    let name = definition_name(of.name);
    let mut definition = json!({"type": "object"});
    describe(&mut definition, descriptions.definition(&name));
    let properties: Map<String, Value> = of
        .fields
        .iter()
        .map(|field| {
            let mut property = property(field, dialect);
            describe(&mut property, descriptions.field(&name, field.name));
            (field.name.to_owned(), without_siblings(property, dialect))
        })
        .collect();
    if !properties.is_empty() {
        definition["properties"] = Value::Object(properties);
    }
    let required = of.fields.iter().filter(|f| f.is_required);
    let required: Vec<&str> = required.map(|f| f.name).collect();
    if !required.is_empty() {
        definition["required"] = json!(required);
    }
    if of.is_atomic {
        definition["x-kubernetes-map-type"] = json!("atomic");
    }
    if let Some(union) = of.union {
        definition["x-kubernetes-unions"] = json!([discriminated(union)]);
    }
    if let Some(kind) = kind {
        definition[KINDS] = json!([kind.to_json()]);
    }
    definition
}

fn property(field: &Field, dialect: Dialect) -> Value {
    let mut one = value(field, dialect);
    if !field.values.is_empty() {
        one["enum"] = json!(field.values);
    }
    if dialect == Dialect::V3
        && let Some(zero) = zero(field)
    {
        one["default"] = zero;
    }
    let mut property = match field.shape {
        Shape::One => one,
        Shape::List => json!({"type": "array", "items": without_siblings(one, dialect)}),
        Shape::Map => {
            json!({"type": "object", "additionalProperties": without_siblings(one, dialect)})
        }
    };
    extend(&mut property, field);
    property
}

/// What a Go program reads where a value is absent that its type cannot leave out. Only new documents have it.
fn zero(field: &Field) -> Option<Value> {
    let is_member = field.shape != Shape::One;
    let is_written = (field.is_required || field.keeps_empty) && !field.is_pointer;
    match field.kind {
        Kind::Object(_) => (is_member || field.is_by_value).then(|| json!({})),
        _ if !is_member && !is_written => None,
        Kind::String => Some(json!("")),
        Kind::Bool => Some(json!(false)),
        Kind::Int32 | Kind::Int64 => Some(json!(0)),
        _ => None,
    }
}

fn value(field: &Field, dialect: Dialect) -> Value {
    match field.kind {
        Kind::String => json!({"type": "string"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int32 => json!({"type": "integer", "format": "int32"}),
        Kind::Int64 => json!({"type": "integer", "format": "int64"}),
        Kind::Bytes => json!({"type": "string", "format": "byte"}),
        Kind::Strings => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Raw if field.name == "fieldsV1" => reference(FIELDS, dialect),
        Kind::Raw => reference(RAW, dialect),
        Kind::Quantity => reference(QUANTITY, dialect),
        Kind::IntOrString => reference(INT_OR_STRING, dialect),
        Kind::Time => reference(TIME, dialect),
        Kind::MicroTime => reference(MICRO_TIME, dialect),
        Kind::Object(target) => reference(&definition_name(target.name), dialect),
    }
}

fn reference(name: &str, dialect: Dialect) -> Value {
    json!({"$ref": dialect.reference(name)})
}

/// In 3.0 `$ref` may have no siblings: a reference that has some is wrapped in `allOf`.
fn without_siblings(mut schema: Value, dialect: Dialect) -> Value {
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    if dialect == Dialect::V3
        && members.len() > 1
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
    schema
}

impl GroupVersionKind {
    /// The type of the schema table that describes the kind.
    pub(super) fn schema(&self) -> Option<&'static Type> {
        let package = package(self.group);
        schema::find(&format!("{package}.{}.{}", self.version, self.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::super::operations::paths;
    use super::*;
    use crate::registry::RESOURCES;

    /// All definitions of a group-version.
    fn all_of(
        group: &'static str,
        version: &'static str,
        dialect: Dialect,
        texts: &Descriptions,
    ) -> Definitions {
        let mut all = definitions_of_all(dialect, texts);
        let own = definitions(&paths(group, version), dialect, texts, &all);
        let expected = all.len() + own.len();
        all.extend(own);
        assert_eq!(
            all.len(),
            expected,
            "{group}/{version} defines nothing twice"
        );
        all
    }

    fn all(dialect: Dialect) -> Definitions {
        all_of("apps", "v1", dialect, &Descriptions::read())
    }

    #[test]
    fn kinds_are_found_under_the_names_of_their_rows() {
        for row in RESOURCES {
            let (group, version, kind) = (row.group, row.version, row.kind);
            let kind = GroupVersionKind {
                group,
                version,
                kind,
            };
            assert_eq!(kind.schema().map(|schema| schema.name), Some(row.schema));
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references<'a>(tree: &'a Value, found: &mut Vec<&'a str>) {
            match tree {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str));
                    map.values().for_each(|v| references(v, found));
                }
                Value::Array(list) => list.iter().for_each(|v| references(v, found)),
                _ => {}
            }
        }
        let (texts, served) = (Descriptions::read(), crate::registry::group_versions());
        for (group, version) in served {
            for dialect in [Dialect::V2, Dialect::V3] {
                let all = all_of(group, version, dialect, &texts);
                let mut found = Vec::new();
                for definition in all.values() {
                    references(definition, &mut found);
                }
                assert!(found.len() > 10, "{group}/{version}: {}", found.len());
                for reference in found {
                    let name = reference.rsplit('/').next().expect("a last part");
                    assert!(all.contains_key(name), "{group}/{version}: {reference}");
                }
            }
        }
    }

    #[test]
    fn a_definition_has_what_clients_read() {
        let all = all(Dialect::V3);
        let kind = &all["io.k8s.api.apps.v1.DaemonSet"];
        assert_eq!(
            kind["x-kubernetes-group-version-kind"],
            json!([{"group": "apps", "version": "v1", "kind": "DaemonSet"}])
        );
        let spec = &all["io.k8s.api.apps.v1.DaemonSetSpec"];
        assert_eq!(spec["required"], json!(["selector", "template"]));
        assert_eq!(spec["properties"]["minReadySeconds"]["format"], "int32");
        let pod = &all["io.k8s.api.core.v1.PodSpec"];
        let containers = &pod["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        let name = "#/components/schemas/io.k8s.api.core.v1.Container";
        assert_eq!(containers["items"]["allOf"][0]["$ref"], name);
        assert!(spec.get("x-kubernetes-group-version-kind").is_none());
        let policy = &all["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"];
        assert_eq!(policy["enum"], json!(["Always", "IfNotPresent", "Never"]));
        let text = policy["description"].as_str().unwrap_or_default();
        assert!(text.starts_with("Image pull policy."), "{text}");
        let reference = &all["io.k8s.api.core.v1.LocalObjectReference"]["properties"];
        assert_eq!(reference["name"]["default"], "");
        assert_eq!(
            all["io.k8s.api.core.v1.SeccompProfile"]["x-kubernetes-unions"],
            json!([{
                "discriminator": "type",
                "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
            }])
        );
    }

    #[test]
    fn options_and_answers_have_kinds_of_their_own() {
        let all = all(Dialect::V3);
        let kinds = |name: &str| &all[&definition_name(name)]["x-kubernetes-group-version-kind"];
        let kind = |group: &str, kind: &str| json!({"group": group, "kind": kind, "version": "v1"});
        assert_eq!(*kinds(STATUS), json!([kind("", "Status")]));
        let both = json!([kind("", "DeleteOptions"), kind("apps", "DeleteOptions")]);
        assert_eq!(*kinds(DELETE_OPTIONS), both);
    }

    #[test]
    fn a_list_is_defined_with_its_items() {
        let all = all(Dialect::V2);
        let list = &all["io.k8s.api.apps.v1.DaemonSetList"];
        assert_eq!(
            list["x-kubernetes-group-version-kind"],
            json!([{"group": "apps", "kind": "DaemonSetList", "version": "v1"}])
        );
        let items = &list["properties"]["items"]["items"];
        assert_eq!(items["$ref"], "#/definitions/io.k8s.api.apps.v1.DaemonSet");
    }

    #[test]
    fn every_definition_and_field_is_described() {
        let (mut silent, texts) = (Vec::new(), Descriptions::read());
        for (group, version) in crate::registry::group_versions() {
            for (name, definition) in all_of(group, version, Dialect::V3, &texts) {
                if definition.get("description").is_none() {
                    silent.push(name.clone());
                }
                let properties = definition["properties"].as_object().into_iter().flatten();
                for (field, property) in properties {
                    if property.get("description").is_none() {
                        silent.push(format!("{name}.{field}"));
                    }
                }
            }
        }
        // The one that upstream does not describe either.
        let known = "io.k8s.api.certificates.v1.CertificateSigningRequest.metadata";
        assert_eq!(silent, [known]);
    }
}
