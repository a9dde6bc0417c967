//! Requests to a shim over its control socket: reopen the log, attach.

use std::os::fd::AsRawFd as _;

use kennel_shim::control::{self, FrameKind};
use kennel_shim::state::{CONTROL, Dir, OK};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::spec::Spec;
use super::{check_running, io, launch};
use crate::runtime::{Attachment, Error, Reader, Result, Session, Size, Writer};

/// Terminal sizes that wait to be sent. A full channel makes the sender wait.
const SIZES: usize = 4;
/// The buffer of each stream.
const BUFFER_BYTES: usize = 64 << 10;

pub(super) async fn reopen_log(dir: Dir) -> Result<()> {
    request(&mut connect(&dir).await?, "reopen").await
}

/// Sends a request line and checks the reply.
async fn request(socket: &mut UnixStream, name: &str) -> Result<()> {
    let line = format!("{name}\n");
    socket
        .write_all(line.as_bytes())
        .await
        .map_err(Error::failed)?;
    let mut reply = Vec::new();
    let mut byte = [0];
    while socket.read(&mut byte).await.map_err(Error::failed)? == 1 && byte != *b"\n" {
        reply.extend(byte);
    }
    match String::from_utf8_lossy(&reply).as_ref() {
        OK => Ok(()),
        why => Err(Error::Failed(format!("the shim rejected {name}: {why}"))),
    }
}

/// Connects through `/proc/self/fd`, because the path may exceed the length of a socket address.
async fn connect(dir: &Dir) -> Result<UnixStream> {
    check_running(dir)?;
    let handle = std::fs::File::open(dir.path()).map_err(io(dir.path()))?;
    let path = format!("/proc/self/fd/{}/{CONTROL}", handle.as_raw_fd());
    UnixStream::connect(path)
        .await
        .map_err(io(&dir.join(CONTROL)))
}

pub(super) async fn session(dir: Dir, requested: Attachment) -> Result<Session> {
    let spec = Spec::read(dir.path()).map_err(io(dir.path()))?;
    let mut socket = connect(&dir).await?;
    request(&mut socket, "attach").await?;
    let (from, to) = socket.into_split();
    let stream = |requested: bool| requested.then(|| tokio::io::duplex(BUFFER_BYTES)).unzip();
    let (stdout, to_stdout) = stream(requested.stdout);
    let (stderr, to_stderr) = stream(requested.stderr && !spec.tty);
    let (stdin, from_stdin) = stream(requested.stdin && spec.stdin);
    let (resize, sizes) = mpsc::channel(SIZES);
    let (exited, exit) = oneshot::channel();
    let writing = tokio::spawn(write(to, from_stdin, sizes));
    tokio::spawn(async move {
        let code = read(from, to_stdout, to_stderr).await;
        writing.abort();
        let _dropped = exited.send(code);
    });
    Ok(Session {
        stdin: stdin.map(|stream| Box::new(stream) as Writer),
        stdout: stdout.map(|stream| Box::new(stream) as Reader),
        stderr: stderr.map(|stream| Box::new(stream) as Reader),
        resize: spec.tty.then_some(resize),
        exit: Box::pin(async move {
            match exit.await.ok().flatten() {
                Some(code) => Ok(code),
                None => recorded_exit(dir).await,
            }
        }),
    })
}

/// Waits for the recorded exit, after the connection ended without an exit frame.
async fn recorded_exit(dir: Dir) -> Result<i32> {
    launch::exited(&dir).await;
    let exit = dir.exit().map(|exit| exit.code);
    exit.ok_or_else(|| Error::Unavailable("the connection to the container was lost".to_owned()))
}

/// Copies output to the streams and returns the exit code. Discards output of streams that are closed or were not
/// requested.
async fn read(
    mut from: OwnedReadHalf,
    mut stdout: Option<DuplexStream>,
    mut stderr: Option<DuplexStream>,
) -> Option<i32> {
    let mut buffer = Vec::new();
    loop {
        while let Ok(Some((kind, bytes))) = control::take_frame(&mut buffer) {
            match kind {
                FrameKind::Stdout => write_or_close(&mut stdout, &bytes).await,
                FrameKind::Stderr => write_or_close(&mut stderr, &bytes).await,
                FrameKind::Exit => {
                    return bytes.first_chunk().map(|code| i32::from_be_bytes(*code));
                }
                FrameKind::Stdin | FrameKind::Resize => {}
            }
        }
        if matches!(from.read_buf(&mut buffer).await, Ok(0) | Err(_)) {
            return None;
        }
    }
}

async fn write_or_close(to: &mut Option<DuplexStream>, bytes: &[u8]) {
    if let Some(stream) = to
        && stream.write_all(bytes).await.is_err()
    {
        *to = None;
    }
}

/// Sends stdin and terminal sizes to the shim.
async fn write(
    mut to: OwnedWriteHalf,
    mut stdin: Option<DuplexStream>,
    mut sizes: mpsc::Receiver<Size>,
) {
    let mut chunk = vec![0; control::PAYLOAD_BYTES_MAX];
    loop {
        let mut frame = Vec::new();
        let read = async {
            match &mut stdin {
                Some(stream) => stream.read(&mut chunk).await.unwrap_or(0),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = read => {
                control::put_frames(&mut frame, FrameKind::Stdin, &chunk[..count]);
                if count == 0 {
                    stdin = None;
                }
            }
            Some(size) = sizes.recv() => {
                let both = [size.width.to_be_bytes(), size.height.to_be_bytes()];
                control::put_frames(&mut frame, FrameKind::Resize, both.as_flattened());
            }
            // Stdin and resizing have ended; output continues.
            else => return std::future::pending().await,
        }
        if to.write_all(&frame).await.is_err() {
            return;
        }
    }
}
