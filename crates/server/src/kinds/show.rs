//! Values that upstream prints as Go structs: with Go's field names in Go's order.

use serde_json::Value;

use crate::field::Path;

/// A structure with Go's field names, in the order given.
pub fn go_struct(fields: &[(&str, &Value)]) -> String {
    let shown: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", shown.join(","))
}

/// Upstream's path of errors that concern the whole object.
pub fn whole_object() -> Path {
    Path::new("[]")
}
