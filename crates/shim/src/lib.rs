//! What stays with one container of the process runtime for as long as that runs, whatever happens to the
//! agent: it owns the container's stdio, writes its log, records its end, and ends what it leaves behind.
//!
//! ```text
//!   agent ──starts──▶ keep ──starts──▶ kennel shim run ═becomes═▶ the container's command
//!     │                │  ▲                                          │
//!     │                │  └────────────── stdout, stderr ────────────┘
//!     │                ├─▶ log      lines with time and stream
//!     │                ├─▶ state    files that say how it is; whoever comes later reads them
//!     └──reopen, attach┘            over a socket (control)
//! ```
//!
//! The library is also what the agent reads and ends containers by: [`state`], [`identity`], [`cgroup`],
//! [`kill`], [`control`]. There is one process of this per container, so it must stay small: no event loop
//! but `poll`, no data formats, no dependency but system calls. It decides nothing and knows no pods.

pub mod cgroup;
mod clients;
pub mod control;
pub mod identity;
mod keep;
pub mod kill;
mod log;
mod options;
mod stage;
pub mod state;
mod stdio;
mod waiter;

use std::ffi::OsString;
use std::process::ExitCode;

pub use options::Options;

/// Stays with a container, in whose directory it is started. Says on stdout how the start went.
pub fn keep(args: Vec<OsString>) -> ExitCode {
    match Options::parse(args) {
        Some(options) => keep::run(options),
        None => ExitCode::from(2),
    }
}
