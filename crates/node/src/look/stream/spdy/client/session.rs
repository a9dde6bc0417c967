//! A command over a connection: a stream for each of its own, one for its status, one for the size of its
//! terminal.

use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use super::super::{Connection, Headers, Stream};
use crate::look::stream::status;
use crate::runtime::{Attachment, Error, Reader, Result, Session, Size, Writer};

/// Sizes of a terminal that wait to be told. Only the newest matters.
const SIZES: usize = 4;

/// Opens the streams. The connection lives as long as somebody waits for the end.
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
    Ok(Session {
        stdin: stdin.map(|stream| Box::new(stream) as Writer),
        stdout: stdout.map(|stream| Box::new(stream) as Reader),
        stderr: stderr.map(|stream| Box::new(stream) as Reader),
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
