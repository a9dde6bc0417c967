//! The options of the audit log.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// In the data directory.
const DEFAULT_PATH: &str = "audit/audit.log";
/// With the default number of files the log takes at most 500 MiB: about 700,000 requests.
pub const DEFAULT_MAX_SIZE: Bytes = Bytes(100 << 20);
pub const DEFAULT_MAX_FILES: u16 = 5;
/// The smallest allowed maximum size: one long line could be half of a smaller file.
const MAX_SIZE_MIN: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Off,
    Stdout,
    File(PathBuf),
}

impl Target {
    /// Parses `--audit-log`.
    pub fn of(flag: Option<&str>, data_dir: &Path) -> Self {
        match flag {
            Some("off") => Self::Off,
            Some("-") => Self::Stdout,
            Some(path) => Self::File(path.into()),
            None => Self::File(data_dir.join(DEFAULT_PATH)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    /// The file is rotated before it would grow beyond this.
    pub max_size: Bytes,
    /// Including the current one.
    pub max_files: u16,
    /// Omit nodes' accepted renewals of their leases.
    pub skip_heartbeats: bool,
}

impl Options {
    pub fn off() -> Self {
        Self::to(Target::Off)
    }

    /// An audit log with default sizes.
    pub fn to(target: Target) -> Self {
        Self {
            target,
            max_size: DEFAULT_MAX_SIZE,
            max_files: DEFAULT_MAX_FILES,
            skip_heartbeats: false,
        }
    }
}

/// A number of bytes, as `512Ki`, `100Mi` or `1Gi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    #[error("must be at least {}Ki", MAX_SIZE_MIN >> 10)]
    TooSmall,
    #[error("must be a number of bytes such as 512Ki, 100Mi or 1Gi")]
    Malformed,
}

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
        let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
        let (digits, shift) = match unit {
            Some((unit, shift)) => (text.trim_end_matches(unit), *shift),
            None => (text, 0),
        };
        let number: Option<u64> = digits.parse().ok();
        let bytes = number.and_then(|number| number.checked_mul(1 << shift));
        match bytes {
            Some(bytes) if bytes >= MAX_SIZE_MIN => Ok(Self(bytes)),
            Some(_) => Err(BytesError::TooSmall),
            None => Err(BytesError::Malformed),
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
            let parsed = parsed.map_err(|error| error.to_string());
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
