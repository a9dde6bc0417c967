//! The policy of a namespace: a level and a version for each of the modes enforce, audit and warn, from its labels.

use std::fmt;
use std::str::FromStr;

pub const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
pub const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";
const AUDIT: &str = "pod-security.kubernetes.io/audit";
const AUDIT_VERSION: &str = "pod-security.kubernetes.io/audit-version";
const WARN: &str = "pod-security.kubernetes.io/warn";
const WARN_VERSION: &str = "pod-security.kubernetes.io/warn-version";

/// From the most lenient to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// `v1.N`
    Minor(u32),
    #[default]
    Latest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: Level,
    pub version: Version,
}

/// The policy of a namespace. The default is that of a namespace without labels: everything is privileged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Pods that violate it are refused.
    pub enforce: LevelVersion,
    /// Violations are recorded in the audit log.
    pub audit: LevelVersion,
    /// Violations are warned about in the response.
    pub warn: LevelVersion,
}

/// A label whose value cannot be used. `Display` is upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct LabelError {
    pub label: &'static str,
    pub value: String,
    words: Unreadable,
}

/// What a level or a version must be, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("must be one of privileged, baseline, restricted")]
    Level,
    #[error("must be \"latest\" or \"v1.x\"")]
    Version,
}

impl FromStr for Level {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err(Unreadable::Level),
        }
    }
}

impl FromStr for Version {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let digits = text.strip_prefix("v1.").unwrap_or_default();
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        let minor = is_plain.then(|| digits.parse().ok()).flatten();
        minor.map(Self::Minor).ok_or(Unreadable::Version)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Policy {
    pub fn is_privileged(&self) -> bool {
        let levels = [self.enforce.level, self.audit.level, self.warn.level];
        levels.iter().all(|level| *level == Level::Privileged)
    }

    /// The modes that labels set to more than `privileged`: `enforce=baseline:latest, warn=restricted:v1.30`.
    pub fn set_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> String {
        let modes = [
            ("enforce", self.enforce, ENFORCE, ENFORCE_VERSION),
            ("audit", self.audit, AUDIT, AUDIT_VERSION),
            ("warn", self.warn, WARN, WARN_VERSION),
        ];
        let is_set = |level, version| label(level).is_some() || label(version).is_some();
        let shown: Vec<String> = modes
            .iter()
            .filter(|(_, at, level, version)| {
                at.level != Level::Privileged && is_set(level, version)
            })
            .map(|(mode, at, ..)| format!("{mode}={at}"))
            .collect();
        shown.join(", ")
    }
}

/// The policy that a namespace's labels set, and what is wrong with them. A wrong enforce level means `restricted`,
/// a wrong audit or warn level `privileged`, a wrong version `latest`.
pub fn policy<'a>(label: impl Fn(&str) -> Option<&'a str>) -> (Policy, Vec<LabelError>) {
    let mut policy = Policy::default();
    let mut errors = Vec::new();
    let mut enforced = false;
    if let Some(read) = read(&label, ENFORCE, &mut errors) {
        enforced = read.is_ok();
        policy.enforce.level = read.unwrap_or(Level::Restricted);
    }
    if let Some(read) = read(&label, ENFORCE_VERSION, &mut errors) {
        policy.enforce.version = read.unwrap_or_default();
    }
    if let Some(read) = read(&label, AUDIT, &mut errors) {
        policy.audit.level = read.unwrap_or_default();
    }
    if let Some(read) = read(&label, AUDIT_VERSION, &mut errors) {
        policy.audit.version = read.unwrap_or_default();
    }
    let warn_level = read(&label, WARN, &mut errors);
    policy.warn.level = warn_level.and_then(Result::ok).unwrap_or_default();
    let warn_version = read(&label, WARN_VERSION, &mut errors);
    policy.warn.version = warn_version.and_then(Result::ok).unwrap_or_default();
    // Without a warn level, users are warned about what is refused when a controller creates the pods.
    if warn_level.is_none() && enforced && policy.enforce.level > policy.warn.level {
        policy.warn.level = policy.enforce.level;
        if warn_version.is_none() {
            policy.warn.version = policy.enforce.version;
        }
    }
    (policy, errors)
}

/// A value that was added to the errors.
#[derive(Clone, Copy)]
struct Reported;

/// The value of a label, if there is one.
fn read<'a, T: FromStr<Err = Unreadable>>(
    label: impl Fn(&str) -> Option<&'a str>,
    name: &'static str,
    errors: &mut Vec<LabelError>,
) -> Option<Result<T, Reported>> {
    let value = label(name)?;
    match value.parse() {
        Ok(read) => Some(Ok(read)),
        Err(words) => {
            errors.push(LabelError {
                label: name,
                value: value.to_owned(),
                words,
            });
            Some(Err(Reported))
        }
    }
}
