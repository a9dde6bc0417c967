//! What is asked of a shim over its socket: to go on in a new log, or to let somebody watch and type.

use std::os::fd::AsRawFd as _;

use kennel_shim::control::{self, What};
use kennel_shim::state::{CONTROL, Dir, Life, OK};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::spec::Spec;
use super::{io, launch};
use crate::runtime::{Attachment, Error, Reader, Result, Session, Size, Writer};

/// Held for one who reads or types slowly.
const BUFFER: usize = 64 << 10;

/// The log was renamed: go on in a new one.
pub(super) async fn reopen_log(dir: Dir) -> Result<()> {
    ask(&mut connect(&dir).await?, "reopen").await
}

/// Asks a shim for something.
async fn ask(socket: &mut UnixStream, what: &str) -> Result<()> {
    let failed = |error: std::io::Error| Error::Failed(error.to_string());
    let question = format!("{what}\n");
    socket
        .write_all(question.as_bytes())
        .await
        .map_err(failed)?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while socket.read(&mut byte).await.map_err(failed)? == 1 && byte != *b"\n" {
        answer.extend(byte);
    }
    match String::from_utf8_lossy(&answer).as_ref() {
        OK => Ok(()),
        why => Err(Error::Failed(format!("{what} was not done: {why}"))),
    }
}

/// A path may be longer than an address: the directory is reached by a handle.
async fn connect(dir: &Dir) -> Result<UnixStream> {
    if !matches!(dir.life(), Life::Kept(Some(_))) {
        return Err(Error::Failed(format!(
            "container {} is not running",
            dir.id()
        )));
    }
    let handle = std::fs::File::open(dir.path()).map_err(io(dir.path()))?;
    let path = format!("/proc/self/fd/{}/{CONTROL}", handle.as_raw_fd());
    UnixStream::connect(path)
        .await
        .map_err(io(&dir.join(CONTROL)))
}

/// Lets somebody watch, and type.
pub(super) async fn session(dir: Dir, wanted: Attachment) -> Result<Session> {
    let spec = Spec::read(dir.path()).map_err(io(dir.path()))?;
    let mut socket = connect(&dir).await?;
    ask(&mut socket, "attach").await?;
    let (from, to) = socket.into_split();
    let stream = |wanted: bool| wanted.then(|| tokio::io::duplex(BUFFER)).unzip();
    let (stdout, output) = stream(wanted.stdout);
    let (stderr, errors) = stream(wanted.stderr && !spec.tty);
    let (stdin, input) = stream(wanted.stdin && spec.stdin);
    let (resize, sizes) = mpsc::channel(4);
    let (ended, exit) = oneshot::channel();
    let writing = tokio::spawn(write(to, input, sizes));
    tokio::spawn(async move {
        let code = read(from, output, errors).await;
        writing.abort();
        let _left = ended.send(code);
    });
    Ok(Session {
        stdin: stdin.map(|stream| Box::new(stream) as Writer),
        stdout: stdout.map(|stream| Box::new(stream) as Reader),
        stderr: stderr.map(|stream| Box::new(stream) as Reader),
        resize: spec.tty.then_some(resize),
        exit: Box::pin(async move {
            match exit.await.ok().flatten() {
                Some(code) => Ok(code),
                None => end(dir).await,
            }
        }),
    })
}

/// The shim left without a word: its container's record has it, soon.
async fn end(dir: Dir) -> Result<i32> {
    launch::ended(&dir).await;
    let exit = dir.exit().map(|exit| exit.code);
    exit.ok_or_else(|| Error::Unavailable("the connection to the container was lost".to_owned()))
}

/// Passes on what the container writes; answers with what it returned. Who does not want a stream, or has
/// left, gets none.
async fn read(
    mut from: OwnedReadHalf,
    mut output: Option<DuplexStream>,
    mut errors: Option<DuplexStream>,
) -> Option<i32> {
    let mut buffer = Vec::new();
    loop {
        while let Ok(Some((what, bytes))) = control::take(&mut buffer) {
            match what {
                What::Output => pass(&mut output, &bytes).await,
                What::Errors => pass(&mut errors, &bytes).await,
                What::Exit => return bytes.first_chunk().map(|code| i32::from_be_bytes(*code)),
                What::Input | What::Size => {}
            }
        }
        if matches!(from.read_buf(&mut buffer).await, Ok(0) | Err(_)) {
            return None;
        }
    }
}

async fn pass(to: &mut Option<DuplexStream>, bytes: &[u8]) {
    if let Some(stream) = to
        && stream.write_all(bytes).await.is_err()
    {
        *to = None;
    }
}

/// Passes on what is typed, and how large the terminal is.
async fn write(
    mut to: OwnedWriteHalf,
    mut input: Option<DuplexStream>,
    mut sizes: mpsc::Receiver<Size>,
) {
    let mut chunk = vec![0; control::FRAME];
    loop {
        let mut frame = Vec::new();
        let typed = async {
            match &mut input {
                Some(stream) => stream.read(&mut chunk).await.unwrap_or(0),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = typed => {
                control::put(&mut frame, What::Input, &chunk[..count]);
                if count == 0 {
                    input = None;
                }
            }
            Some(size) = sizes.recv() => {
                let both = [size.width.to_be_bytes(), size.height.to_be_bytes()];
                control::put(&mut frame, What::Size, both.as_flattened());
            }
            // Neither types nor resizes any more; may still watch.
            else => return std::future::pending().await,
        }
        if to.write_all(&frame).await.is_err() {
            return;
        }
    }
}
