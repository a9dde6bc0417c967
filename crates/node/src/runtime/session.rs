//! Streams between somebody who watches and a command or a port.

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::Result;

/// Something to read from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// Something to write to; dropping it, or shutting it down, says that nothing more comes.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What to run, and which streams are wanted. With a terminal, stderr goes to stdout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecRequest {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Which streams.
    pub streams: Attachment,
}

/// Which streams are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Input.
    pub stdin: bool,
    /// Output.
    pub stdout: bool,
    /// Errors.
    pub stderr: bool,
    /// Through a terminal.
    pub tty: bool,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// A command that runs, or a container one has attached to. Dropping it ends a command that was run for it
/// and leaves a container that was attached to alone.
pub struct Session {
    /// What it reads.
    pub stdin: Option<Writer>,
    /// What it writes.
    pub stdout: Option<Reader>,
    /// What it writes as errors.
    pub stderr: Option<Reader>,
    /// Where to say how large the terminal is.
    pub resize: Option<mpsc::Sender<Size>>,
    /// How it ends: what it returned.
    pub exit: BoxFuture<'static, Result<i32>>,
}
