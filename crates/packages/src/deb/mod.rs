//! The Debian package: the program, its units, pages and completions. What they say stands in `packaging/`.

mod control;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::VERSION;
use crate::image::stripped;
use crate::run::{epoch, run};
use control::{About, MAINTAINER};
use stage::{Stage, gzipped};

/// `$text` is a file of `packaging/`.
macro_rules! packaging {
    ($file:literal) => {
        include_str!(concat!("../../../../packaging/", $file))
    };
}

/// The units, which are said to be stopped, restarted and so on by the scripts.
const UNITS: [(&str, &str); 2] = [
    ("kennel-server.service", packaging!("kennel-server.service")),
    ("kennel-agent.service", packaging!("kennel-agent.service")),
];

/// What people are to edit, and what the units read. The agent's may hold a token.
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

/// What to make.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// `kennel`, as it was built. It is run, to write its own pages and completions.
    pub binary: &'a Path,
    /// The version of the package, as [`version`] gives it.
    pub version: &'a str,
    /// How it is made small, as `dpkg-deb -Z` has it: `xz`, or `none` where time matters more.
    pub compression: &'a str,
}

/// The version of the package that is made of a version of the program. What comes before a version sorts
/// before it in Debian, too.
pub fn version() -> String {
    format!("{}-1", VERSION.replacen('-', "~", 1))
}

/// Makes the package in a directory, and returns its file.
pub fn build(plan: &Plan<'_>, directory: &Path) -> Result<PathBuf> {
    let time = epoch();
    let tree = tempfile::tempdir()?;
    let stage = Stage::new(tree.path());
    program(&stage, plan.binary)?;
    services(&stage)?;
    documents(&stage, plan.version, time)?;
    let about = About {
        version: plan.version.to_owned(),
        architecture: run(Command::new("dpkg").arg("--print-architecture"))?
            .trim()
            .to_owned(),
        libraries: crate::elf::packages(plan.binary)?,
        kibibytes: stage.kibibytes()?,
    };
    let sums = stage.sums()?;
    stage.file("DEBIAN/control", about.text(), 0o644)?;
    stage.file("DEBIAN/md5sums", sums, 0o644)?;
    let conffiles = CONFFILES.map(|(path, ..)| ["/", path, "\n"].concat());
    let conffiles = conffiles.concat();
    stage.file("DEBIAN/conffiles", conffiles, 0o644)?;
    for (name, text) in SCRIPTS {
        stage.file(&format!("DEBIAN/{name}"), text, 0o755)?;
    }
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let (version, architecture) = (&about.version, &about.architecture);
    let file = directory.join(format!("kennel_{version}_{architecture}.deb"));
    run(Command::new("dpkg-deb")
        .env("SOURCE_DATE_EPOCH", time.to_string())
        .arg("--root-owner-group")
        .arg(format!("-Z{}", plan.compression))
        .arg("--build")
        .arg(tree.path())
        .arg(&file))?;
    Ok(file)
}

/// The program, under its own name and as a plug-in of kubectl's, and what it says of itself.
fn program(stage: &Stage, binary: &Path) -> Result<()> {
    stage.file("usr/bin/kennel", stripped(binary)?, 0o755)?;
    stage.link("usr/bin/kubectl-kennel", "kennel")?;
    let pages = tempfile::tempdir()?;
    let generate = |what: &str| {
        let directory = pages.path().join(what);
        run(Command::new(binary)
            .args(["generate", what, "--out"])
            .arg(&directory))?;
        stage::files_of(&directory)
    };
    for (name, text) in generate("man")? {
        let path = format!("usr/share/man/man1/{name}.gz");
        stage.file(&path, gzipped(&text)?, 0o644)?;
    }
    for (name, text) in generate("completions")? {
        if let Some(path) = completion(&name) {
            stage.file(&path, text, 0o644)?;
        }
    }
    Ok(())
}

/// Where a shell looks for a completion that is generated under this name. None for shells that Debian knows no
/// place for.
fn completion(name: &str) -> Option<String> {
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

fn services(stage: &Stage) -> Result<()> {
    for (name, text) in UNITS {
        stage.file(&format!("usr/lib/systemd/system/{name}"), text, 0o644)?;
    }
    for (path, text, mode) in CONFFILES {
        stage.file(path, text, mode)?;
    }
    stage.directory("etc/kennel/manifests")
}

fn documents(stage: &Stage, version: &str, time: u64) -> Result<()> {
    const HERE: &str = "usr/share/doc/kennel";
    let put = |name: &str, content: Vec<u8>| stage.file(&format!("{HERE}/{name}"), content, 0o644);
    put("copyright", packaging!("copyright").into())?;
    let changes = include_str!("../../../../CHANGELOG.md");
    put("changelog.gz", gzipped(changes.as_bytes())?)?;
    let seconds = i64::try_from(time)?;
    let zoned = jiff::Timestamp::from_second(seconds)?.to_zoned(jiff::tz::TimeZone::UTC);
    let date = jiff::fmt::rfc2822::to_string(&zoned)?;
    let changes = format!(
        "kennel ({version}) unstable; urgency=medium\n\n  * What is new stands in changelog.gz.\n\n \
         -- {MAINTAINER}  {date}\n"
    );
    put("changelog.Debian.gz", gzipped(changes.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_go_where_shells_look() {
        let check = |name, expected: Option<&str>| {
            assert_eq!(completion(name).as_deref(), expected);
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
    fn scripts_know_every_unit() {
        for (script, text) in SCRIPTS {
            for (unit, _) in UNITS {
                assert!(text.contains(unit), "{script} does not know {unit}");
            }
        }
    }
}
