//! Compares `fields.json` with the crate `k8s-openapi`, which was made from the OpenAPI document of Kubernetes: the types of fields,
//! and how lists and maps are merged. The crate has no enums, and its `Option`s say too little of what is required.

use std::collections::{BTreeMap, BTreeSet};

use super::descriptions::{short_name, sources};
use super::{Facts, facts, strings, text};

/// What there is to say of a field: its type, and how it is merged if it is a list or a map.
type Described = BTreeMap<String, String>;

/// A field named in camel case as Rust names it: `resourceID` is `resource_id`.
fn in_rust(name: &str) -> String {
    let mut found = String::new();
    let mut after_small = false;
    for letter in name.chars() {
        if after_small && letter.is_uppercase() {
            found.push('_');
        }
        after_small = letter.is_lowercase();
        found.extend(letter.to_lowercase());
    }
    found
}

/// The fields of a definition in the source of the crate, by their names in Rust without the underscore that tells keywords.
fn of_crate(source: &str) -> Described {
    let mut found = Described::new();
    for line in source.lines() {
        let field = line
            .strip_prefix("    pub ")
            .and_then(|line| line.strip_suffix(','));
        if let Some((name, of)) = field.and_then(|field| field.split_once(": ")) {
            let name = name.trim_end_matches('_').to_owned();
            found.insert(name, type_in_crate(of));
        }
    }
    // Each begins with the kind of collection, the strategy and the field; keys are those of list items.
    for strategy in source.split("crate::merge_strategies::").skip(1) {
        let end = strategy.find("crate::DeepMerge").unwrap_or(strategy.len());
        let strategy = &strategy[..end];
        let Some((how, rest)) = strategy.split_once('(') else {
            continue;
        };
        let Some((_, rest)) = rest.split_once("&mut self.") else {
            continue;
        };
        let Some((name, _)) = rest.split_once(',') else {
            continue;
        };
        let keys = rest.split("lhs.").skip(1);
        let keys = keys.filter_map(|key| key.split(' ').next());
        let keys: Vec<&str> = keys.map(|key| key.trim_end_matches('_')).collect();
        if let Some(described) = found.get_mut(name.trim_end_matches('_')) {
            described.extend([", ", how]);
            if !keys.is_empty() {
                described.extend([" by ", &keys.join(" ")]);
            }
        }
    }
    found
}

/// `Option<std::vec::Vec<crate::api::core::v1::Container>>` is `list of Container`.
fn type_in_crate(of: &str) -> String {
    let inner = |of: &str, generic: &str| {
        let inner = of.strip_prefix(generic)?.strip_suffix('>')?;
        Some(inner.to_owned())
    };
    let of = inner(of, "Option<").unwrap_or_else(|| of.to_owned());
    let map = "std::collections::BTreeMap<std::string::String, ";
    if let Some(values) = inner(&of, map) {
        return format!("map of {}", type_in_crate(&values));
    }
    if let Some(items) = inner(&of, "std::vec::Vec<") {
        return format!("list of {}", type_in_crate(&items));
    }
    match of.rsplit("::").next().unwrap_or_default() {
        "String" => "string",
        "ByteString" => "bytes",
        "i32" => "int32",
        "i64" => "int64",
        other => other,
    }
    .to_owned()
}

/// The same of a type in `fields.json`.
fn of_facts(facts: &Facts, name: &str) -> Described {
    let of = &facts[name];
    let inlined = strings(&of["inlined_in_json"]);
    let mut found = Described::new();
    for field in super::list(&of["fields"]).into_iter().flatten() {
        let (field_name, of) = (text(&field["name"]).unwrap(), &field["type"]);
        if inlined.contains(&field_name) {
            found.extend(of_facts(facts, text(of).unwrap()));
            continue;
        }
        found.insert(in_rust(field_name), of_fact(field));
    }
    found
}

fn of_fact(field: &serde_json::Value) -> String {
    let last = |of: &serde_json::Value| match of.as_str().unwrap_or_default().rsplit('.').next() {
        // A list in JSON.
        Some("ExtraValue") => "list of string".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    };
    if field["map"].is_string() {
        let how = field["map_type"].as_str().unwrap_or("granular");
        return format!("map of {}, map::{how}", last(&field["map"]));
    }
    let one = last(&field["type"]);
    if field["list"] != true {
        return one;
    }
    // The crate prefers the strategy of patches, which some lists that are atomic in an apply have.
    let strategy = field["patch_strategy"].as_str().unwrap_or_default();
    let key = field["patch_merge_key"].as_str();
    let how = match (strategy.split(',').next(), key, field["list_type"].as_str()) {
        (Some("merge"), Some(key), _) => format!("map by {}", in_rust(key)),
        (Some("merge"), None, _) | (_, _, Some("set")) => "set".to_owned(),
        (_, _, Some("map")) => {
            let keys = strings(&field["list_map_keys"]);
            let keys: Vec<String> = keys.into_iter().map(in_rust).collect();
            format!("map by {}", keys.join(" "))
        }
        _ => "atomic".to_owned(),
    };
    format!("list of {one}, list::{how}")
}

/// Types that have no fields in JSON.
const LEAVES: [&str; 6] = [
    "intstr.IntOrString",
    "meta.v1.FieldsV1",
    "meta.v1.MicroTime",
    "meta.v1.Time",
    "resource.Quantity",
    "runtime.RawExtension",
];

#[test]
fn fields_are_those_of_the_crate() {
    let facts = facts().unwrap();
    let (mut differences, mut compared, mut collections) = (Vec::new(), 0, 0);
    for source in sources().unwrap() {
        let first = source.lines().next().unwrap_or_default();
        let definition = first.strip_prefix("// Generated from definition ");
        let name = definition.map(short_name).unwrap_or_default();
        if !facts.contains_key(name) || LEAVES.contains(&name) {
            continue;
        }
        let (theirs, ours) = (of_crate(&source), of_facts(&facts, name));
        let fields: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        for field in fields {
            // Only JSON has these.
            if ["api_version", "kind"].contains(&field.as_str()) && !ours.contains_key(field) {
                continue;
            }
            let (theirs, ours) = (theirs.get(field), ours.get(field));
            compared += 1;
            collections += usize::from(theirs.is_some_and(|of| of.contains("::")));
            if theirs != ours {
                differences.push(format!("{name}.{field}: {theirs:?}, here {ours:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 1_200, "{compared} fields were compared");
    assert!(
        collections > 200,
        "{collections} lists and maps were compared"
    );
}

#[test]
fn a_field_of_the_crate_is_described() {
    let source = "pub struct Container {
    pub container_port: i32,
    pub ports: Option<std::vec::Vec<crate::api::core::v1::ContainerPort>>,
    pub type_: std::collections::BTreeMap<std::string::String, crate::ByteString>,
        crate::merge_strategies::list::map(
            &mut self.ports,
            other.ports,
            &[|lhs, rhs| lhs.container_port == rhs.container_port],
            |current_item, other_item| {
                crate::DeepMerge::merge_from(current_item, other_item);
            },
        );
        crate::merge_strategies::map::granular(&mut self.type_, other.type_, |current_item, other_item| {
            crate::DeepMerge::merge_from(current_item, other_item);
        });
";
    let expected = [
        ("container_port", "int32"),
        (
            "ports",
            "list of ContainerPort, list::map by container_port",
        ),
        ("type", "map of bytes, map::granular"),
    ];
    let expected = expected.map(|(name, of)| (name.to_owned(), of.to_owned()));
    assert_eq!(of_crate(source), expected.into());
    let names = ["containerPort", "resourceID", "ip", "hostIPs"].map(in_rust);
    assert_eq!(names, ["container_port", "resource_id", "ip", "host_ips"]);
}
