//! A connection to a port, over a pair of streams: data, and why there are none.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use super::super::{Connection, Headers, Stream};
use crate::runtime::{Error, Result};

/// How much is read of why there are no data.
const WHY_BYTES_MAX: u64 = 4 * 1024;

/// See the [module](self). When the data end, and the server has said why there are none, that is an error.
pub struct Forward {
    data: Stream,
    /// What the server says about the connection, once it is over.
    why: Option<BoxFuture<'static, String>>,
    _connection: Connection,
}

impl Forward {
    pub(super) fn over(connection: Connection, port: u16) -> Result<Self> {
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
        let why = async move {
            let mut why = String::new();
            // What was read before it broke is all there is.
            drop(errors.take(WHY_BYTES_MAX).read_to_string(&mut why).await);
            why
        };
        Ok(Self {
            data,
            why: Some(Box::pin(why)),
            _connection: connection,
        })
    }
}

impl AsyncRead for Forward {
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
        let Some(why) = &mut self.why else {
            return Poll::Ready(Ok(()));
        };
        let why = ready!(why.as_mut().poll(context));
        self.why = None;
        Poll::Ready(if why.is_empty() {
            Ok(())
        } else {
            Err(io::Error::other(why))
        })
    }
}

impl AsyncWrite for Forward {
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
