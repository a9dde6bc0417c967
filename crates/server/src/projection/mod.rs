//! Resources that are computed from the objects of another resource whenever they are read, and so cannot differ from
//! them: nothing is stored under their names, and nobody writes them.
//!
//! A row of the registry names its [`Projection`]. Its list is the list of the source at the same revision, and its watch
//! follows the source's; an object has the resourceVersion of the object it is computed from.

mod addresses;

use std::sync::Arc;

use kennel_store::{Event, Page, Record};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) use addresses::{IpAddresses, ServiceCidrs};

use crate::kinds::service::Cidr;
use crate::object::{self, Document, Head, Stored};
use crate::registry::Resource;
use crate::status::{ApiError, Result};

/// How the objects of a resource are computed from those of another, one from each at most.
pub(crate) trait Projection: Sync {
    /// The resource that the objects are computed from.
    fn source(&self) -> &'static Resource;

    /// The object that is computed from one of the source; `None` if that has none. The uid is that of the source: the
    /// caller replaces it.
    fn object(&self, source: &Value, cidr: &Cidr) -> Option<Value>;

    /// Where the objects come from, for users who try to write one.
    fn origin(&self) -> &'static str;
}

/// The projection of one row, with the settings that it depends on.
#[derive(Clone)]
pub(crate) struct Projector {
    row: &'static Resource,
    rule: &'static dyn Projection,
    cidr: Cidr,
}

impl Projector {
    /// `None` for a row whose objects are stored.
    pub(crate) fn of(row: &'static Resource, cidr: &Cidr) -> Option<Self> {
        let rule = row.projection?;
        let cidr = cidr.clone();
        Some(Self { row, rule, cidr })
    }

    pub(crate) fn source(&self) -> &'static Resource {
        self.rule.source()
    }

    /// The prefix of the keys that are read.
    pub(crate) fn prefix(&self) -> String {
        object::prefix(self.source(), None)
    }

    /// The object of this name.
    pub(crate) fn find(&self, sources: &[Stored], name: &str) -> Result<Stored> {
        let mut objects = sources.iter().filter_map(|source| self.object(source));
        let found = objects.find(|object| &*object.head.name == name);
        found.ok_or_else(|| ApiError::not_found(self.row, name))
    }

    /// Replaces the objects of the source by those of the row, and leaves out the keys up to `after`.
    pub(crate) fn project(&self, page: &mut Page<Head>, after: Option<&str>) {
        let sources = std::mem::take(&mut page.records);
        let objects = sources.iter().filter_map(|source| self.object(source));
        let is_due = |object: &Stored| after.is_none_or(|after| &*object.key > after);
        page.records = objects.filter(is_due).collect();
        page.records.sort_by(|a, b| a.key.cmp(&b.key));
    }

    /// What an event of the source means for the row: nothing, one event, or two if the object changes its name.
    pub(crate) fn events(&self, event: &Event<Head>) -> Vec<Arc<Event<Head>>> {
        let object = |source: Option<&Stored>| source.and_then(|source| self.object(source));
        let (before, after) = (object(event.before.as_ref()), object(event.after.as_ref()));
        let pairs = match (before, after) {
            (Some(before), Some(after)) if before.key != after.key => {
                vec![(Some(before), None), (None, Some(after))]
            }
            (Some(before), Some(after)) if before.value == after.value => Vec::new(),
            (None, None) => Vec::new(),
            pair => vec![pair],
        };
        let events = pairs.into_iter().filter_map(|(before, after)| {
            let key = Arc::clone(&before.as_ref().or(after.as_ref())?.key);
            let revision = event.revision;
            Some(Arc::new(Event {
                revision,
                key,
                before,
                after,
            }))
        });
        events.collect()
    }

    fn object(&self, source: &Record<Head>) -> Option<Stored> {
        let tree: Value = serde_json::from_slice(&source.value).ok()?;
        let mut object = self.rule.object(&tree, &self.cidr)?;
        object["metadata"]["uid"] = self.uid(&source.head.uid).into();
        let (value, head) = Document::new(object).encode(self.row).ok()?;
        Some(Arc::new(Record {
            key: object::key(self.row, None, &head.name).into(),
            value,
            created: source.created,
            modified: source.modified,
            head,
        }))
    }

    /// A uid that is the same whenever the object is computed.
    fn uid(&self, source: &str) -> String {
        let digest = Sha256::new()
            .chain_update(self.row.kind)
            .chain_update(source)
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        let uid = uuid::Builder::from_custom_bytes(bytes).into_uuid();
        uid.to_string()
    }
}
