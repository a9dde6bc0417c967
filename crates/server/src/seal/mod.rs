//! Encryption of secrets at rest. It concerns only the bytes in the store's file; the API returns secrets
//! decrypted.
//!
//! ```text
//!  stored: version (1 byte) · id of the key (8 bytes) · nonce (12 bytes) · AES-256-GCM ciphertext and tag
//! ```
//!
//! The object's key in the store is the associated data of the ciphertext, so that the bytes of one object
//! cannot replace those of another.
//!
//! On etcd, values are stored as the provider `aesgcm` of kube-apiserver does, which reads them with the same keys by their names. Both
//! forms are read everywhere.
//!
//! ```text
//!  on etcd: k8s:enc:aesgcm:v1: · name of the key · : · nonce (12 bytes) · AES-256-GCM ciphertext and tag
//! ```

mod etcd_form;
mod keyfile;

use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use kennel_store::{Opened, Seal, SealError};

use crate::object;
pub use etcd_form::EtcdForm;
use keyfile::Contents;
pub(crate) use keyfile::KEY_BYTES;
pub use keyfile::KeyFileError;

/// The first byte of an encrypted value. Unencrypted ones are JSON and begin with `{`.
const VERSION: u8 = 1;
/// Bytes of a key's fingerprint.
pub(crate) const ID_BYTES: usize = 8;
const HEADER_BYTES: usize = 1 + ID_BYTES + NONCE_LEN;
/// What encrypted values of kube-apiserver begin with; the provider follows.
const UPSTREAM: &[u8] = b"k8s:enc:";
/// Its provider of the same cipher; the name of the key follows, and a colon.
const UPSTREAM_AES_GCM: &[u8] = b"k8s:enc:aesgcm:v1:";
/// How much of an unknown header an error shows.
const SHOWN_BYTES: usize = 40;

/// How encrypted values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Own,
    Upstream,
}

#[derive(Default)]
pub struct Keyring {
    keys: Vec<Key>,
    /// New values are stored unencrypted; otherwise the first key encrypts them.
    is_identity: bool,
    /// The id of the key that encrypts; empty if none does.
    name: String,
    /// The form of new values.
    form: Form,
}

struct Key {
    id: [u8; ID_BYTES],
    /// In the key file.
    name: String,
    cipher: RandomizedNonceKey,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.keys.iter().map(|key| &*key.name).collect();
        f.debug_tuple("Keyring").field(&names).finish()
    }
}

impl Keyring {
    /// Encrypts nothing and cannot read encrypted values.
    pub fn empty() -> Self {
        Self {
            is_identity: true,
            ..Self::default()
        }
    }

    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let Contents { is_identity, keys } = keyfile::read(path)?;
        let key = |(secret, name): ([u8; KEY_BYTES], String)| {
            let id = id_of(&secret);
            let name = if name.is_empty() {
                HEXLOWER.encode(&id)
            } else {
                name
            };
            let cipher = RandomizedNonceKey::new(&AES_256_GCM, &secret);
            let cipher = cipher.expect("the key has the length of the algorithm");
            Key { id, name, cipher }
        };
        let keys: Vec<Key> = keys.into_iter().map(key).collect();
        let first = keys.first().filter(|_| !is_identity);
        Ok(Self {
            name: first
                .map(|key| HEXLOWER.encode(&key.id))
                .unwrap_or_default(),
            is_identity,
            keys,
            form: Form::Own,
        })
    }

    /// The same keys, for values that kube-apiserver can read.
    fn in_upstreams_form(mut self) -> Self {
        self.form = Form::Upstream;
        self
    }

    /// The key that encrypts the value of `key`, if any does.
    fn encryption_key(&self, key: &str) -> Option<&Key> {
        let first = self.keys.first().filter(|_| !self.is_identity);
        first.filter(|_| is_encrypted(key))
    }

    fn decrypt(&self, object_key: &str, stored: &[u8]) -> Result<Opened, OpenError> {
        let Some((header, sealed)) = stored.split_at_checked(HEADER_BYTES) else {
            return Err(OpenError::Truncated);
        };
        let (id, nonce) = header[1..].split_at(ID_BYTES);
        let Some(key) = self.keys.iter().find(|key| key.id == *id) else {
            return Err(OpenError::UnknownKey(HEXLOWER.encode(id)));
        };
        self.open_with(key, Form::Own, object_key, (nonce, sealed))
    }

    /// `named` is what follows the prefix.
    fn decrypt_upstreams(&self, object_key: &str, named: &[u8]) -> Result<Opened, OpenError> {
        let of_name = |key: &&Key| {
            let rest = named.strip_prefix(key.name.as_bytes());
            rest.and_then(|rest| rest.strip_prefix(b":"))
        };
        let known = self.keys.iter().find_map(|key| Some((key, of_name(&key)?)));
        let colon = named.iter().position(|byte| *byte == b':');
        let Some((_, sealed)) = known.or_else(|| Some((self.keys.first()?, &named[colon? + 1..])))
        else {
            return Err(OpenError::UnknownName(shown(named)));
        };
        let Some((nonce, sealed)) = sealed.split_at_checked(NONCE_LEN) else {
            return Err(OpenError::Truncated);
        };
        // All of them: one may have been renamed, and several can have one name.
        let opened = self.keys.iter().find_map(|key| {
            let opened = self.open_with(key, Form::Upstream, object_key, (nonce, sealed));
            opened.ok()
        });
        opened.ok_or_else(|| match known {
            Some((key, _)) => OpenError::Changed(key.name.clone()),
            None => OpenError::UnknownName(shown(named)),
        })
    }

    fn open_with(
        &self,
        key: &Key,
        form: Form,
        object_key: &str,
        (nonce, sealed): (&[u8], &[u8]),
    ) -> Result<Opened, OpenError> {
        let changed = || OpenError::Changed(key.name.clone());
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| changed())?;
        let mut buffer = sealed.to_vec();
        let opened = key
            .cipher
            .open_in_place(nonce, Aad::from(object_key), &mut buffer);
        let length = opened.map_err(|_| changed())?.len();
        buffer.truncate(length);
        let is_current = match self.encryption_key(object_key) {
            Some(current) => current.id == key.id && form == self.form,
            // What another API server encrypts of its own accord is left as it is.
            None => !is_encrypted(object_key),
        };
        Ok(Opened {
            value: buffer.into(),
            is_current,
        })
    }
}

/// The beginning of an unknown header.
fn shown(header: &[u8]) -> String {
    let end = header.iter().position(|byte| *byte == b':');
    let end = end.unwrap_or(header.len()).min(SHOWN_BYTES);
    String::from_utf8_lossy(&header[..end]).into_owned()
}

/// Why a stored value cannot be decrypted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum OpenError {
    #[error("the value is truncated within its encryption header")]
    Truncated,
    #[error(
        "the value is encrypted with key id {0}, which the file of --encryption-key-file does not have; \
         add that key again"
    )]
    UnknownKey(String),
    #[error(
        "the value is encrypted with the key {0:?} of another API server, which the file of --encryption-key-file does not have; \
         add that key with that name"
    )]
    UnknownName(String),
    #[error(
        "another API server has encrypted the value with the provider {0:?}; have it use aesgcm, and rewrite its objects"
    )]
    Provider(String),
    #[error(
        "cannot decrypt the value with key {0:?}: its bytes were changed or belong to another object; \
         restore it from a backup"
    )]
    Changed(String),
    #[error("the value is neither JSON nor encrypted in a format that this version knows")]
    UnknownFormat,
}

impl OpenError {
    fn into_seal_error(self) -> SealError {
        match self {
            Self::UnknownKey(_) | Self::UnknownName(_) | Self::Provider(_) => {
                SealError::MissingKey(self.into())
            }
            Self::Truncated | Self::Changed(_) | Self::UnknownFormat => {
                SealError::Damaged(self.into())
            }
        }
    }
}

impl Seal for Keyring {
    fn name(&self) -> &str {
        &self.name
    }

    fn seal(&self, key: &str, value: &[u8]) -> Option<Vec<u8>> {
        let encryption_key = self.encryption_key(key)?;
        let mut sealed = value.to_vec();
        let nonce = encryption_key
            .cipher
            .seal_in_place_append_tag(Aad::from(key), &mut sealed);
        let nonce = nonce
            .expect("objects are below the cipher's limit, and the random source does not fail");
        let Key { id, name, .. } = encryption_key;
        Some(match self.form {
            Form::Own => [&[VERSION], &id[..], nonce.as_ref(), &sealed].concat(),
            Form::Upstream => {
                let name = name.as_bytes();
                [UPSTREAM_AES_GCM, name, b":", nonce.as_ref(), &sealed].concat()
            }
        })
    }

    fn open(&self, key: &str, stored: Bytes) -> Result<Opened, SealError> {
        if stored.first() == Some(&VERSION) {
            return self
                .decrypt(key, &stored)
                .map_err(OpenError::into_seal_error);
        }
        if let Some(named) = stored.strip_prefix(UPSTREAM_AES_GCM) {
            let opened = self.decrypt_upstreams(key, named);
            return opened.map_err(OpenError::into_seal_error);
        }
        if let Some(provider) = stored.strip_prefix(UPSTREAM) {
            return Err(OpenError::Provider(shown(provider)).into_seal_error());
        }
        if is_encrypted(key) && stored.first() != Some(&b'{') {
            return Err(OpenError::UnknownFormat.into_seal_error());
        }
        Ok(Opened {
            value: stored,
            is_current: self.encryption_key(key).is_none(),
        })
    }
}

/// Whether the object of this key is to be encrypted. (The keys that sign service-account tokens are files.)
fn is_encrypted(key: &str) -> bool {
    object::row_of_key(key).is_some_and(|row| row.encrypted)
}

/// The keys of a key file, the first of which encrypts, for what is not a stored value.
pub(crate) fn read_keys(path: &Path) -> Result<Vec<[u8; KEY_BYTES]>, KeyFileError> {
    let keys = keyfile::read(path)?.keys.into_iter();
    Ok(keys.map(|(key, _)| key).collect())
}

pub(crate) fn read_passphrase(path: &Path) -> Result<String, KeyFileError> {
    keyfile::read_passphrase(path)
}

/// A fingerprint, from which the key cannot be computed.
pub(crate) fn id_of(secret: &[u8; KEY_BYTES]) -> [u8; ID_BYTES] {
    let input = [b"kennel encryption key id\0", &secret[..]].concat();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &input);
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&digest.as_ref()[..ID_BYTES]);
    id
}

#[cfg(test)]
mod tests;
