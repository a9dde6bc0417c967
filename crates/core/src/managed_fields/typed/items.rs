//! The path elements of list items.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::path_element::PathElement;
use super::super::schema::{ListShape, Schema};
use super::error::TypeErrors;

/// Why an item has no element, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ItemError {
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("associative list with keys may not have a null element")]
    NullInKeyed,
    #[error("associative list with keys may not have non-map elements")]
    NotAMap,
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any key fields)"
    )]
    NoKey(String),
}

/// The element that identifies an item of a list of this type.
pub(super) fn element_of<S: Schema>(
    schema: S,
    shape: ListShape,
    item: &Value,
) -> Result<PathElement, ItemError> {
    match shape {
        ListShape::Set => set_element(item),
        ListShape::Keyed => keyed_element(schema, item),
    }
}

fn set_element(item: &Value) -> Result<PathElement, ItemError> {
    match item {
        Value::Object(_) => Err(ItemError::MapInSet),
        Value::Array(_) => Err(ItemError::ListInSet),
        Value::Null => Err(ItemError::NullInSet),
        scalar => Ok(PathElement::Value(scalar.clone())),
    }
}

fn keyed_element<S: Schema>(schema: S, item: &Value) -> Result<PathElement, ItemError> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err(ItemError::NullInKeyed),
        _ => return Err(ItemError::NotAMap),
    };
    let default_of = |name: &str| schema.item().and_then(|item| item.default_of(name));
    let keys = schema.keys();
    let mut found: Vec<(Box<str>, Value)> = keys
        .iter()
        .filter_map(|&name| {
            let given = members.get(name).cloned();
            let value = given.or_else(|| default_of(name).map(Value::from))?;
            Some((name.into(), value))
        })
        .collect();
    if found.is_empty() {
        let names: Vec<String> = keys.iter().map(|name| crate::go::quote(name)).collect();
        return Err(ItemError::NoKey(names.join(" ")));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(PathElement::Key(found.into()))
}

/// The items of a list, each with its element, and how often each element occurs.
pub(super) struct Items<'a> {
    /// In the list's order.
    pub(super) all: Vec<(PathElement, &'a Value)>,
    pub(super) by_element: BTreeMap<PathElement, Vec<&'a Value>>,
}

impl<'a> Items<'a> {
    pub(super) fn of<S: Schema>(
        schema: S,
        shape: ListShape,
        list: Option<&'a [Value]>,
    ) -> Result<Self, TypeErrors> {
        let list = list.unwrap_or_default();
        let mut errors = TypeErrors::default();
        let mut items = Self {
            all: Vec::with_capacity(list.len()),
            by_element: BTreeMap::new(),
        };
        for (index, item) in list.iter().enumerate() {
            match element_of(schema, shape, item) {
                Ok(element) => {
                    items
                        .by_element
                        .entry(element.clone())
                        .or_default()
                        .push(item);
                    items.all.push((element, item));
                }
                Err(why) => errors.push(format!("element {index}: {why}")),
            }
        }
        errors.into_result().map(|()| items)
    }

    /// The only item with this element.
    pub(super) fn single(&self, element: &PathElement) -> Option<&'a Value> {
        match self.by_element.get(element)?.as_slice() {
            [item] => Some(item),
            _ => None,
        }
    }

    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.by_element.contains_key(element)
    }
}
