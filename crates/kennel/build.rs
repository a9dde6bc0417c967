//! Builds the agent program, to be embedded in a release binary, and packs the binary's relocations.
//!
//! Linked alone and for size, it needs less than half of the memory that `kennel agent` would need within the whole
//! binary. Other builds embed nothing and run the agent in-process.

use std::process::Command;

use kennel_embed::Program;

fn main() {
    let agent = Program {
        package: "kennel-agent",
        profile: "agent",
        features: "embedded",
    };
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        agent.build();
        agent.compress();
        pack_relocations();
    } else {
        agent.omit();
    }
}

/// Packs the relocations of a position-independent program, which the dynamic loader reads as a whole: 2 MB of the file, and of
/// the memory of every process, become 0.1 MB. Loaders before glibc 2.36 cannot read them, so they stay as they are on machines
/// with an older one, and in builds for other machines.
fn pack_relocations() {
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let is_for_here = of("TARGET") == of("HOST") && of("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_for_here && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc: `getconf GNU_LIBC_VERSION` says `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
