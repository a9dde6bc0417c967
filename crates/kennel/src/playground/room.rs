//! A place for a node in this process: a thread that may have a network, a host name and mounts of its own, and whatever
//! the node starts from it has the same. They are nameless: the kernel takes them away with the last process in them.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::UnshareFlags;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// What a room's blocking work gets to end.
const END: Duration = Duration::from_secs(2);

/// See the [module](self).
pub(super) struct Room {
    handle: Handle,
    thread: i32,
    end: CancellationToken,
    running: Option<std::thread::JoinHandle<()>>,
}

/// Files of the machine that a room has others for: which, and where they are.
pub(super) type Files = Vec<(&'static str, PathBuf)>;

impl Room {
    /// Opens one; with a network of its own, which joins nothing yet, and these files, or in the machine's.
    pub(super) fn open(name: &str, own: Option<&Files>) -> anyhow::Result<Self> {
        let (tell, told) = std::sync::mpsc::channel();
        let end = CancellationToken::new();
        let (ended, hostname, own) = (end.clone(), name.to_owned(), own.cloned());
        let stay = move || match settle(&hostname, own.as_ref()) {
            Ok(runtime) => {
                let thread = rustix::thread::gettid().as_raw_nonzero().get();
                let _gone = tell.send(Ok((runtime.handle().clone(), thread)));
                runtime.block_on(ended.cancelled());
                runtime.shutdown_timeout(END);
            }
            Err(error) => {
                let _gone = tell.send(Err(error));
            }
        };
        let running = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(stay)?;
        let (handle, thread) = told.recv().context("a node's thread has ended")??;
        Ok(Self {
            handle,
            thread,
            end,
            running: Some(running),
        })
    }

    /// The number of its thread, by which its network can be named.
    pub(super) fn thread(&self) -> i32 {
        self.thread
    }

    /// Where work is done that belongs in it.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Does something in it, and waits.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> anyhow::Result<T> {
        self.handle
            .spawn(work)
            .await
            .context("a node has panicked")?
    }
}

impl Drop for Room {
    /// Ends it; what was started from it may live on.
    fn drop(&mut self) {
        self.end.cancel();
        if let Some(running) = self.running.take() {
            let _panicked = running.join();
        }
    }
}

#[expect(
    deprecated,
    reason = "the safe one; only a table of files must not be unshared, and is not"
)]
fn settle(hostname: &str, own: Option<&Files>) -> anyhow::Result<Runtime> {
    if let Some(files) = own {
        let all = UnshareFlags::NEWNET | UnshareFlags::NEWUTS | UnshareFlags::NEWNS;
        rustix::thread::unshare(all).context("no network of its own")?;
        rustix::system::sethostname(hostname.as_bytes())?;
        // What the machine mounts is seen here, and nothing of ours there.
        mount_change(
            "/",
            MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
        )?;
        for (file, source) in files {
            mount_bind(source, *file).with_context(|| format!("no {file} of its own"))?;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime)
}
