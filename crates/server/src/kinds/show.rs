//! Field errors that upstream prints in the shape of its internal Go types.
//!
//! Where upstream shows a whole structure, users see Go's field names in Go's order. These helpers
//! print such a structure; they decide nothing.

use serde_json::Value;

use crate::field::{FieldError, Mistake, Path};

/// A structure with Go's field names, in the order given.
pub fn go_struct(fields: &[(&str, &Value)]) -> String {
    let shown: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", shown.join(","))
}

/// An invalid value that is shown as `shown`.
pub fn invalid_shown(path: &Path, shown: &str, detail: &str) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: path.to_string(),
        message: format!("Invalid value: {shown}: {detail}"),
    }
}

/// A duplicate value that is shown as `shown`. The detail may be empty.
pub fn duplicate_shown(path: &Path, shown: &str, detail: &str) -> FieldError {
    let detail = if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    };
    FieldError {
        mistake: Mistake::Duplicate,
        field: path.to_string(),
        message: format!("Duplicate value: {shown}{detail}"),
    }
}

/// The path upstream gives to mistakes that concern the whole object.
pub fn whole_object() -> Path {
    Path::new("[]")
}
