//! Generates the server's schema table (`table.rs`) from `fields.json`.
//!
//! `fields.json` describes protobuf messages, the table JSON objects. They differ where JSON inlines a message into its
//! parent, and in `apiVersion` and `kind`, which only JSON has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

type Facts = Map<String, Value>;

fn schema_file(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../crates/server/src/schema").join(name)
}

pub(crate) fn run() -> Result<()> {
    fs::write(schema_file("table.rs"), generate()?).context("writing table.rs")
}

fn generate() -> Result<String> {
    let facts = fs::read(schema_file("fields.json")).context("reading fields.json")?;
    let facts: Facts = serde_json::from_slice(&facts).context("fields.json is no JSON object")?;
    let mut out = String::from(HEADER);
    for (name, ty) in &facts {
        write_type(&mut out, &facts, name, ty).with_context(|| name.clone())?;
    }
    out.push_str("/// Every type, sorted by name.\npub(super) static TYPES: &[&Type] = &[\n");
    for name in facts.keys() {
        writeln!(out, "    &{},", constant(name))?;
    }
    out.push_str("];\n\n");
    out.push_str("/// Names that mean a map of free keys wherever they occur, sorted.\n");
    out.push_str("pub(super) static MAP_NAMES: &[&str] = &[\n");
    for name in map_names(&facts)? {
        writeln!(out, "    \"{name}\",")?;
    }
    out.push_str("];\n");
    Ok(out)
}

fn map_names(facts: &Facts) -> Result<BTreeSet<&str>> {
    let (mut maps, mut others) = (BTreeSet::new(), BTreeSet::new());
    for ty in facts.values() {
        for field in list(&ty["fields"])? {
            let names = if field.get("map").is_some() {
                &mut maps
            } else {
                &mut others
            };
            names.insert(text(&field["name"])?);
        }
    }
    Ok(maps.difference(&others).copied().collect())
}

const HEADER: &str = "\
//! The fields of every type of the API. Written by `cargo xtask codegen` from `fields.json`:
//! change the facts there, never this file.

use super::types::{Kind, ListType, Type, f, ty};

";

fn write_type(out: &mut String, facts: &Facts, name: &str, ty: &Value) -> Result<()> {
    let inlined: Vec<&str> = strings(&ty["inlined_in_json"]);
    let mut members = BTreeMap::new();
    let mut wrappers = Vec::new();
    if ty["kind"] == true {
        for name in ["apiVersion", "kind"] {
            members.insert(name, format!("f(\"{name}\", 0, Kind::String)"));
        }
    }
    for field in list(&ty["fields"])? {
        let field_name = text(&field["name"])?;
        if !inlined.contains(&field_name) {
            members.insert(field_name, describe(field, 0)?);
            continue;
        }
        wrappers.push(describe(field, 0)?);
        let within = field["number"].as_u64().context("a field without number")?;
        let part = &facts[text(&field["type"])?];
        for field in list(&part["fields"])? {
            members.insert(text(&field["name"])?, describe(field, within)?);
        }
    }
    writeln!(out, "static {}: Type = ty(\"{name}\", &[", constant(name))?;
    for member in members.values() {
        writeln!(out, "    {member},")?;
    }
    out.push_str("])");
    if !wrappers.is_empty() {
        write!(out, ".inlining(&[{}])", wrappers.join(", "))?;
    }
    if ty["kind"] == true {
        out.push_str(".kind()");
    }
    if ty["map_type"] == "atomic" {
        out.push_str(".atomic()");
    }
    out.push_str(";\n\n");
    Ok(())
}

/// One field as the expression that builds it.
fn describe(field: &Value, within: u64) -> Result<String> {
    let name = text(&field["name"])?;
    let number = &field["number"];
    let value = field.get("map").unwrap_or(&field["type"]);
    let mut out = format!("f(\"{name}\", {number}, {})", kind(text(value)?));
    for (fact, call) in [
        ("list", ".list()"),
        ("map", ".map()"),
        ("required", ".required()"),
        ("pointer", ".pointer()"),
        ("keep_empty", ".keep_empty()"),
        ("map_type", ".atomic()"),
    ] {
        if field.get(fact).is_some() {
            out.push_str(call);
        }
    }
    if let Some(list_type) = field["list_type"].as_str() {
        let list_type = match list_type {
            "atomic" => "Atomic",
            "set" => "Set",
            "map" => "Map",
            other => bail!("unknown list type {other}"),
        };
        let keys = strings(&field["list_map_keys"]);
        write!(out, ".list_type(ListType::{list_type}, &{keys:?})")?;
    }
    match field["patch_strategy"].as_str() {
        None => {}
        Some("replace") => out.push_str(".replaced()"),
        Some("merge") => out.push_str(".merged()"),
        Some("merge,retainKeys") => out.push_str(".merged().retaining_keys()"),
        Some(other) => bail!("unknown patch strategy {other}"),
    }
    for (fact, call) in [
        ("patch_merge_key", "by"),
        ("default", "default"),
        ("go", "go"),
    ] {
        if let Some(value) = field[fact].as_str() {
            write!(out, ".{call}({value:?})")?;
        }
    }
    if within > 0 {
        write!(out, ".within({within})")?;
    }
    Ok(out)
}

fn kind(name: &str) -> String {
    let simple = match name {
        "string" => "String",
        "bool" => "Bool",
        "int32" => "Int32",
        "int64" => "Int64",
        "bytes" => "Bytes",
        "resource.Quantity" => "Quantity",
        "intstr.IntOrString" => "IntOrString",
        "meta.v1.Time" => "Time",
        "meta.v1.MicroTime" => "MicroTime",
        "runtime.RawExtension" | "meta.v1.FieldsV1" => "Raw",
        _ if name.ends_with(".ExtraValue") => "Strings",
        _ => return format!("Kind::Object(&{})", constant(name)),
    };
    format!("Kind::{simple}")
}

/// `core.v1.PodSpec` as the name of a static: `CORE_V1_POD_SPEC`.
fn constant(name: &str) -> String {
    let mut out = String::new();
    let mut previous = '.';
    for c in name.chars() {
        if c == '.' {
            out.push('_');
        } else {
            if c.is_uppercase() && (previous.is_lowercase() || previous.is_numeric()) {
                out.push('_');
            }
            out.push(c.to_ascii_uppercase());
        }
        previous = c;
    }
    out
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("a fact that should be a string")
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("a fact that should be a list")
}

fn strings(value: &Value) -> Vec<&str> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_up_to_date() {
        let written = fs::read_to_string(schema_file("table.rs")).unwrap();
        assert!(
            written == generate().unwrap(),
            "table.rs differs from its facts: run `cargo xtask codegen`"
        );
    }

    #[test]
    fn names_of_statics() {
        assert_eq!(constant("core.v1.PodSpec"), "CORE_V1_POD_SPEC");
        assert_eq!(constant("storage.v1.CSINode"), "STORAGE_V1_CSINODE");
    }
}
