//! Field errors with values that upstream prints as Go structs: with Go's field names in Go's order.

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

pub fn invalid_shown(path: &Path, shown: &str, detail: &str) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: path.to_string(),
        message: format!("Invalid value: {shown}: {detail}"),
    }
}

/// The detail may be empty.
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

/// Upstream's path of errors that concern the whole object.
pub fn whole_object() -> Path {
    Path::new("[]")
}
