//! Writes a Table as JSON, row by row, without building a tree of the whole.

use kennel_types::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::column::{Column, USAGE};
use super::{columns, metadata};
use crate::registry::{EmptyCollection, Resource};

/// The query parameter `includeObject`: what a row contains besides its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    /// The default.
    Metadata,
    Object,
}

impl IncludeObject {
    /// Absent and empty mean the default. `None` for unknown values.
    pub fn parse(parameter: Option<&str>) -> Option<Self> {
        match parameter {
            None | Some("" | "Metadata") => Some(Self::Metadata),
            Some("None") => Some(Self::None),
            Some("Object") => Some(Self::Object),
            Some(_) => None,
        }
    }
}

/// Whether a Table has column definitions. In a watch only the first event needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Columns,
    Absent,
}

/// The Table of some objects of a resource. `version` is `v1` or `v1beta1`; `list_metadata` that of
/// the list, or of a single object (only its resourceVersion).
pub fn render<'a>(
    row: &Resource,
    version: &str,
    list_metadata: &Value,
    rows: impl IntoIterator<Item = (&'a Value, IncludeObject)>,
    now: Timestamp,
) -> Vec<u8> {
    render_event(row, version, list_metadata, rows, now, Header::Columns)
}

/// Like [`render`], for an event of a watch.
pub fn render_event<'a>(
    row: &Resource,
    version: &str,
    list_metadata: &Value,
    rows: impl IntoIterator<Item = (&'a Value, IncludeObject)>,
    now: Timestamp,
    header: Header,
) -> Vec<u8> {
    let printer = row.printer;
    let columns = match header {
        Header::Columns => Some(columns(row)),
        Header::Absent => None,
    };
    let mut out = open(version, list_metadata, columns);
    for (index, (object, include)) in rows.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"cells\":");
        write(&mut out, &(printer.cells)(object, now));
        if let Some(conditions) = super::row_conditions(row, object) {
            out.extend_from_slice(b",\"conditions\":");
            write(&mut out, &conditions);
        }
        out.extend_from_slice(b",\"object\":");
        write_object(&mut out, version, object, include);
        out.push(b'}');
    }
    close(out)
}

/// The Table of what nodes or pods use: the cells and the object of each row.
pub fn render_usage(
    version: &str,
    rows: &[([Value; USAGE.len()], Value)],
    include: IncludeObject,
) -> Vec<u8> {
    let mut out = open(version, &serde_json::json!({}), Some(USAGE));
    for (index, (cells, object)) in rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"cells\":");
        write(&mut out, cells);
        out.extend_from_slice(b",\"object\":");
        write_object(&mut out, version, object, include);
        out.push(b'}');
    }
    close(out)
}

/// The Table of a collection that is always empty: its columns and no rows.
pub fn render_empty(collection: &EmptyCollection, version: &str, list_metadata: &Value) -> Vec<u8> {
    close(open(version, list_metadata, Some(collection.columns)))
}

fn open(version: &str, list_metadata: &Value, columns: Option<&[Column]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":");
    write(&mut out, &metadata::api_version(version));
    out.extend_from_slice(b",\"metadata\":");
    write(&mut out, list_metadata);
    out.extend_from_slice(b",\"columnDefinitions\":");
    write(&mut out, &columns);
    out.extend_from_slice(b",\"rows\":[");
    out
}

fn close(mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(b"]}");
    out
}

fn write_object(out: &mut Vec<u8>, version: &str, object: &Value, include: IncludeObject) {
    match include {
        IncludeObject::None => out.extend_from_slice(b"null"),
        IncludeObject::Metadata => write(out, &metadata::partial(object, version)),
        IncludeObject::Object => write(out, object),
    }
}

fn write(out: &mut Vec<u8>, part: &impl Serialize) {
    serde_json::to_writer(out, part).expect("trees and columns always serialise into memory");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry;

    fn pods() -> &'static Resource {
        registry::find("", "v1", "pods").expect("pods are served")
    }

    fn parse(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).expect("a table is JSON")
    }

    #[test]
    fn a_table_carries_columns_cells_and_the_object_asked_for() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {}, "status": {"phase": "Failed"}});
        let rows = [
            (&pod, IncludeObject::None),
            (&pod, IncludeObject::Metadata),
            (&pod, IncludeObject::Object),
        ];
        let metadata = json!({"resourceVersion": "9"});
        let table = parse(&render(pods(), "v1", &metadata, rows, Timestamp::EPOCH));
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(table["metadata"], metadata);
        assert_eq!(
            table["columnDefinitions"][0],
            json!({"name": "Name", "type": "string", "format": "name", "priority": 0,
                   "description": "The name of the object."})
        );
        assert_eq!(table["rows"][0]["cells"][0], "p");
        assert_eq!(table["rows"][0]["conditions"][0]["type"], "Completed");
        assert_eq!(table["rows"][0]["object"], Value::Null);
        assert_eq!(table["rows"][1]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(table["rows"][1]["object"]["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(table["rows"][2]["object"], pod);
    }

    #[test]
    fn an_empty_table_still_has_columns() {
        let table = parse(&render(pods(), "v1beta1", &json!({}), [], Timestamp::EPOCH));
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
        assert_eq!(table["rows"], json!([]));
        assert_eq!(table["columnDefinitions"][8]["name"], "Readiness Gates");
        assert_eq!(table["columnDefinitions"][8]["priority"], 1);
        for collection in registry::EMPTY {
            let table = parse(&render_empty(collection, "v1", &json!({})));
            assert_eq!(table["columnDefinitions"][0]["name"], "Name");
            assert_eq!(table["rows"], json!([]));
        }
    }

    #[test]
    fn later_events_of_a_watch_leave_the_columns_out() {
        let pod = json!({"metadata": {"name": "p"}});
        let rows = [(&pod, IncludeObject::Metadata)];
        let now = Timestamp::EPOCH;
        let table = parse(&render_event(
            pods(),
            "v1",
            &json!({}),
            rows,
            now,
            Header::Absent,
        ));
        assert_eq!(table["columnDefinitions"], Value::Null);
        assert_eq!(table["rows"][0]["cells"][0], "p");
    }

    #[test]
    fn include_object_knows_three_words() {
        assert_eq!(IncludeObject::parse(None), Some(IncludeObject::Metadata));
        assert_eq!(
            IncludeObject::parse(Some("Object")),
            Some(IncludeObject::Object)
        );
        assert_eq!(
            IncludeObject::parse(Some("None")),
            Some(IncludeObject::None)
        );
        assert_eq!(IncludeObject::parse(Some("object")), None);
    }
}
