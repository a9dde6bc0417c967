//! Helpers of the printers' tests.

#![expect(
    clippy::needless_pass_by_value,
    reason = "tables of cases read better without borrows"
)]

use kennel_types::Timestamp;
use serde_json::Value;

use crate::registry::{RESOURCES, Resource};

fn now() -> Timestamp {
    Timestamp::parse("2026-01-01T01:00:00Z").expect("a valid time")
}

fn row(group: Option<&str>, plural: &str) -> &'static Resource {
    RESOURCES
        .iter()
        .find(|r| r.plural == plural && group.is_none_or(|g| g == r.group))
        .expect("a served resource")
}

/// An hour past the start of 2026, an object of the first resource of that name prints as `cells`.
pub(super) fn check(plural: &str, object: Value, cells: Value) {
    let printed = super::cells(row(None, plural), &object, now());
    assert_eq!(Value::Array(printed), cells, "{plural}: {object}");
}

/// The same in a given group.
pub(super) fn check_in(group: &str, plural: &str, object: Value, cells: Value) {
    let printed = super::cells(row(Some(group), plural), &object, now());
    assert_eq!(Value::Array(printed), cells, "{plural}: {object}");
}

/// One cell, found by its column.
pub(super) fn check_cell(plural: &str, column: &str, object: &Value, cell: &str) {
    let row = row(None, plural);
    let columns = super::columns(row).iter();
    let index = columns
        .enumerate()
        .find(|(_, c)| c.name == column)
        .expect("a column of that name")
        .0;
    let printed = super::cells(row, object, now());
    assert_eq!(printed[index], cell, "{plural}, {column}: {object}");
}
