//! Static tokens: a file of tokens and whose they are, good until they are taken out of it.
//!
//! ```text
//!  token,user,uid,"group1,group2"
//! ```
//!
//! The file is read again when it has changed, at most once a second and only when a token is shown. A
//! change that cannot be read leaves what was known before. Tokens are looked up by their hash, so that
//! the time this takes tells nothing of the tokens that are there.

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

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Modes that let others than the owner and the group read.
const READABLE_BY_OTHERS: u32 = 0o004;

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read the token file {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A line of it is none.
    #[error("the token file {} makes no sense in line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// The tokens of a file.
pub(crate) struct StaticTokens {
    path: PathBuf,
    known: Mutex<Known>,
}

struct Known {
    users: HashMap<[u8; 32], User>,
    version: Version,
    looked: Instant,
}

/// What tells one state of a file from another: inode, size and time of change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version(u64, u64, i64, i64);

impl StaticTokens {
    /// Reads a file of tokens.
    pub(crate) fn open(path: &Path) -> Result<Self, TokenFileError> {
        let failed = |source| TokenFileError::File {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.mode() & READABLE_BY_OTHERS != 0 {
            tracing::warn!(path = %path.display(), "everybody on this machine can read the token file");
        }
        Ok(Self {
            path: path.to_owned(),
            known: Mutex::new(Known {
                users: read(path)?,
                version: version(&metadata),
                looked: Instant::now(),
            }),
        })
    }

    /// Whose token this is.
    pub(crate) fn user(&self, token: &str) -> Option<User> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.elapsed() >= LOOK_EVERY {
            known.looked = Instant::now();
            self.look(&mut known);
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        known.users.get(&hash).cloned()
    }

    fn look(&self, known: &mut Known) {
        let Ok(metadata) = fs::metadata(&self.path) else {
            return;
        };
        let version = version(&metadata);
        if version == known.version {
            return;
        }
        known.version = version;
        match read(&self.path) {
            Ok(users) => known.users = users,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, source, "the tokens known so far stay in force");
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

/// The users of a file's text, or the line that makes no sense.
fn users(text: &str) -> Result<HashMap<[u8; 32], User>, (usize, String)> {
    let mut users = HashMap::new();
    for (line, fields) in csv::records(text)? {
        let [token, name, uid, more @ ..] = &fields[..] else {
            let why = format!(
                "it must have at least 3 columns (token, user name, user uid), found {}",
                fields.len()
            );
            return Err((line, why));
        };
        if token.is_empty() || name.is_empty() {
            return Err((line, "token and user name must not be empty".to_owned()));
        }
        let groups = more.first().map(String::as_str).unwrap_or_default();
        let groups = groups.split(',').map(str::trim).filter(|g| !g.is_empty());
        let mut user = User::authenticated(name, groups.map(str::to_owned).collect());
        user.uid.clone_from(uid);
        let hash: [u8; 32] = Sha256::digest(token).into();
        if users.insert(hash, user).is_some() {
            return Err((line, "the token stands in an earlier line, too".to_owned()));
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
    fn lines_that_make_no_sense_are_named() {
        let check = |text: &str, line: usize, words: &str| {
            let (at, why) = users(text).unwrap_err();
            assert_eq!(at, line, "{text}: {why}");
            assert!(why.contains(words), "{text}: {why}");
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
            tokens.known.lock().unwrap().looked = Instant::now().checked_sub(LOOK_EVERY).unwrap();
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
