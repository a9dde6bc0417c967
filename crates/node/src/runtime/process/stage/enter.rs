//! Becomes a command within a container that runs. Two steps, since a process cannot change which processes
//! it sees, only which those see that it starts:
//!
//! ```text
//!   exec   takes the container's view of processes, starts `enter`, returns what that returns
//!   enter  takes its cgroup, its mounts, its host name, its user, and becomes the command
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use kennel_shim::cgroup::Cgroups;
use kennel_shim::identity::Identity;
use kennel_shim::state::Dir;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::spec::Spec;
use super::{become_command, failed, security};

/// What shells return for a command that cannot be started.
const CANNOT_START: u8 = 127;

/// `exec DIR COMMAND…`.
pub(super) fn relay(args: &[OsString]) -> ExitCode {
    match start(args) {
        Ok(code) => code,
        Err(why) => complain(&why),
    }
}

fn start(args: &[OsString]) -> Result<ExitCode, String> {
    let (_, spec, process) = read(args)?;
    if !spec.own_processes {
        return Ok(main(args));
    }
    take(&process, "pid", LinkNameSpaceType::ProcessID)?;
    let own = std::env::current_exe().map_err(failed("our own binary"))?;
    let mut child = Command::new(own)
        .args(["shim", "enter"])
        .args(args)
        .spawn()
        .map_err(failed("entering"))?;
    let status = child.wait().map_err(failed("waiting"))?;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    Ok(ExitCode::from(
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255),
    ))
}

/// `enter DIR COMMAND…`.
pub(super) fn main(args: &[OsString]) -> ExitCode {
    let Err(why) = become_in(args);
    complain(&why)
}

fn become_in(args: &[OsString]) -> Result<std::convert::Infallible, String> {
    let (_, spec, process) = read(args)?;
    let terminal = rustix::termios::isatty(rustix::stdio::stdin());
    let _leads_already = rustix::process::setsid();
    if terminal {
        let _not_ours = rustix::process::ioctl_tiocsctty(rustix::stdio::stdin());
    }
    if let Some(path) = &spec.cgroup {
        Cgroups::find()
            .group(path)
            .join()
            .map_err(failed("cgroup"))?;
    }
    // What was joined may have been made anew for another.
    running(&process)?;
    if spec.own_root {
        if !spec.hostname.is_empty() {
            take(&process, "uts", LinkNameSpaceType::HostNameAndNISDomainName)?;
        }
        // Last: the machine's /proc is out of sight afterwards.
        take(&process, "mnt", LinkNameSpaceType::Mount)?;
    }
    let working_dir = if spec.working_dir.is_empty() {
        "/"
    } else {
        &spec.working_dir
    };
    std::env::set_current_dir(working_dir).map_err(failed("working directory"))?;
    security::apply(&spec)?;
    // Whoever waits for us gone, nobody waits for the command.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    Err(become_command(args.get(1..).unwrap_or_default(), &spec))
}

fn read(args: &[OsString]) -> Result<(Dir, Spec, Identity), String> {
    let dir = args.first().ok_or("no container specified")?;
    let dir = Dir::new(Path::new(dir).to_owned());
    let spec = Spec::read(dir.path()).map_err(failed("the container"))?;
    let start = dir.started().ok_or("the container is not running")?;
    running(&start.process)?;
    Ok((dir, spec, start.process))
}

fn take(process: &Identity, name: &str, kind: LinkNameSpaceType) -> Result<(), String> {
    let link = File::open(format!("/proc/{}/ns/{name}", process.pid)).map_err(failed(name))?;
    // Looked at after it was opened: it is of whom we mean.
    running(process)?;
    move_into_link_name_space(link.as_fd(), Some(kind)).map_err(|error| format!("{name}: {error}"))
}

fn running(process: &Identity) -> Result<(), String> {
    if process.is_alive() {
        Ok(())
    } else {
        Err("the container has ended".to_owned())
    }
}

#[expect(
    clippy::print_stderr,
    reason = "whoever runs the command reads it there"
)]
fn complain(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(CANNOT_START)
}
