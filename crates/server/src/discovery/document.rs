//! An answer that does not change while the server runs: its bytes and their `ETag`.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The bytes of an answer and the `ETag` that names them.
#[derive(Clone, Debug)]
pub struct Document {
    pub body: Bytes,
    /// The `ETag` header: the quoted hex SHA-256 of the body.
    pub etag: String,
}

impl Document {
    /// Serialises an answer as compact JSON.
    pub fn new(answer: &impl Serialize) -> Self {
        let body = serde_json::to_vec(answer).expect("answers always serialise into memory");
        Self::from_bytes(body)
    }

    pub fn from_bytes(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let etag = format!("\"{}\"", hash(&body));
        Self { body, etag }
    }

    /// Whether the client already has this body (`If-None-Match`).
    pub fn matches(&self, if_none_match: &str) -> bool {
        if_none_match
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"))
            .any(|tag| tag == "*" || tag == self.etag)
    }
}

/// The hex SHA-256 of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02X}").expect("a string takes every write");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_names_the_content() {
        let one = Document::from_bytes("abc");
        assert_eq!(
            one.etag,
            "\"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\""
        );
        assert!(one.matches(&one.etag));
        assert!(one.matches(&format!("\"x\", W/{}", one.etag)));
        assert!(one.matches("*"));
        assert!(!one.matches("\"x\""));
        assert!(!one.matches(&Document::from_bytes("abd").etag));
    }
}
