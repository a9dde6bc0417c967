//! Commands in containers: `kennel shim exec` with its stdio, ended when nobody waits for it any more.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kennel_shim::identity::descendants;
use kennel_shim::state::{Dir, Life};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::terminal;
use crate::runtime::{Error, ExecRequest, Output, Reader, Result, Session, Size, Writer};

/// What is kept of the output of a probe or hook.
const OUTPUT: u64 = 1 << 20;
/// How long the last output of a command that has ended is waited for: what it left behind may hold the
/// pipe for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Runs a command, and waits for it.
pub(super) async fn run(
    stage: &Path,
    dir: &Dir,
    command: &[String],
    limit: Duration,
) -> Result<Output> {
    let mut child = prepare(stage, dir, command)?;
    child
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running(child.spawn().map_err(failed)?);
    let streams = (running.0.stdout.take(), running.0.stderr.take());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let work = async {
        let mut reading = Box::pin(async {
            tokio::join!(read(streams.0, &mut output), read(streams.1, &mut errors));
        });
        let status = tokio::select! {
            status = running.0.wait() => status,
            () = &mut reading => return running.0.wait().await,
        };
        let _held = timeout(LAST_WORDS, reading).await;
        status
    };
    let late = |_| Error::TimedOut(format!("command {command:?} timed out"));
    let status = timeout(limit, work).await.map_err(late)?.map_err(failed)?;
    output.extend(errors);
    Ok(Output {
        code: code(status),
        text: output,
    })
}

async fn read(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    if let Some(from) = from {
        let mut from = from.take(OUTPUT);
        let _ended = from.read_to_end(into).await;
        // Read on, so that the command is not held up by what nobody keeps.
        let _ended = tokio::io::copy(&mut from.into_inner(), &mut tokio::io::sink()).await;
    }
}

/// Runs a command for somebody who watches.
pub(super) fn session(stage: &Path, dir: &Dir, request: &ExecRequest) -> Result<Session> {
    let mut command = prepare(stage, dir, &request.command)?;
    if request.streams.tty {
        return in_terminal(command, request);
    }
    let stream = |wanted| {
        if wanted {
            Stdio::piped()
        } else {
            Stdio::null()
        }
    };
    let streams = request.streams;
    command
        .stdin(stream(streams.stdin))
        .stdout(stream(streams.stdout))
        .stderr(stream(streams.stderr));
    let mut child = command.spawn().map_err(failed)?;
    Ok(Session {
        stdin: child.stdin.take().map(|stream| Box::new(stream) as Writer),
        stdout: child.stdout.take().map(|stream| Box::new(stream) as Reader),
        stderr: child.stderr.take().map(|stream| Box::new(stream) as Reader),
        resize: None,
        exit: Running(child).exit(),
    })
}

fn in_terminal(mut command: Command, request: &ExecRequest) -> Result<Session> {
    let broken = |error: std::io::Error| Error::Failed(format!("no terminal: {error}"));
    let (ours, theirs) = terminal::make().map_err(broken)?;
    let clone = || theirs.try_clone().map(Stdio::from).map_err(broken);
    command.stdin(clone()?).stdout(clone()?).stderr(clone()?);
    let child = command.spawn().map_err(failed)?;
    // Its own copies keep the terminal open, ours must not.
    drop(command);
    drop(theirs);
    let (resize, mut sizes) = mpsc::channel::<Size>(4);
    let sized = ours.clone();
    tokio::spawn(async move {
        while let Some(size) = sizes.recv().await {
            sized.resize(size);
        }
    });
    let streams = request.streams;
    Ok(Session {
        stdin: streams.stdin.then(|| Box::new(ours.clone()) as Writer),
        stdout: streams.stdout.then(|| Box::new(ours) as Reader),
        stderr: None,
        resize: Some(resize),
        exit: Running(child).exit(),
    })
}

fn prepare(stage: &Path, dir: &Dir, command: &[String]) -> Result<Command> {
    if !matches!(dir.life(), Life::Kept(Some(_))) {
        return Err(Error::Failed(format!(
            "container {} is not running",
            dir.id()
        )));
    }
    let mut words = Command::new(stage);
    words
        .args(["shim", "exec"])
        .arg(dir.path())
        .args(command)
        .env_clear();
    Ok(words)
}

/// A command that is ended, with all that it started, unless it has ended by itself.
struct Running(Child);

impl Running {
    fn exit(mut self) -> futures_util::future::BoxFuture<'static, Result<i32>> {
        Box::pin(async move { self.0.wait().await.map(code).map_err(failed) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // None once it was waited for: the number may be somebody else's.
        let Some(pid) = self.0.id().and_then(|pid| i32::try_from(pid).ok()) else {
            return;
        };
        let all = descendants(pid).into_iter().chain([pid]);
        for pid in all.filter_map(Pid::from_raw) {
            let _gone = kill_process(pid, Signal::KILL);
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    let killed = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(killed).unwrap_or(255)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: std::io::Error) -> Error {
    Error::Failed(error.to_string())
}
