//! A network namespace for measurements of agents that change the kernel's network: nothing of it is left on this machine.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use rustix::thread::UnshareFlags;
use tokio::runtime::Runtime;

use super::report::say;

/// An address of this machine in the namespace.
pub(super) const OWN: [u8; 4] = [192, 0, 2, 1];

/// Whether namespaces can be made. If not, says that this phase is skipped.
pub(super) fn is_possible(phase: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        say(format_args!(
            "{phase}: skipped, network namespaces need root"
        ));
    }
    is_root
}

/// Runs this on a thread in a namespace of its own. Processes that it starts are in it, too.
pub(super) fn run<T: Send>(work: impl FnOnce(&Runtime) -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            work(&runtime)
        });
        let done = thread.join();
        done.map_err(|_| anyhow::anyhow!("a thread panicked"))?
    })
}

/// A namespace where every address is reached by the loopback interface.
#[expect(
    deprecated,
    reason = "the safe function; it is deprecated because of CLONE_FILES, which is not used here"
)]
fn enter() -> Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNET).context("cannot create a network namespace")?;
    for arguments in [
        "link set lo up",
        "addr add 192.0.2.1/32 dev lo",
        "route add default dev lo src 192.0.2.1",
    ] {
        let status = Command::new("ip").args(arguments.split(' ')).status()?;
        ensure!(status.success(), "ip {arguments}: {status}");
    }
    Ok(())
}
