//! Clients other than kubectl and kube-rs, unchanged: Helm with a chart of our own, and the official Python and
//! JavaScript libraries. Their programs assert what a user of the library sees.

mod helm;
mod libraries;

use std::path::{Path, PathBuf};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

/// A file of these tests.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/control_plane/clients")
        .join(name)
}
