//! Command-line options of the shim. Not a file: parsing one would cost memory as long as the container runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub log: PathBuf,
    /// The program that is executed with `shim run` to set up the container.
    pub init: PathBuf,
    pub tty: bool,
    /// Its stdin is a pipe from attached clients.
    pub stdin: bool,
    /// Its stdin closes when the first client detaches.
    pub stdin_once: bool,
    pub pid_namespace: PidNamespace,
    /// Path of its cgroup.
    pub cgroup: Option<String>,
}

/// The PID namespace of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PidNamespace {
    #[default]
    Host,
    /// A new one.
    Own,
    /// That of a running container, by its directory.
    Of(PathBuf),
}

impl Options {
    pub fn to_args(&self) -> Vec<OsString> {
        let with = |name: &str, value: &OsStr| {
            let mut arg = OsString::from(name);
            arg.push(value);
            arg
        };
        let mut args = vec![
            with("--log=", self.log.as_os_str()),
            with("--stage=", self.init.as_os_str()),
        ];
        args.extend(
            self.cgroup
                .iter()
                .map(|group| with("--cgroup=", OsStr::new(group))),
        );
        let flags = [
            ("--tty", self.tty),
            ("--stdin", self.stdin),
            ("--stdin-once", self.stdin_once),
            ("--own-processes", self.pid_namespace == PidNamespace::Own),
        ];
        if let PidNamespace::Of(container) = &self.pid_namespace {
            args.push(with("--processes-of=", container.as_os_str()));
        }
        args.extend(
            flags
                .iter()
                .filter(|(_, set)| *set)
                .map(|(name, _)| OsString::from(name)),
        );
        args
    }

    /// `None` for unknown or missing options.
    pub(crate) fn parse(args: Vec<OsString>) -> Option<Self> {
        let mut options = Self::default();
        for arg in args {
            let bytes = arg.as_bytes();
            let value = |name: &str| bytes.strip_prefix(name.as_bytes()).map(<[u8]>::to_vec);
            match bytes {
                b"--tty" => options.tty = true,
                b"--stdin" => options.stdin = true,
                b"--stdin-once" => options.stdin_once = true,
                b"--own-processes" => options.pid_namespace = PidNamespace::Own,
                _ => {
                    if let Some(log) = value("--log=") {
                        options.log = OsString::from_vec(log).into();
                    } else if let Some(init) = value("--stage=") {
                        options.init = OsString::from_vec(init).into();
                    } else if let Some(container) = value("--processes-of=") {
                        let container = OsString::from_vec(container).into();
                        options.pid_namespace = PidNamespace::Of(container);
                    } else {
                        options.cgroup = Some(String::from_utf8(value("--cgroup=")?).ok()?);
                    }
                }
            }
        }
        let complete = !options.log.as_os_str().is_empty() && !options.init.as_os_str().is_empty();
        complete.then_some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_command_line() {
        let options = Options {
            log: "/var/log/a b.log".into(),
            init: "/usr/bin/kennel".into(),
            tty: true,
            stdin: false,
            stdin_once: true,
            pid_namespace: PidNamespace::Own,
            cgroup: Some("kennel/x".to_owned()),
        };
        assert_eq!(Options::parse(options.to_args()), Some(options.clone()));
        let joining = Options {
            pid_namespace: PidNamespace::Of("/var/lib/a b".into()),
            ..options
        };
        assert_eq!(Options::parse(joining.to_args()), Some(joining));
        assert_eq!(Options::parse(vec!["--help".into()]), None);
        assert_eq!(Options::parse(Vec::new()), None);
    }
}
