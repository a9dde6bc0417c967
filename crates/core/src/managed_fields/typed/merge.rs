//! Merges a configuration into a live value.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::super::path_element::PathElement;
use super::super::schema::{ListShape, Schema, Shape};
use super::error::TypeErrors;
use super::items::Items;
use super::{Members, list, member_of, members};

/// The live value with everything that the configuration names. Nothing is removed. The items of a list keep
/// the live order, except that shared items follow the configuration's.
pub fn merge<S: Schema>(
    schema: S,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Result<Option<Value>, TypeErrors> {
    match schema.shape() {
        Shape::Map(_) => {
            let (live_members, config_members) = (members(live), members(config));
            let is_empty = |members: Option<&Members>| members.is_none_or(Map::is_empty);
            if is_empty(live_members) && is_empty(config_members) {
                return Ok(leaf(live, config));
            }
            merge_members(schema, live_members, config_members)
        }
        Shape::List(shape) => {
            let (live_list, config_list) = (list(live), list(config));
            if live_list.unwrap_or_default().is_empty()
                && config_list.unwrap_or_default().is_empty()
            {
                return Ok(leaf(live, config));
            }
            merge_items(schema, shape, live_list, config_list)
        }
        _ => Ok(leaf(live, config)),
    }
}

/// The configuration wins.
fn leaf(live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    config.or(live).cloned()
}

fn merge_members<S: Schema>(
    schema: S,
    live: Option<&Members>,
    config: Option<&Members>,
) -> Result<Option<Value>, TypeErrors> {
    let mut merged = Map::new();
    let names: BTreeSet<&String> = [live, config]
        .into_iter()
        .flatten()
        .flat_map(Map::keys)
        .collect();
    for name in names {
        let (live, config) = (
            live.and_then(|live| live.get(name)),
            config.and_then(|config| config.get(name)),
        );
        let value = match member_of(schema, name) {
            Some(member) => merge(member, live, config)
                .map_err(|below| TypeErrors::below(&PathElement::field(name), below))?,
            None => leaf(live, config),
        };
        if let Some(value) = value {
            merged.insert(name.clone(), value);
        }
    }
    Ok((!merged.is_empty()).then_some(Value::Object(merged)))
}

fn merge_items<S: Schema>(
    schema: S,
    shape: ListShape,
    live: Option<&[Value]>,
    config: Option<&[Value]>,
) -> Result<Option<Value>, TypeErrors> {
    let live = Items::of(schema, shape, live)?;
    let config = Items::of(schema, shape, config)?;
    let mut merging = Merging {
        schema,
        shared: config
            .all
            .iter()
            .map(|(element, _)| element)
            .filter(|element| live.has(element))
            .collect(),
        live: &live,
        config: &config,
        merged: BTreeSet::new(),
        out: Vec::with_capacity(live.all.len().max(config.all.len())),
    };
    merging.run()?;
    let out = merging.out;
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}

/// The state of merging two lists: both are walked at once.
struct Merging<'a, S> {
    schema: S,
    live: &'a Items<'a>,
    config: &'a Items<'a>,
    /// The elements of both lists that are still to come, in the configuration's order.
    shared: VecDeque<&'a PathElement>,
    /// The configuration's elements that are in `out`.
    merged: BTreeSet<&'a PathElement>,
    out: Vec<Value>,
}

impl<'a, S: Schema> Merging<'a, S> {
    fn run(&mut self) -> Result<(), TypeErrors> {
        let (mut at_live, mut at_config) = (0, 0);
        loop {
            let of_live = self.live.all.get(at_live);
            let of_config = self.config.all.get(at_config);
            match (of_live, of_config) {
                (None, None) => return Ok(()),
                (Some((element, item)), _) if !self.config.has(element) => {
                    self.push(element, Some(item), None)?;
                    at_live += 1;
                }
                (Some((element, _)), Some((wanted, _))) if element == wanted => {
                    self.take(wanted)?;
                    self.shared.pop_front();
                    at_live += 1;
                    at_config += 1;
                }
                // Both have it, but another one comes first.
                (Some((element, _)), Some(_))
                    if self.shared.front().is_some_and(|next| *next != element) =>
                {
                    at_live += 1;
                }
                (Some((element, _)), Some((wanted, _))) => {
                    at_live += usize::from(self.merged.contains(element));
                    self.take_next(wanted)?;
                    at_config += 1;
                }
                (None, Some((wanted, _))) => {
                    self.take_next(wanted)?;
                    at_config += 1;
                }
                // The configuration has it and is at its end, so it is in `out`.
                (Some(_), None) => at_live += 1,
            }
        }
    }

    fn take_next(&mut self, wanted: &'a PathElement) -> Result<(), TypeErrors> {
        self.take(wanted)?;
        if self.shared.front() == Some(&wanted) {
            self.shared.pop_front();
        }
        Ok(())
    }

    /// Puts an item of the configuration, merged with the live one.
    fn take(&mut self, element: &'a PathElement) -> Result<(), TypeErrors> {
        self.merged.insert(element);
        let (live, config) = (self.live.single(element), self.config.single(element));
        self.push(element, live, config)
    }

    fn push(
        &mut self,
        element: &PathElement,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Result<(), TypeErrors> {
        let merged = match self.schema.item() {
            Some(item) => {
                merge(item, live, config).map_err(|below| TypeErrors::below(element, below))?
            }
            None => leaf(live, config),
        };
        self.out.extend(merged);
        Ok(())
    }
}
