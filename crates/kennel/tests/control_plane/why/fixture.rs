//! A cluster of simulated nodes, a kubectl, and `kennel why`.

use std::path::{Path, PathBuf};
use std::process::Command;

use kennel_testkit::{Answer, Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};

pub(crate) const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
const TIMEOUT_SECONDS: u64 = 60;

pub(crate) struct Fixture {
    pub(crate) kubectl: Kubectl,
    pub(crate) kennel: Kennel,
    _scenario: Option<tempfile::NamedTempFile>,
}

impl Fixture {
    /// Three nodes whose pods are ready at once.
    pub(crate) fn new() -> Self {
        Self::with("", &["--simulate", "3"])
    }

    /// `kennel up` with a scenario and flags.
    pub(crate) fn with(scenario: &str, flags: &[&str]) -> Self {
        let file = (!scenario.is_empty()).then(|| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), scenario).unwrap();
            file
        });
        let mut arguments = vec!["up"];
        arguments.extend(flags);
        let path = file.as_ref().map(|file| file.path().to_str().unwrap());
        arguments.extend(path.into_iter().flat_map(|path| ["--scenario", path]));
        let kennel = Kennel::start(KENNEL, &arguments);
        Self {
            kubectl: Kubectl::new(Version::V1_32, &kennel.kubeconfig()),
            kennel,
            _scenario: file,
        }
    }

    /// Applies [`daemon_set`].
    pub(crate) fn apply(&self, spec: Value, pod: Value) {
        self.kubectl
            .run_with_input(&["apply", "-f", "-"], &daemon_set(spec, pod).to_string())
            .ok();
    }

    pub(crate) fn why(&self, arguments: &[&str]) -> Answer {
        why(&self.kennel.kubeconfig(), arguments)
    }

    /// Waits for a verdict with this cause; returns the node's answer.
    pub(crate) fn verdict(&self, node: &str, verdict: &str, cause: &str) -> Value {
        self.verdict_with(node, verdict, cause, "")
    }

    /// The same, with a message that contains `text`.
    pub(crate) fn verdict_with(&self, node: &str, verdict: &str, cause: &str, text: &str) -> Value {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let answer = self.why(&["ds/agent", "-o", "json"]);
            let all: Value = serde_json::from_str(&answer.stdout)
                .map_err(|error| format!("{error}: {}{}", answer.stdout, answer.stderr))?;
            let mut nodes = all["nodes"].as_array().into_iter().flatten();
            let found = nodes.find(|found| found["node"] == node);
            let found = found.ok_or_else(|| all.to_string())?;
            let says = found["message"].as_str().is_some_and(|m| m.contains(text));
            let right = found["verdict"] == verdict && found["cause"] == cause && says;
            right.then(|| found.clone()).ok_or(found.to_string())
        })
    }

    /// Waits for this output and exit code.
    pub(crate) fn wait_for_output(&self, arguments: &[&str], expected: &str, code: i32) {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let answer = self.why(arguments);
            let shown = format!("{}{}", answer.stdout, answer.stderr);
            let right = matches(&shown, expected) && answer.code == code;
            right
                .then_some(())
                .ok_or(format!("{}\n{shown}", answer.code))
        });
    }

    /// Waits until all nodes run it.
    pub(crate) fn wait_until_ok(&self) {
        let answer = eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let answer = self.why(&["ds/agent"]);
            let good = answer.code == 0;
            good.then_some(answer.stdout.clone()).ok_or(answer.stdout)
        });
        assert!(answer.starts_with("DaemonSet default/agent: "), "{answer}");
    }
}

/// Compares texts; `[..]` in `expected` matches anything within a line.
pub(crate) fn matches(shown: &str, expected: &str) -> bool {
    let (shown, expected) = (shown.trim().lines(), expected.trim().lines());
    let same = |(shown, expected): (&str, &str)| {
        let mut parts = expected.split("[..]");
        let rest = parts.next().and_then(|first| shown.strip_prefix(first));
        let all = parts.try_fold(rest, |rest, part| {
            let rest = rest?;
            let at = if part.is_empty() {
                Some(rest.len())
            } else {
                rest.find(part)
            };
            Some(at.map(|at| &rest[at + part.len()..]))
        });
        all.flatten().is_some_and(str::is_empty)
    };
    shown.clone().count() == expected.clone().count() && shown.zip(expected).all(same)
}

/// `kennel why` with this kubeconfig.
pub(crate) fn why(kubeconfig: &Path, arguments: &[&str]) -> Answer {
    let mut command = Command::new(KENNEL);
    command
        .arg("why")
        .args(arguments)
        .arg("--kubeconfig")
        .arg(kubeconfig);
    answer(&mut command)
}

pub(crate) fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    Answer {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// A DaemonSet `agent` with these fields in its spec and in its pod spec.
pub(crate) fn daemon_set(spec: Value, pod: Value) -> Value {
    let mut set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "main", "image": "example.com/agent:1"}]}}}});
    merge(&mut set["spec"], spec);
    merge(&mut set["spec"]["template"]["spec"], pod);
    set
}

fn merge(into: &mut Value, from: Value) {
    if let Value::Object(from) = from {
        for (key, value) in from {
            into[key] = value;
        }
    }
}

/// A directory with a link `kubectl-kennel`.
pub(crate) fn plug_in() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubectl-kennel");
    std::os::unix::fs::symlink(KENNEL, &path).unwrap();
    (dir, path)
}
