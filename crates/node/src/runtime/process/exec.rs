//! Commands in containers: `kennel shim exec` with its stdio, killed when the caller drops it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kennel_shim::identity::descendants;
use kennel_shim::state::Dir;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{check_running, terminal};
use crate::runtime::{Error, ExecRequest, Output, Reader, Result, Session, Size, Writer};

/// Terminal sizes that wait to be applied. A full channel makes the sender wait.
const SIZES: usize = 4;
/// The output of a probe or hook is cut at this size.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// How long to wait for the end of the output after the exit: a background child may hold the pipe open for ever.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a command and waits for its exit.
pub(super) async fn run(
    init: &Path,
    dir: &Dir,
    command: &[String],
    limit: Duration,
) -> Result<Output> {
    let mut child = exec_command(init, dir, command)?;
    child
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = KillOnDrop(child.spawn().map_err(Error::failed)?);
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
        let _held = timeout(OUTPUT_TIMEOUT, reading).await;
        status
    };
    let late = |_| Error::TimedOut(format!("command {command:?} timed out"));
    let status = timeout(limit, work)
        .await
        .map_err(late)?
        .map_err(Error::failed)?;
    output.extend(errors);
    Ok(Output {
        code: code(status),
        text: output,
    })
}

async fn read(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    if let Some(from) = from {
        let mut from = from.take(OUTPUT_BYTES_MAX);
        let _ended = from.read_to_end(into).await;
        // Drains the rest, so that the command does not block.
        let _ended = tokio::io::copy(&mut from.into_inner(), &mut tokio::io::sink()).await;
    }
}

/// Runs a command with streams.
pub(super) fn session(init: &Path, dir: &Dir, request: &ExecRequest) -> Result<Session> {
    let mut command = exec_command(init, dir, &request.command)?;
    if request.streams.tty {
        return in_terminal(command, request);
    }
    let stream = |requested| {
        if requested {
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
    let mut child = command.spawn().map_err(Error::failed)?;
    Ok(Session {
        stdin: child.stdin.take().map(|stream| Box::new(stream) as Writer),
        stdout: child.stdout.take().map(|stream| Box::new(stream) as Reader),
        stderr: child.stderr.take().map(|stream| Box::new(stream) as Reader),
        resize: None,
        exit: KillOnDrop(child).exit(),
    })
}

fn in_terminal(mut command: Command, request: &ExecRequest) -> Result<Session> {
    let failed_terminal = |error: std::io::Error| Error::Failed(format!("no terminal: {error}"));
    let (controller, terminal) = terminal::open().map_err(failed_terminal)?;
    let clone = || {
        terminal
            .try_clone()
            .map(Stdio::from)
            .map_err(failed_terminal)
    };
    command.stdin(clone()?).stdout(clone()?).stderr(clone()?);
    let child = command.spawn().map_err(Error::failed)?;
    // Only the child may keep the terminal open.
    drop(command);
    drop(terminal);
    let (resize, mut sizes) = mpsc::channel::<Size>(SIZES);
    let resized = controller.clone();
    tokio::spawn(async move {
        while let Some(size) = sizes.recv().await {
            resized.resize(size);
        }
    });
    let streams = request.streams;
    Ok(Session {
        stdin: streams
            .stdin
            .then(|| Box::new(controller.clone()) as Writer),
        stdout: streams.stdout.then(|| Box::new(controller) as Reader),
        stderr: None,
        resize: Some(resize),
        exit: KillOnDrop(child).exit(),
    })
}

fn exec_command(init: &Path, dir: &Dir, command: &[String]) -> Result<Command> {
    check_running(dir)?;
    let mut exec = Command::new(init);
    exec.args(["shim", "exec"])
        .arg(dir.path())
        .args(command)
        .env_clear();
    Ok(exec)
}

/// Kills the command and its descendants when dropped, unless it has exited.
struct KillOnDrop(Child);

impl KillOnDrop {
    fn exit(mut self) -> futures_util::future::BoxFuture<'static, Result<i32>> {
        Box::pin(async move { self.0.wait().await.map(code).map_err(Error::failed) })
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // `None` once it was waited for: the pid may belong to another process.
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
