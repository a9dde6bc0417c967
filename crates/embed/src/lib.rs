//! Build-script support: builds one program of this workspace, so that another can embed it with `include_bytes!`.
//!
//! The program is linked statically and at a fixed address, which needs the least memory. It lands in `OUT_DIR` under
//! its package name. Build scripts may panic: cargo shows the message.

#![allow(clippy::print_stdout)] // Cargo reads a build script's instructions from stdout.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Of the names of all packages. What follows is the directory.
const PREFIX: &str = "kennel-";

/// A program of this workspace. The binary has the name of its package.
pub struct Program<'a> {
    pub package: &'a str,
    /// The cargo profile, which is neither `dev` nor `release`.
    pub profile: &'a str,
    /// Features of the package, separated by commas.
    pub features: &'a str,
}

impl Program<'_> {
    /// Builds the program.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn build(&self) {
        for source in self.sources() {
            // Cargo builds again every time if a file does not exist.
            for part in ["src", "Cargo.toml", "build.rs"] {
                let path = format!("../{source}/{part}");
                if Path::new(&path).exists() {
                    println!("cargo:rerun-if-changed={path}");
                }
            }
        }
        println!("cargo:rerun-if-changed=../../Cargo.lock");
        // Programs that abort on a panic do not need unwind tables, which are a tenth of their size. Cargo ignores the
        // profile's `strip` for packages whose optimisation the profile overrides.
        let small = "-Ctarget-feature=+crt-static -Crelocation-model=static -Cforce-unwind-tables=no \
             -Cstrip=symbols";
        // The linker of most toolchains can share identical functions.
        let smallest = format!("{small} -Clink-arg=-Wl,--icf=all");
        // Without this linker, or a static C library on the build machine, the program is larger and works the same.
        let mut flags = [smallest.as_str(), small, ""].into_iter();
        let built = flags.any(|flags| self.cargo_build(flags));
        assert!(built, "{} does not build; see above", self.package);
        let target_dir = self.target_dir().join(from_env("TARGET"));
        let program = target_dir.join(self.profile).join(self.package);
        std::fs::copy(program, self.destination()).expect("cargo has just built the program");
    }

    /// The directories below `crates` that it is built from: a change there builds it again.
    fn sources(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut left = vec![self.package.to_owned()];
        while let Some(package) = left.pop() {
            let directory = package.trim_start_matches(PREFIX).to_owned();
            let manifest = format!("../{directory}/Cargo.toml");
            if !found.insert(directory) {
                continue;
            }
            let manifest = std::fs::read_to_string(manifest);
            let manifest = manifest.expect("a crate's directory has its name");
            left.extend(dependencies(&manifest).map(str::to_owned));
        }
        found
    }

    /// Compresses the program that was built, in the gzip format.
    ///
    /// # Panics
    /// If `OUT_DIR` is not writable.
    pub fn compress(&self) {
        let program = std::fs::read(self.destination()).expect("the program was built");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let compressed = encoder.write_all(&program).and_then(|()| encoder.finish());
        let compressed = compressed.expect("memory is writable");
        std::fs::write(self.destination(), compressed).expect("OUT_DIR is writable");
    }

    /// Writes an empty file instead, for builds that embed nothing.
    ///
    /// # Panics
    /// If `OUT_DIR` is not writable.
    pub fn omit(&self) {
        std::fs::write(self.destination(), []).expect("OUT_DIR is writable");
    }

    fn destination(&self) -> PathBuf {
        Path::new(&from_env("OUT_DIR")).join(self.package)
    }

    fn target_dir(&self) -> PathBuf {
        Path::new(&from_env("OUT_DIR")).join(self.profile)
    }

    fn cargo_build(&self, rustflags: &str) -> bool {
        let mut command = Command::new(from_env("CARGO"));
        command
            .args(["build", "--quiet", "--locked"])
            .args(["--profile", self.profile])
            .args(["--package", self.package, "--bin", self.package])
            .args(["--features", self.features])
            .args(["--target", &from_env("TARGET"), "--target-dir"])
            .arg(self.target_dir())
            .current_dir(Path::new(&from_env("CARGO_MANIFEST_DIR")).join("../.."))
            .env("RUSTFLAGS", rustflags);
        // Settings of the outer build that must not apply to this one.
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
}

/// The packages of this workspace that a manifest names as dependencies, those of build scripts included.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut is_shipped = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            is_shipped = line.contains("dependencies") && !line.contains("dev-dependencies");
        }
        let name = line.split(['.', ' ', '=']).next()?;
        (is_shipped && name.starts_with(PREFIX)).then_some(name)
    })
}

fn from_env(name: &str) -> String {
    let value = std::env::var(name);
    value.unwrap_or_else(|error| panic!("cargo sets {name} for build scripts: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_dependency_builds_the_program_again() {
        let agent = Program {
            package: "kennel-agent",
            profile: "agent",
            features: "",
        };
        let sources = agent.sources();
        for expected in [
            "agent", "proxy", "nftables", "network", "node", "shim", "core",
        ] {
            assert!(sources.contains(expected), "{expected} of {sources:?}");
        }
        for other in ["test-support", "testkit", "server"] {
            assert!(!sources.contains(other), "{other} of {sources:?}");
        }
    }
}
