//! Managed fields and server-side apply: which manager owns which fields of an object.
//!
//! ```text
//!  apply:  live, configuration ─▶ merge ─▶ prune what the manager no longer lists ─▶ conflicts ─▶ owners
//!  update: live, new           ─▶ compare ─────────────────────────────────────────────────────▶ owners
//! ```
//!
//! The rules are those of Kubernetes' structured-merge-diff and of the field manager around it:
//!
//! - [`FieldSet`] is a set of field paths, and `fieldsV1` its form in JSON.
//! - [`Schema`] says how the values of a type are merged: one by one, by key, or as a whole. `typed` has
//!   the walks over values by their schema.
//! - [`Managers`] are the owners of one object, `metadata.managedFields` their form in JSON; [`Ownership`] is
//!   how they are stored with it.
//! - [`FieldManager`] carries out one write: [`FieldManager::apply`] for server-side apply,
//!   [`FieldManager::update`] for every other verb.
//!
//! It knows neither kinds nor defaults: callers pass the schema, and default what an apply returns.

mod cap;
mod compact;
mod conflict;
mod entry;
mod field_manager;
mod field_set;
mod fields_v1;
mod go;
mod last_applied;
mod ownership;
mod path_element;
mod relative;
mod schema;
mod typed;
mod updater;
mod value;

pub use conflict::{Conflict, Conflicts};
pub use entry::{EntryError, Managers, Operation};
pub use field_manager::{Applied, ApplyError, FieldManager};
pub use field_set::FieldSet;
pub use fields_v1::FieldsError;
pub use ownership::Ownership;
pub use path_element::{ElementError, PathElement};
pub use schema::{Fields, ListShape, Scalar, Schema, Shape};
pub use typed::{
    Comparison, Duplicates, TypeError, TypeErrors, compare, field_set_of, merge, remove, validate,
};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
