//! Copies between a client's streams and a session's, independent of the wire protocol.
//!
//! All output of a command reaches the client before its exit status does.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{SessionFuture, exit_status};
use crate::runtime::{Reader, Result, Session, Size, Writer};

const BUFFER_BYTES: usize = 16 * 1024;
/// After the exit, a background child of the command may hold its output open: copying ends when the output is silent
/// for this long.
const OUTPUT_IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest JSON of a terminal size.
const SIZE_BYTES_MAX: usize = 1024;

/// The client's ends of the streams.
pub(super) struct ClientStreams {
    pub(super) stdin: Option<Reader>,
    pub(super) stdout: Option<Writer>,
    pub(super) stderr: Option<Writer>,
    /// Carries the exit status.
    pub(super) error: Writer,
    /// Carries the sizes of the client's terminal.
    pub(super) resize: Option<Reader>,
}

/// Starts the session and copies until the command exits. If the client disconnects first, the session is dropped.
pub(super) async fn bridge(
    client: ClientStreams,
    session: SessionFuture,
    disconnected: impl Future<Output = ()>,
) {
    let ClientStreams {
        stdin,
        stdout,
        stderr,
        mut error,
        resize,
    } = client;
    let result = tokio::select! {
        result = run(session, stdin, stdout, stderr, resize) => result,
        () = disconnected => return tracing::debug!("a client disconnected before its command exited"),
    };
    let written = error.write_all(&exit_status::encode(&result)).await;
    if let Err(error) = written.and(error.shutdown().await) {
        tracing::debug!(%error, "a client disconnected before it got the exit status");
    }
}

async fn run(
    session: SessionFuture,
    stdin: Option<Reader>,
    stdout: Option<Writer>,
    stderr: Option<Writer>,
    resize: Option<Reader>,
) -> Result<i32> {
    let Session {
        stdin: session_stdin,
        stdout: session_stdout,
        stderr: session_stderr,
        resize: sizes,
        exit,
    } = session.await?;
    let exited = CancellationToken::new();
    let inputs = async {
        tokio::join!(copy_input(stdin, session_stdin), copy_sizes(resize, sizes));
        std::future::pending::<()>().await;
    };
    let exit = async {
        let result = exit.await;
        exited.cancel();
        result
    };
    let outputs = async {
        let stdout = copy_output(session_stdout, stdout, &exited);
        let stderr = copy_output(session_stderr, stderr, &exited);
        tokio::join!(exit, stdout, stderr).0
    };
    tokio::select! {
        result = outputs => result,
        () = inputs => unreachable!("the future of the inputs never completes"),
    }
}

async fn copy_input(from: Option<Reader>, to: Option<Writer>) {
    let (Some(mut from), Some(mut to)) = (from, to) else {
        return;
    };
    if let Err(error) = tokio::io::copy(&mut from, &mut to).await {
        tracing::debug!(%error, "input ended");
    }
    drop(to.shutdown().await);
}

/// Copies until the end of the output, or until the command has exited and its output is idle.
async fn copy_output(from: Option<Reader>, to: Option<Writer>, exited: &CancellationToken) {
    let (Some(mut from), Some(mut to)) = (from, to) else {
        return;
    };
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let idle = async {
            exited.cancelled().await;
            tokio::time::sleep(OUTPUT_IDLE_TIMEOUT).await;
        };
        let read = tokio::select! {
            biased;
            read = from.read(&mut buffer) => read,
            () = idle => break,
        };
        let written = match read {
            Ok(0) => break,
            Ok(length) => to.write_all(&buffer[..length]).await,
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

/// Passes on terminal sizes.
async fn copy_sizes(from: Option<Reader>, to: Option<mpsc::Sender<Size>>) {
    let (Some(mut from), Some(to)) = (from, to) else {
        return;
    };
    let (mut text, mut buffer) = (Vec::new(), [0; SIZE_BYTES_MAX]);
    while let Ok(length) = from.read(&mut buffer).await {
        if length == 0 {
            return;
        }
        text.extend_from_slice(&buffer[..length]);
        for size in take_sizes(&mut text) {
            if to.send(size).await.is_err() {
                return;
            }
        }
        if text.len() > SIZE_BYTES_MAX {
            return tracing::debug!("a client sent an invalid terminal size");
        }
    }
}

/// Removes the complete sizes from `text`.
fn take_sizes(text: &mut Vec<u8>) -> Vec<Size> {
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
    fn sizes_are_parsed_across_reads() {
        let mut text = br#"{"Width":80,"Height":24}{"Width":1"#.to_vec();
        let first = Size {
            width: 80,
            height: 24,
        };
        assert_eq!(take_sizes(&mut text), [first]);
        text.extend_from_slice(b"00,\"Height\":30}\n");
        let second = Size {
            width: 100,
            height: 30,
        };
        assert_eq!(take_sizes(&mut text), [second]);
        assert!(take_sizes(&mut br#"{"Width":-1}"#.to_vec()).is_empty());
    }
}
