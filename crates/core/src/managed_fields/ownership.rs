//! The managers of an object, as a write finds and leaves them.

use serde_json::Value;

use super::compact::CompactManagers;
use super::entry::{EntryError, Managers};
use super::field_manager::{STRIPPED, all_fields};
use super::field_set::FieldSet;
use super::schema::Schema;
use super::typed::compare_without;

/// The managers of an object.
#[derive(Clone, Debug)]
pub enum Ownership {
    /// In the form in which they are stored: relative to the object as it is stored.
    Relative(CompactManagers),
    /// On their own: the object may change.
    Listed(Managers),
}

impl Default for Ownership {
    fn default() -> Self {
        Self::Relative(CompactManagers::default())
    }
}

impl Ownership {
    /// Reads the stored form.
    pub fn from_stored(value: &Value) -> Result<Self, EntryError> {
        CompactManagers::from_value(value).map(Self::Relative)
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Relative(managers) => managers.is_empty(),
            Self::Listed(managers) => managers.is_empty(),
        }
    }

    /// The managers of `object`, with their fields.
    pub fn list<S: Schema>(&self, schema: S, api_version: &str, object: &Value) -> Managers {
        match self {
            Self::Listed(managers) => managers.clone(),
            Self::Relative(managers) if managers.is_empty() => Managers::default(),
            Self::Relative(managers) => managers.expand(&all_fields(schema, object), api_version),
        }
    }

    /// The managers after a write that nobody owns, which replaced `old` with `new`: they have the same fields as before.
    /// The write did not change `ignored` fields, nor anything below them.
    #[must_use]
    pub fn after_unowned_change<S: Schema>(
        self,
        schema: S,
        api_version: &str,
        (old, new): (&Value, &Value),
        ignored: &FieldSet,
    ) -> Self {
        let Self::Relative(mut managers) = self else {
            return self;
        };
        match compare_without(schema, old, new, ignored) {
            Ok(compared) if compared.removed.is_empty() => {
                managers.exclude(&compared.added.difference(&STRIPPED), api_version);
                Self::Relative(managers)
            }
            _ => Self::Listed(Self::Relative(managers).list(schema, api_version, old)),
        }
    }

    /// The form in which they are stored with `object`.
    #[must_use]
    pub fn relative_to<S: Schema>(self, schema: S, api_version: &str, object: &Value) -> Self {
        match self {
            Self::Listed(managers) if managers.is_empty() => Self::default(),
            Self::Listed(managers) => {
                let full = all_fields(schema, object);
                Self::Relative(CompactManagers::of(&managers, &full, api_version))
            }
            relative @ Self::Relative(_) => relative,
        }
    }

    /// Writes the stored form, once they are relative to the object.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Relative(managers) => managers.write(out),
            Self::Listed(_) => out.extend_from_slice(b"[]"),
        }
    }

    /// Whether two equal objects have the same managers with the same fields, whenever they wrote them.
    pub fn same_but_times(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Relative(a), Self::Relative(b)) => a.same_but_times(b),
            (Self::Listed(a), Self::Listed(b)) => a.same_but_times(b),
            _ => false,
        }
    }
}
