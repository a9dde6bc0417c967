//! The stdio of a container: pipes, or a terminal.

use std::fs::File;
use std::io;
use std::process::Stdio;

use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::Options;

/// The shim's ends, in non-blocking mode.
pub(crate) struct ShimStdio {
    /// The terminal, if there is one.
    pub(crate) stdout: Option<OwnedFd>,
    /// `None` with a terminal.
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) stdin: Option<OwnedFd>,
}

/// The container's ends.
pub(crate) struct ContainerStdio {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

pub(crate) fn open(options: &Options) -> io::Result<(ShimStdio, ContainerStdio)> {
    if options.tty {
        terminal(options.stdin)
    } else {
        pipes(options.stdin)
    }
}

fn pipes(stdin: bool) -> io::Result<(ShimStdio, ContainerStdio)> {
    let (stdout, container_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, container_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdin, container_stdin) = if stdin {
        let (container_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        (Some(stdin), Stdio::from(container_stdin))
    } else {
        (None, Stdio::from(File::open("/dev/null")?))
    };
    for end in [&stdout, &stderr].into_iter().chain(&stdin) {
        set_nonblocking(end)?;
    }
    let shim = ShimStdio {
        stdout: Some(stdout),
        stderr: Some(stderr),
        stdin,
    };
    let container = ContainerStdio {
        stdin: container_stdin,
        stdout: container_stdout.into(),
        stderr: container_stderr.into(),
    };
    Ok((shim, container))
}

fn terminal(stdin: bool) -> io::Result<(ShimStdio, ContainerStdio)> {
    let (controller, terminal) = open_terminal()?;
    let stdin = if stdin {
        Some(controller.try_clone()?)
    } else {
        None
    };
    let shim = ShimStdio {
        stdout: Some(controller),
        stderr: None,
        stdin,
    };
    let container = ContainerStdio {
        stdin: terminal.try_clone()?.into(),
        stdout: terminal.try_clone()?.into(),
        stderr: terminal.into(),
    };
    Ok((shim, container))
}

/// Opens a terminal: the controlling end, which does not block, and the end of the command.
pub fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = openpt(flags)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let terminal = ioctl_tiocgptpeer(&controller, flags)?;
    set_nonblocking(&controller)?;
    Ok((controller, terminal))
}

/// Resizes the terminal of a controlling end; does nothing if there is none.
pub fn resize_terminal(controller: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let _no_terminal = tcsetwinsize(controller, size);
}

fn set_nonblocking(end: &OwnedFd) -> io::Result<()> {
    fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
    Ok(())
}

impl ShimStdio {
    /// Sets the size of the terminal.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        if let Some(terminal) = &self.stdout {
            resize_terminal(terminal, columns, rows);
        }
    }
}

pub(crate) enum Read {
    /// Number of bytes.
    Some(usize),
    WouldBlock,
    /// Also for a terminal that no process holds open any more, which fails to read.
    End,
}

pub(crate) fn read(from: &OwnedFd, buffer: &mut [u8]) -> Read {
    match rustix::io::read(from, buffer) {
        Ok(0) => Read::End,
        Ok(count) => Read::Some(count),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Read::WouldBlock,
        Err(_) => Read::End,
    }
}
