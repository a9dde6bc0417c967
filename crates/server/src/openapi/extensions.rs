//! What Kubernetes adds to JSON schema: the kinds of definitions, unions, and how lists and maps are merged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::operations::Path;
use super::schemas::{DELETE_OPTIONS, STATUS, definition_name};
use crate::schema::{Field, Kind, ListType, Strategy, Union};

/// The extension that names the kinds of a definition.
pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";

/// What every group-version takes and answers with has kinds, too: `Status` one, `DeleteOptions` one in each.
pub(super) fn name_kinds_of_answers(definitions: &mut BTreeMap<String, Value>, paths: &[Path]) {
    let parts = paths.iter().map(|path| path.path.split('/').skip(1));
    let named = parts.filter_map(|mut parts| match parts.next()? {
        "apis" => Some((parts.next()?, parts.next()?)),
        _ => None,
    });
    let group_versions: BTreeSet<(&str, &str)> = named.chain([("", "v1")]).collect();
    let kind = |kind: &str, (group, version): (&str, &str)| json!({"group": group, "kind": kind, "version": version});
    let options: Vec<Value> = group_versions
        .into_iter()
        .map(|group_version| kind("DeleteOptions", group_version))
        .collect();
    for (name, kinds) in [
        (STATUS, vec![kind("Status", ("", "v1"))]),
        (DELETE_OPTIONS, options),
    ] {
        if let Some(definition) = definitions.get_mut(&definition_name(name)) {
            definition[KINDS] = kinds.into();
        }
    }
}

/// The members of a union by the values of its discriminator, which are Go's names of them.
pub(super) fn discriminated(union: Union) -> Value {
    let go_name = |name: &str| {
        let (first, rest) = name.split_at(1);
        first.to_uppercase() + rest
    };
    let members = union.members.iter();
    let members: BTreeMap<&str, String> = members.map(|name| (*name, go_name(name))).collect();
    let mut shown = json!({"fields-to-discriminateBy": members});
    if let Some(discriminator) = union.discriminator {
        shown["discriminator"] = discriminator.into();
    }
    shown
}

/// The documented default and how patches treat the field.
pub(super) fn extend(property: &mut Value, field: &Field) {
    if let Some(default) = field.default {
        property["default"] = match field.kind {
            Kind::String => json!(default),
            _ => serde_json::from_str(default).unwrap_or_else(|_| json!(default)),
        };
    }
    if let Some(list_type) = field.list_type {
        property["x-kubernetes-list-type"] = json!(match list_type {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        });
    }
    if !field.list_map_keys.is_empty() {
        property["x-kubernetes-list-map-keys"] = json!(field.list_map_keys);
    }
    if let Some(is_atomic) = field.atomic {
        let map_type = if is_atomic { "atomic" } else { "granular" };
        property["x-kubernetes-map-type"] = json!(map_type);
    }
    if let Some(strategy) = patch_strategy(field) {
        property["x-kubernetes-patch-strategy"] = json!(strategy);
    }
    if let Some(key) = field.merge_key {
        property["x-kubernetes-patch-merge-key"] = json!(key);
    }
}

fn patch_strategy(field: &Field) -> Option<&'static str> {
    match (field.strategy, field.retains_keys) {
        (Strategy::Merge, true) => Some("merge,retainKeys"),
        (Strategy::Merge, false) => Some("merge"),
        (Strategy::Replace, _) => Some("replace"),
        (Strategy::Default, true) => Some("retainKeys"),
        (Strategy::Default, false) => None,
    }
}
