//! Executes a command in a running container. In two steps, because joining a PID namespace affects only the children of
//! a process:
//!
//! ```text
//!   exec   joins the container's PID namespace, starts `enter`, returns its exit code
//!   enter  joins the cgroup and the other namespaces, drops privileges, and executes the command
//! ```

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
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
use super::{InitError, Result, devices, execute, failed, security};

/// The exit code of shells for a command that cannot be started.
const CANNOT_START: u8 = 127;

/// `exec DIR COMMAND…`.
pub(super) fn exec(args: &[OsString]) -> ExitCode {
    start_enter(args).unwrap_or_else(|error| fail(&error))
}

fn start_enter(args: &[OsString]) -> Result<ExitCode> {
    let (_, spec, process) = read(args)?;
    if !spec.own_processes {
        return Ok(enter(args));
    }
    join_namespace(&process, "pid", LinkNameSpaceType::ProcessID)?;
    let own = std::env::current_exe().map_err(failed::<io::Error>("our own binary"))?;
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
pub(super) fn enter(args: &[OsString]) -> ExitCode {
    let Err(error) = execute_in_container(args);
    fail(&error)
}

fn execute_in_container(args: &[OsString]) -> Result<Infallible> {
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
    let console = if terminal && spec.private_devices {
        devices::clone_terminal()?
    } else {
        None
    };
    // Checked after joining: the cgroup may have been deleted and created again for another container.
    check_running(&process)?;
    if spec.own_root {
        if !spec.hostname.is_empty() {
            join_namespace(&process, "uts", LinkNameSpaceType::HostNameAndNISDomainName)?;
        }
        // Last, because the host's /proc is not accessible afterwards.
        join_namespace(&process, "mnt", LinkNameSpaceType::Mount)?;
        if let Some(console) = &console {
            devices::mount_console(console)?;
        }
    }
    let working_dir = if spec.working_dir.is_empty() {
        "/"
    } else {
        &spec.working_dir
    };
    std::env::set_current_dir(working_dir).map_err(failed("working directory"))?;
    security::apply(&spec)?;
    // Without the parent, nobody waits for the command.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    execute(args.get(1..).unwrap_or_default(), &spec)
}

fn read(args: &[OsString]) -> Result<(Dir, Spec, Identity)> {
    let dir = args.first().ok_or(InitError::NoContainer)?;
    let dir = Dir::new(Path::new(dir).to_owned());
    let spec = Spec::read(dir.path()).map_err(failed("the container"))?;
    let start = dir.started().ok_or(InitError::NotRunning)?;
    check_running(&start.process)?;
    Ok((dir, spec, start.process))
}

fn join_namespace(process: &Identity, name: &str, kind: LinkNameSpaceType) -> Result {
    let link = File::open(format!("/proc/{}/ns/{name}", process.pid)).map_err(failed(name))?;
    // Checked after opening: the namespace belongs to the process that was checked.
    check_running(process)?;
    move_into_link_name_space(link.as_fd(), Some(kind)).map_err(failed(name))
}

fn check_running(process: &Identity) -> Result {
    if process.is_alive() {
        Ok(())
    } else {
        Err(InitError::Exited)
    }
}

#[expect(clippy::print_stderr, reason = "exec clients show stderr to the user")]
fn fail(error: &InitError) -> ExitCode {
    eprintln!("{}", error.message());
    ExitCode::from(CANNOT_START)
}
