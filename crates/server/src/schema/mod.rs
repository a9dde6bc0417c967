//! The schema of the API: which fields there are, of which type, and how patches merge them.
//!
//! [`parse`] decodes a body; [`mod@conform`] prunes the tree to its type and checks the types of its
//! values. Defaults and validation are in `kinds`.
//!
//! # Where the facts come from
//!
//! `fields.json` lists, for every type that a served resource uses, the facts of Kubernetes v1.36
//! that `table.rs` needs. It is the source of the table and is edited by hand; nothing
//! downloads it. Each fact is stated in one of two files of `k8s.io/api` and `k8s.io/apimachinery`
//! (the directory is the type's group and version):
//!
//! | fact | file | where |
//! |---|---|---|
//! | `name`, `number`, `type`, `list`, `map` | `generated.proto` | the message's fields |
//! | `required` | `types.go` | the JSON tag has no `omitempty`, and clients must set the field |
//! | `pointer` | `types.go` | the Go field is a pointer |
//! | `by_value` | `types.go` | the Go field is a struct and no pointer |
//! | `keep_empty` | `types.go` | the JSON tag has no `omitempty`, and clients may omit the field |
//! | `go` | `types.go` | the Go field's type is a named one, such as `v1.ConditionStatus` |
//! | `list_type`, `list_map_keys`, `map_type` | `types.go` | `+listType`, `+listMapKey`, `+mapType`, `+structType` |
//! | `patch_strategy`, `patch_merge_key` | `types.go` | the tags `patchStrategy`, `patchMergeKey` |
//! | `default` | `types.go` | `+default` |
//! | `enum` | `types.go` | the constants of the field's type, where that is marked `+enum` |
//! | `union` (of a type) | `types.go` | `+union`, its `+unionDiscriminator`, and the members that are neither |
//! | `inlined_in_json` (of a type) | `types.go` | the JSON tag is `,inline`; protobuf nests the message |
//! | `kind` (of a type) | `types.go` | embeds `TypeMeta` |
//! | `description` | `types.go` | the comment, for a type of a version that `k8s-openapi` no longer has |
//!
//! # How to move to the next version of Kubernetes
//!
//! 1. Compare `generated.proto` and `types.go` of the old and the new version in each group that
//!    `registry` serves, and add or change the facts in `fields.json`. Released field numbers
//!    never change.
//! 2. Run `cargo xtask codegen`, which writes `table.rs` and, from the comments of `k8s-openapi`,
//!    `descriptions.txt`; tests of `xtask` fail while they differ from their sources, and while types and merge strategies differ
//!    from those of `k8s-openapi`. `schema/tests/table.rs` checks merge keys, replaced lists and field numbers.
//! 3. Set the version in `discovery/version.rs` and the feature of `k8s-openapi` (`v1_36`) in the
//!    workspace's `Cargo.toml` and in `xtask`'s `descriptions.rs`. The controllers and the agent use that
//!    crate; the table does not.
//! 4. Give new fields their defaults and validation in `kinds`, and new resources a row in
//!    `registry`. `cargo nextest run -p kennel-server` shows what else the new fields touch: the
//!    OpenAPI documents, the protobuf round trips and the random objects of the patch tests all
//!    read the table.

mod base64;
mod conform;
pub mod decode;
mod error;
mod scalar;
mod semantic_equality;
mod structure;
mod syntax;
#[rustfmt::skip]
mod table;
mod time;
mod tree_path;
mod types;
mod yaml;
mod yaml_problem;
mod yaml_tree;

pub use conform::conform;
pub use decode::{Parsed, parse, raw_member};
pub use error::DecodeError;
pub(crate) use kennel_core::go;
pub use semantic_equality::semantic_eq;
pub use structure::Structure;
pub use types::{Field, Kind, ListType, Shape, Strategy, Type, Union};
pub use yaml::{Yaml, YamlError, parse_yaml};

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
