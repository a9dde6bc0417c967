//! Runs a session step by step in a directory of its own and stops at the first step that shows
//! something else than the session says.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tempfile::TempDir;

use super::compare::{Difference, compare};
use super::parse::{Kind, Step, parse};
use crate::{Deadline, Version};

/// For a step that is repeated, or waited for. Far more than any needs on a busy machine; a passing test
/// never waits for it.
const UNTIL_SECONDS: u64 = 60;

/// Takes over what the step before has exported, and its directory.
const TAKE: &str = "cd \"$(cat \"$TERMINAL/here\")\" && . \"$TERMINAL/exported\"\n";
/// Leaves both for the next step.
const LEAVE: &str = "trap 'export -p > \"$TERMINAL/exported\"; pwd > \"$TERMINAL/here\"' EXIT\n";

/// A working directory, programs on the path, and what was left running in the background.
#[derive(Debug)]
pub struct Terminal {
    directory: TempDir,
    version: Version,
    /// What comes before each shell: how to get to the machine that it runs on.
    way: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    groups: Vec<Pid>,
    /// What runs beside the session, the latest last, and its commands.
    beside: Vec<(String, Child)>,
    /// How many screens there were.
    screens: usize,
}

impl Terminal {
    /// One with this kubectl.
    pub fn new(version: Version) -> Self {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let home = directory.path();
        for name in ["bin", "work"] {
            std::fs::create_dir(home.join(name)).expect("a new directory can be filled");
        }
        let start = format!("{}\n", home.join("work").display());
        std::fs::write(home.join("here"), start).expect("a new directory can be filled");
        std::fs::write(home.join("exported"), "").expect("a new directory can be filled");
        symlink(version.path(), home.join("bin/kubectl")).expect("a new directory can be filled");
        Self {
            directory,
            version,
            way: Vec::new(),
            environment: Vec::new(),
            groups: Vec::new(),
            beside: Vec::new(),
            screens: 0,
        }
    }

    /// Sets a variable of the environment.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.to_owned(), value.into()));
    }

    /// Runs everything somewhere else: behind these words.
    pub fn go(&mut self, way: Vec<OsString>) {
        self.way = way;
    }

    /// Puts a program on the path: a script for `sh`.
    pub fn program(&self, name: &str, script: &str) {
        let path = self.directory.path().join("bin").join(name);
        let written = std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))
            .and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(0o755)));
        written.expect("our own directory can be written");
    }

    /// Puts something of elsewhere into the working directory.
    pub fn link(&self, name: &str, target: &Path) {
        let link = self.directory.path().join("work").join(name);
        symlink(target, link).expect("our own directory can be written");
    }

    /// Runs a session, and panics with the difference at the first step that does not hold.
    pub fn play(&mut self, place: &Path, text: &str) {
        let steps = parse(text);
        assert!(!steps.is_empty(), "{} has no command", place.display());
        let version = self.version;
        for step in steps.iter().filter(|step| step.is_for(version)) {
            if let Err(difference) = self.run(step) {
                let place = format!("{}:{}", place.display(), step.line);
                let command = &step.command;
                panic!(
                    "{place} with kubectl {}\n$ {command}\n{difference}\n",
                    version.name()
                );
            }
        }
    }

    fn run(&mut self, step: &Step) -> Result<(), StepError> {
        match step.kind {
            Kind::Beside => return self.start_beside(step),
            Kind::Interrupt => return self.interrupt(&step.command),
            Kind::Once | Kind::Until => {}
        }
        let patience = match step.kind {
            Kind::Until => UNTIL_SECONDS,
            _ => 0,
        };
        let deadline = Deadline::seconds(patience);
        loop {
            let began = Instant::now();
            let (shown, code) = self.execute(&step.command);
            let outcome = check(step, &shown, code);
            if outcome.is_ok() || deadline.passed() {
                return outcome;
            }
            deadline.pause_after(began.elapsed());
        }
    }

    /// Starts a command that stays, and waits for what it must show.
    fn start_beside(&mut self, step: &Step) -> Result<(), StepError> {
        let (mut child, screen) = self.spawn(&format!("{TAKE}{}", step.command));
        self.groups.push(Pid::from_child(&child));
        let deadline = Deadline::seconds(UNTIL_SECONDS);
        loop {
            let ended = child.try_wait().expect("sh can be waited for");
            let outcome = compare(&step.expected, &read(&screen));
            if let Some(status) = ended {
                let shown = read(&screen);
                return Err(StepError::Ended { shown, status });
            }
            if outcome.is_ok() || deadline.passed() {
                self.beside.push((step.command.clone(), child));
                return Ok(outcome?);
            }
            deadline.pause();
        }
    }

    /// Ends what was started last beside the session and begins like this, as Ctrl-C in its terminal would.
    fn interrupt(&mut self, beginning: &str) -> Result<(), StepError> {
        let begins = |(command, _): &(String, Child)| command.starts_with(beginning);
        let at = self.beside.iter().rposition(begins);
        let (_, mut child) = self.beside.remove(at.ok_or(StepError::NotRunning)?);
        let group = Pid::from_child(&child);
        kill_process_group(group, Signal::INT).map_err(StepError::Signal)?;
        let deadline = Deadline::seconds(UNTIL_SECONDS);
        while child.try_wait().expect("sh can be waited for").is_none() {
            if deadline.passed() {
                return Err(StepError::DoesNotEnd);
            }
            deadline.pause();
        }
        Ok(())
    }

    /// What the command shows, errors and output in one, and its exit code.
    fn execute(&mut self, command: &str) -> (String, i32) {
        let (mut child, screen) = self.spawn(&format!("{TAKE}{LEAVE}{command}"));
        let group = Pid::from_child(&child);
        let status = child.wait().expect("sh can be waited for");
        // Only a group with a member left is remembered: the kernel may reuse the number of an empty one.
        if test_kill_process_group(group).is_ok() {
            self.groups.push(group);
        }
        (read(&screen), status.code().unwrap_or(-1))
    }

    /// Starts a shell, and says where its output is. A file takes it rather than a pipe, so that a process left
    /// in the background does not hold the step; and one of its own, so that it does not write into the next.
    fn spawn(&mut self, command: &str) -> (Child, PathBuf) {
        let home = self.directory.path();
        self.screens += 1;
        let screen = home.join(format!("screen-{}", self.screens));
        let output = File::create(&screen).expect("our own directory can be written");
        let errors = output.try_clone().expect("an open file can be shared");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut words = self.way.iter().cloned();
        let mut shell = Command::new(words.next().unwrap_or_else(|| "sh".into()));
        if !self.way.is_empty() {
            shell.args(words).arg("sh");
        }
        let child = shell
            .args(["-c", command])
            .current_dir(home.join("work"))
            .env("PATH", format!("{}:{path}", home.join("bin").display()))
            .env("HOME", home)
            .env("TERMINAL", home)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("KUBECONFIG")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .expect("sh can be started");
        (child, screen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for group in &self.groups {
            // What a session leaves in the background ends with it.
            let _ended = kill_process_group(*group, Signal::KILL);
        }
        for (_, child) in &mut self.beside {
            let _reaped = child.wait();
        }
    }
}

/// Why a step does not hold.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Difference(#[from] Difference),
    #[error("{shown}- ? {expected}\n+ ? {code}")]
    Code {
        shown: String,
        expected: i32,
        code: i32,
    },
    #[error("{shown}\nended: {status}")]
    Ended { shown: String, status: ExitStatus },
    #[error("nothing such runs beside the session")]
    NotRunning,
    #[error(transparent)]
    Signal(rustix::io::Errno),
    #[error("it does not end")]
    DoesNotEnd,
}

fn read(screen: &Path) -> String {
    let shown = std::fs::read(screen).expect("the file just written can be read");
    String::from_utf8_lossy(&shown).into_owned()
}

fn check(step: &Step, shown: &str, code: i32) -> Result<(), StepError> {
    compare(&step.expected, shown)?;
    if code == step.code {
        return Ok(());
    }
    Err(StepError::Code {
        shown: shown.to_owned(),
        expected: step.code,
        code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(text: &str) {
        Terminal::new(Version::V1_32).play(Path::new("a.session"), text);
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
    fn what_is_exported_and_where_one_is_stay() {
        run_text(
            "$ mkdir d; cd d; export A='b c'\n\n$ basename \"$PWD\"; echo $A; false\nd\nb c\n? 1\n",
        );
    }

    #[test]
    fn a_command_beside_the_session_is_waited_for_and_interrupted() {
        run_text(
            "$ echo ready; trap 'touch ended; exit' INT; while :; do sleep 0.1; done # in another terminal\n\
             ready\n\n$ sleep 60 # in another terminal\n$ test -e ended\n? 1\n^C echo\n$ test -e ended\n",
        );
    }

    #[test]
    #[should_panic(expected = "ended: exit status: 3")]
    fn a_command_beside_the_session_must_stay() {
        run_text("$ exit 3  # in another terminal\nready\n");
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
