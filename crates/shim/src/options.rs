//! What the agent tells a shim: words on its command line, since reading a file of many fields would cost
//! memory for as long as the container runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The log.
    pub log: PathBuf,
    /// The program that becomes the container, called with `shim run`.
    pub stage: PathBuf,
    /// It has a terminal.
    pub tty: bool,
    /// It reads what those who attach write …
    pub stdin: bool,
    /// … until the first of them leaves.
    pub stdin_once: bool,
    /// It sees its own processes only.
    pub own_processes: bool,
    /// Its cgroup.
    pub cgroup: Option<String>,
}

impl Options {
    /// As a command line.
    pub fn words(&self) -> Vec<OsString> {
        let with = |name: &str, value: &OsStr| {
            let mut word = OsString::from(name);
            word.push(value);
            word
        };
        let mut words = vec![
            with("--log=", self.log.as_os_str()),
            with("--stage=", self.stage.as_os_str()),
        ];
        words.extend(
            self.cgroup
                .iter()
                .map(|group| with("--cgroup=", OsStr::new(group))),
        );
        let flags = [
            ("--tty", self.tty),
            ("--stdin", self.stdin),
            ("--stdin-once", self.stdin_once),
            ("--own-processes", self.own_processes),
        ];
        words.extend(
            flags
                .iter()
                .filter(|(_, set)| *set)
                .map(|(name, _)| OsString::from(name)),
        );
        words
    }

    /// Reads them. None if somebody else wrote them.
    pub(crate) fn parse(words: Vec<OsString>) -> Option<Self> {
        let mut options = Self::default();
        for word in words {
            let bytes = word.as_bytes();
            let value = |name: &str| bytes.strip_prefix(name.as_bytes()).map(<[u8]>::to_vec);
            match bytes {
                b"--tty" => options.tty = true,
                b"--stdin" => options.stdin = true,
                b"--stdin-once" => options.stdin_once = true,
                b"--own-processes" => options.own_processes = true,
                _ => {
                    if let Some(log) = value("--log=") {
                        options.log = OsString::from_vec(log).into();
                    } else if let Some(stage) = value("--stage=") {
                        options.stage = OsString::from_vec(stage).into();
                    } else {
                        options.cgroup = Some(String::from_utf8(value("--cgroup=")?).ok()?);
                    }
                }
            }
        }
        let whole = !options.log.as_os_str().is_empty() && !options.stage.as_os_str().is_empty();
        whole.then_some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_all_of_it() {
        let options = Options {
            log: "/var/log/a b.log".into(),
            stage: "/usr/bin/kennel".into(),
            tty: true,
            stdin: false,
            stdin_once: true,
            own_processes: true,
            cgroup: Some("kennel/x".to_owned()),
        };
        assert_eq!(Options::parse(options.words()), Some(options));
        assert_eq!(Options::parse(vec!["--help".into()]), None);
        assert_eq!(Options::parse(Vec::new()), None);
    }
}
