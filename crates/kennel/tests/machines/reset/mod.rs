//! `kennel reset` and `kennel agent --cleanup` on machines with pods: nothing of ours is left, and nothing of others is
//! touched.

mod containers;
mod processes;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kennel_testkit::{Deadline, eventually};

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");

/// Checks the exit code; returns stdout and stderr.
#[track_caller]
fn check(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    text.into_owned()
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn reset(data: impl AsRef<OsStr>, flags: &[&str]) -> Output {
    let mut command = Command::new(KENNEL);
    command.args(["reset", "--yes", "--data-dir"]).arg(data);
    run(command.args(flags))
}

/// Mount points below a directory.
fn mounts(dir: &Path) -> Vec<String> {
    let all = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let points = all.lines().filter_map(|line| line.split(' ').nth(1));
    let below = points.filter(|point| Path::new(point).starts_with(dir));
    below.map(str::to_owned).collect()
}

/// The cgroups of a pod.
fn cgroups(uid: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let path = entry.path();
            if path.to_string_lossy().contains(uid) {
                found.push(path);
            } else {
                dirs.push(path);
            }
        }
    }
    found
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    eventually(Deadline::seconds(60), || holds().then_some(()).ok_or(what));
}
