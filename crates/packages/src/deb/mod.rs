//! The Debian package: binary, systemd units, man pages and completions. Their sources are in `packaging/`.

mod control;
mod staging;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::VERSION;
use crate::command::{run, source_date_epoch};
use crate::image::stripped;
use crate::shared_libraries::debian_dependencies;
use control::{Control, MAINTAINER};
use staging::{StagingDirectory, gzip};

/// The content of a file in `packaging/`.
macro_rules! packaging {
    ($file:literal) => {
        include_str!(concat!("../../../../packaging/", $file))
    };
}

/// The maintainer scripts name them, too.
const UNITS: [(&str, &str); 2] = [
    ("kennel-server.service", packaging!("kennel-server.service")),
    ("kennel-agent.service", packaging!("kennel-agent.service")),
];

/// Environment files of the units: path, content, mode. The agent's may contain a token.
const CONFFILES: [(&str, &str, u32); 2] = [
    (
        "etc/default/kennel-server",
        packaging!("kennel-server.default"),
        0o644,
    ),
    (
        "etc/default/kennel-agent",
        packaging!("kennel-agent.default"),
        0o640,
    ),
];

const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", packaging!("postinst")),
    ("prerm", packaging!("prerm")),
    ("postrm", packaging!("postrm")),
];

#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The `kennel` binary. It is run to generate its man pages and completions.
    pub binary: &'a Path,
    /// The package version, such as [`default_version`].
    pub version: &'a str,
    /// As for `dpkg-deb -Z`: `xz`, or `none` for speed.
    pub compression: &'a str,
}

/// The package version for the program's version. Debian sorts `~` before everything, so that pre-releases come first.
pub fn default_version() -> String {
    format!("{}-1", VERSION.replacen('-', "~", 1))
}

/// Builds the package in a directory; returns the path of its file.
pub fn build(options: &Options<'_>, directory: &Path) -> Result<PathBuf> {
    let time = source_date_epoch();
    let tree = tempfile::tempdir()?;
    let staging = StagingDirectory::new(tree.path());
    add_program(&staging, options.binary)?;
    add_services(&staging)?;
    add_documents(&staging, options.version, time)?;
    let control = Control {
        version: options.version.to_owned(),
        architecture: run(Command::new("dpkg").arg("--print-architecture"))?
            .trim()
            .to_owned(),
        libraries: debian_dependencies(options.binary)?,
        installed_size: staging.size_kib()?,
    };
    let sums = staging.md5sums()?;
    staging.file("DEBIAN/control", control.text(), 0o644)?;
    staging.file("DEBIAN/md5sums", sums, 0o644)?;
    let conffiles = CONFFILES.map(|(path, ..)| ["/", path, "\n"].concat());
    let conffiles = conffiles.concat();
    staging.file("DEBIAN/conffiles", conffiles, 0o644)?;
    for (name, text) in SCRIPTS {
        staging.file(&format!("DEBIAN/{name}"), text, 0o755)?;
    }
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let (version, architecture) = (&control.version, &control.architecture);
    let file = directory.join(format!("kennel_{version}_{architecture}.deb"));
    run(Command::new("dpkg-deb")
        .env("SOURCE_DATE_EPOCH", time.to_string())
        .arg("--root-owner-group")
        .arg(format!("-Z{}", options.compression))
        .arg("--build")
        .arg(tree.path())
        .arg(&file))?;
    Ok(file)
}

/// Adds the binary, its name as a kubectl plug-in, man pages and completions.
fn add_program(staging: &StagingDirectory, binary: &Path) -> Result<()> {
    staging.file("usr/bin/kennel", stripped(binary)?, 0o755)?;
    staging.symlink("usr/bin/kubectl-kennel", "kennel")?;
    let generated = tempfile::tempdir()?;
    let generate = |what: &str| {
        let directory = generated.path().join(what);
        run(Command::new(binary)
            .args(["generate", what, "--out"])
            .arg(&directory))?;
        staging::read_files(&directory)
    };
    for (name, text) in generate("man")? {
        let path = format!("usr/share/man/man1/{name}.gz");
        staging.file(&path, gzip(&text)?, 0o644)?;
    }
    for (name, text) in generate("completions")? {
        if let Some(path) = completion_path(&name) {
            staging.file(&path, text, 0o644)?;
        }
    }
    Ok(())
}

/// The path at which a shell looks for a completion file; `None` for shells without a place in Debian.
fn completion_path(name: &str) -> Option<String> {
    if name.starts_with('_') {
        return Some(format!("usr/share/zsh/vendor-completions/{name}"));
    }
    let (stem, shell) = name.rsplit_once('.')?;
    match shell {
        "bash" => Some(format!("usr/share/bash-completion/completions/{stem}")),
        "fish" => Some(format!("usr/share/fish/vendor_completions.d/{name}")),
        _ => None,
    }
}

fn add_services(staging: &StagingDirectory) -> Result<()> {
    for (name, text) in UNITS {
        staging.file(&format!("usr/lib/systemd/system/{name}"), text, 0o644)?;
    }
    for (path, text, mode) in CONFFILES {
        staging.file(path, text, mode)?;
    }
    staging.directory("etc/kennel/manifests")
}

fn add_documents(staging: &StagingDirectory, version: &str, time: u64) -> Result<()> {
    const DIRECTORY: &str = "usr/share/doc/kennel";
    let add =
        |name: &str, content: Vec<u8>| staging.file(&format!("{DIRECTORY}/{name}"), content, 0o644);
    add("copyright", packaging!("copyright").into())?;
    let changes = include_str!("../../../../CHANGELOG.md");
    add("changelog.gz", gzip(changes.as_bytes())?)?;
    let seconds = i64::try_from(time)?;
    let zoned = jiff::Timestamp::from_second(seconds)?.to_zoned(jiff::tz::TimeZone::UTC);
    let date = jiff::fmt::rfc2822::to_string(&zoned)?;
    let changes = format!(
        "kennel ({version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n \
         -- {MAINTAINER}  {date}\n"
    );
    add("changelog.Debian.gz", gzip(changes.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_go_where_shells_look() {
        let check = |name, expected: Option<&str>| {
            assert_eq!(completion_path(name).as_deref(), expected);
        };
        check(
            "kennel.bash",
            Some("usr/share/bash-completion/completions/kennel"),
        );
        check(
            "kennel.fish",
            Some("usr/share/fish/vendor_completions.d/kennel.fish"),
        );
        check("_kennel", Some("usr/share/zsh/vendor-completions/_kennel"));
        check("kennel.elv", None);
    }

    #[test]
    fn maintainer_scripts_name_every_unit() {
        for (script, text) in SCRIPTS {
            for (unit, _) in UNITS {
                assert!(text.contains(unit), "{script} does not name {unit}");
            }
        }
    }
}
