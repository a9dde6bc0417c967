//! Which process is meant: its number, when it began, and in which life of the machine. A number alone is
//! given to another process sooner or later. A zombie counts as dead: nothing of it runs.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it began, in ticks since the machine did.
    pub began: u64,
    /// Which life of the machine.
    boot: String,
}

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    state: char,
    parent: i32,
    began: u64,
}

impl Identity {
    /// A process that is there now. A zombie is not.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid).filter(|stat| !stat.is_dead())?;
        Some(Self {
            pid,
            began: stat.began,
            boot: boot().to_owned(),
        })
    }

    /// This process, by its number on the machine: within a namespace of processes it has another one.
    pub fn own() -> Option<Self> {
        let number = std::fs::read_link("/proc/self").ok()?;
        Self::of(number.to_str()?.parse().ok()?)
    }

    /// Does it still run?
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// A handle that ends are seen by. None if it is dead.
    pub fn open(&self) -> Option<rustix::fd::OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        // Looked at after it was opened: the handle is of whom we looked at.
        self.is_alive().then_some(handle)
    }

    /// Sends a signal to it and to nobody else. Fine if it is dead.
    pub fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        let Some(handle) = self.open() else {
            return Ok(());
        };
        match pidfd_send_signal(handle, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => sent,
        }
    }
}

impl Stat {
    /// Of a process; none if there is no such.
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in parentheses may hold anything, parentheses too.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            began: fields.nth(17)?.parse().ok()?,
        })
    }

    /// Nothing of it runs, even if its parent has not taken note.
    pub fn is_dead(self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.pid, self.began, self.boot)
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split_ascii_whitespace();
        let mut next = || words.next().ok_or(());
        Ok(Self {
            pid: next()?.parse().map_err(drop)?,
            began: next()?.parse().map_err(drop)?,
            boot: next()?.to_owned(),
        })
    }
}

/// The numbers of all processes.
pub fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Those that a process has started, and those that they have.
pub fn descendants(of: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = all()
        .into_iter()
        .filter_map(|pid| Some((pid, Stat::read(pid)?.parent)))
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(_, its)| *its == parent)
                .map(|(pid, _)| pid),
        );
        next += 1;
    }
    found.remove(0);
    found
}

fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let id = id.unwrap_or_default();
        if id.trim().is_empty() {
            "-".to_owned()
        } else {
            id.trim().to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let check = |text: &str, expected| assert_eq!(Stat::parse(text), expected, "{text}");
        let tail = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 7777 19";
        let stat = |state| {
            Some(Stat {
                state,
                parent: 1,
                began: 7777,
            })
        };
        check(&format!("12 (sh) S {tail}"), stat('S'));
        check(&format!("12 (a) b (c)) Z {tail}"), stat('Z'));
        check("12 (sh) S 1 2", None);
        check("", None);
    }

    #[test]
    fn a_number_that_was_given_away_is_somebody_else() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert!(
            !Identity {
                began: own.began + 1,
                ..own.clone()
            }
            .is_alive()
        );
        let rebooted = Identity {
            boot: "earlier".to_owned(),
            ..own.clone()
        };
        assert!(!rebooted.is_alive());
        assert_eq!(own.to_string().parse(), Ok(own));
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let handle = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        let mut wait = [rustix::event::PollFd::new(
            &handle,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut wait, None).unwrap();
        assert!(Stat::read(pid).unwrap().is_dead());
        assert_eq!(Identity::of(pid), None);
        child.wait().unwrap();
    }

    #[test]
    fn children_of_children_are_found() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sh -c 'echo; read x' ; true"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        assert_eq!(descendants(i32::try_from(child.id()).unwrap()).len(), 1);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
