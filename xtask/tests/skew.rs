//! The last release beside this version, with real processes: `xtask skew`.

use std::path::Path;
use std::process::Command;

use kennel_testkit::{machine, older};

#[test]
fn the_last_release_and_this_version_work_together() {
    if !machine::possible() {
        return;
    }
    let Some(old) = older::program() else {
        return;
    };
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    // `make test` builds the whole workspace.
    let new = xtask.with_file_name("kennel");
    let run = Command::new(xtask)
        .args(["skew", "--old"])
        .arg(old)
        .arg("--new")
        .arg(new)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}{errors}");
}
