//! Starts the container's init process and waits until it has executed the container's command.
//!
//! The init process opens a named pipe that closes on exec; if it fails before, it writes the error to the pipe.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::reaper::{ChildExit, Reaper};
use crate::state::{Dir, READY};
use crate::stdio::ContainerStdio;
use crate::{Options, PidNamespace};

pub(crate) enum Outcome {
    /// The command was executed by this process, which may have exited already.
    Started(i32, Option<ChildExit>),
    Failed(String),
}

pub(crate) fn start(
    options: &Options,
    stdio: ContainerStdio,
    reaper: &Reaper,
) -> io::Result<Outcome> {
    let _none = std::fs::remove_file(READY);
    mknodat(CWD, READY, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let ready = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(READY)?;
    // Children of this process start in it.
    match &options.pid_namespace {
        PidNamespace::Host => {}
        PidNamespace::Own => crate::unshare(UnshareFlags::NEWPID)?,
        PidNamespace::Of(container) => join_pid_namespace(container)?,
    }
    let child = Command::new(&options.init)
        .args(["shim", "run"])
        .env_clear()
        .stdin(stdio.stdin)
        .stdout(stdio.stdout)
        .stderr(stdio.stderr)
        .spawn()?;
    rustix::io::write(&reaper.begin, &[0])?;
    let pid = i32::try_from(child.id()).unwrap_or(0);
    let outcome = wait(&ready, reaper, pid)?;
    let _gone = std::fs::remove_file(Path::new(READY));
    Ok(outcome)
}

/// Moves into the PID namespace of a running container. The kernel kills all processes of it when the container's first
/// process exits.
fn join_pid_namespace(container: &Path) -> io::Result<()> {
    let not_running = || io::Error::other("the target container is not running");
    let start = Dir::new(container.to_owned()).started();
    let process = start.ok_or_else(not_running)?.process;
    let link = File::open(format!("/proc/{}/ns/pid", process.pid));
    let link = link.map_err(|_| not_running())?;
    // Checked after opening: the namespace belongs to the process that was checked.
    if !process.is_alive() {
        return Err(not_running());
    }
    move_into_link_name_space(link.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    Ok(())
}

fn wait(ready: &std::fs::File, reaper: &Reaper, pid: i32) -> io::Result<Outcome> {
    let mut exit = None;
    let mut text = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(ready, PollFlags::IN),
            PollFd::new(&reaper.exits, PollFlags::IN),
        ];
        poll(&mut fds, None)?;
        let (readable, exited) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if readable && read_to_end(ready, &mut text)? {
            return Ok(outcome(pid, exit, &text));
        }
        if exited {
            exit = reaper.next().filter(|exit| exit.pid == pid).or(exit);
        }
        if !readable && exit.is_some() {
            // It exited before it could open the pipe.
            text.extend(b"the init process of the container exited early");
            return Ok(outcome(pid, exit, &text));
        }
    }
}

/// Whether the end of the pipe is reached.
fn read_to_end(mut ready: &std::fs::File, text: &mut Vec<u8>) -> io::Result<bool> {
    match io::Read::read_to_end(&mut ready, text) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

fn outcome(pid: i32, exit: Option<ChildExit>, text: &[u8]) -> Outcome {
    if text.is_empty() {
        Outcome::Started(pid, exit)
    } else {
        Outcome::Failed(String::from_utf8_lossy(text).into_owned())
    }
}
