//! A command over a connection: a stream for each of its own, one for its status, one for the size of its
//! terminal.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::sync::mpsc;

use super::super::{Connection, Headers, Stream};
use crate::kubelet_api::stream::status;
use crate::runtime::{Attachment, Error, Reader, Result, Session, Size, Writer};

/// Sizes of a terminal that wait to be told. Only the newest matters.
const SIZES: usize = 4;

/// What a command wrote. Its connection lives until all of that is read, also after the command has ended.
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

/// Opens the streams. The connection lives as long as somebody reads, or waits for the end.
pub(super) fn over(connection: Connection, streams: Attachment) -> Result<Session> {
    let open = |kind: &str, wanted: bool| {
        let headers = || Headers::default().with("streamType", kind);
        let opened = wanted.then(|| connection.open(headers())).transpose();
        opened.map_err(|error| Error::Unavailable(error.to_string()))
    };
    let error = open("error", true)?;
    let stdin = open("stdin", streams.stdin)?;
    let stdout = open("stdout", streams.stdout)?;
    let stderr = open("stderr", streams.stderr && !streams.tty)?;
    let resize = open("resize", streams.tty)?.map(tell_sizes);
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
            let verdict = match error {
                Some(stream) => status::read(stream).await,
                None => Err(Error::Failed("the command has no status".to_owned())),
            };
            drop(connection);
            verdict
        }),
    })
}

/// Hands on the sizes of a terminal until nobody tells any.
fn tell_sizes(mut stream: Stream) -> mpsc::Sender<Size> {
    let (sender, mut sizes) = mpsc::channel::<Size>(SIZES);
    tokio::spawn(async move {
        while let Some(size) = sizes.recv().await {
            if stream.write_all(&status::size(size)).await.is_err() {
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

    /// A server that says much, then how the command ended, and hangs up.
    async fn serve(mut connection: Connection, length: usize) {
        let mut streams = Vec::new();
        for _ in 0..2 {
            streams.push(connection.accept().await.unwrap());
        }
        for mut stream in streams.into_iter().rev() {
            match stream.headers().get("streamtype") {
                Some("stdout") => stream.write_all(&vec![7; length]).await.unwrap(),
                _ => stream.write_all(&status::write(&Ok(3))).await.unwrap(),
            }
        }
        connection.close().await;
    }

    #[tokio::test]
    async fn what_a_command_wrote_is_read_also_after_its_end() {
        // Less than the queues hold, so that the end arrives first.
        let length = 40_000;
        let (near, far) = duplex(1 << 20);
        tokio::spawn(serve(Connection::new(far, Role::Server), length));
        let streams = Attachment {
            stdout: true,
            ..Attachment::default()
        };
        let session = over(Connection::new(near, Role::Client), streams).unwrap();
        let deadline = Duration::from_secs(10);
        let ended = tokio::time::timeout(deadline, session.exit).await;
        assert_eq!(ended.expect("in time"), Ok(3));
        let (mut stdout, mut all) = (session.stdout.unwrap(), Vec::new());
        let read = tokio::time::timeout(deadline, stdout.read_to_end(&mut all)).await;
        assert_eq!(read.expect("in time").unwrap(), length);
    }
}
