//! Starts the process that becomes the container, and learns whether it did.
//!
//! That process opens a named pipe, and closes it by becoming the command; if it cannot, it writes why.

use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::Options;
use crate::state::READY;
use crate::stdio::Theirs;
use crate::waiter::{End, Waiter};

/// How it went.
pub(crate) enum Outcome {
    /// It runs, as this process; it may have ended already.
    Runs(i32, Option<End>),
    /// It does not.
    Failed(String),
}

/// Starts it.
pub(crate) fn start(options: &Options, theirs: Theirs, waiter: &Waiter) -> io::Result<Outcome> {
    let _none = std::fs::remove_file(READY);
    mknodat(CWD, READY, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let ready = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(READY)?;
    if options.own_processes {
        own_processes()?;
    }
    let child = Command::new(&options.stage)
        .args(["shim", "run"])
        .env_clear()
        .stdin(theirs.input)
        .stdout(theirs.output)
        .stderr(theirs.errors)
        .spawn()?;
    rustix::io::write(&waiter.begin, &[0])?;
    let pid = i32::try_from(child.id()).unwrap_or(0);
    let outcome = wait(&ready, waiter, pid)?;
    let _gone = std::fs::remove_file(Path::new(READY));
    Ok(outcome)
}

/// From now on the processes that we start see themselves only.
#[expect(
    deprecated,
    reason = "the safe one; only a table of files must not be unshared, and is not"
)]
fn own_processes() -> io::Result<()> {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWPID)?;
    Ok(())
}

fn wait(ready: &std::fs::File, waiter: &Waiter, pid: i32) -> io::Result<Outcome> {
    let mut end = None;
    let mut text = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(ready, PollFlags::IN),
            PollFd::new(&waiter.ends, PollFlags::IN),
        ];
        poll(&mut fds, None)?;
        let (said, ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if said && read(ready, &mut text)? {
            return Ok(outcome(pid, end, &text));
        }
        if ended {
            end = waiter.next().filter(|end| end.pid == pid).or(end);
        }
        if !said && end.is_some() {
            // It ended without a word, before it could say any.
            text.extend(b"the process that was to become the container ended early");
            return Ok(outcome(pid, end, &text));
        }
    }
}

/// Is that all?
fn read(mut ready: &std::fs::File, text: &mut Vec<u8>) -> io::Result<bool> {
    match io::Read::read_to_end(&mut ready, text) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

fn outcome(pid: i32, end: Option<End>, text: &[u8]) -> Outcome {
    if text.is_empty() {
        Outcome::Runs(pid, end)
    } else {
        Outcome::Failed(String::from_utf8_lossy(text).into_owned())
    }
}
