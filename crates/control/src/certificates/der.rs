//! The few bytes of DER that a certificate needs to get another subject.
//!
//! ```text
//!   Certificate = SEQUENCE { to be signed = SEQUENCE { …, subject, … }, algorithm, BIT STRING signature }
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
/// How many characters PEM has on a line.
const LINE: usize = 64;

/// A certificate that is not signed yet.
pub(super) struct Unsigned {
    to_be_signed: Vec<u8>,
    algorithm: Vec<u8>,
}

/// The same certificate for another subject; none if it cannot be read.
pub(super) fn with_subject(certificate: &[u8], subject: &[u8]) -> Option<Unsigned> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let replaced = parsed.tbs_certificate.subject.as_raw();
    let Split {
        content: to_be_signed,
        rest,
    } = split(split(certificate)?.content)?;
    let algorithm = split(rest)?;
    let from = (replaced.as_ptr() as usize).checked_sub(to_be_signed.as_ptr() as usize)?;
    let parts = [
        to_be_signed.get(..from)?,
        subject,
        to_be_signed.get(from + replaced.len()..)?,
    ];
    Some(Unsigned {
        to_be_signed: element(SEQUENCE, &parts.concat()),
        algorithm: element(SEQUENCE, algorithm.content),
    })
}

/// An element's content, and what follows it.
struct Split<'a> {
    content: &'a [u8],
    rest: &'a [u8],
}

/// Splits after the first element. Lengths are in one byte, or in as many as the first one says.
fn split(der: &[u8]) -> Option<Split<'_>> {
    let (&first, after) = der.get(1..)?.split_first()?;
    let (length, after) = if first < 0x80 {
        (usize::from(first), after)
    } else {
        let (bytes, after) = after.split_at_checked(usize::from(first & 0x7f))?;
        let length = bytes
            .iter()
            .fold(0, |sum: usize, byte| (sum << 8) | usize::from(*byte));
        (length, after)
    };
    let (content, rest) = after.split_at_checked(length)?;
    Some(Split { content, rest })
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let used: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut der = vec![tag];
    match used[..] {
        [] => der.push(0),
        [short] if short < 0x80 => der.push(short),
        _ => {
            let count = u8::try_from(used.len()).expect("a length has at most eight bytes");
            der.push(0x80 | count);
            der.extend(used);
        }
    }
    der.extend(content);
    der
}

/// A certificate as PEM.
pub(super) fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    let body = lines.join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

impl Unsigned {
    /// What the signature is of.
    pub(super) fn to_be_signed(&self) -> &[u8] {
        &self.to_be_signed
    }

    /// The certificate with its signature.
    pub(super) fn signed(&self, signature: &[u8]) -> Vec<u8> {
        // No bits of the last byte are unused.
        let bits = element(BIT_STRING, &[&[0], signature].concat());
        element(
            SEQUENCE,
            &[&self.to_be_signed[..], &self.algorithm, &bits].concat(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_apart_as_they_are_put_together() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let mut der = element(SEQUENCE, &content);
            der.push(9);
            let split = split(&der).unwrap();
            assert_eq!((split.content, split.rest), (&content[..], &[9][..]));
        }
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        let der = element(SEQUENCE, &[7; 300]);
        for length in [0, 1, 2, 3, 303] {
            assert!(split(&der[..length]).is_none(), "{length}");
        }
    }
}
