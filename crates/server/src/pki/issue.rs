//! The certificate authority and the certificates that it issues.

use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber,
};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::files::{self, PkiError};

/// Replacing the CA means changing every node and kubeconfig.
const CA_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 365;
/// A certificate with a shorter remaining validity is renewed at start.
const RENEW_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 86_400;

/// A certificate and its key, as PEM.
pub type Pair = (String, String);

pub struct Authority {
    pub cert_pem: String,
    pub key_pem: String,
}

impl Authority {
    /// Opens the CA of a directory, or creates it.
    pub fn open(dir: &Path) -> Result<Self, PkiError> {
        let (cert, key) = (dir.join("ca.crt"), dir.join("ca.key"));
        // An interrupted first start leaves a key without certificate, which has signed nothing yet.
        if let Some(cert_pem) = files::read(&cert)? {
            let Some(key_pem) = files::read(&key)? else {
                return Err(PkiError::Keyless { cert, key });
            };
            check_authority((&cert, &cert_pem), (&key, &key_pem))?;
            return Ok(Self { cert_pem, key_pem });
        }
        let pair = KeyPair::generate()?;
        let mut params = parameters("kennel-ca", None, CA_DAYS);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let created = Self {
            cert_pem: params.self_signed(&pair)?.pem(),
            key_pem: pair.serialize_pem(),
        };
        // The key first: a certificate without its key is an error at the next start.
        files::write_private(&key, &created.key_pem)?;
        files::write_public(&cert, &created.cert_pem)?;
        Ok(created)
    }

    /// The serving certificate for these names and addresses.
    pub fn server(
        &self,
        dir: &Path,
        names: &[String],
        addresses: &[IpAddr],
    ) -> Result<Pair, PkiError> {
        let mut params = parameters("kennel-server", None, LEAF_DAYS);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let mut wanted = Vec::new();
        for name in names {
            params
                .subject_alt_names
                .push(SanType::DnsName(name.as_str().try_into()?));
            wanted.push(name.clone());
        }
        for address in addresses {
            params.subject_alt_names.push(SanType::IpAddress(*address));
            wanted.push(address.to_string());
        }
        self.reuse_or_issue(dir, "server", &params, &wanted)
    }

    /// A client certificate: the user is its common name, the group (if any) its organisation.
    pub fn client(
        &self,
        dir: &Path,
        file: &str,
        user: &str,
        group: Option<&str>,
    ) -> Result<Pair, PkiError> {
        let mut params = parameters(user, group, LEAF_DAYS);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.reuse_or_issue(dir, file, &params, &[])
    }

    fn reuse_or_issue(
        &self,
        dir: &Path,
        file: &str,
        params: &CertificateParams,
        names: &[String],
    ) -> Result<Pair, PkiError> {
        let (cert, key) = (
            dir.join(format!("{file}.crt")),
            dir.join(format!("{file}.key")),
        );
        if let (Some(cert_pem), Some(key_pem)) = (files::read(&cert)?, files::read(&key)?)
            && self.is_reusable(&cert_pem, names)
            && KeyPair::from_pem(&key_pem).is_ok_and(|pair| is_for(&cert_pem, &pair))
        {
            return Ok((cert_pem, key_pem));
        }
        let pair = KeyPair::generate()?;
        let issuer = Issuer::from_ca_cert_pem(&self.cert_pem, KeyPair::from_pem(&self.key_pem)?)?;
        let cert_pem = params.signed_by(&pair, &issuer)?.pem();
        let key_pem = pair.serialize_pem();
        files::write_private(&key, &key_pem)?;
        files::write_public(&cert, &cert_pem)?;
        Ok((cert_pem, key_pem))
    }

    /// Whether a certificate was issued by this CA, has all the names and does not expire soon.
    fn is_reusable(&self, cert_pem: &str, names: &[String]) -> bool {
        let (Some(info), Some(own)) = (
            CertificateInfo::read(cert_pem),
            CertificateInfo::read(&self.cert_pem),
        ) else {
            return false;
        };
        info.issuer == own.subject
            && info.issuer_key == own.subject_key
            && info.expires > jiff::Timestamp::now().as_second() + RENEW_DAYS * DAY_SECONDS
            && names.iter().all(|name| info.names.contains(name))
    }
}

/// Refuses a CA whose files are damaged or do not match. It is never replaced automatically: every node and
/// kubeconfig trusts the old one.
fn check_authority(cert: (&Path, &str), key: (&Path, &str)) -> Result<(), PkiError> {
    let unusable = |path: &Path, what| PkiError::Unusable {
        path: path.to_owned(),
        what,
    };
    let pair = KeyPair::from_pem(key.1).map_err(|_| unusable(key.0, "private key"))?;
    if CertificateInfo::read(cert.1).is_none() {
        return Err(unusable(cert.0, "certificate"));
    }
    if is_for(cert.1, &pair) {
        return Ok(());
    }
    Err(PkiError::Mismatch {
        cert: cert.0.to_owned(),
        key: key.0.to_owned(),
    })
}

fn is_for(cert_pem: &str, pair: &KeyPair) -> bool {
    CertificateInfo::read(cert_pem).is_some_and(|info| info.key == pair.subject_public_key_info())
}

/// At most one organisation: rcgen keeps only the last attribute of a type.
fn parameters(common_name: &str, organisation: Option<&str>, days: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    if let Some(organisation) = organisation {
        subject.push(DnType::OrganizationName, organisation);
    }
    subject.push(DnType::CommonName, common_name);
    params.distinguished_name = subject;
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let midnight = |day: jiff::civil::Date| {
        let (month, number) = (day.month().unsigned_abs(), day.day().unsigned_abs());
        rcgen::date_time_ymd(day.year().into(), month, number)
    };
    // Certificates are valid from a day in the past, because of clock skew.
    params.not_before = midnight(today.saturating_sub(jiff::Span::new().days(1)));
    params.not_after = midnight(today.saturating_add(jiff::Span::new().days(days)));
    params.serial_number = Some(SerialNumber::from(uuid::Uuid::new_v4().as_bytes().to_vec()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

struct CertificateInfo {
    /// The `SubjectPublicKeyInfo`.
    key: Vec<u8>,
    subject: String,
    issuer: String,
    subject_key: Vec<u8>,
    issuer_key: Vec<u8>,
    expires: i64,
    names: Vec<String>,
}

impl CertificateInfo {
    fn read(pem: &str) -> Option<Self> {
        use x509_parser::extensions::ParsedExtension;
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
        let (_, cert) = X509Certificate::from_der(&pem.contents).ok()?;
        let mut info = Self {
            key: cert.public_key().raw.to_vec(),
            subject: cert.subject().to_string(),
            issuer: cert.issuer().to_string(),
            subject_key: Vec::new(),
            issuer_key: Vec::new(),
            expires: cert.validity().not_after.timestamp(),
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
