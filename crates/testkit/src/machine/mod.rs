//! Machines for tests of the node agent: a network of their own, a containerd of their own, images made on
//! the spot. Nothing is fetched, and nothing of the real machine's containerd is touched.
//!
//! ```text
//!   Network     a network namespace, and an address of it that the test reaches; a disk of its own on request
//!   Containerd  root, state, socket, CNI configuration; runs in a Network
//!   BlockDevice a loop device with a file system
//!   Image       busybox and what a test adds, packed as container engines load it
//!   Registry    where a containerd pulls images from, with a password or without
//!   Lan         machines that see each other, for guides
//!   Links       machines on links with a router between them
//! ```
//!
//! All of it needs root. It is taken away when it is dropped and, by a process that waits for that, when the
//! test process ends in any other way: statics that many tests share leave nothing behind.

mod block_device;
mod containerd;
mod disk;
mod image;
mod lan;
mod links;
mod network;
mod reaper;
mod registry;

pub use block_device::BlockDevice;
pub use containerd::{Builder, Containerd};
pub use image::Image;
pub use lan::Lan;
pub use links::Links;
pub use network::Network;
pub use registry::Registry;

use std::process::Command;

/// Whether machines can be made here: they need root. If not, the calling test counts as skipped.
pub fn possible() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        kennel_test_support::skip("machines need root");
    }
    root
}

/// Runs a command to its end and panics with what it said if it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
