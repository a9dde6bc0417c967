//! Service-account tokens: signed with a key of their own.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::files::{self, PkiError};

/// Who signs, and for whom unless a request says otherwise.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// What a token says.
pub struct Claims<'a> {
    /// The account's namespace.
    pub namespace: &'a str,
    /// The account's name and uid.
    pub account: (&'a str, &'a str),
    /// For whom the token is good.
    pub audiences: &'a [String],
    /// The object the token is bound to: `{"pod": {"name": …, "uid": …}}`, or empty.
    pub bound: Value,
    /// When it was made, in seconds.
    pub issued_at: i64,
    /// When it ends, in seconds.
    pub expires_at: i64,
}

/// The key that signs tokens.
pub struct TokenSigner {
    key: EncodingKey,
    key_id: String,
}

impl TokenSigner {
    /// Opens the key of a directory, or makes it.
    pub fn open(dir: &Path) -> Result<Self, PkiError> {
        let path = dir.join("service-account.key");
        let pem = if let Some(pem) = files::read(&path)? {
            pem
        } else {
            let pem = KeyPair::generate()?.serialize_pem();
            files::write_private(&path, &pem)?;
            pem
        };
        let unusable = || PkiError::Unusable {
            path: path.clone(),
            what: "private key",
        };
        let pair = KeyPair::from_pem(&pem).map_err(|_| unusable())?;
        let key = EncodingKey::from_ec_der(&pair.serialize_der());
        let key_id = URL_SAFE_NO_PAD.encode(Sha256::digest(pair.der_bytes()));
        Ok(Self { key, key_id })
    }

    /// Signs a token.
    pub fn sign(&self, claims: &Claims<'_>) -> jsonwebtoken::errors::Result<String> {
        let (name, uid) = claims.account;
        let mut about = json!({
            "namespace": claims.namespace, "serviceaccount": {"name": name, "uid": uid},
        });
        for (kind, object) in claims.bound.as_object().into_iter().flatten() {
            if !object.is_null() {
                about[kind] = object.clone();
            }
        }
        let body = json!({
            "iss": ISSUER,
            "sub": format!("system:serviceaccount:{}:{name}", claims.namespace),
            "aud": claims.audiences,
            "iat": claims.issued_at,
            "nbf": claims.issued_at,
            "exp": claims.expires_at,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": about,
        });
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.key_id.clone());
        jsonwebtoken::encode(&header, &body, &self.key)
    }
}
