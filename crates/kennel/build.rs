//! Builds the agent's own program, to be carried in a release binary.
//!
//! Linked alone, for size, statically and at a fixed address, it needs less than half of the memory that
//! `kennel agent` would need within the whole binary. Other builds carry nothing, and run the agent within.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the agent's program is made of, beside its dependencies.
const SOURCES: [&str; 5] = ["agent", "client", "core", "node", "shim"];

fn main() {
    let from_env = |name: &str| std::env::var(name).expect("cargo sets it for build scripts");
    let out = PathBuf::from(from_env("OUT_DIR"));
    let carried = out.join("kennel-agent");
    println!("cargo:rerun-if-changed=build.rs");
    if from_env("PROFILE") != "release" {
        std::fs::write(carried, []).expect("cargo's own directory can be written to");
        return;
    }
    for source in SOURCES {
        println!("cargo:rerun-if-changed=../{source}/src");
        println!("cargo:rerun-if-changed=../{source}/Cargo.toml");
    }
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let workspace = PathBuf::from(from_env("CARGO_MANIFEST_DIR")).join("../..");
    let target = from_env("TARGET");
    let small = "-Ctarget-feature=+crt-static -Crelocation-model=static";
    // Not every machine has the C library's static form; the agent is larger then, and works.
    let built = build(&workspace, &out, &target, small) || build(&workspace, &out, &target, "");
    assert!(built, "the agent's program does not build; see above");
    let program = out.join("agent").join(&target).join("agent/kennel-agent");
    std::fs::copy(program, carried).expect("the agent's program was just built");
}

fn build(workspace: &Path, out: &Path, target: &str, flags: &str) -> bool {
    let cargo = std::env::var_os("CARGO").expect("cargo sets it for build scripts");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--profile=agent", "--quiet", "--locked"])
        .args(["--package=kennel-agent", "--bin=kennel-agent"])
        .args(["--target", target, "--target-dir"])
        .arg(out.join("agent"))
        .current_dir(workspace)
        .env("RUSTFLAGS", flags);
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
