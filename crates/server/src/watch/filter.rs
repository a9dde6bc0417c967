//! The filter of a list or a watch, and the index that finds watchers by it.

use std::borrow::Cow;

use kennel_core::selector::{FieldSelector, Requirement, Selector};

use crate::object::Head;
use crate::registry::{self, Resource};
use crate::request::query::Query;
use crate::status::{ApiError, Result};

/// The most selective part of a filter, by which the hub indexes watchers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Objects of one name.
    Name(Box<str>),
    /// Objects with this value in the selectable field at this index.
    Field(usize, Box<str>),
    /// Objects with this label.
    Label(Box<str>, Box<str>),
    /// Objects in one namespace.
    Namespace(Box<str>),
    /// All objects.
    All,
}

impl Place {
    pub fn value(&self) -> &str {
        match self {
            Self::Name(v) | Self::Field(_, v) | Self::Label(_, v) | Self::Namespace(v) => v,
            Self::All => "",
        }
    }

    /// Whether an object with this head belongs to this place.
    pub fn covers(&self, head: &Head) -> bool {
        match self {
            Self::Name(name) => *name == head.name,
            Self::Field(field, value) => head.field_at(*field) == Some(&**value),
            Self::Label(key, value) => head.label(key) == Some(&**value),
            Self::Namespace(namespace) => *namespace == head.namespace,
            Self::All => true,
        }
    }
}

/// The namespace and selectors of a list or a watch.
#[derive(Clone, Debug)]
pub struct Filter {
    row: &'static Resource,
    namespace: Option<Box<str>>,
    labels: Option<Selector>,
    fields: Option<FieldSelector>,
    place: Place,
}

impl Filter {
    pub fn new(row: &'static Resource, namespace: Option<&str>, query: &Query) -> Result<Self> {
        let labels = query.get("labelSelector").map(Selector::parse).transpose();
        let labels = labels.map_err(|e| ApiError::bad_request(e.to_string()))?;
        let fields = query
            .get("fieldSelector")
            .map(|text| parse_fields(row, text))
            .transpose()?;
        // Two rows may share one storage (events): heads are those of the first.
        let stored = registry::stored_row(row);
        let namespace = namespace.map(Into::into);
        let mut filter = Self {
            row: stored,
            namespace,
            labels,
            fields,
            place: Place::All,
        };
        filter.place = filter.find_place();
        Ok(filter)
    }

    /// All objects of a stored resource.
    pub(crate) fn all(row: &'static Resource) -> Self {
        Self {
            row,
            namespace: None,
            labels: None,
            fields: None,
            place: Place::All,
        }
    }

    pub fn matches(&self, head: &Head) -> bool {
        self.namespace.as_ref().is_none_or(|n| *n == head.namespace)
            && self
                .labels
                .as_ref()
                .is_none_or(|s| s.matches(|key| head.label(key)))
            && self
                .fields
                .as_ref()
                .is_none_or(|s| s.matches(|f| head.field(self.row, &stored_name(f))))
    }

    /// Whether there are selectors: then a list has no `remainingItemCount`.
    pub fn selects(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    fn find_place(&self) -> Place {
        if let Some(fields) = &self.fields {
            if let Some(name) = fields.required("metadata.name") {
                return Place::Name(name.into());
            }
            for (index, field) in self.row.selectable.iter().enumerate() {
                // Most objects have an empty value, so it is no useful index.
                let mut terms = fields.terms().iter();
                let term = terms.find(|t| stored_name(&t.field) == *field);
                let value = term.and_then(|t| fields.required(&t.field));
                if let Some(value) = value.filter(|v| !v.is_empty()) {
                    return Place::Field(index, value.into());
                }
            }
        }
        let labels = self.labels.iter().flat_map(Selector::requirements);
        for key in labels.map(Requirement::key) {
            let value = self.labels.as_ref().and_then(|s| s.exact(key));
            if let Some(value) = value {
                return Place::Label(key.into(), value.into());
            }
        }
        match &self.namespace {
            Some(namespace) => Place::Namespace(namespace.clone()),
            None => Place::All,
        }
    }
}

/// The stored version's name of a field: resolves aliases and names of other versions.
fn stored_name(field: &str) -> Cow<'_, str> {
    match field {
        "spec.host" => "spec.nodeName".into(),
        "reportingController" => "reportingComponent".into(),
        _ => match field.strip_prefix("regarding.") {
            Some(rest) => format!("involvedObject.{rest}").into(),
            None => field.into(),
        },
    }
}

/// Parses a field selector and refuses fields that the resource does not offer.
fn parse_fields(row: &Resource, text: &str) -> Result<FieldSelector> {
    let selector = FieldSelector::parse(text).map_err(|e| ApiError::bad_request(e.to_string()))?;
    for term in selector.terms() {
        // Resources without selectable fields have upstream's generic rule and wording.
        let plain = row.selectable.is_empty();
        let known = match &*term.field {
            "metadata.name" => true,
            "metadata.namespace" => row.namespaced() || plain,
            "spec.host" => row.selectable.contains(&"spec.nodeName"),
            field => row.selectable.contains(&field),
        };
        if known {
            continue;
        }
        let field = &term.field;
        return Err(ApiError::bad_request(if plain {
            format!(
                "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        } else {
            format!("field label not supported: {field}")
        }));
    }
    Ok(selector)
}
