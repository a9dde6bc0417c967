//! What a container reads from and writes to: pipes, or a terminal.

use std::fs::File;
use std::io;
use std::process::Stdio;

use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::Options;

/// Our ends. None of them blocks.
pub(crate) struct Ends {
    /// What it writes.
    pub(crate) output: Option<OwnedFd>,
    /// What it writes as errors, unless it has a terminal.
    pub(crate) errors: Option<OwnedFd>,
    /// What it reads.
    pub(crate) input: Option<OwnedFd>,
}

/// Its ends.
pub(crate) struct Theirs {
    pub(crate) input: Stdio,
    pub(crate) output: Stdio,
    pub(crate) errors: Stdio,
}

/// Makes both.
pub(crate) fn make(options: &Options) -> io::Result<(Ends, Theirs)> {
    if options.tty {
        terminal(options.stdin)
    } else {
        pipes(options.stdin)
    }
}

fn pipes(stdin: bool) -> io::Result<(Ends, Theirs)> {
    let (output, their_output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (errors, their_errors) = pipe_with(PipeFlags::CLOEXEC)?;
    let (input, theirs) = if stdin {
        let (theirs, input) = pipe_with(PipeFlags::CLOEXEC)?;
        (Some(input), Stdio::from(theirs))
    } else {
        (None, Stdio::from(File::open("/dev/null")?))
    };
    for end in [&output, &errors].into_iter().chain(&input) {
        never_block(end)?;
    }
    let ends = Ends {
        output: Some(output),
        errors: Some(errors),
        input,
    };
    let theirs = Theirs {
        input: theirs,
        output: their_output.into(),
        errors: their_errors.into(),
    };
    Ok((ends, theirs))
}

fn terminal(stdin: bool) -> io::Result<(Ends, Theirs)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    never_block(&ours)?;
    let input = if stdin { Some(ours.try_clone()?) } else { None };
    let ends = Ends {
        output: Some(ours),
        errors: None,
        input,
    };
    let theirs = Theirs {
        input: theirs.try_clone()?.into(),
        output: theirs.try_clone()?.into(),
        errors: theirs.into(),
    };
    Ok((ends, theirs))
}

fn never_block(end: &OwnedFd) -> io::Result<()> {
    fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
    Ok(())
}

impl Ends {
    /// Tells the terminal how large it is.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        if let Some(terminal) = &self.output {
            let _no_terminal = tcsetwinsize(terminal, size);
        }
    }
}

/// What one read brought.
pub(crate) enum Read {
    /// So many bytes.
    Some(usize),
    /// Nothing now.
    Later,
    /// Nothing ever. A terminal that nobody holds any more says so by an error.
    End,
}

/// Reads what is there.
pub(crate) fn read(from: &OwnedFd, buffer: &mut [u8]) -> Read {
    match rustix::io::read(from, buffer) {
        Ok(0) => Read::End,
        Ok(count) => Read::Some(count),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Read::Later,
        Err(_) => Read::End,
    }
}
