//! Why containers of a pod fail, for the node's log: one entry for each cause, however often it is retried.

use std::collections::BTreeMap;
use std::time::Duration;

use kennel_types::{Container, Monotonic, PodSpec, RestartPolicy};

use super::tracker::{StartFailure, Tracker};
use super::{Exit, Observed, Run};

/// How often the same cause of the same container is reported.
const REPEAT_AFTER: Duration = Duration::from_hours(1);
/// Causes of one pod that are remembered: enough for real pods; more differ in details that change with each try.
const CAUSES_MAX: usize = 32;
/// How much of a message is reported.
const MESSAGE_CHARS_MAX: usize = 300;

/// A container that has failed, or could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Empty for the pod itself: its sandbox or volumes.
    pub container: String,
    /// Such as `OOMKilled`, `Error`, `ErrImagePull` or `CreateContainerConfigError`.
    pub reason: String,
    /// What happened, in one line.
    pub message: String,
    pub restarts: u32,
    /// Equal for failures with the same cause.
    cause: String,
}

/// The failures of a pod's containers as they are now.
pub fn failures(spec: &PodSpec, observed: &Observed, tracker: &Tracker) -> Vec<Failure> {
    let not_started = |name: &str| tracker.container(name)?.start_failure.as_ref();
    let restarts = |name: &str| observed.latest(name).map_or(0, |run| run.attempt);
    let sandbox = not_started("").map(|failure| could_not_start("", failure, 0));
    let of = |container: &Container, init: bool| {
        let name = container.name.as_str();
        if let Some(failure) = not_started(name) {
            return Some(could_not_start(name, failure, restarts(name)));
        }
        let run = observed.latest(name)?;
        let exit = run.exit()?;
        let forever =
            container.is_sidecar() || (!init && spec.restart_policy == RestartPolicy::Always);
        (exit.code != 0 || forever).then(|| exited(run, exit))
    };
    let inits = spec.init_containers.iter().map(|init| of(init, true));
    let mains = spec.containers.iter().map(|main| of(main, false));
    // The exit of an ephemeral container is its user's, who sees it.
    let ephemeral = spec.ephemeral_containers.iter().map(|container| {
        let name = container.name.as_str();
        not_started(name).map(|failure| could_not_start(name, failure, 0))
    });
    sandbox
        .into_iter()
        .chain(inits.chain(mains).chain(ephemeral).flatten())
        .collect()
}

fn could_not_start(container: &str, failure: &StartFailure, restarts: u32) -> Failure {
    let message = one_line(&failure.message);
    Failure {
        container: container.to_owned(),
        reason: failure.reason.to_string(),
        cause: format!("{} {}", failure.reason, without_ids(&message)),
        message: format!("{}: {message}", failure.reason),
        restarts,
    }
}

fn exited(run: &Run, exit: &Exit) -> Failure {
    let code = exit.code;
    let reason = match (exit.reason.as_str(), code) {
        ("", 0) => "Completed",
        ("", _) => "Error",
        (reason, _) => reason,
    };
    let mut message = match reason {
        "OOMKilled" => {
            format!("killed for exceeding its memory limit (OOMKilled, exit code {code})")
        }
        _ => format!("exited with code {code} ({reason})"),
    };
    if !exit.message.is_empty() {
        message = format!("{message}: {}", one_line(&exit.message));
    }
    Failure {
        container: run.name.clone(),
        reason: reason.to_owned(),
        message,
        restarts: run.attempt,
        cause: format!("exit {code} {reason}"),
    }
}

/// The beginning of a message, without characters that would break a log line.
fn one_line(message: &str) -> String {
    let mut line: String = message
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MESSAGE_CHARS_MAX)
        .collect();
    if message.trim().chars().count() > MESSAGE_CHARS_MAX {
        line.push('…');
    }
    line
}

/// The words of a message, but for numbers and ids, which differ from try to try.
fn without_ids(message: &str) -> String {
    let is_id = |word: &&str| {
        let hex = word.chars().all(|c| c.is_ascii_hexdigit());
        hex && word.chars().any(|c| c.is_ascii_digit())
    };
    let words = message.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| !is_id(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Which failures of one pod were reported, and when.
#[derive(Clone, Debug, Default)]
pub struct FailureLog {
    reported: BTreeMap<(String, String), Monotonic>,
}

impl FailureLog {
    /// Of these failures, those to report now: new ones, and rarely the others.
    pub fn news(&mut self, failures: Vec<Failure>, now: Monotonic) -> Vec<Failure> {
        let is_news = |failure: &Failure| {
            let key = (failure.container.clone(), failure.cause.clone());
            let before = self.reported.get(&key);
            let due = match before {
                Some(at) => now - *at >= REPEAT_AFTER,
                None => self.reported.len() < CAUSES_MAX,
            };
            if due {
                self.reported.insert(key, now);
            }
            due
        };
        failures.into_iter().filter(is_news).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn at(minutes: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_mins(minutes))
    }

    fn spec() -> PodSpec {
        PodSpec {
            containers: vec![Container {
                name: "main".to_owned(),
                ..Container::default()
            }],
            restart_policy: RestartPolicy::Always,
            ..PodSpec::default()
        }
    }

    fn run(attempt: u32, code: i32, reason: &str, message: &str) -> Observed {
        let exit = Exit {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Exit::default()
        };
        let run = Run {
            name: "main".to_owned(),
            id: format!("id-{attempt}"),
            attempt,
            sandbox: String::new(),
            image: String::new(),
            image_id: String::new(),
            state: State::Exited(exit),
        };
        Observed {
            sandbox: None,
            runs: vec![run],
        }
    }

    fn failed(name: &str, reason: &'static str, message: &str) -> Tracker {
        let mut tracker = Tracker::default();
        let failure = StartFailure {
            reason: reason.into(),
            backoff_reason: reason.into(),
            message: message.to_owned(),
        };
        tracker.start_failed(name, failure, at(0));
        tracker
    }

    fn messages(failures: &[Failure]) -> Vec<&str> {
        failures.iter().map(|one| one.message.as_str()).collect()
    }

    #[test]
    fn an_exit_is_a_failure_with_its_code_and_reason() {
        let of = |observed: &Observed| failures(&spec(), observed, &Tracker::default());
        let crash = of(&run(3, 7, "", "no licence\nsecond line"));
        assert_eq!(
            messages(&crash),
            ["exited with code 7 (Error): no licence second line"]
        );
        assert_eq!((crash[0].restarts, &*crash[0].reason), (3, "Error"));
        let killed = of(&run(0, 137, "OOMKilled", ""));
        assert_eq!(
            messages(&killed),
            ["killed for exceeding its memory limit (OOMKilled, exit code 137)"]
        );
        let ended = of(&run(0, 0, "", ""));
        assert_eq!(messages(&ended), ["exited with code 0 (Completed)"]);
        let mut once = spec();
        once.restart_policy = RestartPolicy::OnFailure;
        let observed = run(0, 0, "", "");
        assert!(failures(&once, &observed, &Tracker::default()).is_empty());
    }

    #[test]
    fn a_container_that_cannot_start_fails_with_the_cause() {
        let of = |tracker: &Tracker| failures(&spec(), &Observed::default(), tracker);
        let tracker = failed(
            "main",
            "CreateContainerConfigError",
            "configmap \"settings\" not found",
        );
        let missing = of(&tracker);
        assert_eq!(
            messages(&missing),
            ["CreateContainerConfigError: configmap \"settings\" not found"]
        );
        let volume = of(&failed("", "FailedMount", "configmap \"x\" not found"));
        assert_eq!(volume[0].container, "");
    }

    #[test]
    fn the_same_cause_is_reported_once_an_hour_and_another_one_at_once() {
        let mut log = FailureLog::default();
        let mut news = |minutes: u64, observed: &Observed| {
            let failures = failures(&spec(), observed, &Tracker::default());
            log.news(failures, at(minutes)).len()
        };
        assert_eq!(news(0, &run(0, 1, "", "")), 1);
        assert_eq!(news(1, &run(1, 1, "", "other words")), 0);
        assert_eq!(news(2, &run(2, 137, "OOMKilled", "")), 1);
        assert_eq!(news(3, &run(3, 1, "", "")), 0);
        assert_eq!(news(59, &run(30, 1, "", "")), 0);
        assert_eq!(news(60, &run(31, 1, "", "")), 1);
    }

    #[test]
    fn ids_in_messages_are_not_another_cause() {
        let mut log = FailureLog::default();
        let mut news = |message: &str| {
            let tracker = failed("main", "RunContainerError", message);
            let failures = failures(&spec(), &Observed::default(), &tracker);
            log.news(failures, at(0)).len()
        };
        assert_eq!(news("task 3f2a00de failed: exec: \"nope\" not found"), 1);
        assert_eq!(news("task 9900aa12 failed: exec: \"nope\" not found"), 0);
        assert_eq!(news("task 9900aa12 failed: exec: \"nope2\" not found"), 1);
    }

    #[test]
    fn reported_causes_are_bounded() {
        let mut log = FailureLog::default();
        let mut reported = 0;
        for number in 0..100 {
            let message = format!("cause-x{number}");
            let tracker = failed("main", "RunContainerError", &message);
            let failures = failures(&spec(), &Observed::default(), &tracker);
            reported += log.news(failures, at(0)).len();
        }
        assert_eq!(reported, CAUSES_MAX);
    }

    #[test]
    fn long_messages_are_cut() {
        let line = one_line(&"é".repeat(MESSAGE_CHARS_MAX + 1));
        assert_eq!(line.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert!(line.ends_with('…'));
    }
}
