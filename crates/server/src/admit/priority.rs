//! Admission of priority classes: at most one is the global default.

use serde_json::Value;

use super::{Admission, Write};
use crate::api::Api;
use crate::registry::Resource;
use crate::status::{ApiError, Result};

/// The admission of priority classes.
pub(crate) struct PriorityClassAdmission;

impl Admission for PriorityClassAdmission {
    fn create(&self, write: Write<'_>, class: &mut Value) -> Result<()> {
        check_one_default(write.api, write.row, class)
    }

    fn update(&self, write: Write<'_>, new: &mut Value, _old: &Value) -> Result<()> {
        check_one_default(write.api, write.row, new)
    }
}

fn check_one_default(api: &Api, row: &Resource, class: &Value) -> Result<()> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    let others = api.all(row);
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
