//! Chooses the runtime of a node. The agent logs the choice and its reason at start.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::args::RuntimeKind;

/// containerd's default socket.
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SelectedRuntime {
    /// A container runtime at this socket.
    Cri(PathBuf),
    Process,
    Simulated,
}

/// The value of `--runtime`.
impl fmt::Display for SelectedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cri(_) => "cri",
            Self::Process => "process",
            Self::Simulated => "simulated",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) kind: SelectedRuntime,
    /// For the log.
    pub(crate) reason: String,
}

impl Choice {
    /// The container runtime's socket, if it is one.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match &self.kind {
            SelectedRuntime::Cri(socket) => Some(socket),
            SelectedRuntime::Process | SelectedRuntime::Simulated => None,
        }
    }
}

/// `socket` is the value of `--cri-socket`.
pub(crate) fn choose(
    flag: RuntimeKind,
    socket: Option<&str>,
    exists: impl Fn(&Path) -> bool,
) -> Choice {
    let given = socket.map(|text| PathBuf::from(text.strip_prefix("unix://").unwrap_or(text)));
    let path = given
        .clone()
        .unwrap_or_else(|| PathBuf::from(CONTAINERD_SOCKET));
    let shown = path.display().to_string();
    let (kind, reason) = match flag {
        RuntimeKind::Simulated => (
            SelectedRuntime::Simulated,
            "--runtime selects it".to_owned(),
        ),
        RuntimeKind::Process => (SelectedRuntime::Process, "--runtime selects it".to_owned()),
        RuntimeKind::Cri => (
            SelectedRuntime::Cri(path),
            format!("--runtime selects it, at {shown}"),
        ),
        // A socket that was given is used even if it does not exist yet.
        RuntimeKind::Auto if given.is_some() => (
            SelectedRuntime::Cri(path),
            format!("--cri-socket is {shown}"),
        ),
        RuntimeKind::Auto if exists(&path) => (
            SelectedRuntime::Cri(path),
            format!("a container runtime's socket was found at {shown}"),
        ),
        RuntimeKind::Auto => (
            SelectedRuntime::Process,
            format!("no container runtime's socket was found at {shown}"),
        ),
    };
    Choice { kind, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_decides_unless_a_flag_does() {
        let check =
            |flag, socket: Option<&str>, exists: bool, expected: SelectedRuntime, text: &str| {
                let choice = choose(flag, socket, |_| exists);
                assert_eq!(choice.kind, expected);
                assert!(choice.reason.contains(text), "{}", choice.reason);
            };
        let usual = || SelectedRuntime::Cri(PathBuf::from(CONTAINERD_SOCKET));
        let own = || SelectedRuntime::Cri(PathBuf::from("/x.sock"));
        check(
            RuntimeKind::Auto,
            None,
            true,
            usual(),
            "found at /run/containerd",
        );
        check(
            RuntimeKind::Auto,
            None,
            false,
            SelectedRuntime::Process,
            "no container",
        );
        check(
            RuntimeKind::Auto,
            Some("/x.sock"),
            false,
            own(),
            "--cri-socket is",
        );
        check(
            RuntimeKind::Auto,
            Some("unix:///x.sock"),
            true,
            own(),
            "--cri-socket is",
        );
        check(RuntimeKind::Cri, None, false, usual(), "--runtime");
        check(
            RuntimeKind::Process,
            None,
            true,
            SelectedRuntime::Process,
            "--runtime",
        );
    }
}
