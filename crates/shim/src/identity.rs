//! Identifies a process by pid, start time and boot id, because the kernel reuses pids. A zombie counts as dead.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub pid: i32,
    /// In clock ticks since boot.
    pub start_time: u64,
    boot_id: String,
}

/// Fields of `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    state: char,
    parent: i32,
    start_time: u64,
}

impl Identity {
    /// A running process; `None` for a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid).filter(|stat| !stat.is_dead())?;
        Some(Self {
            pid,
            start_time: stat.start_time,
            boot_id: boot_id().to_owned(),
        })
    }

    /// This process, by its pid in the PID namespace of `/proc`: in its own it may have another one.
    pub fn own() -> Option<Self> {
        let number = std::fs::read_link("/proc/self").ok()?;
        Self::of(number.to_str()?.parse().ok()?)
    }

    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// A pidfd, which becomes readable when the process exits. `None` if it is dead.
    pub fn open(&self) -> Option<rustix::fd::OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        // Checked after opening: the pidfd refers to the process that was checked.
        self.is_alive().then_some(handle)
    }

    /// Sends a signal; succeeds if the process is dead.
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
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in parentheses may contain parentheses.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            start_time: fields.nth(17)?.parse().ok()?,
        })
    }

    /// Whether it has exited, even if its parent has not reaped it.
    pub fn is_dead(self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.pid, self.start_time, self.boot_id)
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split_ascii_whitespace();
        let mut next = || words.next().ok_or(());
        Ok(Self {
            pid: next()?.parse().map_err(drop)?,
            start_time: next()?.parse().map_err(drop)?,
            boot_id: next()?.to_owned(),
        })
    }
}

/// The pids of all processes.
pub fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The pids of all descendants of a process.
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

fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
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
    fn stat_lines_are_parsed() {
        let check = |text: &str, expected| assert_eq!(Stat::parse(text), expected, "{text}");
        let tail = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 7777 19";
        let stat = |state| {
            Some(Stat {
                state,
                parent: 1,
                start_time: 7777,
            })
        };
        check(&format!("12 (sh) S {tail}"), stat('S'));
        check(&format!("12 (a) b (c)) Z {tail}"), stat('Z'));
        check("12 (sh) S 1 2", None);
        check("", None);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert!(
            !Identity {
                start_time: own.start_time + 1,
                ..own.clone()
            }
            .is_alive()
        );
        let rebooted = Identity {
            boot_id: "earlier".to_owned(),
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
    fn descendants_are_found() {
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
