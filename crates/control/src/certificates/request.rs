//! Decodes certificate requests, and refuses every ambiguous one.

use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_core::certificates::CertificateRequest;
use kennel_core::certificates::serving::Names;
use kennel_types::Timestamp;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry as oid;
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509CertificationRequest};
use x509_parser::x509::X509Name;

/// Why a request is refused. The text becomes the message of the request's condition.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("PEM block type must be {0}")]
    PemLabel(&'static str),
    #[error("the request cannot be read")]
    Encoding,
    #[error("something follows the request")]
    TrailingBytes,
    #[error("the request is not signed with its own key")]
    Signature,
    #[error("an extension cannot be read")]
    Extension,
    #[error("the subject's attribute {0} cannot be read")]
    AttributeValue(String),
    #[error("the subject's attribute {0} is not signed")]
    Attribute(String),
    #[error("the subject has more than one common name")]
    CommonNames,
    #[error("a subjectAltName is of a kind that is not signed")]
    AlternativeName,
    #[error("an IP subjectAltName is not an address")]
    Address,
}

/// The parts of a request that go into its certificate.
pub(super) struct Parsed {
    pub(super) asked: CertificateRequest,
    /// The encoded subject.
    pub(super) subject: Vec<u8>,
    /// The encoded public key with its algorithm.
    pub(super) key: Vec<u8>,
}

impl Parsed {
    /// Decodes a request and verifies that it is signed with its own key.
    pub(super) fn read(request: &CertificateSigningRequest) -> Result<Self, RequestError> {
        let block = block(&request.spec.request.0, "CERTIFICATE REQUEST")?;
        let (rest, parsed) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|_| RequestError::Encoding)?;
        if !rest.is_empty() {
            return Err(RequestError::TrailingBytes);
        }
        parsed
            .verify_signature()
            .map_err(|_| RequestError::Signature)?;
        let info = &parsed.certification_request_info;
        let mut asked = CertificateRequest {
            username: request.spec.username.clone().unwrap_or_default(),
            usages: request.spec.usages.clone().unwrap_or_default(),
            ..CertificateRequest::default()
        };
        read_names(&parsed, &mut asked)?;
        Ok(Self {
            asked,
            subject: info.subject.as_raw().to_vec(),
            key: info.subject_pki.raw.to_vec(),
        })
    }
}

/// The subject of a request and its other names.
fn read_names(
    request: &X509CertificationRequest<'_>,
    asked: &mut CertificateRequest,
) -> Result<(), RequestError> {
    read_subject(&request.certification_request_info.subject, asked)?;
    for extension in request.requested_extensions().into_iter().flatten() {
        match extension {
            ParsedExtension::SubjectAlternativeName(names) => {
                for name in &names.general_names {
                    read_name(name, asked)?;
                }
            }
            ParsedExtension::ParseError { .. } => {
                return Err(RequestError::Extension);
            }
            // The spec's usages and the signer decide about all others.
            _ => {}
        }
    }
    Ok(())
}

/// The common name and the organisations of a request whose signature nobody has verified, unless it is refused.
pub(super) fn unverified_subject(pem: &[u8]) -> Option<(String, Vec<String>)> {
    let block = block(pem, "CERTIFICATE REQUEST").ok()?;
    let (rest, parsed) = X509CertificationRequest::from_der(&block.contents).ok()?;
    let mut asked = CertificateRequest::default();
    read_names(&parsed, &mut asked).ok()?;
    let whole = rest.is_empty();
    whole.then_some((asked.common_name, asked.organisations))
}

/// The names and addresses in a certificate.
pub fn names_in(certificate_pem: &str) -> Names {
    let mut asked = CertificateRequest::default();
    if let Ok(block) = block(certificate_pem.as_bytes(), "CERTIFICATE")
        && let Ok((_, certificate)) = X509Certificate::from_der(&block.contents)
        && let Ok(Some(names)) = certificate.subject_alternative_name()
    {
        for name in &names.value.general_names {
            // No request can name what cannot be decoded.
            let _undecodable = read_name(name, &mut asked);
        }
    }
    let lowercase = |name: String| name.to_ascii_lowercase();
    Names {
        names: asked.dns_names.into_iter().map(lowercase).collect(),
        addresses: asked.addresses,
    }
}

/// When a certificate ends.
pub(super) fn end_of(certificate_pem: &[u8]) -> Option<Timestamp> {
    let block = block(certificate_pem, "CERTIFICATE").ok()?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    let seconds = certificate.validity().not_after.timestamp();
    Some(Timestamp::from_secs(seconds))
}

/// When a certificate begins.
#[cfg(test)]
pub(super) fn start_of(certificate_pem: &[u8]) -> Option<Timestamp> {
    let block = block(certificate_pem, "CERTIFICATE").ok()?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    let seconds = certificate.validity().not_before.timestamp();
    Some(Timestamp::from_secs(seconds))
}

fn block(pem: &[u8], label: &'static str) -> Result<Pem, RequestError> {
    match parse_x509_pem(pem) {
        Ok((_, block)) if block.label == label => Ok(block),
        _ => Err(RequestError::PemLabel(label)),
    }
}

/// The attributes that upstream's signer copies. It drops others, such as a user's uid; we refuse them, so that the
/// certificate is the one that was approved.
fn is_known(attribute: &x509_parser::der_parser::Oid<'_>) -> bool {
    let known = [
        oid::OID_X509_COUNTRY_NAME,
        oid::OID_X509_STATE_OR_PROVINCE_NAME,
        oid::OID_X509_LOCALITY_NAME,
        oid::OID_X509_STREET_ADDRESS,
        oid::OID_X509_POSTAL_CODE,
        oid::OID_X509_ORGANIZATIONAL_UNIT,
        oid::OID_X509_SERIALNUMBER,
    ];
    known.contains(attribute)
}

fn read_subject(
    subject: &X509Name<'_>,
    asked: &mut CertificateRequest,
) -> Result<(), RequestError> {
    let mut has_name = false;
    for attribute in subject.iter_attributes() {
        let kind = attribute.attr_type();
        let unreadable = |_| RequestError::AttributeValue(kind.to_string());
        let text = || attribute.as_str().map(str::to_owned).map_err(unreadable);
        if *kind == oid::OID_X509_COMMON_NAME {
            // Clients differ in which of several they use.
            if std::mem::replace(&mut has_name, true) {
                return Err(RequestError::CommonNames);
            }
            asked.common_name = text()?;
        } else if *kind == oid::OID_X509_ORGANIZATION_NAME {
            asked.organisations.push(text()?);
        } else if is_known(kind) {
            asked.more_in_subject = true;
        } else {
            return Err(RequestError::Attribute(kind.to_string()));
        }
    }
    Ok(())
}

fn read_name(name: &GeneralName<'_>, asked: &mut CertificateRequest) -> Result<(), RequestError> {
    match name {
        GeneralName::DNSName(name) => asked.dns_names.push((*name).to_owned()),
        GeneralName::RFC822Name(name) => asked.emails.push((*name).to_owned()),
        GeneralName::URI(uri) => asked.uris.push((*uri).to_owned()),
        GeneralName::IPAddress(bytes) => asked.addresses.push(address(bytes)?),
        _ => return Err(RequestError::AlternativeName),
    }
    Ok(())
}

fn address(bytes: &[u8]) -> Result<IpAddr, RequestError> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .map_err(|_| RequestError::Address)
}
