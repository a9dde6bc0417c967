//! The last release, for tests that upgrade from it. `scripts/older.sh` builds it from this repository's history.

use std::path::{Path, PathBuf};

/// The last release's program. If it was not built, the calling test counts as skipped.
pub fn program() -> Option<PathBuf> {
    find("kennel")
}

/// The last release's Debian package. If it was not built, the calling test counts as skipped.
pub fn package() -> Option<PathBuf> {
    find("kennel.deb")
}

fn find(name: &str) -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/older");
    let found = directory.join(name).canonicalize().ok();
    if found.is_none() {
        kennel_test_support::skip(
            "no older program: `make test` builds it with scripts/older.sh, if the clone has the history",
        );
    }
    found
}
