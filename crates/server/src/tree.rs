//! The fields of JSON trees, as [`kennel_core::tree`] reads and writes them, with times as the tables need them.

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use kennel_core::tree::*;

pub(crate) fn time(tree: &Value, path: &str) -> Option<Timestamp> {
    text(tree, path).parse().ok()
}
