//! The certificate authority: signs what it is given. The callers decide whether it should be signed.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_core::certificates::CertificateRequest;
use kennel_core::certificates::lifetime::{Validity, validity};
use kennel_types::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber, SigningKey as _, SubjectPublicKeyInfo, date_time_ymd,
};

use super::request::{Parsed, RequestError, end_of};
use super::subject;

/// A certificate authority's certificate and key.
pub struct Authority {
    cert_pem: String,
    key_pem: String,
    /// `notAfter`, in seconds since the epoch.
    ends: Timestamp,
}

/// Why nothing can be signed.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("the authority's certificate cannot be read")]
    Certificate,
    /// The key or the certificate uses something that `rcgen` does not support.
    #[error("signing failed: {0}")]
    Sign(rcgen::Error),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the authority's certificate has expired")]
    Expired,
    /// The new certificate could not be given the request's subject.
    #[error("a new certificate cannot be read")]
    Subject,
}

impl From<rcgen::Error> for AuthorityError {
    fn from(error: rcgen::Error) -> Self {
        Self::Sign(error)
    }
}

impl Authority {
    pub fn new(cert_pem: String, key_pem: String) -> Result<Self, AuthorityError> {
        let ends = end_of(cert_pem.as_bytes()).ok_or(AuthorityError::Certificate)?;
        let authority = Self {
            cert_pem,
            key_pem,
            ends,
        };
        authority.issuer()?;
        Ok(authority)
    }

    /// `notAfter`, in seconds since the epoch.
    pub(super) fn ends(&self) -> Timestamp {
        self.ends
    }

    fn issuer(&self) -> Result<Issuer<'static, KeyPair>, rcgen::Error> {
        Issuer::from_ca_cert_pem(&self.cert_pem, KeyPair::from_pem(&self.key_pem)?)
    }

    /// Signs a PEM-encoded request for a serving certificate. For this process's own node, which needs no approval.
    pub fn sign_serving(&self, request_pem: &str) -> Result<String, AuthorityError> {
        let mut request = CertificateSigningRequest::default();
        request.spec.request = ByteString(request_pem.as_bytes().to_vec());
        let usages = ["digital signature", "server auth"];
        request.spec.usages = Some(usages.map(str::to_owned).to_vec());
        let parsed = Parsed::read(&request)?;
        let now = kennel_client::clock::now();
        let validity = validity(now, None, self.ends).ok_or(AuthorityError::Expired)?;
        self.sign(&parsed, validity)
    }

    /// Signs the request's subject, names and usages.
    pub(super) fn sign(
        &self,
        request: &Parsed,
        validity: Validity,
    ) -> Result<String, AuthorityError> {
        let mut params = CertificateParams::default();
        // A placeholder: see `subject`.
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "-");
        params.not_before = date_time_ymd(1970, 1, 1) + since_1970(validity.not_before);
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970(validity.not_after);
        params.serial_number = Some(SerialNumber::from(uuid::Uuid::new_v4().as_bytes().to_vec()));
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.subject_alt_names = names(&request.asked)?;
        set_usages(&mut params, &request.asked.usages);
        let issuer = self.issuer()?;
        let key = SubjectPublicKeyInfo::from_der(&request.key)?;
        let signed = params.signed_by(&key, &issuer)?;
        let named = subject::with_subject(signed.der(), &request.subject)
            .map_err(|_| AuthorityError::Subject)?;
        let signature = issuer.key().sign(named.to_be_signed())?;
        let certificate = named.signed(&signature);
        if !subject::has_subject(&certificate, &request.subject) {
            return Err(AuthorityError::Subject);
        }
        Ok(subject::to_pem(&certificate))
    }
}

fn since_1970(time: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(time.as_secs()).unwrap_or(0))
}

fn set_usages(params: &mut CertificateParams, usages: &[String]) {
    for usage in usages {
        let purpose = match usage.as_str() {
            "digital signature" => {
                params.key_usages.push(KeyUsagePurpose::DigitalSignature);
                continue;
            }
            "key encipherment" => {
                params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
                continue;
            }
            "client auth" => ExtendedKeyUsagePurpose::ClientAuth,
            "server auth" => ExtendedKeyUsagePurpose::ServerAuth,
            other => unreachable!("no signer of ours takes the usage {other:?}"),
        };
        params.extended_key_usages.push(purpose);
    }
}

fn names(asked: &CertificateRequest) -> Result<Vec<SanType>, rcgen::Error> {
    let mut names = Vec::new();
    for name in &asked.dns_names {
        names.push(SanType::DnsName(name.as_str().try_into()?));
    }
    for name in &asked.emails {
        names.push(SanType::Rfc822Name(name.as_str().try_into()?));
    }
    for uri in &asked.uris {
        names.push(SanType::URI(uri.as_str().try_into()?));
    }
    names.extend(asked.addresses.iter().copied().map(SanType::IpAddress));
    Ok(names)
}

#[cfg(test)]
mod tests;
