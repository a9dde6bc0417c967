//! Ratcheting validation: what was valid when it was stored may stay.

use serde_json::Value;

use super::{affinity, files, spread};
use crate::field::{Errors, Path};
use crate::tree::list;

/// The rules that the stored object violates, which its updates may violate, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ratcheting {
    /// Label values in selectors of affinity terms.
    pub selector_values: bool,
    /// Label values in required node affinity.
    pub node_affinity_values: bool,
    /// Selectors of topology spread constraints.
    pub spread_selectors: bool,
    /// Paths of projected tokens.
    pub token_paths: bool,
}

impl Ratcheting {
    /// The exceptions for updates of a pod or template with this spec.
    pub(crate) fn towards(old: &Value) -> Self {
        let at = Path::default();
        let strict = Self::default();
        let mut affinity_errors = Errors::new();
        affinity::all(&mut affinity_errors, old, &at, strict);
        let breaks = |part: &str| {
            affinity_errors
                .iter()
                .any(|error| error.field.contains(part))
        };
        let mut spread_errors = Errors::new();
        spread::all(&mut spread_errors, old, &at, false);
        let mut token_errors = Errors::new();
        for volume in list(old, "volumes") {
            if let Some(projected) = volume.get("projected") {
                files::projected(&mut token_errors, projected, &at, false);
            }
        }
        Self {
            selector_values: breaks("elector.match"),
            node_affinity_values: breaks("nodeAffinity.required"),
            spread_selectors: spread_errors
                .iter()
                .any(|error| error.field.contains("labelSelector")),
            token_paths: token_errors.iter().any(|error| error.field == "path"),
        }
    }
}
