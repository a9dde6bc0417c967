//! The managers of an object, and `metadata.managedFields`, their form in JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kennel_types::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::field_set::FieldSet;
use super::fields_v1::FieldsError;

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells managers apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: Operation,
    /// Empty for appliers: one that changes the version stays the same manager.
    pub(super) api_version: String,
    /// The subresource it wrote through; empty for the object itself.
    pub(super) subresource: String,
}

/// The fields of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    /// The version of the API in which the paths of the fields are meant.
    pub(super) api_version: String,
    /// When it last changed something.
    pub(super) time: Option<Timestamp>,
}

/// Whether field paths mean the same fields in two versions. Kennel serves no two versions of a group whose paths differ; the
/// kinds of two groups (`Event`) are not converted into each other.
pub(super) fn have_same_paths(one: &str, other: &str) -> bool {
    let group = |version| str::rsplit_once(version, '/').map_or("", |(group, _)| group);
    one == other || group(one) == group(other)
}

/// The managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers(pub(super) BTreeMap<Manager, Owned>);

/// Why a value is no `metadata.managedFields`.
#[derive(Debug, Error)]
pub enum EntryError {
    #[error("metadata.managedFields is not a list of objects")]
    NotAList,
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    NoVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    #[error("invalid fieldsType \"{1}\" in managed fields entry {0}")]
    FieldsType(usize, String),
    #[error("error decoding set: {0}")]
    Fields(#[from] FieldsError),
}

impl Managers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reads `metadata.managedFields`; an absent one has no managers.
    pub fn from_value(value: &Value) -> Result<Self, EntryError> {
        let entries = match value {
            Value::Null => return Ok(Self::default()),
            Value::Array(entries) => entries,
            _ => return Err(EntryError::NotAList),
        };
        let entries = entries.iter().enumerate();
        let managers: Result<_, _> = entries.map(|(at, entry)| read(at, entry)).collect();
        managers.map(Self)
    }

    /// Whether a request that sends this as `metadata.managedFields` asks to forget all managers: it is an
    /// empty list, or has one empty entry.
    pub fn is_reset(value: &Value) -> bool {
        match value.as_array().map(Vec::as_slice) {
            Some([]) => true,
            Some([entry]) => entry.as_object().is_some_and(|entry| {
                let is_empty = |value: &Value| value.is_null() || value == "";
                entry.values().all(is_empty)
            }),
            _ => false,
        }
    }

    /// Writes `metadata.managedFields`, in upstream's order.
    pub fn write(&self, out: &mut String) {
        out.push('[');
        for (at, (manager, owned)) in self.sorted().into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_entry(out, manager, owned);
        }
        out.push(']');
    }

    /// `metadata.managedFields` as a tree.
    pub fn to_value(&self) -> Value {
        let mut text = String::new();
        self.write(&mut text);
        serde_json::from_str(&text).expect("entries are written as JSON")
    }

    /// By operation, time, name, version and subresource.
    fn sorted(&self) -> Vec<(&Manager, &Owned)> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by(|(a, of_a), (b, of_b)| {
            let seconds = |owned: &Owned| owned.time.map_or(0, Timestamp::as_secs);
            let by_operation = a.operation.cmp(&b.operation);
            by_operation
                .then_with(|| seconds(of_a).cmp(&seconds(of_b)))
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| of_a.api_version.cmp(&of_b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        entries
    }

    /// Whether both have the same managers with the same fields, whenever they wrote them.
    pub fn same_but_times(&self, other: &Self) -> bool {
        let same = |((a, of_a), (b, of_b)): ((&Manager, &Owned), (&Manager, &Owned))| {
            a == b && of_a.api_version == of_b.api_version && of_a.fields == of_b.fields
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

fn read(at: usize, entry: &Value) -> Result<(Manager, Owned), EntryError> {
    if !entry.is_object() {
        return Err(EntryError::NotAList);
    }
    let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let operation = match entry["operation"].as_str() {
        Some("Apply") => Operation::Apply,
        Some("Update") => Operation::Update,
        _ => return Err(EntryError::Operation),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err(EntryError::NoVersion);
    }
    match text("fieldsType").as_str() {
        "FieldsV1" => {}
        "" => return Err(EntryError::NoFieldsType(at)),
        other => return Err(EntryError::FieldsType(at, other.to_owned())),
    }
    let manager = Manager {
        name: text("manager"),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.clone(),
        },
        subresource: text("subresource"),
    };
    let owned = Owned {
        fields: FieldSet::from_fields_v1(&entry["fieldsV1"])?,
        api_version,
        time: entry["time"].as_str().and_then(Timestamp::parse),
    };
    Ok((manager, owned))
}

fn write_entry(out: &mut String, manager: &Manager, owned: &Owned) {
    let version = Value::from(owned.api_version.as_str());
    write!(
        out,
        "{{\"apiVersion\":{version},\"fieldsType\":\"FieldsV1\",\"fieldsV1\":"
    )
    .expect("writing to a String does not fail");
    owned.fields.write_fields_v1(out);
    let time = owned.time.map(|time| time.to_string());
    for (name, value) in [
        ("manager", manager.name.as_str()),
        ("operation", manager.operation.as_str()),
        ("subresource", manager.subresource.as_str()),
        ("time", time.as_deref().unwrap_or_default()),
    ] {
        if !value.is_empty() {
            let value = Value::from(value);
            write!(out, ",\"{name}\":{value}").expect("writing to a String does not fail");
        }
    }
    out.push('}');
}
