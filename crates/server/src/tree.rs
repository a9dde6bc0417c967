//! The fields of JSON trees, as [`kennel_core::tree`] reads and writes them, with times as the tables need them.

use kennel_types::Timestamp;
use serde_json::Value;

pub(crate) use kennel_core::tree::*;

pub(crate) fn time(tree: &Value, path: &str) -> Option<Timestamp> {
    Timestamp::parse(text(tree, path))
}
