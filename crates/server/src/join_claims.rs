//! Deletes the claims of machines that have joined. [`kennel_core::certificates::claim`] has the rules.

use kennel_core::certificates::claim::{NAMESPACE, NODE, SECRET_PREFIX, SECRET_TYPE};
use kennel_store::{Op, Store};

use crate::object::secret::Secret;
use crate::object::{self, Head};
use crate::registry;

/// Deletes claims on the names of nodes that exist. A claim that a machine has abandoned stays: it says that the
/// certificate must be revoked before another machine gets the name.
pub(crate) async fn delete_settled(store: &dyn Store<Head>) {
    let prefix = object::key(registry::core("secrets"), Some(NAMESPACE), SECRET_PREFIX);
    for stored in store.range(&prefix, None, None).records {
        let Some(secret) = Secret::read(&stored.value) else {
            continue;
        };
        let Some(node) = secret.text(NODE) else {
            continue;
        };
        let node = object::key(registry::core("nodes"), None, &node);
        if secret.kind == SECRET_TYPE && store.get(&node).is_some() {
            let (key, expected) = (stored.key.to_string(), stored.modified);
            // One that was written again meanwhile stays.
            let _outcome = store.write(Op::Delete { key, expected }).await;
        }
    }
}
