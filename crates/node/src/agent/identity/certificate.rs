//! A certificate and its private key, stored in one file that is replaced atomically.

use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::{IdentityError, unusable};
use crate::files::if_found;

/// Between which percentages of its lifetime a certificate is renewed.
const RENEW_PERCENT: (i64, i64) = (70, 90);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The node's own certificate is first.
    pub chain_pem: String,
    pub key_pem: String,
    /// In seconds since the epoch.
    pub not_before: i64,
    /// In seconds since the epoch.
    pub not_after: i64,
}

impl Certificate {
    pub fn new(chain_pem: &str, key_pem: &str) -> Result<Self, IdentityError> {
        const WHAT: &str = "a certificate";
        let der = CertificateDer::from_pem_slice(chain_pem.as_bytes()).map_err(unusable(WHAT))?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(unusable(WHAT))?;
        let key = rcgen::KeyPair::from_pem(key_pem).map_err(unusable(WHAT))?;
        let own = rcgen::PublicKeyData::subject_public_key_info(&key);
        if certificate.public_key().raw != own {
            return Err(unusable(WHAT)("it is not for its key"));
        }
        let validity = certificate.validity();
        Ok(Self {
            chain_pem: chain_pem.to_owned(),
            key_pem: key_pem.to_owned(),
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
        })
    }

    /// None if the file does not exist.
    pub fn read(path: &Path) -> Result<Option<Self>, IdentityError> {
        let Some(text) = read(path)? else {
            return Ok(None);
        };
        let not_both = || {
            let path = path.display().to_string();
            unusable(&path)("it does not hold a certificate and its key")
        };
        let at = text.find("-----BEGIN PRIVATE KEY").ok_or_else(not_both)?;
        let (chain, key) = text.split_at(at);
        Self::new(chain, key).map(Some).map_err(|_| not_both())
    }

    /// The file is readable by its owner only.
    pub fn write(&self, path: &Path) -> Result<(), IdentityError> {
        let chain = self.chain_pem.trim_end();
        write(path, &format!("{chain}\n{}", self.key_pem))
    }

    /// When to renew it, in seconds since the epoch. `jitter` (0 to 1) spreads the renewals of many nodes.
    pub fn renew_at(&self, jitter: f64) -> i64 {
        let lifetime = self.not_after - self.not_before;
        let (from, to) = (
            lifetime * RENEW_PERCENT.0 / 100,
            lifetime * RENEW_PERCENT.1 / 100,
        );
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "a certificate's lifetime in seconds is far below 2^52"
        )]
        let within = ((to - from) as f64 * jitter) as i64;
        self.not_before + from + within
    }

    /// Whether it is valid for this name and these addresses, and has not expired.
    pub fn covers(&self, name: &str, addresses: &[IpAddr], now: i64) -> bool {
        let chain = self.chain();
        let parsed = chain
            .first()
            .and_then(|der| X509Certificate::from_der(der).ok());
        let Some((_, certificate)) = &parsed else {
            return false;
        };
        let (names, own) = alternative_names(certificate);
        let named = names.iter().any(|own| own == name);
        named && addresses.iter().all(|one| own.contains(one)) && now < self.not_after
    }

    pub fn is_signed_by(&self, authorities: &[CertificateDer<'_>]) -> bool {
        let chain = self.chain();
        let Some(own) = chain.first() else {
            return false;
        };
        let signed_by = |authority: &CertificateDer<'_>| {
            let (_, own) = X509Certificate::from_der(own).ok()?;
            let (_, authority) = X509Certificate::from_der(authority).ok()?;
            own.verify_signature(Some(authority.public_key())).ok()
        };
        authorities.iter().any(|one| signed_by(one).is_some())
    }

    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        let all = CertificateDer::pem_slice_iter(self.chain_pem.as_bytes());
        all.filter_map(Result::ok).collect()
    }

    pub fn key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes());
        key.map_err(unusable("a key"))
    }
}

/// The DNS names and IP addresses of a certificate's subject alternative names.
pub(super) fn alternative_names(certificate: &X509Certificate<'_>) -> (Vec<String>, Vec<IpAddr>) {
    let extension = certificate.subject_alternative_name().ok().flatten();
    let all = extension
        .iter()
        .flat_map(|extension| &extension.value.general_names);
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            GeneralName::DNSName(name) => names.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let sixteen = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
                addresses.extend(four.or_else(|_| sixteen()));
            }
            _ => {}
        }
    }
    (names, addresses)
}

/// None if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, IdentityError> {
    if_found(fs::read_to_string(path)).map_err(|source| at(path, source))
}

/// Replaces a file atomically, with one that only its owner can read.
pub(super) fn write(path: &Path, text: &str) -> Result<(), IdentityError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> io::Result<()> {
        if let Some(dir) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(dir)?;
        }
        if_found(fs::remove_file(&new))?;
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|source| at(path, source))
}

/// Does nothing if the file does not exist.
pub(super) fn remove(path: &Path) {
    if let Err(error) = if_found(fs::remove_file(path)) {
        tracing::warn!("cannot remove {}: {error}", path.display());
    }
}

fn at(path: &Path, source: io::Error) -> IdentityError {
    IdentityError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn certificate() -> Certificate {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["n1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Certificate::new(&certificate.pem(), &key.serialize_pem()).unwrap()
    }

    #[test]
    fn a_certificate_is_stored_in_a_file_that_only_its_owner_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pki/client.pem");
        assert_eq!(Certificate::read(&path).unwrap(), None);
        let certificate = certificate();
        certificate.write(&path).unwrap();
        let found = Certificate::read(&path).unwrap().unwrap();
        assert_eq!(found.chain(), certificate.chain());
        assert_eq!(found.key_pem, certificate.key_pem);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_certificate_of_another_key_is_refused() {
        let (one, other) = (certificate(), certificate());
        let refused = Certificate::new(&one.chain_pem, &other.key_pem).unwrap_err();
        assert!(refused.to_string().contains("not for its key"), "{refused}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("client.pem");
        fs::write(&path, "nothing").unwrap();
        assert!(Certificate::read(&path).is_err());
    }

    #[test]
    fn a_certificate_covers_its_names_until_it_expires() {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = ["n1", "10.0.0.1", "fd00::1"].map(str::to_owned);
        let params = rcgen::CertificateParams::new(names).unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let certificate = Certificate::new(&pem, &key.serialize_pem()).unwrap();
        let check = |name: &str, addresses: &[&str], now: i64, expected: bool| {
            let addresses: Vec<_> = addresses.iter().map(|one| one.parse().unwrap()).collect();
            assert_eq!(
                certificate.covers(name, &addresses, now),
                expected,
                "{name} {now}"
            );
        };
        check("n1", &["10.0.0.1", "fd00::1"], 0, true);
        check("n1", &[], 0, true);
        check("n2", &[], 0, false);
        check("n1", &["10.0.0.2"], 0, false);
        check("n1", &[], i64::MAX, false);
        assert!(certificate.is_signed_by(&certificate.chain()));
        assert!(!certificate.is_signed_by(&self::certificate().chain()));
    }

    #[test]
    fn a_certificate_is_renewed_between_70_and_90_percent_of_its_lifetime() {
        let certificate = Certificate {
            not_before: 1000,
            not_after: 2000,
            ..certificate()
        };
        assert_eq!(certificate.renew_at(0.0), 1700);
        assert_eq!(certificate.renew_at(0.5), 1800);
        assert_eq!(certificate.renew_at(1.0), 1900);
    }
}
