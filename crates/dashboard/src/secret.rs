//! Random secrets: the token of an address, and the cookies of sessions.

use aws_lc_rs::{constant_time, rand};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// 256 bits.
const BYTES: usize = 32;

/// No random numbers could be had from the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandomness;

/// Compared in constant time; its `Debug` form does not show it.
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn random() -> Result<Self, NoRandomness> {
        let mut bytes = [0; BYTES];
        rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// For a URL or a cookie: letters, digits, `-` and `_`.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn is(&self, given: &str) -> bool {
        constant_time::verify_slices_are_equal(self.0.as_bytes(), given.as_bytes()).is_ok()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_not_printed() {
        let (one, two) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert!(one.is(one.text()) && !one.is(two.text()) && !one.is(""));
        assert!(!one.is(&one.text()[1..]));
        assert_eq!(one.text().len(), 43);
        assert_eq!(format!("{one:?}"), "Secret");
    }
}
