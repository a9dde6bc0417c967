//! Which runtime a node has, and why: said at start, so that nobody has to guess.

use std::path::{Path, PathBuf};

/// Where containerd listens unless told otherwise.
pub const CONTAINERD: &str = "/run/containerd/containerd.sock";

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// What there is.
    Auto,
    /// A container runtime.
    Cri,
    /// Plain processes.
    Process,
    /// Nothing that runs.
    Simulated,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A container runtime at this socket.
    Cri(PathBuf),
    /// Plain processes.
    Process,
    /// Nothing that runs.
    Simulated,
}

/// The choice, and why it was made, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is.
    pub kind: Kind,
    /// Why.
    pub why: String,
}

/// Chooses. `socket` is the one that was given, `exists` tells whether there is one.
pub fn choose(asked: Asked, socket: Option<&str>, exists: impl Fn(&Path) -> bool) -> Choice {
    let given = socket.map(|text| PathBuf::from(text.strip_prefix("unix://").unwrap_or(text)));
    let path = given.clone().unwrap_or_else(|| PathBuf::from(CONTAINERD));
    let shown = path.display().to_string();
    let (kind, why) = match asked {
        Asked::Simulated => (Kind::Simulated, "it was asked for".to_owned()),
        Asked::Process => (Kind::Process, "it was asked for".to_owned()),
        Asked::Cri => (Kind::Cri(path), format!("it was asked for, at {shown}")),
        // Who names a socket means it, even if it is not there yet.
        Asked::Auto if given.is_some() => (Kind::Cri(path), format!("{shown} was given")),
        Asked::Auto if exists(&path) => (
            Kind::Cri(path),
            format!("a container runtime's socket was found at {shown}"),
        ),
        Asked::Auto => (
            Kind::Process,
            format!("no container runtime's socket was found at {shown}"),
        ),
    };
    Choice { kind, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_decides_unless_somebody_does() {
        let check = |asked, socket: Option<&str>, there: bool, expected: Kind, word: &str| {
            let choice = choose(asked, socket, |_| there);
            assert_eq!(choice.kind, expected);
            assert!(choice.why.contains(word), "{}", choice.why);
        };
        let usual = || Kind::Cri(PathBuf::from(CONTAINERD));
        let own = || Kind::Cri(PathBuf::from("/x.sock"));
        check(Asked::Auto, None, true, usual(), "found at /run/containerd");
        check(Asked::Auto, None, false, Kind::Process, "no container");
        check(Asked::Auto, Some("/x.sock"), false, own(), "given");
        check(Asked::Auto, Some("unix:///x.sock"), true, own(), "given");
        check(Asked::Cri, None, false, usual(), "asked");
        check(Asked::Process, None, true, Kind::Process, "asked");
    }
}
