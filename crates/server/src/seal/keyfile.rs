//! The key file: one key per line, in base64, with an optional name after it. The first line encrypts;
//! all of them decrypt.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) const KEY_BYTES: usize = 32;
/// Shorter passphrases are guessed.
const PASSPHRASE_MIN: usize = 12;
/// Upstream's name of the provider that does not encrypt.
const IDENTITY: &str = "identity";

#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot read the encryption keys in {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "the encryption keys in {} can be read by others than their owner (mode {mode:03o}); \
         run chmod 600",
        path.display()
    )]
    Public { path: PathBuf, mode: u32 },
    #[error("{}: {reason}", path.display())]
    Unusable { path: PathBuf, reason: Problem },
}

/// What is wrong with the text of a key file. Names lines, and never their content.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("line {0}: only the first line can be {IDENTITY:?}")]
    LateIdentity(usize),
    #[error("line {0}: a key is {KEY_BYTES} random bytes in base64, 44 characters")]
    NotAKey(usize),
    #[error("line {0}: duplicate key")]
    Duplicate(usize),
    #[error("the file has no key")]
    NoKey,
    #[error("line 1: a passphrase has at least {PASSPHRASE_MIN} characters")]
    ShortPassphrase,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents {
    /// Whether new values are stored unencrypted.
    pub(super) is_identity: bool,
    /// The keys and their names.
    pub(super) keys: Vec<([u8; KEY_BYTES], String)>,
}

/// Refuses a file that others can read.
pub(super) fn read(path: &Path) -> Result<Contents, KeyFileError> {
    parse(&read_private(path)?).map_err(unusable(path))
}

/// The passphrase on the first line of a file that others cannot read.
pub(super) fn read_passphrase(path: &Path) -> Result<String, KeyFileError> {
    let text = read_private(path)?;
    let passphrase = text.lines().next().unwrap_or_default();
    if passphrase.chars().count() < PASSPHRASE_MIN {
        return Err(unusable(path)(Problem::ShortPassphrase));
    }
    Ok(passphrase.to_owned())
}

fn unusable(path: &Path) -> impl FnOnce(Problem) -> KeyFileError {
    |reason| KeyFileError::Unusable {
        path: path.to_owned(),
        reason,
    }
}

fn read_private(path: &Path) -> Result<String, KeyFileError> {
    let failed = |source| KeyFileError::File {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let mode = metadata.mode() & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let path = path.to_owned();
        return Err(KeyFileError::Public { path, mode });
    }
    std::fs::read_to_string(path).map_err(failed)
}

fn parse(text: &str) -> Result<Contents, Problem> {
    let mut contents = Contents {
        is_identity: false,
        keys: Vec::new(),
    };
    let lines = text.lines().enumerate();
    for (number, line) in lines.map(|(index, line)| (index + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == IDENTITY {
            if contents.is_identity || !contents.keys.is_empty() {
                return Err(Problem::LateIdentity(number));
            }
            contents.is_identity = true;
            continue;
        }
        let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let decoded = STANDARD.decode(key).ok();
        let key: Option<[u8; KEY_BYTES]> = decoded.and_then(|bytes| bytes.try_into().ok());
        let key = key.ok_or(Problem::NotAKey(number))?;
        if contents.keys.iter().any(|(known, _)| *known == key) {
            return Err(Problem::Duplicate(number));
        }
        contents.keys.push((key, name.trim().to_owned()));
    }
    if contents.keys.is_empty() {
        return Err(Problem::NoKey);
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; KEY_BYTES])
    }

    #[test]
    fn a_key_per_line_with_a_name_or_without() {
        let text = format!(
            "# keys of the production cluster\n\n  {}\tsummer 2026 \n{}\n",
            key(1),
            key(2)
        );
        let keys = vec![
            ([1; 32], "summer 2026".to_owned()),
            ([2; 32], String::new()),
        ];
        let is_identity = false;
        assert_eq!(parse(&text), Ok(Contents { is_identity, keys }));
        let identity = parse(&format!("identity\n{}", key(1))).unwrap();
        assert!(identity.is_identity && identity.keys.len() == 1);
    }

    #[test]
    fn mistakes_name_their_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        };
        let wrong = "line 2: a key is 32 random bytes in base64, 44 characters";
        check("", "the file has no key");
        check("# only words\n", "the file has no key");
        check("identity", "the file has no key");
        check("\nhunter2", wrong);
        check(&format!("{}\n{}", key(1), STANDARD.encode([1; 31])), wrong);
        check(&format!("{}\n{}", key(1), key(1)), "line 2: duplicate key");
        let late = format!("{}\nidentity", key(1));
        check(&late, "line 2: only the first line can be \"identity\"");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("keys");
        std::fs::write(&path, key(1)).unwrap();
        let check = |mode, expected: Option<&str>| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).unwrap();
            let refused = read(&path).err().map(|error| error.to_string());
            let expected =
                expected.map(|words| format!("the encryption keys in {} {words}", path.display()));
            assert_eq!(refused, expected);
        };
        let words =
            |mode| format!("can be read by others than their owner (mode {mode}); run chmod 600");
        check(0o644, Some(&words("644")));
        check(0o640, Some(&words("640")));
        check(0o600, None);
        check(0o400, None);
        let absent = read(&dir.path().join("absent")).unwrap_err().to_string();
        assert!(absent.starts_with("cannot read the encryption keys in "));
    }
}
