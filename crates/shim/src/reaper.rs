//! Reaps all children of this process, including orphans that it inherits as a child subreaper.
//!
//! In a thread of its own, because `poll` cannot wait for children that this process did not start.

use std::io;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Enough for one system call.
const STACK_BYTES: usize = 32 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildExit {
    pub(crate) pid: i32,
    /// The exit code; 128 plus the signal if it was killed.
    pub(crate) code: i32,
}

pub(crate) struct Reaper {
    /// A pipe with the exits of children.
    pub(crate) exits: OwnedFd,
    /// A byte written here starts the waiting, which would end at once without a child.
    pub(crate) begin: OwnedFd,
}

/// Starts the thread. Must be called before the PID namespace is unshared: the kernel refuses new threads after that.
pub(crate) fn start() -> io::Result<Reaper> {
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (exits, sender) = rustix::pipe::pipe_with(flags)?;
    let (wait, begin) = rustix::pipe::pipe_with(flags)?;
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let mut byte = [0];
            let _begun = rustix::io::read(&wait, &mut byte);
            reap_all(&sender);
        })?;
    Ok(Reaper { exits, begin })
}

fn reap_all(sender: &OwnedFd) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let exit = child_exit(pid, status);
                let mut message = [0; 8];
                message[..4].copy_from_slice(&exit.pid.to_ne_bytes());
                message[4..].copy_from_slice(&exit.code.to_ne_bytes());
                let _nobody_listens = rustix::io::write(sender, &message);
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

fn child_exit(pid: Pid, status: WaitStatus) -> ChildExit {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 255,
    };
    ChildExit {
        pid: pid.as_raw_nonzero().get(),
        code,
    }
}

impl Reaper {
    /// Reads the next exit.
    pub(crate) fn next(&self) -> Option<ChildExit> {
        let mut message = [0; 8];
        // Writes of up to PIPE_BUF bytes are atomic.
        let read = rustix::io::read(&self.exits, &mut message).ok()?;
        let (pid, code) = message.split_first_chunk::<4>().filter(|_| read == 8)?;
        Some(ChildExit {
            pid: i32::from_ne_bytes(*pid),
            code: i32::from_ne_bytes(*code.first_chunk()?),
        })
    }
}
