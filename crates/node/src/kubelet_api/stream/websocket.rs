//! A session over WebSocket: each message begins with its channel number.
//!
//! ```text
//!   0 stdin   1 stdout   2 stderr   3 error   4 resize   255 close the channel whose number follows (v5)
//! ```

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use super::SessionFuture;
use super::bridge::{ClientStreams, bridge};
use crate::runtime::{Attachment, Reader, Writer};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// The longest accepted message; kubectl's are 32 KiB.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The buffer of each stream.
const PIPE_BYTES: usize = 32 * 1024;
/// Messages that wait to be written. A full queue makes the streams wait.
const MESSAGES: usize = 8;
/// How long to wait for the client to close the connection after our close message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Small buffers, bounded messages.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(PIPE_BYTES)
        .write_buffer_size(PIPE_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

pub(super) async fn serve<S>(io: S, streams: Attachment, session: SessionFuture)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config())).await;
    let (sink, source) = socket.split();
    let (sender, queue) = mpsc::channel(MESSAGES);
    let disconnected = CancellationToken::new();
    let writing = tokio::spawn(write(sink, queue));
    let (client, inputs) = open_streams(streams, &sender);
    announce(streams, &sender).await;
    // The pipes hold senders of their own: what they still buffer when the bridge ends is written.
    drop(sender);
    let reading = tokio::spawn(read(source, inputs, disconnected.clone()));
    bridge(client, session, disconnected.cancelled()).await;
    if disconnected.is_cancelled() {
        return writing.abort();
    }
    drop(writing.await);
    // If we closed the connection first, the client could lose what it has not read yet.
    let mut reading = reading;
    if timeout(CLOSE_TIMEOUT, &mut reading).await.is_err() {
        reading.abort();
    }
}

/// Sends a first empty message, which tells the client that the streams are open.
async fn announce(streams: Attachment, sender: &mpsc::Sender<Bytes>) {
    let channel = if streams.stdout {
        STDOUT
    } else if streams.stderr {
        STDERR
    } else {
        ERROR
    };
    drop(sender.send(Bytes::copy_from_slice(&[channel])).await);
}

/// Where messages of the client go.
struct Inputs {
    stdin: Option<DuplexStream>,
    resize: Option<DuplexStream>,
}

fn open_streams(streams: Attachment, sender: &mpsc::Sender<Bytes>) -> (ClientStreams, Inputs) {
    let mut outputs = Vec::new();
    let mut output = |channel: u8| {
        let (near, far) = duplex(PIPE_BYTES);
        outputs.push(tokio::spawn(send_numbered(far, channel, sender.clone())));
        Box::new(near) as Writer
    };
    let stdout = streams.stdout.then(|| output(STDOUT));
    let stderr = streams.stderr.then(|| output(STDERR));
    let (error, status) = duplex(PIPE_BYTES);
    tokio::spawn(send_status(status, outputs, sender.clone()));
    let pipe = |wanted: bool| {
        let (near, far) = wanted.then(|| duplex(PIPE_BYTES)).unzip();
        (near.map(|near| Box::new(near) as Reader), far)
    };
    let (stdin, to_stdin) = pipe(streams.stdin);
    let (resize, to_resize) = pipe(streams.tty);
    let client = ClientStreams {
        stdin,
        stdout,
        stderr,
        error: Box::new(error),
        resize,
    };
    let inputs = Inputs {
        stdin: to_stdin,
        resize: to_resize,
    };
    (client, inputs)
}

/// Sends what comes through a pipe as messages of a channel.
async fn send_numbered(mut pipe: DuplexStream, channel: u8, sender: mpsc::Sender<Bytes>) {
    let mut buffer = vec![channel; PIPE_BYTES];
    while let Ok(length) = pipe.read(&mut buffer[1..]).await {
        let message = Bytes::copy_from_slice(&buffer[..=length]);
        if length == 0 || sender.send(message).await.is_err() {
            return;
        }
    }
}

/// Sends the exit status when all output was sent: clients close their streams when they get it.
async fn send_status(
    status: DuplexStream,
    outputs: Vec<JoinHandle<()>>,
    sender: mpsc::Sender<Bytes>,
) {
    for output in outputs {
        drop(output.await);
    }
    send_numbered(status, ERROR, sender).await;
}

/// Writes messages until the queue is closed, then sends a close message.
async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut queue: mpsc::Receiver<Bytes>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = queue.recv().await {
        if let Err(error) = sink.send(Message::Binary(message)).await {
            return tracing::debug!(%error, "writing to a WebSocket client failed");
        }
    }
    let close = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    drop(sink.send(Message::Close(Some(close))).await);
}

/// Reads until the client closes the connection.
async fn read<S>(
    mut source: SplitStream<WebSocketStream<S>>,
    mut inputs: Inputs,
    disconnected: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let _guard = disconnected.drop_guard();
    while let Some(message) = source.next().await {
        let bytes = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Text(text)) => Bytes::from(text),
            Ok(_) => continue,
            Err(error) => return tracing::debug!(%error, "a WebSocket connection ended"),
        };
        match bytes.split_first() {
            Some((&STDIN, data)) => forward(&mut inputs.stdin, data).await,
            Some((&RESIZE, data)) => forward(&mut inputs.resize, data).await,
            Some((&CLOSE, [STDIN])) => inputs.stdin = None,
            _ => {}
        }
    }
}

/// Discards the data if the other end of the pipe is closed.
async fn forward(pipe: &mut Option<DuplexStream>, data: &[u8]) {
    if let Some(open) = pipe
        && open.write_all(data).await.is_err()
    {
        *pipe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_status_comes_after_all_output() {
        // One message at a time, so that the streams compete for every one.
        let (sender, mut queue) = mpsc::channel(1);
        let streams = Attachment {
            stdout: true,
            stderr: true,
            ..Attachment::default()
        };
        let (client, _inputs) = open_streams(streams, &sender);
        drop(sender);
        for output in [client.stdout, client.stderr] {
            let mut output = output.expect("it was asked for");
            output.write_all(&vec![0; PIPE_BYTES]).await.unwrap();
        }
        let mut error = client.error;
        error.write_all(b"status").await.unwrap();
        drop(error);
        let mut channels = Vec::new();
        while let Some(message) = queue.recv().await {
            channels.push(message[0]);
        }
        assert_eq!(channels.pop(), Some(ERROR));
        channels.sort_unstable();
        assert_eq!(channels, [STDOUT, STDOUT, STDERR, STDERR]);
    }
}
