//! Base64 as Go's `base64.StdEncoding` decodes it: padded, line breaks ignored, and the offset of the
//! first mistake in the error.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

#[derive(Debug, thiserror::Error)]
pub enum Base64Error {
    #[error("illegal base64 data at input byte {0}")]
    Corrupt(usize),
    #[error(transparent)]
    Decode(#[from] base64::DecodeError),
}

/// The canonical form if it differs from the given one.
pub(super) fn canonical(text: &str) -> Result<Option<String>, Base64Error> {
    check(text.as_bytes())?;
    let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let canonical = LENIENT.encode(LENIENT.decode(&compact)?);
    Ok((canonical != text).then_some(canonical))
}

/// Fails where Go's decoder would.
fn check(text: &[u8]) -> Result<(), Base64Error> {
    let corrupt = |at: usize| Err(Base64Error::Corrupt(at));
    let skip_breaks = |mut at: usize| {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    let (mut at, mut in_group) = (0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\r' | b'\n' => {}
            b'=' => {
                let mut next = at + 1;
                match in_group {
                    0 | 1 => return corrupt(at),
                    2 => {
                        next = skip_breaks(next);
                        match text.get(next) {
                            None => return corrupt(text.len()),
                            Some(b'=') => next += 1,
                            Some(_) => return corrupt(next - 1),
                        }
                    }
                    _ => {}
                }
                next = skip_breaks(next);
                return if next < text.len() {
                    corrupt(next)
                } else {
                    Ok(())
                };
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => in_group = (in_group + 1) % 4,
            _ => return corrupt(at),
        }
        at += 1;
    }
    if in_group == 0 {
        return Ok(());
    }
    corrupt(at - in_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_accepts() {
        for (text, expected) in [
            ("", None),
            ("aGVsbG8=", None),
            ("aGVs\nbG8=\n", Some("aGVsbG8=")),
            ("aGVsbG9=", Some("aGVsbG8=")),
        ] {
            assert_eq!(canonical(text).unwrap().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn where_go_stops() {
        for (text, at) in [
            ("!!", 0),
            ("not base64", 3),
            ("aGVsbG8", 4),
            ("a", 0),
            ("=", 0),
            ("aG=", 3),
            ("aG=x", 2),
            ("aGVsbG8=x", 8),
            ("aGVsé", 4),
        ] {
            let expected = format!("illegal base64 data at input byte {at}");
            assert_eq!(
                canonical(text).unwrap_err().to_string(),
                expected,
                "{text:?}"
            );
        }
    }
}
