//! Secrets that the server itself reads: bootstrap tokens, claims on names, revocations.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Secret {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Secret {
    /// A stored Secret.
    pub(crate) fn read(stored: &[u8]) -> Option<Self> {
        serde_json::from_slice(stored).ok()
    }

    /// A value that is text.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let bytes = STANDARD.decode(self.data.get(key)?).ok()?;
        String::from_utf8(bytes).ok()
    }
}
