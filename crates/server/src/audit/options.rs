//! What an operator may choose about the audit log. Text to values, and no files touched.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the log is, below the data directory, when nothing else is said.
const DEFAULT_PLACE: &str = "audit/audit.log";
/// With so many files of this size the log takes at most 500 MiB: some 700,000 requests, days of a busy
/// cluster's administrators.
pub const SIZE: Bytes = Bytes(100 << 20);
/// How many files there are by default.
pub const FILES: u16 = 5;
/// The smallest size at which a file may be rotated: below it, one long line could be half a file.
const SIZE_MIN: u64 = 64 << 10;

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nowhere.
    Off,
    /// To the standard output.
    Stdout,
    /// To a file that rotates.
    File(PathBuf),
}

impl Target {
    /// What `--audit-log` says; a file in the data directory when it says nothing.
    pub fn of(flag: Option<&str>, data_dir: &Path) -> Self {
        match flag {
            Some("off") => Self::Off,
            Some("-") => Self::Stdout,
            Some(path) => Self::File(path.into()),
            None => Self::File(data_dir.join(DEFAULT_PLACE)),
        }
    }
}

/// How to keep an audit log.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where lines go.
    pub target: Target,
    /// A file is put away before it would grow beyond this.
    pub max_size: Bytes,
    /// How many files there may be, the current one included.
    pub max_files: u16,
    /// Whether nodes' accepted renewals of their leases are left out.
    pub skip_heartbeats: bool,
}

impl Options {
    /// No audit log.
    pub fn off() -> Self {
        Self::to(Target::Off)
    }

    /// An audit log at this place, of the usual size.
    pub fn to(target: Target) -> Self {
        Self {
            target,
            max_size: SIZE,
            max_files: FILES,
            skip_heartbeats: false,
        }
    }
}

/// A number of bytes, as `512Ki`, `100Mi` or `1Gi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
        let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
        let (digits, shift) = match unit {
            Some((unit, shift)) => (text.trim_end_matches(unit), *shift),
            None => (text, 0),
        };
        let number: Option<u64> = digits.parse().ok();
        let bytes = number.and_then(|number| number.checked_mul(1 << shift));
        match bytes {
            Some(bytes) if bytes >= SIZE_MIN => Ok(Self(bytes)),
            Some(_) => Err(format!("must be at least {}Ki", SIZE_MIN >> 10)),
            None => Err("must be a number of bytes such as 512Ki, 100Mi or 1Gi".to_owned()),
        }
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [("Gi", 30), ("Mi", 20), ("Ki", 10)];
        let whole = |&&(_, shift): &&(&str, u32)| self.0.is_multiple_of(1 << shift);
        match units.iter().find(whole) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let parsed = text.parse().map(|bytes: Bytes| bytes.to_string());
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(parsed, expected, "{text}");
        };
        check("100Mi", Ok("100Mi"));
        check("65536", Ok("64Ki"));
        check("70000", Ok("70000"));
        check("2048Mi", Ok("2Gi"));
        check("63Ki", Err("must be at least 64Ki"));
        let words = "must be a number of bytes such as 512Ki, 100Mi or 1Gi";
        for wrong in ["", "Mi", "-1", "1.5Gi", "100MB", "99999999999Gi"] {
            check(wrong, Err(words));
        }
    }

    #[test]
    fn the_log_is_in_the_data_directory_unless_told_otherwise() {
        let check = |flag, expected| assert_eq!(Target::of(flag, Path::new("/d")), expected);
        check(None, Target::File("/d/audit/audit.log".into()));
        check(Some("off"), Target::Off);
        check(Some("-"), Target::Stdout);
        check(Some("/var/log/k"), Target::File("/var/log/k".into()));
    }
}
