//! The certificate authority, and its replacement by a new one while certificates of the old one are in use.
//!
//! ```text
//!  pki/ca.crt, ca.key     signs
//!  pki/ca-previous.crt    earlier authorities, still trusted, without their keys
//!  pki/ca-cross.crt       the authority's key, certified by its predecessor
//!  pki/ca-next.crt, .key  exist only during a replacement; a start completes one that was interrupted
//! ```
//!
//! The server presents the cross certificate with its own, so that a client that trusts only the old authority accepts
//! it. Both authorities are trusted until the old one expires or is retired.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kennel_types::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use super::clock::Clock;
use super::files::{self, PkiError};
use super::inspect::{CertificateInfo, split};
use super::issue::{BACKDATE, date, parameters};

/// The lifetime of a new authority.
const LIFETIME: Duration = Duration::from_hours(3650 * 24);
/// An authority is replaced when it has less than this left, so that every certificate gets its full lifetime. It is
/// also how long the old authority stays trusted.
const REPLACE_BEFORE: Duration = Duration::from_hours(365 * 24);
/// The prefix of the common names of authorities that this program made.
const OWN_NAME: &str = "kennel-ca";

const CERT: &str = "ca.crt";
const KEY: &str = "ca.key";
const NEXT_CERT: &str = "ca-next.crt";
const NEXT_KEY: &str = "ca-next.key";
const PREVIOUS: &str = "ca-previous.crt";
const CROSS: &str = "ca-cross.crt";

pub struct Authority {
    /// The certificate that signs.
    pub cert_pem: String,
    pub key_pem: String,
    /// Earlier authorities that are still trusted, newest first.
    pub previous: Vec<String>,
    /// The certificates of authorities by their predecessors, newest first.
    pub cross: Vec<String>,
}

impl Authority {
    /// Opens the authority of a directory, or creates it. Replaces one of our own that expires within a year.
    pub fn open(dir: &Path, clock: &Clock) -> Result<Self, PkiError> {
        complete_replacement(dir)?;
        let Some(authority) = Self::read(dir, clock.now())? else {
            return Self::create(dir, clock.now());
        };
        if authority.is_due(clock.now()) {
            return authority.replace(dir, clock);
        }
        Ok(authority)
    }

    fn read(dir: &Path, now: Timestamp) -> Result<Option<Self>, PkiError> {
        let (cert, key) = (dir.join(CERT), dir.join(KEY));
        // An interrupted first start leaves a key without certificate, which has signed nothing yet.
        let Some(cert_pem) = files::read(&cert)? else {
            return Ok(None);
        };
        let Some(key_pem) = files::read(&key)? else {
            return Err(PkiError::Keyless { cert, key });
        };
        check((&cert, &cert_pem), (&key, &key_pem))?;
        let valid = |file: &str| -> Result<Vec<String>, PkiError> {
            let mut all = split(&files::read(&dir.join(file))?.unwrap_or_default());
            let is_valid =
                |pem: &String| CertificateInfo::read(pem).is_some_and(|info| info.not_after > now);
            all.retain(|pem| is_valid(pem) && *pem != cert_pem);
            Ok(all)
        };
        Ok(Some(Self {
            previous: valid(PREVIOUS)?,
            cross: valid(CROSS)?,
            cert_pem,
            key_pem,
        }))
    }

    fn create(dir: &Path, now: Timestamp) -> Result<Self, PkiError> {
        let pair = KeyPair::generate()?;
        let created = Self {
            cert_pem: authority_parameters(OWN_NAME, now)
                .self_signed(&pair)?
                .pem(),
            key_pem: pair.serialize_pem(),
            previous: Vec::new(),
            cross: Vec::new(),
        };
        // The key first: a certificate without its key is an error at the next start.
        files::write_private(&dir.join(KEY), &created.key_pem)?;
        files::write_public(&dir.join(CERT), &created.cert_pem)?;
        Ok(created)
    }

    /// Everything that is trusted, the authority that signs first.
    pub fn bundle(&self) -> String {
        let previous = self.previous.iter().map(String::as_str);
        std::iter::once(self.cert_pem.as_str())
            .chain(previous)
            .collect()
    }

    /// An authority that somebody else made is never replaced automatically.
    fn is_due(&self, now: Timestamp) -> bool {
        CertificateInfo::read(&self.cert_pem).is_some_and(|info| {
            let is_own = info.subject.starts_with(&format!("CN={OWN_NAME}"));
            is_own && info.not_after.saturating_since(now) < REPLACE_BEFORE
        })
    }

    /// Makes a new authority that signs from now on. This one stays trusted.
    pub fn replace(&self, dir: &Path, clock: &Clock) -> Result<Self, PkiError> {
        let pair = KeyPair::generate()?;
        let suffix = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{OWN_NAME}-{}", suffix.get(..8).unwrap_or_default());
        let params = authority_parameters(&name, clock.now());
        let mut cross = params.clone();
        if let Some(own) = CertificateInfo::read(&self.cert_pem) {
            cross.not_after = date(own.not_after);
        }
        let old = Issuer::from_ca_cert_pem(&self.cert_pem, KeyPair::from_pem(&self.key_pem)?)?;
        let cross = cross.signed_by(&pair, &old)?.pem();
        let with = |new: &String, old: &[String]| {
            let all = std::iter::once(new).chain(old);
            all.cloned().collect::<Vec<_>>()
        };
        let next = Self {
            cert_pem: params.self_signed(&pair)?.pem(),
            key_pem: pair.serialize_pem(),
            previous: with(&self.cert_pem, &self.previous),
            cross: with(&cross, &self.cross),
        };
        files::write_public(&dir.join(PREVIOUS), &next.previous.concat())?;
        files::write_public(&dir.join(CROSS), &next.cross.concat())?;
        files::write_private(&dir.join(NEXT_KEY), &next.key_pem)?;
        // From here on, a start completes the replacement.
        files::write_public(&dir.join(NEXT_CERT), &next.cert_pem)?;
        complete_replacement(dir)?;
        tracing::info!(
            "a new certificate authority signs from now on; the previous one stays trusted"
        );
        Ok(next)
    }

    /// Ends the trust in earlier authorities.
    pub fn retire_previous(dir: &Path) -> Result<(), PkiError> {
        files::remove(&dir.join(CROSS))?;
        files::remove(&dir.join(PREVIOUS))
    }
}

/// Puts the next authority in the place of the current one, if its files are complete.
fn complete_replacement(dir: &Path) -> Result<(), PkiError> {
    let (next_cert, next_key) = (dir.join(NEXT_CERT), dir.join(NEXT_KEY));
    if files::read(&next_cert)?.is_none() {
        // Interrupted before the certificate was written.
        return files::remove(&next_key);
    }
    let rename = |from: &Path, to: &str| {
        let to = dir.join(to);
        fs::rename(from, &to).map_err(files::at(&to))
    };
    if files::read(&next_key)?.is_some() {
        rename(&next_key, KEY)?;
    }
    rename(&next_cert, CERT)?;
    files::sync_dir(dir)
}

fn authority_parameters(name: &str, now: Timestamp) -> CertificateParams {
    let mut params = parameters(name, None, (now, BACKDATE, now + LIFETIME));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

/// Refuses a CA whose files are damaged or do not match. It is never replaced automatically: every node and
/// kubeconfig trusts the old one.
fn check(cert: (&Path, &str), key: (&Path, &str)) -> Result<(), PkiError> {
    let unusable = |path: &Path, what| PkiError::Unusable {
        path: path.to_owned(),
        what,
    };
    let pair = KeyPair::from_pem(key.1).map_err(|_| unusable(key.0, "private key"))?;
    let Some(info) = CertificateInfo::read(cert.1) else {
        return Err(unusable(cert.0, "certificate"));
    };
    if info.is_for(&pair) {
        return Ok(());
    }
    Err(PkiError::Mismatch {
        cert: cert.0.to_owned(),
        key: key.0.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(days: i64) -> Clock {
        Clock::new(move || Timestamp::from_secs(1_800_000_000 + days * 86_400))
    }

    #[test]
    fn an_authority_is_replaced_a_year_before_it_ends_and_stays_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let open = |days: i64| Authority::open(dir.path(), &clock(days)).unwrap();
        let first = open(0);
        assert_eq!(open(3650 - 366).cert_pem, first.cert_pem);
        let second = open(3650 - 364);
        assert_ne!(second.cert_pem, first.cert_pem);
        assert_eq!(second.previous, std::slice::from_ref(&first.cert_pem));
        assert_eq!(second.bundle(), second.cert_pem.clone() + &first.cert_pem);
        let cross = CertificateInfo::read(&second.cross[0]).unwrap();
        let (new, old) = (
            CertificateInfo::read(&second.cert_pem).unwrap(),
            CertificateInfo::read(&first.cert_pem).unwrap(),
        );
        assert!(cross.is_issued_by(&old) && cross.key == new.key);
        assert_eq!(cross.not_after, old.not_after);
        // The old one is forgotten when it has ended.
        let later = open(3651);
        assert_eq!(later.cert_pem, second.cert_pem);
        assert!(later.previous.is_empty() && later.cross.is_empty());
    }

    #[test]
    fn an_authority_of_somebody_else_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let pair = KeyPair::generate().unwrap();
        let params = authority_parameters("corporate", clock(0).now());
        let pem = params.self_signed(&pair).unwrap().pem();
        fs::write(dir.path().join(CERT), &pem).unwrap();
        fs::write(dir.path().join(KEY), pair.serialize_pem()).unwrap();
        let opened = Authority::open(dir.path(), &clock(3649)).unwrap();
        assert_eq!(opened.cert_pem, pem);
    }

    #[test]
    fn an_interrupted_replacement_is_completed() {
        for renamed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = |name: &str| dir.path().join(name);
            let first = Authority::open(dir.path(), &clock(0)).unwrap();
            let next = first.replace(dir.path(), &clock(1)).unwrap();
            // As it was before the second rename, or before both.
            fs::rename(path(CERT), path(NEXT_CERT)).unwrap();
            fs::write(path(CERT), &first.cert_pem).unwrap();
            if !renamed {
                fs::rename(path(KEY), path(NEXT_KEY)).unwrap();
                fs::write(path(KEY), &first.key_pem).unwrap();
            }
            let opened = Authority::open(dir.path(), &clock(1)).unwrap();
            assert_eq!(opened.cert_pem, next.cert_pem);
            assert_eq!(opened.previous, [first.cert_pem]);
        }
        // Before the certificate was written, nothing has happened.
        let dir = tempfile::tempdir().unwrap();
        let first = Authority::open(dir.path(), &clock(0)).unwrap();
        fs::write(dir.path().join(NEXT_KEY), "a key").unwrap();
        let opened = Authority::open(dir.path(), &clock(1)).unwrap();
        assert_eq!(opened.cert_pem, first.cert_pem);
        assert!(!dir.path().join(NEXT_KEY).exists());
    }
}
