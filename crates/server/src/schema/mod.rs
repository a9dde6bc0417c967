//! The shape of the API: which fields there are, of which type, and how patches merge them.
//!
//! Facts live in `fields.json`; `cargo xtask codegen` turns them into [`table`]. Bodies come in
//! through [`parse`], and [`conform`] makes the tree fit its type. Defaults and validation live in
//! `kinds`, not here.

mod base64;
mod conform;
pub mod decode;
pub(crate) mod go;
mod same;
mod scalar;
mod syntax;
#[rustfmt::skip]
mod table;
mod time;
mod trail;
mod types;

pub use conform::conform;
pub use decode::{Parsed, parse, raw_member};
pub use same::semantic_eq;
pub use types::{Field, Kind, ListType, Shape, Strategy, Type};

/// The type of that name, such as `core.v1.Pod`.
pub fn find(name: &str) -> Option<&'static Type> {
    let found = table::TYPES.binary_search_by(|ty| ty.name.cmp(name));
    found.ok().map(|index| table::TYPES[index])
}

/// Every type, sorted by name.
pub fn types() -> &'static [&'static Type] {
    table::TYPES
}

#[cfg(test)]
mod tests;
