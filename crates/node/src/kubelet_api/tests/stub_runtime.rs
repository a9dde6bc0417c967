//! A stub runtime for tests of the kubelet API: commands that print their arguments, ports that echo.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::sync::mpsc;

use crate::runtime::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Size, Usage,
};

const PIPE_BYTES: usize = 4096;

/// See the [module](self).
#[derive(Default)]
pub(in crate::kubelet_api) struct StubRuntime {
    /// Containers whose log was reopened.
    pub(in crate::kubelet_api) reopened: Mutex<Vec<String>>,
    /// The error of every reopening, if set.
    pub(in crate::kubelet_api) reopen_error: Mutex<Option<String>>,
    /// How often usage was measured.
    pub(in crate::kubelet_api) measured: AtomicU64,
    /// Terminal sizes, one channel per session.
    pub(in crate::kubelet_api) sizes: Mutex<Vec<mpsc::Receiver<Size>>>,
}

fn unsupported<T>() -> Result<T> {
    Err(Error::Refused(
        "the stub runtime does not support this".to_owned(),
    ))
}

impl StubRuntime {
    /// `cat` echoes stdin; `say CODE OUT ERR` prints and exits; every other command runs for ever.
    fn run(&self, command: &[String], streams: Attachment) -> Session {
        let pipe = |wanted: bool| wanted.then(|| duplex(PIPE_BYTES)).unzip();
        let (stdin, mut from) = pipe(streams.stdin);
        let (stdout, mut out) = pipe(streams.stdout);
        let (stderr, mut err) = pipe(streams.stderr);
        let (resize, sizes) = mpsc::channel(4);
        self.sizes.lock().unwrap().push(sizes);
        let command: Vec<String> = command.to_vec();
        let exit = tokio::spawn(async move {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["cat"] => {
                    let (from, out) = (from.as_mut().unwrap(), out.as_mut().unwrap());
                    tokio::io::copy(from, out).await.unwrap();
                    0
                }
                ["say", code, stdout_text, stderr_text] => {
                    if let Some(out) = &mut out {
                        out.write_all(stdout_text.as_bytes()).await.unwrap();
                    }
                    if let Some(err) = &mut err {
                        err.write_all(stderr_text.as_bytes()).await.unwrap();
                    }
                    code.parse().unwrap()
                }
                _ => std::future::pending().await,
            }
        });
        Session {
            stdin: stdin.map(|pipe| Box::new(pipe) as _),
            stdout: stdout.map(|pipe| Box::new(pipe) as _),
            stderr: stderr.map(|pipe| Box::new(pipe) as _),
            resize: streams.tty.then_some(resize),
            exit: Box::pin(async move { Ok(exit.await.unwrap()) }),
        }
    }
}

/// A connection that is reset by the first write.
struct ResetConnection;

impl tokio::io::AsyncRead for ResetConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl tokio::io::AsyncWrite for ResetConnection {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Runtime for StubRuntime {
    fn about(&self) -> About {
        About {
            name: "fake".to_owned(),
            version: "0".to_owned(),
            images: false,
        }
    }
    async fn health(&self) -> Health {
        Health::default()
    }
    async fn list(&self) -> Result<Vec<Found>> {
        unsupported()
    }
    async fn inspect(&self, _: &str) -> Result<Option<Found>> {
        unsupported()
    }
    fn changes(&self) -> mpsc::Receiver<String> {
        mpsc::channel(1).1
    }
    async fn image(&self, _: &str, _: PullPolicy, _: &[RegistryLogin]) -> Result<Image> {
        unsupported()
    }
    async fn start_sandbox(&self, _: &SandboxConfig) -> Result<String> {
        unsupported()
    }
    async fn stop_sandbox(&self, _: &str) -> Result<()> {
        unsupported()
    }
    async fn remove_sandbox(&self, _: &str) -> Result<()> {
        unsupported()
    }
    async fn create(&self, _: &SandboxConfig, _: &str, _: &ContainerConfig) -> Result<String> {
        unsupported()
    }
    async fn start(&self, _: &str) -> Result<()> {
        unsupported()
    }
    async fn stop(&self, _: &str, _: Duration) -> Result<()> {
        unsupported()
    }
    async fn remove(&self, _: &str) -> Result<()> {
        unsupported()
    }
    async fn exec(&self, _: &str, _: &[String], _: Duration) -> Result<Output> {
        unsupported()
    }

    async fn exec_session(&self, _: &str, request: &ExecRequest) -> Result<Session> {
        if request.command == ["missing"] {
            return Err(Error::Failed("no such file".to_owned()));
        }
        Ok(self.run(&request.command, request.streams))
    }

    async fn attach(&self, _: &str, streams: Attachment) -> Result<Session> {
        Ok(self.run(&["cat".to_owned()], streams))
    }

    async fn connect(&self, _: &str, port: u16) -> Result<Box<dyn Duplex>> {
        if port == 82 {
            return Ok(Box::new(ResetConnection));
        }
        if port != 80 {
            return Err(Error::Failed("connection refused".to_owned()));
        }
        let (near, mut far) = duplex(PIPE_BYTES);
        tokio::spawn(async move {
            let mut buffer = vec![0; PIPE_BYTES];
            while let Ok(length @ 1..) = far.read(&mut buffer).await {
                far.write_all(&buffer[..length]).await.unwrap();
            }
        });
        Ok(Box::new(near))
    }

    async fn reopen_log(&self, id: &str) -> Result<()> {
        self.reopened.lock().unwrap().push(id.to_owned());
        match self.reopen_error.lock().unwrap().clone() {
            Some(why) => Err(Error::Failed(why)),
            None => Ok(()),
        }
    }

    async fn usage(&self, disks: bool) -> Result<Vec<Usage>> {
        Ok(vec![Usage {
            pod: "u".to_owned(),
            container: "c".to_owned(),
            id: "c1".to_owned(),
            // A second for each measurement.
            cpu: 1_000_000_000 * self.measured.fetch_add(1, Ordering::Relaxed),
            memory: 4096,
            disk: disks.then_some(512),
            ..Usage::default()
        }])
    }
    async fn remove_unused_images(&self) -> Result<u64> {
        Ok(0)
    }
    fn image_dir(&self) -> Option<PathBuf> {
        None
    }
}
