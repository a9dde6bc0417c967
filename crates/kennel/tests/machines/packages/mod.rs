//! The Debian package on a systemd machine, the container image in containerd, and readiness notification. Needs root.

mod deb;
mod image;
mod notify;
mod systemd_machine;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const TIMEOUT_SECONDS: u64 = 90;
