//! Continue tokens: the position of a paged list, and the revision it is a snapshot of.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::status::{ApiError, Result};

/// The position after the last item of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The revision of the whole list.
    pub revision: u64,
    /// The key of the last item sent.
    pub after: String,
}

impl Continuation {
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(json!({"rv": self.revision, "start": self.after}).to_string())
    }

    pub fn decode(token: &str) -> Result<Self> {
        let read = || {
            let text = URL_SAFE_NO_PAD.decode(token).ok()?;
            let value: Value = serde_json::from_slice(&text).ok()?;
            Some(Self {
                revision: value["rv"].as_u64()?,
                after: value["start"].as_str()?.to_owned(),
            })
        };
        read().ok_or_else(|| {
            ApiError::bad_request("invalid continue token: continue key is not valid")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_decode_to_what_was_encoded() {
        let there = Continuation {
            revision: 7,
            after: "/registry/pods/a/b".to_owned(),
        };
        assert_eq!(Continuation::decode(&there.encode()).unwrap(), there);
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        for token in ["", "x", "e30", "%%%"] {
            assert_eq!(
                Continuation::decode(token).unwrap_err().code,
                400,
                "{token}"
            );
        }
    }
}
