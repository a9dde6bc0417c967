//! A session over a connection: streams for stdin, stdout and stderr, for the exit status, and for terminal sizes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::sync::mpsc;

use super::super::{Connection, Headers, Stream};
use crate::kubelet_api::stream::exit_status;
use crate::runtime::{Attachment, Error, Reader, Result, Session, Size, Writer};

/// Terminal sizes that wait to be sent. A full queue makes the bridge wait.
const SIZES: usize = 4;

/// The output of a command. It keeps the connection open until all of it is read, also after the exit.
struct Output {
    stream: Stream,
    _connection: Arc<Connection>,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

/// Opens the streams. The connection stays open as long as an output or the exit future lives.
pub(super) fn open(connection: Connection, streams: Attachment) -> Result<Session> {
    let open_stream = |kind: &str, wanted: bool| {
        let headers = || Headers::default().with("streamType", kind);
        let opened = wanted.then(|| connection.open(headers())).transpose();
        opened.map_err(|error| Error::Unavailable(error.to_string()))
    };
    let error = open_stream("error", true)?;
    let stdin = open_stream("stdin", streams.stdin)?;
    let stdout = open_stream("stdout", streams.stdout)?;
    let stderr = open_stream("stderr", streams.stderr && !streams.tty)?;
    let resize = open_stream("resize", streams.tty)?.map(send_sizes);
    let connection = Arc::new(connection);
    let output = |stream: Option<Stream>| {
        let output = stream.map(|stream| Output {
            stream,
            _connection: Arc::clone(&connection),
        });
        output.map(|output| Box::new(output) as Reader)
    };
    Ok(Session {
        stdin: stdin.map(|stream| Box::new(stream) as Writer),
        stdout: output(stdout),
        stderr: output(stderr),
        resize,
        exit: Box::pin(async move {
            let result = match error {
                Some(stream) => exit_status::read(stream).await,
                None => Err(Error::Failed("the command has no status".to_owned())),
            };
            drop(connection);
            result
        }),
    })
}

/// Sends terminal sizes until the sender is dropped.
fn send_sizes(mut stream: Stream) -> mpsc::Sender<Size> {
    let (sender, mut sizes) = mpsc::channel::<Size>(SIZES);
    tokio::spawn(async move {
        while let Some(size) = sizes.recv().await {
            if stream
                .write_all(&exit_status::encode_size(size))
                .await
                .is_err()
            {
                return;
            }
        }
    });
    sender
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, duplex};

    use super::super::super::Role;
    use super::*;

    /// A server that sends output, then the exit status, and closes the connection.
    async fn serve(mut connection: Connection, length: usize) {
        let mut streams = Vec::new();
        for _ in 0..2 {
            streams.push(connection.accept().await.unwrap());
        }
        for mut stream in streams.into_iter().rev() {
            match stream.headers().get("streamtype") {
                Some("stdout") => stream.write_all(&vec![7; length]).await.unwrap(),
                _ => stream
                    .write_all(&exit_status::encode(&Ok(3)))
                    .await
                    .unwrap(),
            }
        }
        connection.close().await;
    }

    #[tokio::test]
    async fn output_can_be_read_after_the_exit() {
        // Less than the queues hold, so that the exit status arrives first.
        let length = 40_000;
        let (near, far) = duplex(1 << 20);
        tokio::spawn(serve(Connection::new(far, Role::Server), length));
        let streams = Attachment {
            stdout: true,
            ..Attachment::default()
        };
        let session = open(Connection::new(near, Role::Client), streams).unwrap();
        let deadline = Duration::from_secs(10);
        let ended = tokio::time::timeout(deadline, session.exit).await;
        assert_eq!(ended.expect("in time"), Ok(3));
        let (mut stdout, mut all) = (session.stdout.unwrap(), Vec::new());
        let read = tokio::time::timeout(deadline, stdout.read_to_end(&mut all)).await;
        assert_eq!(read.expect("in time").unwrap(), length);
    }
}
