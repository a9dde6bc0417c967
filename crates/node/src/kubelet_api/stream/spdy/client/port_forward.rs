//! A forwarded connection over a pair of streams: one for data, one for an error message.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use super::super::{Connection, Headers, Stream};
use crate::runtime::{Error, Result};

/// The longest error message.
const ERROR_BYTES_MAX: u64 = 4 * 1024;

/// See the [module](self). At the end of the data, reading fails if the server has sent an error message.
pub struct PortForward {
    data: Stream,
    /// Reads the error message; `None` once it was read.
    error: Option<BoxFuture<'static, String>>,
    _connection: Connection,
}

impl PortForward {
    pub(super) fn open(connection: Connection, port: u16) -> Result<Self> {
        let open = |kind: &str| {
            let headers = Headers::default()
                .with("streamType", kind)
                .with("port", port.to_string())
                .with("requestID", "0");
            let opened = connection.open(headers);
            opened.map_err(|error| Error::Unavailable(error.to_string()))
        };
        let (mut errors, data) = (open("error")?, open("data")?);
        errors.finish();
        let error = async move {
            let mut message = String::new();
            // If reading fails, the part that was read is the message.
            drop(
                errors
                    .take(ERROR_BYTES_MAX)
                    .read_to_string(&mut message)
                    .await,
            );
            message
        };
        Ok(Self {
            data,
            error: Some(Box::pin(error)),
            _connection: connection,
        })
    }
}

impl AsyncRead for PortForward {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.data).poll_read(context, buffer))?;
        if buffer.filled().len() > before || buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let Some(error) = &mut self.error else {
            return Poll::Ready(Ok(()));
        };
        let message = ready!(error.as_mut().poll(context));
        self.error = None;
        Poll::Ready(if message.is_empty() {
            Ok(())
        } else {
            Err(io::Error::other(message))
        })
    }
}

impl AsyncWrite for PortForward {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.data).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.data).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.data).poll_shutdown(context)
    }
}
