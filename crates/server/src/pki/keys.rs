//! The keys of service-account tokens: the newest signs, older ones still verify.
//!
//! ```text
//!  pki/service-account.key          signs; rotated by the age of the file
//!  pki/service-account-<id>.pub     retired; kept as long as its tokens may be valid
//! ```
//!
//! A start and a running server rotate the signing key. Only the public half of the old one is kept: its tokens stay valid,
//! and a stolen copy of the file cannot sign any more. Removing a file invalidates all tokens of that key.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use kennel_types::Timestamp;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SubjectPublicKeyInfo};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::clock::Clock;
use super::files::{self, PkiError};
use super::token::{Claims, ISSUER, LIFE_SECONDS_MAX};

/// The default age at which the signing key is rotated.
pub const DAYS_DEFAULT: u32 = 90;

/// The allowed clock skew, as upstream.
pub const LEEWAY_SECONDS: u64 = 60;

const DAY: Duration = Duration::from_hours(24);
const SIGNING: &str = "service-account.key";
const RETIRED_PREFIX: &str = "service-account-";
const RETIRED_SUFFIX: &str = ".pub";

pub struct TokenKeys {
    signing: EncodingKey,
    signing_id: String,
    verifying: BTreeMap<String, PublicKey>,
}

/// The public half of a key.
struct PublicKey {
    key: DecodingKey,
    /// The coordinates of the point, for the JSON Web Key Set.
    point: (String, String),
}

impl TokenKeys {
    /// Opens the keys of a directory. Creates a missing signing key, and rotates one that is at least
    /// `days_max` days old.
    pub fn open(dir: &Path, days_max: u32, clock: &Clock) -> Result<Self, PkiError> {
        let now = clock.now();
        let path = dir.join(SIGNING);
        let pair = match files::read(&path)? {
            None => create(&path)?,
            Some(pem) => {
                let pair = KeyPair::from_pem(&pem).ok();
                let usable = pair.filter(|pair| pair.algorithm() == &PKCS_ECDSA_P256_SHA256);
                let pair = usable.ok_or_else(|| unusable(&path, "private key"))?;
                if age(&path, now) >= DAY * days_max {
                    rotate(dir, &pair)?
                } else {
                    pair
                }
            }
        };
        let mut verifying = retired(dir, now)?;
        let signing_id = id(&pair);
        let public = PublicKey::of(&pair).ok_or_else(|| unusable(&path, "private key"))?;
        verifying.insert(signing_id.clone(), public);
        Ok(Self {
            signing: EncodingKey::from_ec_der(&pair.serialize_der()),
            signing_id,
            verifying,
        })
    }

    pub fn sign(&self, claims: &Claims<'_>) -> jsonwebtoken::errors::Result<String> {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.signing_id.clone());
        jsonwebtoken::encode(&header, &claims.to_value(), &self.signing)
    }

    /// The claims of a token, after checking signature, issuer and time. The caller checks the audience and
    /// that the objects in the claims exist.
    pub fn verify(&self, token: &str) -> jsonwebtoken::errors::Result<Value> {
        let header = jsonwebtoken::decode_header(token)?;
        let key = header.kid.and_then(|id| self.verifying.get(&id));
        let key = key.ok_or(jsonwebtoken::errors::ErrorKind::InvalidSignature)?;
        // Only our own algorithm: a token must not choose how it is verified.
        let mut rules = Validation::new(Algorithm::ES256);
        rules.leeway = LEEWAY_SECONDS;
        rules.validate_nbf = true;
        rules.validate_aud = false;
        rules.set_issuer(&[ISSUER]);
        rules.set_required_spec_claims(&["exp", "iss", "sub", "aud"]);
        jsonwebtoken::decode(token, &key.key, &rules).map(|token| token.claims)
    }

    /// Identifies the key that signs.
    pub fn signing_id(&self) -> &str {
        &self.signing_id
    }

    pub fn key_set(&self) -> Value {
        let keys = self.verifying.iter().map(|(id, public)| {
            let (x, y) = &public.point;
            json!({
                "use": "sig", "kty": "EC", "kid": id, "crv": "P-256", "alg": "ES256",
                "x": x, "y": y,
            })
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }
}

impl PublicKey {
    /// Accepts only uncompressed points, as rcgen writes them: a 4, then both coordinates.
    fn of(key: &impl PublicKeyData) -> Option<Self> {
        let [4, point @ ..] = key.der_bytes() else {
            return None;
        };
        if point.len() != 64 {
            return None;
        }
        let (x, y) = point.split_at(32);
        Some(Self {
            key: DecodingKey::from_ec_der(key.der_bytes()),
            point: (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y)),
        })
    }
}

fn id(key: &impl PublicKeyData) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(key.der_bytes()))
}

fn create(path: &Path) -> Result<KeyPair, PkiError> {
    let pair = KeyPair::generate()?;
    files::write_private(path, &pair.serialize_pem())?;
    Ok(pair)
}

/// Retires the signing key and creates a new one. An interrupted start leaves a key that is both, which is
/// harmless.
fn rotate(dir: &Path, old: &KeyPair) -> Result<KeyPair, PkiError> {
    let id = id(old);
    let retired = dir.join(format!("{RETIRED_PREFIX}{id}{RETIRED_SUFFIX}"));
    files::write_public(&retired, &old.public_key_pem())?;
    tracing::info!(
        retired = id,
        "rotated the signing key of service-account tokens"
    );
    create(&dir.join(SIGNING))
}

/// The retired keys with tokens that may still be valid. Removes the others.
fn retired(dir: &Path, now: Timestamp) -> Result<BTreeMap<String, PublicKey>, PkiError> {
    let mut keys = BTreeMap::new();
    for path in retired_files(dir)? {
        if age(&path, now) > DAY + Duration::from_secs(LIFE_SECONDS_MAX.unsigned_abs()) {
            // The next start tries again.
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a retired key");
            }
            continue;
        }
        let pem = files::read(&path)?.unwrap_or_default();
        let key = SubjectPublicKeyInfo::from_pem(&pem).ok();
        let key = key.and_then(|key| Some((id(&key), PublicKey::of(&key)?)));
        let (id, key) = key.ok_or_else(|| unusable(&path, "public key"))?;
        keys.insert(id, key);
    }
    Ok(keys)
}

fn retired_files(dir: &Path) -> Result<Vec<PathBuf>, PkiError> {
    let failed = |source| PkiError::File {
        path: dir.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|n| n.starts_with(RETIRED_PREFIX) && n.ends_with(RETIRED_SUFFIX)) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Time since the file was written; zero if it is unknown.
fn age(path: &Path, now: Timestamp) -> Duration {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since_epoch = written.map(|at| at.duration_since(UNIX_EPOCH).unwrap_or_default());
    since_epoch.map_or(Duration::ZERO, |since| {
        now.saturating_since(Timestamp::EPOCH + since)
    })
}

fn unusable(path: &Path, what: &'static str) -> PkiError {
    PkiError::Unusable {
        path: path.to_owned(),
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn open(dir: &Path, days_max: u32) -> Result<TokenKeys, PkiError> {
        TokenKeys::open(dir, days_max, &Clock::default())
    }

    fn claims(expires_at: i64) -> Claims<'static> {
        Claims {
            namespace: "default",
            account: ("default", "u"),
            audiences: &[],
            bound: json!({}),
            issued_at: expires_at - 600,
            expires_at,
        }
    }

    fn now() -> i64 {
        crate::clock::now().as_secs()
    }

    fn ids(keys: &TokenKeys) -> Vec<String> {
        let set = keys.key_set();
        let keys = set["keys"].as_array().unwrap().iter();
        keys.map(|key| key["kid"].as_str().unwrap().to_owned())
            .collect()
    }

    fn make_older(path: &Path, by: Duration) {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    #[test]
    fn signed_tokens_verify() {
        let dir = tempfile::tempdir().unwrap();
        let keys = open(dir.path(), DAYS_DEFAULT).unwrap();
        let token = keys.sign(&claims(now() + 600)).unwrap();
        let said = keys.verify(&token).unwrap();
        assert_eq!(said["sub"], "system:serviceaccount:default:default");
        let other = tempfile::tempdir().unwrap();
        let other = open(other.path(), DAYS_DEFAULT).unwrap();
        assert!(other.verify(&token).is_err());
    }

    #[test]
    fn tokens_are_valid_for_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let keys = open(dir.path(), DAYS_DEFAULT).unwrap();
        let check = |expires_at: i64, good: bool| {
            let token = keys.sign(&claims(expires_at)).unwrap();
            assert_eq!(keys.verify(&token).is_ok(), good, "{}", expires_at - now());
        };
        check(now() - 50, true);
        check(now() - 70, false);
        check(now() + 600 + 50, true);
        check(now() + 600 + 70, false);
    }

    #[test]
    fn an_old_key_is_rotated_and_still_verifies() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path(), 90).unwrap();
        let token = first.sign(&claims(now() + 600)).unwrap();
        assert_eq!(ids(&open(dir.path(), 90).unwrap()), ids(&first));
        make_older(&dir.path().join(SIGNING), DAY * 91);
        let second = open(dir.path(), 90).unwrap();
        assert_ne!(second.signing_id, first.signing_id);
        assert!(ids(&second).contains(&first.signing_id));
        assert!(second.verify(&token).is_ok());
        let newer = second.sign(&claims(now() + 600)).unwrap();
        assert!(first.verify(&newer).is_err());
        assert_eq!(ids(&open(dir.path(), 90).unwrap()).len(), 2);
    }

    #[test]
    fn a_retired_key_is_removed_when_its_tokens_have_expired() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path(), 90).unwrap();
        // Zero days: rotates at every start.
        assert_eq!(ids(&open(dir.path(), 0).unwrap()).len(), 2);
        let [old] = &retired_files(dir.path()).unwrap()[..] else {
            panic!("one retired key");
        };
        make_older(old, DAY * 365);
        assert_eq!(ids(&open(dir.path(), 90).unwrap()).len(), 2);
        make_older(old, DAY * 367);
        assert_eq!(ids(&open(dir.path(), 90).unwrap()).len(), 1);
        assert!(!old.exists());
    }

    #[test]
    fn files_without_a_key_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("service-account-x.pub"), "no key").unwrap();
        let refused = open(dir.path(), 90).err().unwrap().to_string();
        assert!(
            refused.contains("does not hold a usable public key"),
            "{refused}"
        );
    }
}
