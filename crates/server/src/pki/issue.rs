//! The certificate authority and what it issues.

use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber,
};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::files::{self, PkiError};

/// How long the CA lives: replacing it means visiting every node.
const CA_DAYS: i64 = 3650;
/// How long what it issues lives.
const LEAF_DAYS: i64 = 365;
/// A certificate with less than this left is replaced at start.
const RENEW_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 86_400;

/// A certificate and its key, as PEM.
pub type Pair = (String, String);

/// The certificate authority.
pub struct Authority {
    /// Its certificate.
    pub cert_pem: String,
    /// Its key.
    pub key_pem: String,
}

impl Authority {
    /// Opens the authority of a directory, or makes it.
    pub fn open(dir: &Path) -> Result<Self, PkiError> {
        let (cert, key) = (dir.join("ca.crt"), dir.join("ca.key"));
        // A key alone is what an interrupted first start leaves behind: it has signed nothing yet.
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
        let made = Self {
            cert_pem: params.self_signed(&pair)?.pem(),
            key_pem: pair.serialize_pem(),
        };
        // The key first: a certificate without its key would be taken for damage.
        files::write_private(&key, &made.key_pem)?;
        files::write_public(&cert, &made.cert_pem)?;
        Ok(made)
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
        self.keep_or_issue(dir, "server", &params, &wanted)
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
        self.keep_or_issue(dir, file, &params, &[])
    }

    fn keep_or_issue(
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
            && self.still_good(&cert_pem, names)
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

    /// Whether a certificate is of this CA, has all the names and lives on for a while.
    fn still_good(&self, cert_pem: &str, names: &[String]) -> bool {
        let (Some(facts), Some(own)) = (Facts::read(cert_pem), Facts::read(&self.cert_pem)) else {
            return false;
        };
        facts.issuer == own.subject
            && facts.issuer_key == own.subject_key
            && facts.expires > jiff::Timestamp::now().as_second() + RENEW_DAYS * DAY_SECONDS
            && names.iter().all(|name| facts.names.contains(name))
    }
}

/// Refuses an authority that could issue nothing clients would trust. It is never replaced unasked:
/// every node and kubeconfig out there knows the old one.
fn check_authority(cert: (&Path, &str), key: (&Path, &str)) -> Result<(), PkiError> {
    let unusable = |path: &Path, what| PkiError::Unusable {
        path: path.to_owned(),
        what,
    };
    let pair = KeyPair::from_pem(key.1).map_err(|_| unusable(key.0, "private key"))?;
    if Facts::read(cert.1).is_none() {
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

/// Whether a certificate is for this key.
fn is_for(cert_pem: &str, pair: &KeyPair) -> bool {
    Facts::read(cert_pem).is_some_and(|facts| facts.key == pair.subject_public_key_info())
}

/// One organisation at most: rcgen keeps only the last attribute of a type.
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
    // Clocks of a fleet differ: certificates begin a day in the past.
    params.not_before = midnight(today.saturating_sub(jiff::Span::new().days(1)));
    params.not_after = midnight(today.saturating_add(jiff::Span::new().days(days)));
    params.serial_number = Some(SerialNumber::from(uuid::Uuid::new_v4().as_bytes().to_vec()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

/// What matters of a certificate.
struct Facts {
    /// The public key, as the certificate has it.
    key: Vec<u8>,
    subject: String,
    issuer: String,
    subject_key: Vec<u8>,
    issuer_key: Vec<u8>,
    expires: i64,
    names: Vec<String>,
}

impl Facts {
    fn read(pem: &str) -> Option<Self> {
        use x509_parser::extensions::ParsedExtension;
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
        let (_, cert) = X509Certificate::from_der(&pem.contents).ok()?;
        let mut facts = Self {
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
                ParsedExtension::SubjectKeyIdentifier(id) => facts.subject_key = id.0.to_vec(),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    facts.issuer_key = id.key_identifier.as_ref()?.0.to_vec();
                }
                ParsedExtension::SubjectAlternativeName(list) => {
                    facts.names = list.general_names.iter().filter_map(name).collect();
                }
                _ => {}
            }
        }
        Some(facts)
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
