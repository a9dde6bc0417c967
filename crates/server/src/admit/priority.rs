//! One default priority class, not two.

use serde_json::Value;

use crate::api::Api;
use crate::object;
use crate::registry::Resource;
use crate::status::{ApiError, Result};

/// Refuses a second class that pods get by default.
pub(super) fn check_one_default(api: &Api, row: &Resource, class: &Value) -> Result<()> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    let others = api
        .store
        .range(&object::prefix(row, None), None, None)
        .records;
    for other in others.iter().filter(|other| &*other.head.name != name) {
        let tree: Value = serde_json::from_slice(&other.value).unwrap_or_default();
        if tree["globalDefault"] == true {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other.head.name
            );
            return Err(ApiError::forbidden(row, name, &why));
        }
    }
    Ok(())
}
