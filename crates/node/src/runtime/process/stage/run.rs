//! Becomes a container's command: everything that the container is, in order, and then the command.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kennel_shim::cgroup::Cgroups;
use kennel_shim::identity::Identity;
use kennel_shim::state::{self, Dir, Start};

use super::super::spec::Spec;
use super::{become_command, failed, mounts, security};

/// What every runtime returns for a container that could not be started.
const CANNOT_START: u8 = 128;

/// In the container's directory, with the container's stdio.
pub(super) fn main() -> ExitCode {
    // Closed by becoming the command: that is how the shim knows.
    let ready = std::fs::OpenOptions::new().write(true).open("ready");
    let why = prepare().map_or_else(
        |why| why,
        |spec| {
            let command: Vec<OsString> = spec.command.iter().map(OsString::from).collect();
            become_command(&command, &spec)
        },
    );
    if let Ok(mut ready) = ready {
        let _nobody_listens = ready.write_all(why.as_bytes());
    }
    ExitCode::from(CANNOT_START)
}

fn prepare() -> Result<Spec, String> {
    let dir = std::env::current_dir().map_err(failed("its directory"))?;
    let spec = Spec::read(&dir).map_err(failed("what to run"))?;
    rustix::process::setsid().map_err(|error| error.to_string())?;
    if spec.tty {
        let terminal = rustix::process::ioctl_tiocsctty(rustix::stdio::stdin());
        terminal.map_err(|error| format!("terminal: {error}"))?;
    }
    record(&dir)?;
    bound(&spec)?;
    rustix::process::umask(rustix::fs::Mode::WGRP | rustix::fs::Mode::WOTH);
    if spec.own_root {
        mounts::enter(&dir, &spec)?;
    }
    if !spec.hostname.is_empty() {
        own_hostname(&spec.hostname)?;
    }
    go_to(&spec.working_dir)?;
    security::apply(&spec)?;
    Ok(spec)
}

/// Before anything of the container runs: whoever comes later finds it, even if the shim has died by then.
fn record(dir: &Path) -> Result<(), String> {
    let process = Identity::own().ok_or("/proc does not know this process")?;
    let start = Start {
        since: state::now(),
        process,
    };
    Dir::new(dir.to_owned())
        .set_started(&start)
        .map_err(failed("its record"))
}

fn bound(spec: &Spec) -> Result<(), String> {
    if let Some(path) = &spec.cgroup {
        let group = Cgroups::find().group(path);
        group.make(&spec.bounds.into()).map_err(failed("cgroup"))?;
        group.join().map_err(failed("cgroup"))?;
    }
    // Lowering it takes a right that root may lack in a machine that is itself a container.
    let _less = std::fs::write(
        "/proc/self/oom_score_adj",
        spec.bounds.oom_score_adj.to_string(),
    );
    Ok(())
}

#[expect(
    deprecated,
    reason = "the safe one; only a table of files must not be unshared, and is not"
)]
fn own_hostname(name: &str) -> Result<(), String> {
    let told = |error: rustix::io::Errno| format!("host name: {error}");
    if rustix::system::uname().nodename().to_bytes() == name.as_bytes() {
        return Ok(());
    }
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWUTS).map_err(told)?;
    rustix::system::sethostname(name.as_bytes()).map_err(told)
}

/// Made if it is missing, as elsewhere.
fn go_to(working_dir: &str) -> Result<(), String> {
    let dir = PathBuf::from(if working_dir.is_empty() {
        "/"
    } else {
        working_dir
    });
    let there = if dir.is_dir() {
        Ok(())
    } else {
        std::fs::create_dir_all(&dir)
    };
    there
        .and_then(|()| std::env::set_current_dir(&dir))
        .map_err(failed(&format!("working directory {}", dir.display())))
}
