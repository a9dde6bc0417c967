//! The key file: a key per line, in base64, with a name behind it if somebody likes. The first line says
//! how things are written, all of them how they may be read.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What AES-256 wants.
pub(super) const KEY_BYTES: usize = 32;
/// The word that stands for no encryption, as upstream calls it.
const IDENTITY: &str = "identity";

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the encryption keys in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others can read it.
    #[error(
        "the encryption keys in {} can be read by others than their owner (mode {mode:03o}); \
         say chmod 600",
        path.display()
    )]
    Public {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a key file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents {
    /// Whether values are to be written as they are.
    pub(super) is_plain: bool,
    /// The keys and their names.
    pub(super) keys: Vec<([u8; KEY_BYTES], String)>,
}

/// Reads a key file that nobody else can read.
pub(super) fn read(path: &Path) -> Result<Contents, KeyFileError> {
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
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse(&text).map_err(|reason| KeyFileError::Unusable {
        path: path.to_owned(),
        reason,
    })
}

/// Understands the text of a key file. Errors name lines and never what stands on them.
fn parse(text: &str) -> Result<Contents, String> {
    let mut contents = Contents {
        is_plain: false,
        keys: Vec::new(),
    };
    let lines = text.lines().enumerate();
    for (number, line) in lines.map(|(index, line)| (index + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == IDENTITY {
            if contents.is_plain || !contents.keys.is_empty() {
                return Err(format!(
                    "line {number}: only the first line can be {IDENTITY:?}"
                ));
            }
            contents.is_plain = true;
            continue;
        }
        let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let decoded = STANDARD.decode(key).ok();
        let key: Option<[u8; KEY_BYTES]> = decoded.and_then(|bytes| bytes.try_into().ok());
        let key = key.ok_or_else(|| {
            format!("line {number}: a key is {KEY_BYTES} random bytes in base64, 44 characters")
        })?;
        if contents.keys.iter().any(|(known, _)| *known == key) {
            return Err(format!("line {number}: this key is there twice"));
        }
        contents.keys.push((key, name.trim().to_owned()));
    }
    if contents.keys.is_empty() {
        return Err("there is no key in it".to_owned());
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
            "# keys of the cluster in the cellar\n\n  {}\tsummer 2026 \n{}\n",
            key(1),
            key(2)
        );
        let keys = vec![
            ([1; 32], "summer 2026".to_owned()),
            ([2; 32], String::new()),
        ];
        let is_plain = false;
        assert_eq!(parse(&text), Ok(Contents { is_plain, keys }));
        let plain = parse(&format!("identity\n{}", key(1))).unwrap();
        assert!(plain.is_plain && plain.keys.len() == 1);
    }

    #[test]
    fn mistakes_are_named_by_their_line() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err(), expected);
        let wrong = "line 2: a key is 32 random bytes in base64, 44 characters";
        check("", "there is no key in it");
        check("# only words\n", "there is no key in it");
        check("identity", "there is no key in it");
        check("\nhunter2", wrong);
        check(&format!("{}\n{}", key(1), STANDARD.encode([1; 31])), wrong);
        check(
            &format!("{}\n{}", key(1), key(1)),
            "line 2: this key is there twice",
        );
        let late = format!("{}\nidentity", key(1));
        check(&late, "line 2: only the first line can be \"identity\"");
    }

    #[test]
    fn a_file_for_everybody_is_refused() {
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
            |mode| format!("can be read by others than their owner (mode {mode}); say chmod 600");
        check(0o644, Some(&words("644")));
        check(0o640, Some(&words("640")));
        check(0o600, None);
        check(0o400, None);
        let absent = read(&dir.path().join("absent")).unwrap_err().to_string();
        assert!(absent.starts_with("cannot read the encryption keys in "));
    }
}
