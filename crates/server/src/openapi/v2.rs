//! Swagger 2.0: one document for all group-versions. kubectl 1.20 validates manifests by its definitions, so a
//! definition is complete or absent.

use std::sync::LazyLock;

use super::Dialect;
use super::descriptions::Descriptions;
use super::operations::{Path, paths};
use super::packed::Packed;
use super::parameters::path_item;
use super::schemas::{Definitions, definitions, definitions_of_all};
use super::v3::{write, write_members};
use crate::registry::group_versions;

/// `GET /openapi/v2` as JSON, for clients that ask for it.
pub fn v2_json() -> &'static Packed {
    static DOCUMENT: LazyLock<Packed> = LazyLock::new(|| Packed::new(&generate()));
    &DOCUMENT
}

fn generate() -> Vec<u8> {
    let paths = all_paths();
    let mut out = Vec::with_capacity(256 * 1024);
    out.extend_from_slice(b"{\"swagger\":\"2.0\",\"info\":");
    write(&mut out, &super::info());
    out.extend_from_slice(b",\"paths\":{");
    let items = paths
        .iter()
        .map(|p| (p.path.as_str(), path_item(p, Dialect::V2)));
    write_members(&mut out, items);
    out.extend_from_slice(b"},\"definitions\":{");
    write_members(&mut out, all_definitions(&paths).iter());
    out.extend_from_slice(b"}}");
    out
}

/// The paths of all group-versions.
pub(super) fn all_paths() -> Vec<Path> {
    let served = group_versions().into_iter();
    served
        .flat_map(|(group, version)| paths(group, version))
        .collect()
}

/// The definitions that the paths need.
pub(super) fn all_definitions(paths: &[Path]) -> Definitions {
    let descriptions = Descriptions::read();
    let mut all = definitions_of_all(Dialect::V2, &descriptions);
    let others = definitions(paths, Dialect::V2, &descriptions, &all);
    all.extend(others);
    all
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::registry::RESOURCES;

    #[test]
    fn every_kind_is_patched_with_a_dry_run_and_defined() {
        let document: Value = serde_json::from_slice(&v2_json().document().body).expect("JSON");
        assert_eq!(document["swagger"], "2.0");
        let paths = document["paths"].as_object().expect("paths");
        for row in RESOURCES {
            let about =
                serde_json::json!({"group": row.group, "version": row.version, "kind": row.kind});
            let of_kind: Vec<&Value> = paths
                .values()
                .map(|item| &item["patch"])
                .filter(|patch| patch["x-kubernetes-group-version-kind"] == about)
                .collect();
            assert_eq!(of_kind.is_empty(), row.projection.is_some(), "{}", row.kind);
            for patch in of_kind {
                let parameters = patch["parameters"].as_array().expect("parameters");
                assert!(
                    parameters.iter().any(|p| p["name"] == "dryRun"),
                    "{}",
                    row.kind
                );
            }
            let definitions = document["definitions"].as_object().expect("definitions");
            let defined = definitions
                .values()
                .any(|definition| definition["x-kubernetes-group-version-kind"][0] == about);
            assert!(defined, "{}", row.kind);
        }
    }
}
