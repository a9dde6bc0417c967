//! The strategy of ServiceAccount.

use serde_json::{Map, Value};

use super::Strategy;
use crate::tree::list_mut;

#[derive(Debug)]
pub struct ServiceAccount;

impl Strategy for ServiceAccount {
    fn prepare_create(&self, object: &mut Value) {
        keep_secret_names(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value) {
        keep_secret_names(new);
    }
}

/// Secrets are always in the account's namespace, so only their names are kept.
fn keep_secret_names(object: &mut Value) {
    for secret in list_mut(object, "secrets") {
        let name = secret.get("name").cloned();
        let fields: Map<String, Value> = name.map(|n| ("name".to_owned(), n)).into_iter().collect();
        *secret = Value::Object(fields);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::created;
    use super::*;

    #[test]
    fn only_names_of_secrets_are_kept() {
        let object = json!({"secrets": [{"name": "a", "namespace": "x", "kind": "Secret"}, {}]});
        assert_eq!(
            created(&ServiceAccount, &object),
            json!({"secrets": [{"name": "a"}, {}]})
        );
    }
}
