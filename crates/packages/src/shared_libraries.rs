//! The shared libraries of a program, and the Debian packages that contain them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::command::run;

/// The paths of a program's shared libraries and its dynamic loader on this machine; empty for a static program.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = run(Command::new("ldd").arg(program)).unwrap_or_default();
    let path = |line: &str| {
        let after = line.rsplit("=>").next()?.trim();
        let path = after.split_whitespace().next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    output.lines().filter_map(path).collect()
}

/// The value of the package field `Depends`: `libc6 (>= 2.34), libgcc-s1 (>= 4.2)`.
pub(crate) fn debian_dependencies(program: &Path) -> Result<String> {
    // dpkg-shlibdeps expects to run in a source package.
    let source = tempfile::tempdir()?;
    fs::create_dir(source.path().join("debian"))?;
    let control = "Source: kennel\n\nPackage: kennel\nArchitecture: any\n";
    fs::write(source.path().join("debian/control"), control)?;
    let output = run(Command::new("dpkg-shlibdeps")
        .args(["-O", "-e"])
        .arg(program.canonicalize()?)
        .current_dir(source.path()))?;
    let depends = output.trim().strip_prefix("shlibs:Depends=");
    Ok(depends
        .context("dpkg-shlibdeps printed no dependencies")?
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_needs_its_libc() {
        let depends = debian_dependencies(Path::new("/usr/bin/env")).unwrap();
        assert!(depends.starts_with("libc6 (>= 2."), "{depends}");
    }
}
