//! What the three patches do to objects, in the shapes that clients really send.

use serde_json::{Value, json};

use super::{PatchError, json as json_patch, merge, strategic};
use crate::schema;

mod rfc6902;
mod rfc7386;
mod strategic_merge;

fn ty(name: &str) -> &'static schema::Type {
    schema::find(name).unwrap_or_else(|| panic!("no type {name}"))
}
