//! Server-side printing: the `Table` that `kubectl get` shows, and `PartialObjectMetadata`.
//!
//! Each resource has a printer with its columns and a function from an object to cells. The cells of wide
//! columns are always included; the client hides them. Printing never fails, whatever the object contains.

mod column;
mod duration;
pub(crate) mod empty;
mod event;
mod format;
mod metadata;
mod network;
mod node;
mod pod;
pub(crate) mod printers;
mod render;
mod security;
mod small;
mod storage;
mod workload;

#[cfg(test)]
mod testing;

use kennel_types::Timestamp;
use serde_json::Value;

use crate::registry::Resource;

pub use column::Column;
pub use duration::human_duration;
pub use metadata::{
    KIND, LIST_KIND, partial_metadata, partial_metadata_list, put_partial_metadata,
};
pub use render::{Header, IncludeObject, render, render_empty, render_event, render_usage};

/// The columns of a resource, normal and wide.
pub fn columns(row: &Resource) -> &'static [Column] {
    row.printer.columns
}

/// The cells of an object, one for each of the resource's [`columns`].
pub fn cells(row: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    (row.printer.cells)(object, now)
}

/// The conditions of an object's row: finished pods are `Completed`.
pub fn row_conditions(row: &Resource, object: &Value) -> Option<Value> {
    (row.printer.conditions)(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;

    #[test]
    fn every_printer_makes_a_cell_per_column() {
        for row in RESOURCES {
            let cells = cells(row, &Value::Null, Timestamp::EPOCH);
            assert_eq!(cells.len(), columns(row).len(), "{}", row.qualified());
        }
    }

    #[test]
    fn exactly_one_column_holds_the_name() {
        for row in RESOURCES {
            let names = columns(row).iter().filter(|c| c.format == "name").count();
            assert_eq!(names, 1, "{}", row.qualified());
        }
    }
}
