//! Builds the shim that the process runtime starts for each container, to be carried in our own binary.
//!
//! It is a program of its own since one runs per container: linked alone, statically and at a fixed address,
//! it needs a fifth of the memory that it would need as a verb of the whole binary.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let from_env = |name: &str| std::env::var(name).expect("cargo sets it for build scripts");
    let out = PathBuf::from(from_env("OUT_DIR"));
    let workspace = PathBuf::from(from_env("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../shim/src");
    println!("cargo:rerun-if-changed=../shim/Cargo.toml");
    let target = from_env("TARGET");
    let small = "-Ctarget-feature=+crt-static -Crelocation-model=static";
    // Not every machine has the C library's static form; the shim is larger then, and works.
    let built = build(&workspace, &out, &target, small) || build(&workspace, &out, &target, "");
    assert!(built, "the shim does not build; see above");
    let shim = out.join("shim").join(&target).join("release/kennel-shim");
    std::fs::copy(shim, out.join("kennel-shim")).expect("the shim was just built");
}

fn build(workspace: &Path, out: &Path, target: &str, flags: &str) -> bool {
    let cargo = std::env::var_os("CARGO").expect("cargo sets it for build scripts");
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--release",
            "--quiet",
            "--locked",
            "--package",
            "kennel-shim",
            "--bin",
            "kennel-shim",
        ])
        .args(["--target", target, "--target-dir"])
        .arg(out.join("shim"))
        .current_dir(workspace)
        .env("RUSTFLAGS", flags)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    // What was meant for the build around this one.
    for name in [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_TARGET_DIR",
    ] {
        command.env_remove(name);
    }
    command.status().is_ok_and(|status| status.success())
}
