//! A client's streams over WebSocket: each message begins with the number of its channel.
//!
//! ```text
//!   0 stdin   1 stdout   2 stderr   3 error   4 resize   255 the channel whose number follows has ended (v5)
//! ```

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex,
};
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use super::Begin;
use super::bridge::{Remote, bridge};
use crate::runtime::{Attachment, Reader, Writer};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// The longest message we take; kubectl's are 32 KiB.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How much is on its way through each stream.
const PIPE_BYTES: usize = 32 * 1024;
/// Messages that wait to be written.
const MESSAGES: usize = 8;
/// How long a client has to hang up after it was told that all is said.
const LINGER: Duration = Duration::from_secs(5);

/// How WebSocket connections are set up: small buffers, bounded messages.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(PIPE_BYTES)
        .write_buffer_size(PIPE_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

/// Serves one client.
pub(super) async fn serve<S>(io: S, streams: Attachment, begin: Begin)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config())).await;
    let (sink, source) = socket.split();
    let (sender, queue) = mpsc::channel(MESSAGES);
    let gone = CancellationToken::new();
    let writing = tokio::spawn(write(sink, queue));
    let (remote, inputs) = open(streams, &sender);
    greet(streams, &sender).await;
    // What is left in the pipes when the bridge is done must still go out: it holds senders of its own.
    drop(sender);
    let reading = tokio::spawn(read(source, inputs, gone.clone()));
    bridge(remote, begin, gone.cancelled()).await;
    if gone.is_cancelled() {
        return writing.abort();
    }
    drop(writing.await);
    // Hanging up first could cost the client what it has not read yet.
    let mut reading = reading;
    if timeout(LINGER, &mut reading).await.is_err() {
        reading.abort();
    }
}

/// A first empty message tells that the streams are there.
async fn greet(streams: Attachment, sender: &mpsc::Sender<Bytes>) {
    let channel = if streams.stdout {
        STDOUT
    } else if streams.stderr {
        STDERR
    } else {
        ERROR
    };
    drop(sender.send(Bytes::copy_from_slice(&[channel])).await);
}

/// Where input goes.
struct Inputs {
    stdin: Option<DuplexStream>,
    resize: Option<DuplexStream>,
}

fn open(streams: Attachment, sender: &mpsc::Sender<Bytes>) -> (Remote, Inputs) {
    let writer = |channel: u8| {
        let (near, far) = duplex(PIPE_BYTES);
        tokio::spawn(number(far, channel, sender.clone()));
        Box::new(near) as Writer
    };
    let pipe = |wanted: bool| {
        let (near, far) = wanted.then(|| duplex(PIPE_BYTES)).unzip();
        (near.map(|near| Box::new(near) as Reader), far)
    };
    let (stdin, to_stdin) = pipe(streams.stdin);
    let (resize, to_resize) = pipe(streams.tty);
    let remote = Remote {
        stdin,
        stdout: streams.stdout.then(|| writer(STDOUT)),
        stderr: streams.stderr.then(|| writer(STDERR)),
        error: writer(ERROR),
        resize,
    };
    let inputs = Inputs {
        stdin: to_stdin,
        resize: to_resize,
    };
    (remote, inputs)
}

/// Puts the number of a channel before what comes through a pipe.
async fn number(mut pipe: DuplexStream, channel: u8, sender: mpsc::Sender<Bytes>) {
    let mut piece = vec![channel; PIPE_BYTES];
    while let Ok(length) = pipe.read(&mut piece[1..]).await {
        let message = Bytes::copy_from_slice(&piece[..=length]);
        if length == 0 || sender.send(message).await.is_err() {
            return;
        }
    }
}

/// Writes messages until there are no more, then says so.
async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut queue: mpsc::Receiver<Bytes>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = queue.recv().await {
        if let Err(error) = sink.send(Message::Binary(message)).await {
            return tracing::debug!(%error, "a WebSocket client has gone");
        }
    }
    let farewell = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    drop(sink.send(Message::Close(Some(farewell))).await);
}

/// Reads until the client hangs up.
async fn read<S>(
    mut source: SplitStream<WebSocketStream<S>>,
    mut inputs: Inputs,
    gone: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let _gone = gone.drop_guard();
    while let Some(message) = source.next().await {
        let bytes = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Text(text)) => Bytes::from(text),
            Ok(_) => continue,
            Err(error) => return tracing::debug!(%error, "a WebSocket connection ended"),
        };
        match bytes.split_first() {
            Some((&STDIN, data)) => hand_on(&mut inputs.stdin, data).await,
            Some((&RESIZE, data)) => hand_on(&mut inputs.resize, data).await,
            Some((&CLOSE, [STDIN])) => inputs.stdin = None,
            _ => {}
        }
    }
}

/// What nobody reads any more is passed over.
async fn hand_on(pipe: &mut Option<DuplexStream>, data: &[u8]) {
    if let Some(open) = pipe
        && open.write_all(data).await.is_err()
    {
        *pipe = None;
    }
}
