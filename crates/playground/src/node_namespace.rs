//! A thread for a node in this process, optionally with network, UTS and mount namespaces of its own. Processes that the
//! node starts inherit them. The kernel removes the namespaces when their last process exits.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::UnshareFlags;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// Time for blocking tasks to finish at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct NodeNamespace {
    handle: Handle,
    thread: i32,
    stop: CancellationToken,
    running: Option<std::thread::JoinHandle<()>>,
}

/// Bind mounts over files of the machine: target and source.
pub(super) type FileOverrides = Vec<(&'static str, PathBuf)>;

impl NodeNamespace {
    /// Starts the thread. With `own`, it gets its own namespaces, these files, and a network without interfaces.
    pub(super) fn open(name: &str, own: Option<&FileOverrides>) -> anyhow::Result<Self> {
        // One message: the result of the setup.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let stop = CancellationToken::new();
        let (stopped, hostname, own) = (stop.clone(), name.to_owned(), own.cloned());
        let thread = move || match set_up(&hostname, own.as_ref()) {
            Ok(runtime) => {
                let thread = rustix::thread::gettid().as_raw_nonzero().get();
                let _gone = sender.send(Ok((runtime.handle().clone(), thread)));
                runtime.block_on(stopped.cancelled());
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            }
            Err(error) => {
                let _gone = sender.send(Err(error));
            }
        };
        let running = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(thread)?;
        let (handle, thread) = receiver.recv().context("a node's thread has exited")??;
        Ok(Self {
            handle,
            thread,
            stop,
            running: Some(running),
        })
    }

    /// The thread's id, by which `ip` finds its network namespace.
    pub(super) fn thread(&self) -> i32 {
        self.thread
    }

    /// The thread's async runtime.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs a future on the thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> anyhow::Result<T> {
        self.handle.spawn(work).await.context("a node panicked")?
    }
}

impl Drop for NodeNamespace {
    /// Stops the thread. Processes that it started keep running.
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            let _panicked = running.join();
        }
    }
}

#[expect(
    deprecated,
    reason = "the safe function; it is deprecated because of CLONE_FILES, which is not used here"
)]
fn set_up(hostname: &str, own: Option<&FileOverrides>) -> anyhow::Result<Runtime> {
    if let Some(files) = own {
        let all = UnshareFlags::NEWNET | UnshareFlags::NEWUTS | UnshareFlags::NEWNS;
        rustix::thread::unshare(all).context("cannot create namespaces")?;
        rustix::system::sethostname(hostname.as_bytes())?;
        // The machine's later mounts are visible here, and ours are not visible to the machine.
        mount_change(
            "/",
            MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
        )?;
        for (file, source) in files {
            mount_bind(source, *file).with_context(|| format!("cannot mount {file}"))?;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime)
}
