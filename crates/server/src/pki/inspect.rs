//! Reads certificates.

use std::net::IpAddr;

use kennel_types::Timestamp;
use rcgen::{KeyPair, PublicKeyData as _};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

const END: &str = "-----END CERTIFICATE-----";

pub struct CertificateInfo {
    /// The `SubjectPublicKeyInfo`.
    pub key: Vec<u8>,
    pub subject: String,
    pub issuer: String,
    pub subject_key: Vec<u8>,
    pub issuer_key: Vec<u8>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub names: Vec<String>,
}

impl CertificateInfo {
    /// Reads the first certificate of a PEM file.
    pub fn read(pem: &str) -> Option<Self> {
        use x509_parser::extensions::ParsedExtension;
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
        let (_, cert) = X509Certificate::from_der(&pem.contents).ok()?;
        let mut info = Self {
            key: cert.public_key().raw.to_vec(),
            subject: cert.subject().to_string(),
            issuer: cert.issuer().to_string(),
            subject_key: Vec::new(),
            issuer_key: Vec::new(),
            not_before: Timestamp::from_secs(cert.validity().not_before.timestamp()),
            not_after: Timestamp::from_secs(cert.validity().not_after.timestamp()),
            names: Vec::new(),
        };
        for extension in cert.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => info.subject_key = id.0.to_vec(),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    info.issuer_key = id.key_identifier.as_ref()?.0.to_vec();
                }
                ParsedExtension::SubjectAlternativeName(list) => {
                    info.names = list.general_names.iter().filter_map(name).collect();
                }
                _ => {}
            }
        }
        Some(info)
    }

    pub fn is_for(&self, pair: &KeyPair) -> bool {
        self.key == pair.subject_public_key_info()
    }

    pub fn is_issued_by(&self, authority: &Self) -> bool {
        self.issuer == authority.subject && self.issuer_key == authority.subject_key
    }
}

/// The certificates of a PEM file, one by one.
pub fn split(pem: &str) -> Vec<String> {
    let parts = pem.split_inclusive(END).filter(|part| part.contains(END));
    parts
        .map(|part| format!("{}\n", part.trim_start()))
        .collect()
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes)
                .ok()
                .map(|b| IpAddr::from(b).to_string()),
            16 => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|b| IpAddr::from(b).to_string()),
            _ => None,
        },
        _ => None,
    }
}
