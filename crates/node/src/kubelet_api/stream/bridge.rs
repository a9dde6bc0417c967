//! Between a client's streams and a command's, whatever the wire.
//!
//! All that a command wrote before it ended reaches the client before how it ended does.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Begin, status};
use crate::runtime::{Reader, Result, Session, Size, Writer};

/// How much is copied at once.
const PIECE_BYTES: usize = 16 * 1024;
/// A command that has ended may have left something behind that holds its output open. When nothing comes for
/// so long, nothing is waited for.
const LEFT_OPEN: Duration = Duration::from_secs(2);
/// The longest size of a terminal.
const SIZE_BYTES_MAX: usize = 1024;

/// The client's ends of the streams.
pub(super) struct Remote {
    /// What it types.
    pub(super) stdin: Option<Reader>,
    /// What it sees.
    pub(super) stdout: Option<Writer>,
    /// What it sees as errors.
    pub(super) stderr: Option<Writer>,
    /// Where it learns how it ended.
    pub(super) error: Writer,
    /// How large its terminal is.
    pub(super) resize: Option<Reader>,
}

/// Begins, and connects both until the command ends or the client has gone; the command is let go then.
pub(super) async fn bridge(remote: Remote, begin: Begin, gone: impl Future<Output = ()>) {
    let Remote {
        stdin,
        stdout,
        stderr,
        mut error,
        resize,
    } = remote;
    let ended = tokio::select! {
        ended = run(begin, stdin, stdout, stderr, resize) => ended,
        () = gone => return tracing::debug!("a client has gone before its command ended"),
    };
    let told = error.write_all(&status::write(&ended)).await;
    if let Err(error) = told.and(error.shutdown().await) {
        tracing::debug!(%error, "a client has gone when its command ended");
    }
}

async fn run(
    begin: Begin,
    stdin: Option<Reader>,
    stdout: Option<Writer>,
    stderr: Option<Writer>,
    resize: Option<Reader>,
) -> Result<i32> {
    let Session {
        stdin: to,
        stdout: out,
        stderr: err,
        resize: sizes,
        exit,
    } = begin.await?;
    let over = CancellationToken::new();
    let inputs = async {
        tokio::join!(input(stdin, to), terminal(resize, sizes));
        std::future::pending::<()>().await;
    };
    let exit = async {
        let ended = exit.await;
        over.cancel();
        ended
    };
    let outputs =
        async { tokio::join!(exit, output(out, stdout, &over), output(err, stderr, &over)).0 };
    tokio::select! {
        ended = outputs => ended,
        () = inputs => unreachable!("inputs are waited for for ever"),
    }
}

/// What a client types.
async fn input(from: Option<Reader>, to: Option<Writer>) {
    let (Some(mut from), Some(mut to)) = (from, to) else {
        return;
    };
    if let Err(error) = tokio::io::copy(&mut from, &mut to).await {
        tracing::debug!(%error, "input ended");
    }
    drop(to.shutdown().await);
}

/// What a command writes, until it says that there is no more, or has ended and nothing comes.
async fn output(from: Option<Reader>, to: Option<Writer>, over: &CancellationToken) {
    let (Some(mut from), Some(mut to)) = (from, to) else {
        return;
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let silence = async {
            over.cancelled().await;
            tokio::time::sleep(LEFT_OPEN).await;
        };
        let read = tokio::select! {
            biased;
            read = from.read(&mut piece) => read,
            () = silence => break,
        };
        let written = match read {
            Ok(0) => break,
            Ok(length) => to.write_all(&piece[..length]).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "output ended");
            break;
        }
        drop(to.flush().await);
    }
    drop(to.shutdown().await);
}

/// The sizes of a terminal.
async fn terminal(from: Option<Reader>, to: Option<mpsc::Sender<Size>>) {
    let (Some(mut from), Some(to)) = (from, to) else {
        return;
    };
    let (mut text, mut piece) = (Vec::new(), [0; SIZE_BYTES_MAX]);
    while let Ok(length) = from.read(&mut piece).await {
        if length == 0 {
            return;
        }
        text.extend_from_slice(&piece[..length]);
        for size in sizes(&mut text) {
            if to.send(size).await.is_err() {
                return;
            }
        }
        if text.len() > SIZE_BYTES_MAX {
            return tracing::debug!("a client has sent no size of a terminal");
        }
    }
}

/// Takes the sizes out that have come whole.
fn sizes(text: &mut Vec<u8>) -> Vec<Size> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let mut sizes = Vec::new();
    while let Some(Ok(value)) = values.next() {
        let side = |name: &str| {
            value[name]
                .as_u64()
                .and_then(|side| u16::try_from(side).ok())
        };
        if let (Some(width), Some(height)) = (side("Width"), side("Height")) {
            sizes.push(Size { width, height });
        }
    }
    let read = values.byte_offset();
    text.drain(..read);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_however_they_are_cut() {
        let mut text = br#"{"Width":80,"Height":24}{"Width":1"#.to_vec();
        let first = Size {
            width: 80,
            height: 24,
        };
        assert_eq!(sizes(&mut text), [first]);
        text.extend_from_slice(b"00,\"Height\":30}\n");
        let second = Size {
            width: 100,
            height: 30,
        };
        assert_eq!(sizes(&mut text), [second]);
        assert!(sizes(&mut br#"{"Width":-1}"#.to_vec()).is_empty());
    }
}
