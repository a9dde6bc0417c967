//! A request for a certificate, taken apart. What cannot be read without doubt is no request.

use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_core::certificates::Asked;
use kennel_core::certificates::serving::Reserved;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry as oid;
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509CertificationRequest};
use x509_parser::x509::X509Name;

/// What of a request goes into its certificate.
pub(super) struct Parsed {
    /// What is asked, as the rules see it.
    pub(super) asked: Asked,
    /// The subject, as it is encoded.
    pub(super) subject: Vec<u8>,
    /// The public key with its algorithm, as it is encoded.
    pub(super) key: Vec<u8>,
}

impl Parsed {
    /// Reads a request and makes sure that who made it has the key.
    pub(super) fn read(request: &CertificateSigningRequest) -> Result<Self, String> {
        let block = block(&request.spec.request.0, "CERTIFICATE REQUEST")?;
        let (rest, parsed) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|_| "the request cannot be read".to_owned())?;
        if !rest.is_empty() {
            return Err("something follows the request".to_owned());
        }
        parsed
            .verify_signature()
            .map_err(|_| "the request is not signed with its own key".to_owned())?;
        let info = &parsed.certification_request_info;
        let mut asked = Asked {
            username: request.spec.username.clone().unwrap_or_default(),
            usages: request.spec.usages.clone().unwrap_or_default(),
            ..Asked::default()
        };
        read_subject(&info.subject, &mut asked)?;
        for extension in parsed.requested_extensions().into_iter().flatten() {
            match extension {
                ParsedExtension::SubjectAlternativeName(names) => {
                    for name in &names.general_names {
                        read_name(name, &mut asked)?;
                    }
                }
                ParsedExtension::ParseError { .. } => {
                    return Err("an extension cannot be read".to_owned());
                }
                // What a certificate is good for is up to the usages and the signer.
                _ => {}
            }
        }
        Ok(Self {
            asked,
            subject: info.subject.as_raw().to_vec(),
            key: info.subject_pki.raw.to_vec(),
        })
    }
}

/// The names and addresses in a certificate.
pub fn names_in(certificate_pem: &str) -> Reserved {
    let mut asked = Asked::default();
    if let Ok(block) = block(certificate_pem.as_bytes(), "CERTIFICATE")
        && let Ok((_, certificate)) = X509Certificate::from_der(&block.contents)
        && let Ok(Some(names)) = certificate.subject_alternative_name()
    {
        for name in &names.value.general_names {
            // What cannot be read is no name that anybody could ask for.
            let _unread = read_name(name, &mut asked);
        }
    }
    let small = |name: String| name.to_ascii_lowercase();
    Reserved {
        names: asked.dns_names.into_iter().map(small).collect(),
        addresses: asked.addresses,
    }
}

/// When a certificate ends, in seconds since the epoch.
pub(super) fn end_of(certificate_pem: &[u8]) -> Option<i64> {
    let block = block(certificate_pem, "CERTIFICATE").ok()?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

fn block(pem: &[u8], label: &str) -> Result<Pem, String> {
    match parse_x509_pem(pem) {
        Ok((_, block)) if block.label == label => Ok(block),
        _ => Err(format!("PEM block type must be {label}")),
    }
}

/// The attributes that upstream's signer knows. Others it drops; we refuse them, so that nobody gets another
/// certificate than the one that was approved. A user's uid is such a one.
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

fn read_subject(subject: &X509Name<'_>, asked: &mut Asked) -> Result<(), String> {
    let mut has_name = false;
    for attribute in subject.iter_attributes() {
        let kind = attribute.attr_type();
        let unreadable = |_| format!("the subject's attribute {kind} cannot be read");
        let text = || attribute.as_str().map(str::to_owned).map_err(unreadable);
        if *kind == oid::OID_X509_COMMON_NAME {
            // Readers differ in which of several they take.
            if std::mem::replace(&mut has_name, true) {
                return Err("the subject has more than one common name".to_owned());
            }
            asked.common_name = text()?;
        } else if *kind == oid::OID_X509_ORGANIZATION_NAME {
            asked.organisations.push(text()?);
        } else if is_known(kind) {
            asked.more_in_subject = true;
        } else {
            return Err(format!("the subject's attribute {kind} is not signed"));
        }
    }
    Ok(())
}

fn read_name(name: &GeneralName<'_>, asked: &mut Asked) -> Result<(), String> {
    match name {
        GeneralName::DNSName(name) => asked.dns_names.push((*name).to_owned()),
        GeneralName::RFC822Name(name) => asked.emails.push((*name).to_owned()),
        GeneralName::URI(uri) => asked.uris.push((*uri).to_owned()),
        GeneralName::IPAddress(bytes) => asked.addresses.push(address(bytes)?),
        _ => return Err("a subjectAltName is of a kind that is not signed".to_owned()),
    }
    Ok(())
}

fn address(bytes: &[u8]) -> Result<IpAddr, String> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .map_err(|_| "an IP subjectAltName is no address".to_owned())
}
