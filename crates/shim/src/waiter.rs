//! Learns of the ends of all children of this process, those too that it inherited: who starts a process
//! in the background and ends leaves it to the nearest one above that takes such in.
//!
//! A thread of its own that waits, since nothing that `poll` knows tells of children one never met.

use std::io;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Enough for one system call.
const STACK: usize = 32 << 10;

/// How one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) pid: i32,
    /// What it returned; 128 and the signal if one ended it.
    pub(crate) code: i32,
}

/// Ends to be read, and the thread's leave to begin: without children it would be over at once.
pub(crate) struct Waiter {
    pub(crate) ends: OwnedFd,
    pub(crate) begin: OwnedFd,
}

/// Starts the thread. Must be called before a namespace of processes is made: a thread cannot be started
/// after that.
pub(crate) fn start() -> io::Result<Waiter> {
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (ends, tell) = rustix::pipe::pipe_with(flags)?;
    let (wait, begin) = rustix::pipe::pipe_with(flags)?;
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let mut byte = [0];
            let _begun = rustix::io::read(&wait, &mut byte);
            wait_for_all(&tell);
        })?;
    Ok(Waiter { ends, begin })
}

fn wait_for_all(tell: &OwnedFd) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let end = end(pid, status);
                let mut message = [0; 8];
                message[..4].copy_from_slice(&end.pid.to_ne_bytes());
                message[4..].copy_from_slice(&end.code.to_ne_bytes());
                let _nobody_listens = rustix::io::write(tell, &message);
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

fn end(pid: Pid, status: WaitStatus) -> End {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 255,
    };
    End {
        pid: pid.as_raw_nonzero().get(),
        code,
    }
}

impl Waiter {
    /// The next end that is there to be read.
    pub(crate) fn next(&self) -> Option<End> {
        let mut message = [0; 8];
        // Shorter than a pipe's smallest unit: there is all or nothing.
        let read = rustix::io::read(&self.ends, &mut message).ok()?;
        let (pid, code) = message.split_first_chunk::<4>().filter(|_| read == 8)?;
        Some(End {
            pid: i32::from_ne_bytes(*pid),
            code: i32::from_ne_bytes(*code.first_chunk()?),
        })
    }
}
