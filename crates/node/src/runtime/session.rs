//! Streams of exec, attach and port-forward.

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::Result;

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// Dropping it or shutting it down closes the stream.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// With a terminal, stderr goes to stdout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecRequest {
    pub command: Vec<String>,
    pub streams: Attachment,
}

/// The requested streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    /// With a terminal.
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

/// A running command or an attached container. Dropping it kills a command and leaves an attached container alone.
pub struct Session {
    pub stdin: Option<Writer>,
    pub stdout: Option<Reader>,
    pub stderr: Option<Reader>,
    /// Receives the sizes of the client's terminal.
    pub resize: Option<mpsc::Sender<Size>>,
    /// The exit code.
    pub exit: BoxFuture<'static, Result<i32>>,
}
