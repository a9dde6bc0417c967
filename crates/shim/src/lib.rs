//! The shim of a container of the process runtime. It runs as long as the container, independently of the agent: it
//! owns the container's stdio, writes its log, records its exit, and kills the processes that it leaves behind.
//!
//! ```text
//!   agent ──starts──▶ supervisor ──starts──▶ kennel shim run ══exec══▶ the container's command
//!     │                │  ▲                                               │
//!     │                │  └─────────────── stdout, stderr ────────────────┘
//!     │                ├─▶ log      lines in the CRI log format
//!     │                ├─▶ state    files with the container's state, which a restarted agent reads
//!     └──reopen, attach┘            over a Unix socket (control)
//! ```
//!
//! The agent links this library, too, to read and kill containers: [`state`], [`identity`], [`cgroup`], [`kill`],
//! [`control`], [`stdio`]. One shim runs per container, so it must stay small: `poll` instead of an event loop, no serialisation
//! formats, no dependency but system calls. It decides nothing and knows no pods.

pub mod cgroup;
mod clients;
pub mod control;
pub mod identity;
mod init;
pub mod kill;
mod log;
mod options;
mod reaper;
pub mod state;
pub mod stdio;
mod supervisor;

use std::ffi::OsString;
use std::process::ExitCode;

pub use options::{Options, PidNamespace};
use rustix::thread::UnshareFlags;

/// Runs the shim in the container's directory. Writes the result of the start to stdout.
pub fn run(args: Vec<OsString>) -> ExitCode {
    match Options::parse(args) {
        Some(options) => supervisor::run(options),
        None => ExitCode::from(2),
    }
}

/// Moves the calling thread into new namespaces.
#[expect(
    deprecated,
    reason = "the safe variant; only unsharing the file descriptor table would be unsafe"
)]
pub fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(namespaces)
}
