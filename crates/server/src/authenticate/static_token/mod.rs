//! Static tokens from a file, valid until they are removed from it.
//!
//! ```text
//!  token,user,uid,"group1,group2"
//! ```
//!
//! The file is reloaded after a change, at most once a second and only when a request has a token. If it
//! cannot be read, the previous tokens stay valid. Tokens are looked up by their hash, so that the
//! duration of a lookup reveals nothing about valid tokens.

mod csv;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::request::User;

const RELOAD_INTERVAL: Duration = Duration::from_secs(1);
const READABLE_BY_OTHERS: u32 = 0o004;

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("cannot read the token file {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("token file {}, line {line}: {why}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        why: LineError,
    },
}

/// Why a line of a token file is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error(transparent)]
    Csv(#[from] csv::CsvError),
    #[error("must have at least 3 columns (token, user name, user uid), found {0}")]
    Columns(usize),
    #[error("token and user name must not be empty")]
    Empty,
    #[error("duplicate token, also on an earlier line")]
    Duplicate,
}

pub(crate) struct StaticTokens {
    path: PathBuf,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    users: HashMap<[u8; 32], User>,
    version: Version,
    checked: Instant,
}

/// Inode, size and ctime, which change with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version(u64, u64, i64, i64);

impl StaticTokens {
    pub(crate) fn open(path: &Path) -> Result<Self, TokenFileError> {
        let failed = |source| TokenFileError::File {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.mode() & READABLE_BY_OTHERS != 0 {
            tracing::warn!(path = %path.display(), "the token file is readable by all users of this machine");
        }
        Ok(Self {
            path: path.to_owned(),
            loaded: Mutex::new(Loaded {
                users: read(path)?,
                version: version(&metadata),
                checked: Instant::now(),
            }),
        })
    }

    pub(crate) fn user(&self, token: &str) -> Option<User> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.checked.elapsed() >= RELOAD_INTERVAL {
            loaded.checked = Instant::now();
            self.reload_if_changed(&mut loaded);
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        loaded.users.get(&hash).cloned()
    }

    fn reload_if_changed(&self, loaded: &mut Loaded) {
        let Ok(metadata) = fs::metadata(&self.path) else {
            return;
        };
        let version = version(&metadata);
        if version == loaded.version {
            return;
        }
        loaded.version = version;
        match read(&self.path) {
            Ok(users) => loaded.users = users,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, source, "cannot reload the token file; the previous tokens stay valid");
            }
        }
    }
}

fn version(metadata: &fs::Metadata) -> Version {
    Version(
        metadata.ino(),
        metadata.size(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

fn read(path: &Path) -> Result<HashMap<[u8; 32], User>, TokenFileError> {
    let text = fs::read_to_string(path).map_err(|source| TokenFileError::File {
        path: path.to_owned(),
        source,
    })?;
    users(&text).map_err(|(line, why)| TokenFileError::Line {
        path: path.to_owned(),
        line,
        why,
    })
}

/// The users by the hash of their tokens, or the invalid line and why.
fn users(text: &str) -> Result<HashMap<[u8; 32], User>, (usize, LineError)> {
    let mut users = HashMap::new();
    for (line, fields) in csv::records(text).map_err(|(line, why)| (line, LineError::from(why)))? {
        let [token, name, uid, more @ ..] = &fields[..] else {
            return Err((line, LineError::Columns(fields.len())));
        };
        if token.is_empty() || name.is_empty() {
            return Err((line, LineError::Empty));
        }
        let groups = more.first().map(String::as_str).unwrap_or_default();
        let groups = groups.split(',').map(str::trim).filter(|g| !g.is_empty());
        let mut user = User::authenticated(name, groups.map(str::to_owned).collect());
        user.uid.clone_from(uid);
        let hash: [u8; 32] = Sha256::digest(token).into();
        if users.insert(hash, user).is_some() {
            return Err((line, LineError::Duplicate));
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::AUTHENTICATED;

    fn check(text: &str, token: &str, expected: Option<(&str, &str, &[&str])>) {
        let users = users(text).unwrap();
        let hash: [u8; 32] = Sha256::digest(token).into();
        let found = users.get(&hash);
        let found = found.map(|u| (&*u.name, &*u.uid, u.groups.clone()));
        let expected = expected.map(|(name, uid, groups)| {
            let groups = groups.iter().chain(&[AUTHENTICATED]);
            (name, uid, groups.map(ToString::to_string).collect())
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn lines_name_users() {
        check("t,u,1", "t", Some(("u", "1", &[])));
        check("t,u,1\n", "t", Some(("u", "1", &[])));
        check("t,u,1\n", "T", None);
        check("t,u,1,g", "t", Some(("u", "1", &["g"])));
        check(
            "\nx,y,z\r\nt,u,,\"g,h\"\r\n",
            "t",
            Some(("u", "", &["g", "h"])),
        );
        check("\"a\"\"b\",u,1,\"\"", "a\"b", Some(("u", "1", &[])));
    }

    #[test]
    fn errors_name_the_invalid_line() {
        let check = |text: &str, line: usize, words: &str| {
            let (at, why) = users(text).unwrap_err();
            assert_eq!(at, line, "{text}: {why}");
            assert!(why.to_string().contains(words), "{text}: {why}");
        };
        check("t,u", 1, "at least 3 columns");
        check("t,u,1\n\nt2", 3, "found 1");
        check("t,u,1\n,u,1", 2, "empty");
        check("t,,1", 1, "empty");
        check("t,u,1\nt,v,1", 2, "earlier line");
        check("t,u,1\nt2,u,1,\"g", 2, "quote");
        check("t,u,1,\"g\"x", 1, "quote");
    }

    #[test]
    fn a_change_takes_effect() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.csv");
        fs::write(&path, "old,u,1\n").unwrap();
        let tokens = StaticTokens::open(&path).unwrap();
        let known = |token: &str| {
            tokens.loaded.lock().unwrap().checked =
                Instant::now().checked_sub(RELOAD_INTERVAL).unwrap();
            tokens.user(token).is_some()
        };
        assert!(known("old") && !known("new"));
        fs::write(&path, "new-one,u,1\n").unwrap();
        assert!(!known("old") && known("new-one"));
        fs::write(&path, "half a li").unwrap();
        assert!(known("new-one"));
        fs::remove_file(&path).unwrap();
        assert!(known("new-one"));
    }
}
