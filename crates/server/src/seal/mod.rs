//! Encryption at rest: what secrets look like on disk. Only the bytes in the file are concerned; whoever
//! may read a secret through the API reads it as it was written.
//!
//! ```text
//!  stored: version (1 byte) · id of the key (8 bytes) · nonce (12 bytes) · AES-256-GCM ciphertext and tag
//! ```
//!
//! The object's key in the store is bound to the ciphertext, so that one object's bytes are no good in the
//! place of another's.

mod keyfile;

use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use bytes::Bytes;
use kennel_store::{Opened, Seal, SealError};

pub use keyfile::KeyFileError;
use keyfile::{Contents, KEY_BYTES};

/// The resources whose objects are encrypted. (The keys that sign service accounts' tokens are files.)
const ENCRYPTED: &[&str] = &["secrets"];

/// The first byte of what is encrypted in this way. Objects are JSON, which never starts so.
const VERSION: u8 = 1;
/// How many bytes of a key's fingerprint are its id.
const ID_BYTES: usize = 8;
/// What stands before the ciphertext.
const HEADER_BYTES: usize = 1 + ID_BYTES + NONCE_LEN;

/// The keys that secrets are encrypted with.
#[derive(Default)]
pub struct Keyring {
    keys: Vec<Key>,
    /// What new values are encrypted with is the first key; nothing, when they are to be stored plainly.
    is_plain: bool,
    /// The first key's id, or nothing.
    name: String,
}

struct Key {
    id: [u8; ID_BYTES],
    /// What the key file calls it.
    title: String,
    cipher: RandomizedNonceKey,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let titles: Vec<&str> = self.keys.iter().map(|key| &*key.title).collect();
        f.debug_tuple("Keyring").field(&titles).finish()
    }
}

impl Keyring {
    /// No keys: nothing is encrypted, and nothing that is encrypted can be read.
    pub fn empty() -> Self {
        Self {
            is_plain: true,
            ..Self::default()
        }
    }

    /// The keys in a file.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let Contents { is_plain, keys } = keyfile::read(path)?;
        let key = |(secret, title): ([u8; KEY_BYTES], String)| {
            let id = id_of(&secret);
            let title = if title.is_empty() { hex(&id) } else { title };
            let cipher = RandomizedNonceKey::new(&AES_256_GCM, &secret);
            let cipher = cipher.expect("the key has the length that the algorithm wants");
            Key { id, title, cipher }
        };
        let keys: Vec<Key> = keys.into_iter().map(key).collect();
        let first = keys.first().filter(|_| !is_plain);
        Ok(Self {
            name: first.map(|key| hex(&key.id)).unwrap_or_default(),
            is_plain,
            keys,
        })
    }

    /// The key that a value is to be encrypted with.
    fn wanted(&self, key: &str) -> Option<&Key> {
        let first = self.keys.first().filter(|_| !self.is_plain);
        first.filter(|_| is_encrypted(key))
    }

    /// Decrypts what a header announces.
    fn decrypt(&self, place: &str, stored: &[u8]) -> Result<Opened, String> {
        let Some((header, sealed)) = stored.split_at_checked(HEADER_BYTES) else {
            return Err("it is encrypted, and its beginning is missing".to_owned());
        };
        let (id, nonce) = header[1..].split_at(ID_BYTES);
        let Some(key) = self.keys.iter().find(|key| key.id == *id) else {
            let id = hex(id);
            return Err(format!(
                "it is encrypted with the key whose id is {id}, which is in no key file that \
                 --encryption-key-file names; put that key back"
            ));
        };
        let changed = || {
            let title = &key.title;
            format!(
                "it cannot be decrypted with the key {title:?}, which it names: its bytes were changed, \
                 or are those of another object; restore them from a backup"
            )
        };
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| changed())?;
        let mut buffer = sealed.to_vec();
        let opened = key
            .cipher
            .open_in_place(nonce, Aad::from(place), &mut buffer);
        let length = opened.map_err(|_| changed())?.len();
        buffer.truncate(length);
        let wanted = self.wanted(place);
        Ok(Opened {
            value: buffer.into(),
            is_current: wanted.is_some_and(|wanted| wanted.id == key.id),
        })
    }
}

impl Seal for Keyring {
    fn name(&self) -> &str {
        &self.name
    }

    fn seal(&self, key: &str, value: &[u8]) -> Option<Vec<u8>> {
        let wanted = self.wanted(key)?;
        let mut sealed = value.to_vec();
        let nonce = wanted
            .cipher
            .seal_in_place_append_tag(Aad::from(key), &mut sealed);
        let nonce =
            nonce.expect("objects are far below the cipher's limit, and randomness does not fail");
        Some([&[VERSION], &wanted.id[..], nonce.as_ref(), &sealed].concat())
    }

    fn open(&self, key: &str, stored: Bytes) -> Result<Opened, SealError> {
        if stored.first() == Some(&VERSION) {
            return Ok(self.decrypt(key, &stored)?);
        }
        if is_encrypted(key) && stored.first() != Some(&b'{') {
            let words = "it is neither an object nor encrypted in a way that this version knows";
            return Err(words.into());
        }
        Ok(Opened {
            value: stored,
            is_current: self.wanted(key).is_none(),
        })
    }
}

fn is_encrypted(key: &str) -> bool {
    let resource = key
        .strip_prefix("/registry/")
        .and_then(|rest| rest.split('/').next());
    resource.is_some_and(|resource| ENCRYPTED.contains(&resource))
}

/// A fingerprint that tells keys apart and nothing about them.
fn id_of(secret: &[u8; KEY_BYTES]) -> [u8; ID_BYTES] {
    let input = [b"kennel encryption key id\0", &secret[..]].concat();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &input);
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&digest.as_ref()[..ID_BYTES]);
    id
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        let _infallible = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
