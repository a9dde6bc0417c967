//! Laws that hold for every object and every patch, tried on random ones from fixed seeds; and
//! malformed inputs, which must never cause a panic.

use fastrand::Rng;
use kennel_test_support::with_seeds;
use serde_json::{Map, Value, json};

use super::random::{disturb, mutated, object, operations};
use super::{json as json_patch, merge, strategic};
use crate::schema::{self, Field, Kind, Shape, Strategy, Type};

const KINDS: [&str; 6] = [
    "apps.v1.DaemonSet",
    "core.v1.Pod",
    "core.v1.Node",
    "core.v1.Service",
    "core.v1.Secret",
    "discovery.v1.EndpointSlice",
];

fn ty(name: &str) -> &'static Type {
    schema::find(name).unwrap_or_else(|| panic!("no type {name}"))
}

/// The merge patch from one tree to another without nulls.
fn merge_diff(a: &Value, b: &Value) -> Value {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return b.clone();
    };
    let mut patch = Map::new();
    for key in a.keys().filter(|key| !b.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, b) in b {
        match a.get(key) {
            Some(a) if a == b => {}
            Some(a) => drop(patch.insert(key.clone(), merge_diff(a, b))),
            None => drop(patch.insert(key.clone(), b.clone())),
        }
    }
    Value::Object(patch)
}

/// The strategic patch from one object to another, as a client computes it.
fn strategic_diff(ty: Option<&Type>, a: &Map<String, Value>, b: &Map<String, Value>) -> Value {
    let mut patch = Map::new();
    for key in a.keys().filter(|key| !b.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, b) in b.iter().filter(|(key, b)| a.get(*key) != Some(b)) {
        let field = ty.and_then(|ty| ty.field(key));
        let merges = field.is_some_and(|field| field.strategy == Strategy::Merge);
        match (a.get(key), b) {
            (Some(Value::Object(a)), Value::Object(b)) => {
                let ty = match field.map(|field| (field.kind, field.shape)) {
                    Some((Kind::Object(ty), Shape::One)) => Some(ty),
                    _ => None,
                };
                patch.insert(key.clone(), strategic_diff(ty, a, b));
            }
            (Some(Value::Array(a)), Value::Array(b)) if merges => {
                let field = field.expect("only a known field merges");
                list_diff(&mut patch, field, a, b);
            }
            (_, b) => drop(patch.insert(key.clone(), b.clone())),
        }
    }
    Value::Object(patch)
}

fn list_diff(patch: &mut Map<String, Value>, field: &Field, a: &[Value], b: &[Value]) {
    let (Some(key), Kind::Object(ty)) = (field.merge_key, field.kind) else {
        let gone: Vec<&Value> = a.iter().filter(|item| !b.contains(item)).collect();
        let new: Vec<&Value> = b.iter().filter(|item| !a.contains(item)).collect();
        patch.insert(
            format!("$deleteFromPrimitiveList/{}", field.name),
            json!(gone),
        );
        patch.insert(format!("$setElementOrder/{}", field.name), json!(b));
        patch.insert(field.name.to_owned(), json!(new));
        return;
    };
    let find = |list: &[Value], item: &Value| {
        list.iter()
            .find(|other| other[key] == item[key])
            .and_then(Value::as_object)
            .cloned()
    };
    let mut items = Vec::new();
    for item in b.iter().filter(|item| !a.contains(item)) {
        let current = find(a, item).unwrap_or_default();
        let mut change = strategic_diff(Some(ty), &current, item.as_object().unwrap());
        change[key] = item[key].clone();
        items.push(change);
    }
    for item in a.iter().filter(|item| find(b, item).is_none()) {
        items.push(json!({"$patch": "delete", key: item[key]}));
    }
    let order: Vec<Value> = b.iter().map(|item| json!({key: item[key]})).collect();
    patch.insert(
        format!("$setElementOrder/{}", field.name),
        Value::from(order),
    );
    patch.insert(field.name.to_owned(), Value::from(items));
}

fn for_random_pairs(seed: u64, mut check: impl FnMut(&'static Type, &Value, &Value)) {
    with_seeds([seed], |seed| {
        let mut rng = Rng::with_seed(seed);
        for round in 0..120 {
            let ty = ty(KINDS[round % KINDS.len()]);
            let a = object(&mut rng, ty, 0);
            let b = object(&mut rng, ty, 0);
            check(ty, &a, &b);
        }
    });
}

#[test]
fn whatever_fits_the_table_conforms_and_stays_as_it_is() {
    for_random_pairs(1, |ty, a, _| {
        let (mut actual, mut unknown) = (a.clone(), Vec::new());
        schema::conform(ty, &mut actual, &mut unknown).unwrap();
        assert_eq!((&actual, unknown), (a, Vec::new()));
        assert!(schema::semantic_eq(&actual, a));
    });
}

#[test]
fn empty_patches_change_nothing() {
    for_random_pairs(2, |ty, a, _| {
        let mut actual = a.clone();
        json_patch::apply(&mut actual, b"[]").unwrap();
        merge::apply(&mut actual, json!({})).unwrap();
        strategic::apply(ty, &mut actual, json!({})).unwrap();
        assert_eq!(actual, *a);
    });
}

#[test]
fn a_merge_patch_of_the_difference_leads_there_and_stays_there() {
    for_random_pairs(3, |_, a, b| {
        let (mut actual, patch) = (a.clone(), merge_diff(a, b));
        for _ in 0..2 {
            merge::apply(&mut actual, patch.clone()).unwrap();
            assert_eq!(actual, *b, "{patch}");
        }
    });
}

#[test]
fn a_strategic_patch_of_the_difference_leads_there_and_stays_there() {
    for_random_pairs(4, |ty, a, b| {
        let patch = strategic_diff(Some(ty), a.as_object().unwrap(), b.as_object().unwrap());
        let mut actual = a.clone();
        for _ in 0..2 {
            strategic::apply(ty, &mut actual, patch.clone()).unwrap();
            assert_eq!(actual, *b, "{a} {patch}");
        }
    });
}

#[test]
fn an_object_applied_to_itself_changes_nothing() {
    for_random_pairs(5, |ty, a, _| {
        let mut actual = a.clone();
        strategic::apply(ty, &mut actual, a.clone()).unwrap();
        merge::apply(&mut actual, a.clone()).unwrap();
        assert_eq!(actual, *a);
    });
}

#[test]
fn no_text_causes_a_panic() {
    with_seeds([6], no_text_causes_a_panic_with);
}

fn no_text_causes_a_panic_with(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for round in 0..3000 {
        let ty = ty(KINDS[round % KINDS.len()]);
        let text = object(&mut rng, ty, 2).to_string();
        let bytes = mutated(&mut rng, &text);
        let _ = schema::raw_member(&bytes, "spec");
        let mut doc = json!({"metadata": {}});
        drop(json_patch::apply(&mut doc, &bytes));
        let Ok(parsed) = schema::parse(&bytes) else {
            continue;
        };
        let mut value = parsed.value;
        drop(schema::conform(ty, &mut value, &mut Vec::new()));
    }
}

#[test]
fn no_tree_causes_a_panic_and_conforming_is_final() {
    with_seeds([7], no_tree_causes_a_panic_and_conforming_is_final_with);
}

fn no_tree_causes_a_panic_and_conforming_is_final_with(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for round in 0..3000 {
        let ty = ty(KINDS[round % KINDS.len()]);
        let mut value = object(&mut rng, ty, 1);
        for _ in 0..rng.usize(1..4) {
            disturb(&mut rng, &mut value);
        }
        let mut unknown = Vec::new();
        if schema::conform(ty, &mut value, &mut unknown).is_ok() {
            let (mut again, mut more) = (value.clone(), Vec::new());
            schema::conform(ty, &mut again, &mut more).unwrap();
            assert_eq!((again, more), (value, Vec::new()));
        }
    }
}

#[test]
fn no_patch_causes_a_panic() {
    with_seeds([8], no_patch_causes_a_panic_with);
}

fn no_patch_causes_a_panic_with(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for round in 0..3000 {
        let ty = ty(KINDS[round % KINDS.len()]);
        let mut doc = object(&mut rng, ty, 1);
        let mut patch = object(&mut rng, ty, 1);
        for _ in 0..rng.usize(1..4) {
            disturb(&mut rng, &mut patch);
        }
        if rng.bool() {
            disturb(&mut rng, &mut doc);
        }
        let operations: Vec<Value> = (0..5).map(|_| operations(&mut rng, &doc)).collect();
        let text = Value::from(operations).to_string();
        drop(json_patch::apply(&mut doc.clone(), text.as_bytes()));
        drop(merge::apply(&mut doc.clone(), patch.clone()));
        if strategic::apply(ty, &mut doc, patch).is_ok() {
            drop(schema::conform(ty, &mut doc, &mut Vec::new()));
        }
    }
}
