//! Sets up a container in the calling process, step by step, and executes its command.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kennel_shim::cgroup::{Cgroups, Limits};
use kennel_shim::identity::Identity;
use kennel_shim::state::{self, Dir, Start};
use rustix::thread::UnshareFlags;

use super::super::spec::Spec;
use super::{InitError, Result, execute, failed, mounts, security};

/// The exit code of container runtimes for a container that could not be started.
const CANNOT_START: u8 = 128;

/// Starts in the container's directory, with the container's stdio.
pub(super) fn main() -> ExitCode {
    // Closes on exec, which tells the shim that the command runs.
    let ready = std::fs::OpenOptions::new().write(true).open("ready");
    let Err(error) = set_up().and_then(|spec| {
        let command: Vec<OsString> = spec.command.iter().map(OsString::from).collect();
        execute(&command, &spec)
    });
    if let Ok(mut ready) = ready {
        let _closed = ready.write_all(error.message().as_bytes());
    }
    ExitCode::from(CANNOT_START)
}

fn set_up() -> Result<Spec> {
    let dir = std::env::current_dir().map_err(failed("its directory"))?;
    let spec = Spec::read(&dir).map_err(failed("what to run"))?;
    rustix::process::setsid().map_err(std::io::Error::from)?;
    if spec.tty {
        let terminal = rustix::process::ioctl_tiocsctty(rustix::stdio::stdin());
        terminal.map_err(failed("terminal"))?;
    }
    record_start(&dir)?;
    apply_limits(&spec)?;
    rustix::process::umask(rustix::fs::Mode::WGRP | rustix::fs::Mode::WOTH);
    if spec.own_root {
        mounts::enter(&dir, &spec)?;
    }
    if !spec.hostname.is_empty() {
        set_hostname(&spec.hostname)?;
    }
    change_dir(&spec.working_dir)?;
    security::apply(&spec)?;
    Ok(spec)
}

/// Before anything of the container runs, so that a restarted agent finds it even if the shim has died by then.
fn record_start(dir: &Path) -> Result {
    let process = Identity::own().ok_or(InitError::NotInProc)?;
    let start = Start {
        since: state::now(),
        process,
    };
    Dir::new(dir.to_owned())
        .set_started(&start)
        .map_err(failed("its record"))
}

fn apply_limits(spec: &Spec) -> Result {
    if let Some(path) = &spec.cgroup {
        let cgroups = Cgroups::find();
        let group = cgroups.group(path);
        let mut limits: Limits = spec.limits.into();
        if spec.pod_cgroup.is_empty() {
            limits.pids = spec.pids;
        } else {
            let pids = Limits {
                pids: spec.pids,
                ..Limits::default()
            };
            let pod = cgroups.group(&spec.pod_cgroup);
            pod.create(&pids).map_err(failed("cgroup"))?;
        }
        group.create(&limits).map_err(failed("cgroup"))?;
        if let Some(allowed) = &spec.device_rules {
            group.restrict_devices(allowed).map_err(failed("cgroup"))?;
        }
        group.join().map_err(failed("cgroup"))?;
    }
    // Lowering it needs a capability that root may lack on a host that is itself a container.
    let _refused = std::fs::write(
        "/proc/self/oom_score_adj",
        spec.limits.oom_score_adj.to_string(),
    );
    Ok(())
}

fn set_hostname(name: &str) -> Result {
    if rustix::system::uname().nodename().to_bytes() == name.as_bytes() {
        return Ok(());
    }
    kennel_shim::unshare(UnshareFlags::NEWUTS).map_err(failed("host name"))?;
    rustix::system::sethostname(name.as_bytes()).map_err(failed("host name"))
}

/// Creates the working directory if it is missing, as other runtimes do.
fn change_dir(working_dir: &str) -> Result {
    let dir = PathBuf::from(if working_dir.is_empty() {
        "/"
    } else {
        working_dir
    });
    let created = if dir.is_dir() {
        Ok(())
    } else {
        std::fs::create_dir_all(&dir)
    };
    created
        .and_then(|()| std::env::set_current_dir(&dir))
        .map_err(failed(&format!("working directory {}", dir.display())))
}
