//! Sealed backups: one line of text that says how the key is derived, then the archive in encrypted chunks.
//!
//! ```text
//!  kennel-sealed-backup 1 passphrase 600000 <salt>⏎   or   kennel-sealed-backup 1 key <id of the key> <salt>⏎
//!  AES-256-GCM of 64 KiB · … · AES-256-GCM of the rest
//! ```
//!
//! The file's key is derived with its salt, so that chunks can be numbered with nonces that count. The associated data
//! is the line and whether the chunk is the last: chunks cannot be reordered, dropped or taken from another file.

use std::io::{self, BufRead, Read, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hmac, pbkdf2, rand};
use data_encoding::HEXLOWER;

use crate::seal::{self, KEY_BYTES, KeyFileError};

const MAGIC: &str = "kennel-sealed-backup 1 ";
/// The longest first line.
const LINE_MAX: usize = 256;
const CHUNK_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
/// OWASP's number for PBKDF2 with HMAC-SHA-256.
const ITERATIONS: u32 = 600_000;
/// A file that asks for more is not ours, and must not keep us busy.
const ITERATIONS_MAX: u32 = 10_000_000;

/// What backups are sealed with.
pub enum Secret {
    Passphrase(String),
    /// The first seals; all of them open.
    Keys(Vec<[u8; KEY_BYTES]>),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Passphrase(_) => "a passphrase",
            Self::Keys(_) => "keys",
        })
    }
}

/// A file with a secret, which only its owner may be able to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretFile {
    /// The passphrase is the first line.
    Passphrase(PathBuf),
    /// Keys as in the file of `--encryption-key-file`.
    Keys(PathBuf),
}

impl SecretFile {
    pub fn read(&self) -> Result<Secret, KeyFileError> {
        match self {
            Self::Passphrase(path) => seal::read_passphrase(path).map(Secret::Passphrase),
            Self::Keys(path) => seal::read_keys(path).map(Secret::Keys),
        }
    }
}

/// Why a backup cannot be unsealed.
#[derive(Debug, thiserror::Error)]
pub enum UnsealError {
    #[error("it is sealed with a passphrase; give it with --passphrase-file")]
    NeedsPassphrase,
    #[error("it is sealed with the key whose id is {0}; give a file that has it with --key-file")]
    NeedsKey(String),
    #[error("its first line is malformed")]
    Malformed,
    #[error(
        "it cannot be decrypted: the passphrase is another one, or the file was changed or cut off"
    )]
    Wrong,
}

/// How the key of a file is derived.
struct Derivation {
    /// The first line, with its end.
    line: Vec<u8>,
    key: LessSafeKey,
}

impl Derivation {
    /// A new one.
    fn random(secret: &Secret) -> io::Result<Self> {
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).map_err(|_| io::Error::other("no random numbers"))?;
        let shown = HEXLOWER.encode(&salt);
        let (line, master) = match secret {
            Secret::Passphrase(passphrase) => (
                format!("{MAGIC}passphrase {ITERATIONS} {shown}\n"),
                stretch(passphrase, ITERATIONS, &salt),
            ),
            Secret::Keys(keys) => {
                let first = keys
                    .first()
                    .ok_or_else(|| io::Error::other("the file has no key"))?;
                let id = HEXLOWER.encode(&seal::id_of(first));
                (format!("{MAGIC}key {id} {shown}\n"), Some(*first))
            }
        };
        let master = master.ok_or_else(|| io::Error::other("no key could be derived"))?;
        Ok(Self::of(line.into_bytes(), &master, &salt))
    }

    /// That of a file's first line.
    fn parse(line: Vec<u8>, secret: Option<&Secret>) -> Result<Self, UnsealError> {
        let text = std::str::from_utf8(&line).map_err(|_| UnsealError::Malformed)?;
        let rest = text
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.strip_suffix('\n'));
        let words: Vec<&str> = rest.ok_or(UnsealError::Malformed)?.split(' ').collect();
        let [kind, how, salt] = words[..] else {
            return Err(UnsealError::Malformed);
        };
        let salt = HEXLOWER.decode(salt.as_bytes());
        let salt = salt.ok().filter(|salt| salt.len() == SALT_BYTES);
        let salt = salt.ok_or(UnsealError::Malformed)?;
        let master = match (kind, secret) {
            ("passphrase", Some(Secret::Passphrase(passphrase))) => {
                let iterations = how.parse().ok().filter(|n| *n <= ITERATIONS_MAX);
                let iterations = iterations.ok_or(UnsealError::Malformed)?;
                stretch(passphrase, iterations, &salt).ok_or(UnsealError::Malformed)?
            }
            ("passphrase", _) => return Err(UnsealError::NeedsPassphrase),
            ("key", Some(Secret::Keys(keys))) => {
                let is_named = |key: &&[u8; KEY_BYTES]| HEXLOWER.encode(&seal::id_of(key)) == how;
                let needed = || UnsealError::NeedsKey(how.to_owned());
                *keys.iter().find(is_named).ok_or_else(needed)?
            }
            ("key", _) => return Err(UnsealError::NeedsKey(how.to_owned())),
            _ => return Err(UnsealError::Malformed),
        };
        Ok(Self::of(line, &master, &salt))
    }

    fn of(line: Vec<u8>, master: &[u8; KEY_BYTES], salt: &[u8]) -> Self {
        let master = hmac::Key::new(hmac::HMAC_SHA256, master);
        let key = hmac::sign(&master, &[b"kennel backup\0", salt].concat());
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref());
        let key = key.expect("a SHA-256 has the length of the key");
        Self {
            line,
            key: LessSafeKey::new(key),
        }
    }

    fn nonce_and_data(&self, number: u64, is_last: bool) -> (Nonce, Aad<Vec<u8>>) {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        let data = [&self.line[..], &[u8::from(is_last)]].concat();
        (Nonce::assume_unique_for_key(nonce), Aad::from(data))
    }
}

fn stretch(passphrase: &str, iterations: u32, salt: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let iterations = NonZeroU32::new(iterations)?;
    let mut key = [0; KEY_BYTES];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, iterations, salt, passphrase.as_bytes(), &mut key);
    Some(key)
}

/// Encrypts what is written to it. [`finish`](Self::finish) must be called.
pub(super) struct Sealer<W> {
    to: W,
    derivation: Derivation,
    number: u64,
    buffer: Vec<u8>,
}

impl<W: Write> Sealer<W> {
    pub(super) fn new(mut to: W, secret: &Secret) -> io::Result<Self> {
        let derivation = Derivation::random(secret)?;
        to.write_all(&derivation.line)?;
        Ok(Self {
            to,
            derivation,
            number: 0,
            buffer: Vec::with_capacity(2 * CHUNK_BYTES),
        })
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.buffer);
        self.seal(rest, true)?;
        Ok(self.to)
    }

    fn seal(&mut self, mut chunk: Vec<u8>, is_last: bool) -> io::Result<()> {
        let (nonce, data) = self.derivation.nonce_and_data(self.number, is_last);
        self.number += 1;
        let sealed = self
            .derivation
            .key
            .seal_in_place_append_tag(nonce, data, &mut chunk);
        sealed.map_err(|_| io::Error::other("cannot encrypt"))?;
        self.to.write_all(&chunk)
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        // The last chunk may be full, too; it is known at the end.
        while self.buffer.len() > CHUNK_BYTES {
            let rest = self.buffer.split_off(CHUNK_BYTES);
            let chunk = std::mem::replace(&mut self.buffer, rest);
            self.seal(chunk, false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file begins like a sealed backup.
pub(super) fn is_sealed(file: &mut impl BufRead) -> io::Result<bool> {
    Ok(file.fill_buf()?.starts_with(MAGIC.as_bytes()))
}

/// Decrypts what is read from it. Nothing is returned that was not verified.
pub(super) struct Unsealer<R> {
    from: R,
    derivation: Derivation,
    number: u64,
    chunk: Vec<u8>,
    read: usize,
    is_done: bool,
}

impl<R: BufRead> Unsealer<R> {
    pub(super) fn new(mut from: R, secret: Option<&Secret>) -> io::Result<Self> {
        let mut line = Vec::new();
        let mut start = (&mut from).take(LINE_MAX as u64);
        start.read_until(b'\n', &mut line)?;
        let derivation = Derivation::parse(line, secret).map_err(io::Error::other)?;
        let mut unsealer = Self {
            from,
            derivation,
            number: 0,
            chunk: Vec::new(),
            read: 0,
            is_done: false,
        };
        // Now, so that a wrong passphrase is found first.
        unsealer.next_chunk()?;
        Ok(unsealer)
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + TAG_BYTES);
        let mut part = (&mut self.from).take((CHUNK_BYTES + TAG_BYTES) as u64);
        part.read_to_end(&mut chunk)?;
        let is_last = self.from.fill_buf()?.is_empty();
        let (nonce, data) = self.derivation.nonce_and_data(self.number, is_last);
        let opened = self.derivation.key.open_in_place(nonce, data, &mut chunk);
        let length = opened
            .map_err(|_| io::Error::other(UnsealError::Wrong))?
            .len();
        chunk.truncate(length);
        self.number += 1;
        (self.chunk, self.read, self.is_done) = (chunk, 0, is_last);
        Ok(())
    }
}

impl<R: BufRead> Read for Unsealer<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.read == self.chunk.len() {
            if self.is_done {
                return Ok(0);
            }
            self.next_chunk()?;
        }
        let left = &self.chunk[self.read..];
        let count = left.len().min(to.len());
        to[..count].copy_from_slice(&left[..count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(bytes: &[u8], secret: &Secret) -> Vec<u8> {
        let mut sealer = Sealer::new(Vec::new(), secret).unwrap();
        sealer.write_all(bytes).unwrap();
        sealer.finish().unwrap()
    }

    fn opened(file: &[u8], secret: Option<&Secret>) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let unsealer = Unsealer::new(file, secret);
        let read = unsealer.and_then(|mut unsealer| unsealer.read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn every_length_opens_again() {
        let keys = Secret::Keys(vec![[1; KEY_BYTES], [2; KEY_BYTES]]);
        for length in [
            0,
            1,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            3 * CHUNK_BYTES,
        ] {
            let bytes = vec![7; length];
            let file = sealed(&bytes, &keys);
            assert!(is_sealed(&mut &file[..]).unwrap());
            assert_eq!(opened(&file, Some(&keys)).unwrap(), bytes, "{length}");
            let rotated = Secret::Keys(vec![[3; KEY_BYTES], [1; KEY_BYTES]]);
            assert_eq!(opened(&file, Some(&rotated)).unwrap(), bytes);
        }
    }

    #[test]
    fn a_passphrase_opens_what_it_sealed() {
        let secret = Secret::Passphrase("correct horse battery".to_owned());
        let file = sealed(b"hello", &secret);
        assert_eq!(opened(&file, Some(&secret)).unwrap(), b"hello");
        let other = Secret::Passphrase("incorrect horse battery".to_owned());
        let wrong = UnsealError::Wrong.to_string();
        assert_eq!(opened(&file, Some(&other)), Err(wrong));
        let needed = UnsealError::NeedsPassphrase.to_string();
        assert_eq!(opened(&file, None), Err(needed.clone()));
        let keys = Secret::Keys(vec![[1; KEY_BYTES]]);
        assert_eq!(opened(&file, Some(&keys)), Err(needed));
    }

    #[test]
    fn changed_and_cut_files_do_not_open() {
        let keys = Secret::Keys(vec![[1; KEY_BYTES]]);
        let file = sealed(&vec![7; 2 * CHUNK_BYTES + 5], &keys);
        let line = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let chunk = CHUNK_BYTES + TAG_BYTES;
        for at in [line - 2, line, line + chunk, file.len() - 1] {
            let mut changed = file.clone();
            changed[at] ^= 1;
            assert!(opened(&changed, Some(&keys)).is_err(), "{at}");
        }
        for length in [line, line + chunk, line + 2 * chunk, file.len() - 1] {
            assert!(opened(&file[..length], Some(&keys)).is_err(), "{length}");
        }
        let mut swapped = file.clone();
        let (first, second) = swapped[line..].split_at_mut(chunk);
        first.swap_with_slice(&mut second[..chunk]);
        assert!(opened(&swapped, Some(&keys)).is_err());
        let unknown = Secret::Keys(vec![[9; KEY_BYTES]]);
        let said = opened(&file, Some(&unknown)).unwrap_err();
        assert!(
            said.starts_with("it is sealed with the key whose id is "),
            "{said}"
        );
    }
}
