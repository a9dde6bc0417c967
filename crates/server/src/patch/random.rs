//! Random objects, and random ways to spoil them, for the properties.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::schema::{Field, Kind, Shape, Type};

/// A random object of a type: canonical, and without anything that Go would leave out.
pub(super) fn object(rng: &mut Rng, ty: &Type, depth: usize) -> Value {
    let mut members = Map::new();
    for field in ty.fields {
        // Shallow objects are rich and deep ones poor, or they would have no end.
        if rng.usize(..3 + depth) < 2 {
            members.insert(field.name.to_owned(), member(rng, field, depth + 1));
        }
    }
    Value::Object(members)
}

fn member(rng: &mut Rng, field: &Field, depth: usize) -> Value {
    let many = rng.usize(1..4);
    match field.shape {
        Shape::One => value(rng, field.kind, depth),
        Shape::Map => (0..many)
            .map(|_| (word(rng), value(rng, field.kind, depth)))
            .collect(),
        Shape::List => {
            let mut items: Vec<Value> = Vec::new();
            for _ in 0..many {
                let mut item = value(rng, field.kind, depth);
                if let (Some(key), Kind::Object(ty)) = (field.merge_key, field.kind) {
                    let key = ty.field(key).unwrap();
                    item[key.name] = value(rng, key.kind, depth);
                    if items.iter().any(|other| other[key.name] == item[key.name]) {
                        continue;
                    }
                }
                if !items.contains(&item) {
                    items.push(item);
                }
            }
            Value::Array(items)
        }
    }
}

fn value(rng: &mut Rng, kind: Kind, depth: usize) -> Value {
    match kind {
        Kind::String => Value::from(word(rng)),
        Kind::Bool => Value::from(true),
        Kind::Int32 | Kind::Int64 => Value::from(rng.i32(1..9)),
        Kind::Bytes => Value::from("aGVsbG8="),
        Kind::Quantity => Value::from(format!("{}Mi", rng.i32(1..9))),
        Kind::IntOrString if rng.bool() => Value::from("10%"),
        Kind::IntOrString => Value::from(rng.i32(0..9)),
        Kind::Time => Value::from(format!("2024-01-0{}T00:00:00Z", rng.i32(1..9))),
        Kind::MicroTime => Value::from(format!("2024-01-01T00:00:00.00000{}Z", rng.i32(1..9))),
        Kind::Raw => json!({"f:x": {"k": [1, word(rng)]}}),
        Kind::Strings => json!([word(rng)]),
        Kind::Object(ty) => object(rng, ty, depth),
    }
}

fn word(rng: &mut Rng) -> String {
    rng.choice(["alpha", "beta", "gamma", "delta", "a.b/c", "é"])
        .unwrap_or_default()
        .to_owned()
}

/// Text that is nearly JSON.
pub(super) fn mutated(rng: &mut Rng, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..bytes.len().max(1)).min(bytes.len());
        match rng.u8(..5) {
            0 if at < bytes.len() => bytes[at] = rng.u8(..),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at, *rng.choice(b"{}[]\":,0\\").unwrap_or(&b'0')),
            3 => bytes.truncate(at),
            _ => {
                let end = (at + rng.usize(..20)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// A tree with something strange somewhere in it.
pub(super) fn disturb(rng: &mut Rng, value: &mut Value) {
    let descend = rng.u8(..4) > 0;
    match value {
        Value::Object(members) if descend && !members.is_empty() => {
            let at = rng.usize(..members.len());
            if let Some((_, member)) = members.iter_mut().nth(at) {
                disturb(rng, member);
            }
        }
        Value::Array(items) if descend && !items.is_empty() => {
            let at = rng.usize(..items.len());
            disturb(rng, &mut items[at]);
        }
        Value::Object(members) if rng.bool() => {
            let name = members.keys().next().cloned().unwrap_or_default();
            let directive = match rng.u8(..4) {
                0 => "$patch".to_owned(),
                1 => "$retainKeys".to_owned(),
                2 => format!("$setElementOrder/{name}"),
                _ => format!("$deleteFromPrimitiveList/{name}"),
            };
            members.insert(directive, strange(rng));
        }
        other => *other = strange(rng),
    }
}

fn strange(rng: &mut Rng) -> Value {
    let choices = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("replace"),
        json!("delete"),
        json!("9e9999999999999999999Ki"),
        json!("2024-01-01T00:00:00é"),
        json!([]),
        json!({}),
        json!([null]),
        json!([[1], {"name": null}]),
        json!({"name": {"$patch": "replace"}}),
        json!([{"name": "alpha"}, {"$patch": "replace"}, {"$patch": "delete", "name": "beta"}]),
    ];
    rng.choice(choices).unwrap_or_default()
}

pub(super) fn operations(rng: &mut Rng, doc: &Value) -> Value {
    let mut paths = vec![
        String::new(),
        "/".to_owned(),
        "/-".to_owned(),
        "/a~".to_owned(),
    ];
    let mut value = doc;
    let mut path = String::new();
    loop {
        let step = match value {
            Value::Object(members) if !members.is_empty() => members
                .iter()
                .nth(rng.usize(..members.len()))
                .map(|(k, v)| (k.clone(), v)),
            Value::Array(items) if !items.is_empty() => {
                let at = rng.usize(..items.len());
                Some((at.to_string(), &items[at]))
            }
            _ => None,
        };
        let Some((token, next)) = step else { break };
        path = format!("{path}/{}", token.replace('~', "~0").replace('/', "~1"));
        paths.push(path.clone());
        paths.push(format!("{path}/-"));
        value = next;
    }
    let ops = ["add", "remove", "replace", "move", "copy", "test", "?"];
    let mut pick = |from: &[String]| from[rng.usize(..from.len())].clone();
    let (path, from) = (pick(&paths), pick(&paths));
    json!({"op": ops[rng.usize(..ops.len())], "path": path, "from": from, "value": strange(rng)})
}
