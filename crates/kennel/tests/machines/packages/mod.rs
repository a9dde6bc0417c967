//! What people install, as they install it: the Debian package on a machine of its own, the image in containerd,
//! and services that say when they are ready. As root, and with the program that the other tests run.

mod deb;
mod image;
mod machine;
mod notify;

/// The program that is packaged.
const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
/// For everything that a test waits for.
const PATIENCE: u64 = 90;
