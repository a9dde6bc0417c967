//! Replaces the subject of a certificate.
//!
//! `rcgen` cannot write every subject: it keeps one value per attribute type, while a request may name several
//! organisations. So the certificate is built with a placeholder, its fields are decoded, the subject is exchanged for
//! the request's encoded one, and the result is signed again. Decision 62 says why no other crate does this better
//! (`docs/decisions/0062-the-subject-of-a-certificate.md`).
//!
//! ```text
//!   Certificate = SEQUENCE { TBSCertificate, signatureAlgorithm, signature BIT STRING }
//!   TBSCertificate = SEQUENCE { version, serialNumber, signature, issuer, validity, subject, … }
//! ```

use pem::{EncodeConfig, LineEnding, Pem};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result};

/// The position of the subject in a version 3 `TBSCertificate`.
const SUBJECT: usize = 5;
/// How many fields a version 3 `TBSCertificate` with extensions and without unique identifiers has.
const FIELDS: usize = 8;

/// A certificate that is not signed yet.
pub(super) struct Unsigned {
    to_be_signed: Vec<u8>,
    algorithm: Vec<u8>,
}

/// The same certificate for another subject. `subject` is an encoded `Name`.
pub(super) fn with_subject(certificate: &[u8], subject: &[u8]) -> ASN1Result<Unsigned> {
    yasna::parse_der(certificate, |reader| {
        reader.read_sequence(|certificate| {
            let mut fields = Vec::new();
            certificate.next().read_sequence_of(|field| {
                fields.push(field.read_der()?);
                Ok(())
            })?;
            if fields.len() != FIELDS {
                return Err(ASN1Error::new(ASN1ErrorKind::Invalid));
            }
            fields[SUBJECT] = subject.to_vec();
            let algorithm = certificate.next().read_der()?;
            let _signature_of_the_placeholder = certificate.next().read_der()?;
            Ok(Unsigned {
                to_be_signed: sequence(fields.iter().map(Vec::as_slice)),
                algorithm,
            })
        })
    })
}

fn sequence<'a>(elements: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    yasna::construct_der(|writer| {
        writer.write_sequence(|sequence| {
            for element in elements {
                sequence.next().write_der(element);
            }
        });
    })
}

impl Unsigned {
    /// The bytes to sign.
    pub(super) fn to_be_signed(&self) -> &[u8] {
        &self.to_be_signed
    }

    /// The certificate with its signature.
    pub(super) fn signed(&self, signature: &[u8]) -> Vec<u8> {
        let bits = signature.len() * 8;
        let signature = yasna::construct_der(|writer| writer.write_bitvec_bytes(signature, bits));
        sequence([&self.to_be_signed[..], &self.algorithm, &signature])
    }
}

/// Whether a certificate can be decoded and has exactly this encoded subject.
pub(super) fn has_subject(certificate: &[u8], subject: &[u8]) -> bool {
    match X509Certificate::from_der(certificate) {
        Ok((rest, parsed)) => rest.is_empty() && parsed.subject().as_raw() == subject,
        Err(_) => false,
    }
}

/// A DER-encoded certificate as PEM.
pub(super) fn to_pem(certificate: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", certificate), config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{Certificate, CertificateParams, IsCa, KeyPair};

    fn certificate() -> Certificate {
        let mut params = CertificateParams::default();
        // Basic constraints, so that it has extensions.
        params.is_ca = IsCa::ExplicitNoCa;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn only_the_subject_changes() {
        let certificate = certificate();
        let der = certificate.der();
        let (_, before) = X509Certificate::from_der(der).unwrap();
        // O=a, O=b
        let organisation = |value: u8| {
            let value = [0x0c, 1, value];
            let oid = [6, 3, 85, 4, 10];
            let attribute = sequence([&oid[..], &value]);
            yasna::construct_der(|writer| writer.write_set(|set| set.next().write_der(&attribute)))
        };
        let subject = sequence([&organisation(b'a')[..], &organisation(b'b')]);
        let unsigned = with_subject(der, &subject).unwrap();
        let changed = unsigned.signed(&[7; 300]);
        assert!(has_subject(&changed, &subject));
        assert!(!has_subject(der, &subject));
        let (_, after) = X509Certificate::from_der(&changed).unwrap();
        assert_eq!(after.subject().to_string(), "O=a, O=b");
        assert_eq!(after.serial, before.serial);
        assert_eq!(after.public_key().raw, before.public_key().raw);
        assert_eq!(after.extensions(), before.extensions());
        assert_eq!(after.signature_value.data.as_ref(), [7; 300]);
    }

    #[test]
    fn truncated_certificates_are_refused() {
        let certificate = certificate();
        let der = certificate.der();
        for length in [0, 1, 2, 30, der.len() - 1] {
            assert!(
                with_subject(&der[..length], &[0x30, 0]).is_err(),
                "{length}"
            );
        }
    }
}
