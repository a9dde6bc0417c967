//! Validates `resourceClaims`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{each, form, require};
use crate::names;
use crate::tree::{opt_text, text};

/// Each claim has a unique name and exactly one source.
pub(super) fn all(errors: &mut Errors, spec: &Value, at: &Path) {
    let mut seen = BTreeSet::new();
    for (claim, at) in each(spec, at, "resourceClaims") {
        let name = text(claim, "name");
        if name.is_empty() {
            require(errors, &at, "name");
        } else if seen.insert(name) {
            let mistakes = names::dns1123_label(name);
            form(errors, &at, "name", name, mistakes);
        } else {
            errors.duplicate(&at.child("name"), name);
        }
        claim_source(errors, claim, &at);
    }
}

fn claim_source(errors: &mut Errors, claim: &Value, at: &Path) {
    const KEYS: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
    let shown = || {
        let of = |key: &str| claim.get(key).unwrap_or(&Value::Null).to_string();
        format!(
            "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
            Value::from(text(claim, "name")),
            of(KEYS[0]),
            of(KEYS[1])
        )
    };
    let given = KEYS.iter().filter(|key| claim.get(**key).is_some()).count();
    if given > 1 {
        let why =
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
        errors.invalid_shown(at, shown(), why);
    } else if given == 0 {
        let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
        errors.invalid_shown(at, shown(), why);
    }
    for key in KEYS {
        if let Some(name) = opt_text(claim, key) {
            let mistakes = names::dns1123_subdomain(name);
            form(errors, at, key, name, mistakes);
        }
    }
}
