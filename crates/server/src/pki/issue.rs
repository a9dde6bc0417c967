//! The certificates that the authority issues to the server itself and to the administrator.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use kennel_types::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};

use super::authority::Authority;
use super::files::{self, PkiError};
use super::inspect::CertificateInfo;

const LIFETIME: Duration = Duration::from_hours(365 * 24);
/// A certificate with less left is renewed. Warnings begin later, when renewals have failed for two months.
const RENEW_BEFORE: Duration = Duration::from_hours(90 * 24);
/// Clocks differ, so what other machines verify is valid from this long ago.
pub(super) const BACKDATE: Duration = Duration::from_hours(24);
/// Of users' certificates, as the signer's: revocations depend on it, and only the server verifies them.
const CLIENT_BACKDATE: Duration = kennel_core::certificates::lifetime::BACKDATE;

/// A certificate and its key, as PEM.
pub type Pair = (String, String);

/// Issues certificates into a directory, or uses the valid ones that are there.
pub struct Files<'a> {
    pub authority: &'a Authority,
    pub dir: &'a Path,
    pub now: Timestamp,
    /// The names of files to renew even if they are valid.
    pub renew: &'a [&'a str],
    /// New certificates count as issued at this time, if it is later than now.
    pub issue_at: Timestamp,
}

impl<'a> Files<'a> {
    /// Renews what expires soon.
    pub fn new(authority: &'a Authority, dir: &'a Path, now: Timestamp) -> Self {
        Self {
            authority,
            dir,
            now,
            renew: &[],
            issue_at: now,
        }
    }

    /// The serving certificate for these names and addresses.
    pub fn server(
        &self,
        file: &str,
        names: &[String],
        addresses: &[IpAddr],
    ) -> Result<Pair, PkiError> {
        let mut params = self.leaf("kennel-server", None, BACKDATE);
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
        self.reuse_or_issue(file, &params, &wanted)
    }

    /// A user's certificate: the user is its common name, the group (if any) its organisation.
    pub fn client(&self, file: &str, user: &str, group: Option<&str>) -> Result<Pair, PkiError> {
        self.client_since(file, CLIENT_BACKDATE, user, group)
    }

    /// The certificate that the server shows to nodes, which verify it by their own clocks.
    pub fn client_of_nodes(&self, file: &str, user: &str) -> Result<Pair, PkiError> {
        self.client_since(file, BACKDATE, user, None)
    }

    fn client_since(
        &self,
        file: &str,
        backdate: Duration,
        user: &str,
        group: Option<&str>,
    ) -> Result<Pair, PkiError> {
        let mut params = self.leaf(user, group, backdate);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.reuse_or_issue(file, &params, &[])
    }

    /// No certificate outlives its authority.
    fn leaf(&self, name: &str, group: Option<&str>, backdate: Duration) -> CertificateParams {
        let issued = self.now.max(self.issue_at);
        let authority = CertificateInfo::read(&self.authority.cert_pem);
        let end = authority.map_or(Timestamp::MAX, |info| info.not_after);
        let lifetime = (issued, backdate, (issued + LIFETIME).min(end));
        parameters(name, group, lifetime)
    }

    fn reuse_or_issue(
        &self,
        file: &str,
        params: &CertificateParams,
        names: &[String],
    ) -> Result<Pair, PkiError> {
        let cert = self.dir.join(format!("{file}.crt"));
        let key = self.dir.join(format!("{file}.key"));
        if !self.renew.contains(&file)
            && let (Some(cert_pem), Some(key_pem)) = (files::read(&cert)?, files::read(&key)?)
            && self.is_reusable(&cert_pem, &key_pem, names)
        {
            return Ok((cert_pem, key_pem));
        }
        let pair = KeyPair::generate()?;
        let authority = self.authority;
        let issuer = KeyPair::from_pem(&authority.key_pem)?;
        let issuer = Issuer::from_ca_cert_pem(&authority.cert_pem, issuer)?;
        let cert_pem = params.signed_by(&pair, &issuer)?.pem();
        let key_pem = pair.serialize_pem();
        files::write_private(&key, &key_pem)?;
        files::write_public(&cert, &cert_pem)?;
        Ok((cert_pem, key_pem))
    }

    /// Whether a certificate was issued by this CA for this key, has all the names and does not expire soon.
    fn is_reusable(&self, cert_pem: &str, key_pem: &str, names: &[String]) -> bool {
        let (Some(info), Some(own)) = (
            CertificateInfo::read(cert_pem),
            CertificateInfo::read(&self.authority.cert_pem),
        ) else {
            return false;
        };
        let lasts = info.not_after.saturating_since(self.now) > RENEW_BEFORE;
        // One that ends with its authority cannot be had for longer.
        (lasts || info.not_after == own.not_after)
            && info.not_after > self.now
            && info.is_issued_by(&own)
            && names.iter().all(|name| info.names.contains(name))
            && KeyPair::from_pem(key_pem).is_ok_and(|pair| info.is_for(&pair))
    }
}

/// At most one organisation: rcgen keeps only the last attribute of a type.
pub(super) fn parameters(
    common_name: &str,
    organisation: Option<&str>,
    (issued, backdate, not_after): (Timestamp, Duration, Timestamp),
) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    if let Some(organisation) = organisation {
        subject.push(DnType::OrganizationName, organisation);
    }
    subject.push(DnType::CommonName, common_name);
    params.distinguished_name = subject;
    let backdate = i64::try_from(backdate.as_millis()).unwrap_or(0);
    params.not_before = date(issued.saturating_add_millis(-backdate));
    params.not_after = date(not_after);
    params.serial_number = Some(SerialNumber::from(uuid::Uuid::new_v4().as_bytes().to_vec()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

/// A time as rcgen takes it, in whole seconds.
pub(super) fn date<D: From<std::time::SystemTime>>(time: Timestamp) -> D {
    let seconds = u64::try_from(time.as_secs()).unwrap_or(0);
    D::from(std::time::UNIX_EPOCH + Duration::from_secs(seconds))
}
