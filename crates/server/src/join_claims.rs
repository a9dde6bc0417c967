//! Deletes the claims of machines that have joined. [`kennel_core::certificates::claim`] has the rules.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_core::certificates::claim::{NAMESPACE, SECRET_PREFIX, SECRET_TYPE};
use kennel_store::{Op, Store};
use serde::Deserialize;

use crate::object::{self, Head};
use crate::registry;

#[derive(Deserialize)]
struct Secret {
    #[serde(rename = "type")]
    kind: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    node: String,
}

/// Deletes claims on the names of nodes that exist. A claim that a machine has abandoned stays: it says that the
/// certificate must be revoked before another machine gets the name.
pub(crate) async fn delete_settled(store: &dyn Store<Head>) {
    let prefix = object::key(registry::core("secrets"), Some(NAMESPACE), SECRET_PREFIX);
    for stored in store.range(&prefix, None, None).records {
        let Ok(secret) = serde_json::from_slice::<Secret>(&stored.value) else {
            continue;
        };
        let node = STANDARD.decode(secret.data.node).ok();
        let Some(node) = node.and_then(|node| String::from_utf8(node).ok()) else {
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
