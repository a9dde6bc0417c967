//! Runs a session step by step in a directory of its own and stops at the first step that shows
//! something else than the session says.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tempfile::TempDir;

use super::compare::compare;
use super::parse::{Step, parse};
use crate::{Deadline, Version};

/// For a step marked `# until`. Far more than any needs on a busy machine; a passing test never waits
/// for it.
const UNTIL_SECONDS: u64 = 60;

/// Runs the session in `file` with this kubectl against the server of this kubeconfig, and panics with
/// the difference at the first step that does not hold.
pub fn run(file: &Path, version: Version, kubeconfig: &Path) {
    let text = std::fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
    let steps = parse(&text);
    assert!(!steps.is_empty(), "{} has no command", file.display());
    let mut terminal = Terminal::new(version, kubeconfig);
    for step in steps.iter().filter(|step| step.is_for(version)) {
        if let Err(difference) = terminal.run(step) {
            let place = format!("{}:{}", file.display(), step.line);
            let command = &step.command;
            panic!(
                "{place} with kubectl {}\n$ {command}\n{difference}\n",
                version.name()
            );
        }
    }
}

/// A working directory, a kubectl on the path, and what was left running in the background.
struct Terminal {
    directory: TempDir,
    kubeconfig: std::path::PathBuf,
    groups: Vec<Pid>,
}

impl Terminal {
    fn new(version: Version, kubeconfig: &Path) -> Self {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).expect("a new directory can be filled");
        std::fs::create_dir(directory.path().join("work")).expect("a new directory can be filled");
        symlink(version.path(), bin.join("kubectl")).expect("a new directory can be filled");
        Self {
            directory,
            kubeconfig: kubeconfig.to_owned(),
            groups: Vec::new(),
        }
    }

    fn run(&mut self, step: &Step) -> Result<(), String> {
        let deadline = Deadline::seconds(if step.until { UNTIL_SECONDS } else { 0 });
        loop {
            let (shown, code) = self.execute(&step.command);
            let outcome = check(step, &shown, code);
            if outcome.is_ok() || deadline.passed() {
                return outcome;
            }
            deadline.pause();
        }
    }

    /// What the command shows, errors and output in one, and its exit code. A file takes the output
    /// rather than a pipe, so that a process left in the background does not hold the step.
    fn execute(&mut self, command: &str) -> (String, i32) {
        let home = self.directory.path();
        let screen = home.join("screen");
        let output = File::create(&screen).expect("our own directory can be written");
        let errors = output.try_clone().expect("an open file can be shared");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("sh")
            .args(["-c", command])
            .current_dir(home.join("work"))
            .env("PATH", format!("{}:{path}", home.join("bin").display()))
            .env("HOME", home)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .expect("sh can be started");
        let group = Pid::from_child(&child);
        let status = child.wait().expect("sh can be waited for");
        // Only a group with a member left is remembered: the number of an empty one may be given anew.
        if test_kill_process_group(group).is_ok() {
            self.groups.push(group);
        }
        let shown = std::fs::read(&screen).expect("the file just written can be read");
        (
            String::from_utf8_lossy(&shown).into_owned(),
            status.code().unwrap_or(-1),
        )
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for group in &self.groups {
            // What a session leaves in the background ends with it.
            let _ended = kill_process_group(*group, Signal::KILL);
        }
    }
}

fn check(step: &Step, shown: &str, code: i32) -> Result<(), String> {
    compare(&step.expected, shown)?;
    if code == step.code {
        return Ok(());
    }
    Err(format!("{shown}- ? {}\n+ ? {code}", step.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(text: &str) {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("a.session");
        std::fs::write(&file, text).unwrap();
        run(&file, Version::V1_32, Path::new("/nonexistent"));
    }

    #[test]
    fn steps_share_a_directory_and_show_output_errors_and_code() {
        run_text(
            "$ echo one > file; echo two >&2; cat file\ntwo\none\n\n$ cat file; exit 3\none\n? 3\n",
        );
    }

    #[test]
    fn until_repeats_and_only_leaves_out() {
        run_text(
            "$ echo x >> file; wc -l < file  # until\n3\n\n$ exit 9 # only 1.20\n\n$ wc -l < file\n3\n",
        );
    }

    #[test]
    fn a_process_in_the_background_does_not_hold_the_step() {
        run_text(
            "$ (while test ! -e stop; do :; done; echo late) > log & touch stop; echo now\nnow\n\n$ cat log # until\nlate\n",
        );
    }

    #[test]
    #[should_panic(expected = "a.session:1 with kubectl 1.32\n$ echo b\n- a\n+ b")]
    fn a_difference_names_its_place() {
        run_text("$ echo b\na\n");
    }

    #[test]
    #[should_panic(expected = "- ? 0\n+ ? 1")]
    fn an_exit_code_counts() {
        run_text("$ false\n");
    }

    #[test]
    fn kubectl_is_the_one_under_test() {
        run_text("$ kubectl version --client\n...\nClient Version: v1.[..]\n...\n");
    }
}
