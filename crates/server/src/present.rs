//! Encodes objects for a client: as stored, as another version of their kind, as table rows, or as their
//! metadata alone.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value, json};

use crate::clock;
use crate::object::{self, Document, Encoded, ManagedFields, Stored};
use crate::registry::{self, Resource};
use crate::request::accept::Form;
use crate::status::{ApiError, Result};
use crate::table::{self, Header, IncludeObject};

/// Encodes the objects of one resource for one client.
#[derive(Clone)]
pub struct Presenter {
    row: &'static Resource,
    form: Form,
    include: IncludeObject,
    managed_fields: ManagedFields,
    /// A table watch sends the columns once.
    columns_sent: bool,
}

impl Presenter {
    pub fn new(
        row: &'static Resource,
        form: Form,
        include: IncludeObject,
        managed_fields: ManagedFields,
    ) -> Self {
        Self {
            row,
            form,
            include,
            managed_fields,
            columns_sent: false,
        }
    }

    /// Whether stored bytes go out as they are.
    pub fn is_verbatim(&self) -> bool {
        self.form == Form::Object && self.row.conversion.is_none()
    }

    /// `apiVersion` and `kind` of what is presented.
    pub fn type_meta(&self) -> (String, &'static str) {
        match self.form {
            Form::Object => (self.row.api_version(), self.row.kind),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
            Form::Table(version) => (format!("meta.k8s.io/{version}"), "Table"),
        }
    }

    /// One object.
    pub fn one(&self, stored: &Stored, revision: u64) -> Result<Bytes> {
        if self.is_verbatim() {
            let (row, managed_fields) = (self.row, self.managed_fields);
            return Ok(object::bytes(row, stored, revision, managed_fields));
        }
        if self.form == Form::Metadata {
            let mut out = BytesMut::new();
            self.put_metadata(&mut out, stored, revision)?;
            return Ok(out.freeze());
        }
        Ok(self.tree(self.viewed(stored, revision)?))
    }

    /// One object that is not stored, or no longer, in the row's own version.
    pub fn document(&self, document: Document) -> Result<Bytes> {
        match self.form {
            Form::Object => self.unstored(&document),
            _ => Ok(self.tree(document.into_shown(self.row, self.managed_fields))),
        }
    }

    /// A document as bytes, raw parts included, with whatever resourceVersion it has.
    fn unstored(&self, document: &Document) -> Result<Bytes> {
        let (bytes, head) = document.encode(self.row).map_err(ApiError::internal)?;
        let version = document.tree["metadata"]["resourceVersion"].as_str();
        let object = Encoded {
            row: self.row,
            bytes: &bytes,
            head: &head,
        };
        let mut out = BytesMut::new();
        let revision = version.and_then(|version| version.parse().ok());
        object.put(&mut out, revision, self.managed_fields);
        Ok(out.freeze())
    }

    fn put_metadata(&self, out: &mut BytesMut, stored: &Stored, revision: u64) -> Result<()> {
        let row = registry::stored_row(self.row);
        let put = table::put_partial_metadata(out, row, stored, revision, self.managed_fields);
        put.map_err(ApiError::internal)
    }

    /// The resource whose objects it encodes.
    pub fn row(&self) -> &'static Resource {
        self.row
    }

    /// Whether it shows managed fields.
    pub fn managed_fields(&self) -> ManagedFields {
        self.managed_fields
    }

    /// A list's items as pieces of its body.
    pub fn pieces(
        &self,
        head: Bytes,
        items: Vec<Stored>,
    ) -> impl Iterator<Item = Bytes> + Send + use<> {
        list_pieces(self.row, head, items, self.managed_fields)
    }

    fn tree(&self, mut tree: Value) -> Bytes {
        match self.form {
            Form::Object => {
                tree["apiVersion"] = self.row.api_version().into();
                tree["kind"] = self.row.kind.into();
                tree.to_string().into()
            }
            Form::Metadata => table::partial_metadata(&tree).to_string().into(),
            Form::Table(version) => {
                let metadata = json!({"resourceVersion": tree["metadata"]["resourceVersion"]});
                self.table(version, &metadata, &[tree], Header::Columns)
            }
        }
    }

    /// One object of a watch.
    pub fn watched(&mut self, stored: &Stored, revision: u64) -> Result<Bytes> {
        let Form::Table(version) = self.form else {
            return self.one(stored, revision);
        };
        let known = std::mem::replace(&mut self.columns_sent, true);
        let header = if known {
            Header::Absent
        } else {
            Header::Columns
        };
        let metadata = json!({"resourceVersion": revision.to_string()});
        Ok(self.table(
            version,
            &metadata,
            &[self.viewed(stored, revision)?],
            header,
        ))
    }

    /// A list. `metadata` is that of the list.
    pub fn list(&self, metadata: &Map<String, Value>, items: Vec<Stored>) -> Result<ListBody> {
        let metadata = Value::Object(metadata.clone());
        if self.is_verbatim() {
            let head = format!(
                "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
                self.row.kind,
                self.row.api_version(),
            );
            return Ok(ListBody::Pieces(head.into(), items));
        }
        if self.form == Form::Metadata {
            let row = registry::stored_row(self.row);
            let list = table::partial_metadata_list(&metadata, row, &items, self.managed_fields);
            return Ok(ListBody::Whole(list.map_err(ApiError::internal)?));
        }
        let mut trees = Vec::with_capacity(items.len());
        for stored in &items {
            trees.push(self.viewed(stored, stored.modified)?);
        }
        let bytes = match self.form {
            Form::Table(version) => self.table(version, &metadata, &trees, Header::Columns),
            Form::Object | Form::Metadata => {
                let list = json!({
                    "kind": format!("{}List", self.row.kind), "apiVersion": self.row.api_version(),
                    "metadata": metadata, "items": trees,
                });
                list.to_string().into()
            }
        };
        Ok(ListBody::Whole(bytes))
    }

    fn table(&self, version: &str, metadata: &Value, trees: &[Value], header: Header) -> Bytes {
        let now = clock::now();
        let rows = trees.iter().map(|tree| (tree, self.include));
        table::render_event(self.row, version, metadata, rows, now, header).into()
    }

    /// The object as a tree, in the row's own version.
    fn viewed(&self, stored: &Stored, revision: u64) -> Result<Value> {
        let document = Document::from_stored(self.row, stored).map_err(ApiError::internal)?;
        let mut tree = document.into_shown(self.row, self.managed_fields);
        tree["metadata"]["resourceVersion"] = revision.to_string().into();
        self.row.convert_from_stored(&mut tree);
        Ok(tree)
    }
}

pub enum ListBody {
    Whole(Bytes),
    /// The start, and the items whose stored bytes follow.
    Pieces(Bytes, Vec<Stored>),
}

/// How much of a list is encoded at a time: enough to keep the connection busy, and so little that a list
/// of a hundred thousand pods is never in memory as a whole.
const PIECE_BYTES: usize = 128 * 1024;

/// The pieces of a list of stored objects.
fn list_pieces(
    row: &'static Resource,
    head: Bytes,
    items: Vec<Stored>,
    managed_fields: ManagedFields,
) -> impl Iterator<Item = Bytes> + Send {
    let mut items = items.into_iter().enumerate();
    let mut head = Some(head);
    std::iter::from_fn(move || {
        let mut out = BytesMut::new();
        if let Some(head) = head.take() {
            out.reserve(PIECE_BYTES);
            out.extend_from_slice(&head);
        } else if items.len() == 0 {
            return None;
        }
        for (index, stored) in items.by_ref() {
            if index > 0 {
                out.extend_from_slice(b",");
            }
            object::put(&mut out, row, &stored, stored.modified, managed_fields);
            if out.len() >= PIECE_BYTES {
                break;
            }
        }
        if items.len() == 0 {
            out.extend_from_slice(b"]}");
        }
        Some(out.freeze())
    })
}
