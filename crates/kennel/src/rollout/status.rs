//! `kennel rollout status`: once, or until the rollout has an outcome.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kennel_core::rollout::Outcome;
use kennel_core::rollout::state::Phase;
use kennel_core::rollout::status::Status;
use kennel_core::why::{Cause, NodeAnswer, explain};
use kube::Client;
use serde_json::Value;

use super::options::StatusArgs;
use super::{OK, Views};
use crate::inspect::options::Output;
use crate::inspect::{connect, lists, print, snapshot};

const FAILED: u8 = 1;
const IN_PROGRESS: u8 = 3;
const WAITING: u8 = 4;

/// How often a watch asks whether the DaemonSet or its revisions have changed.
const POLL: Duration = Duration::from_secs(1);
/// How often it reads everything even if they have not: nodes go down without a trace in them.
const READ_ALL: Duration = Duration::from_secs(10);
/// How long the API may fail before a watch gives up.
const UNREADABLE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
#[error("the API did not answer within --timeout")]
struct NoAnswer;

pub(super) async fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let (client, namespace) = connect(&args.target.cluster).await?;
    let name = args.target.daemon_set.0.as_str();
    if args.watch || args.timeout.is_some() {
        return Watch::new(args, &client, &namespace, name).run().await;
    }
    let status = read(&client, &namespace, name).await?;
    print(&args.output.render(&status, || status.text())?)?;
    Ok(code(status.outcome).into())
}

fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Complete => OK,
        Outcome::Failed => FAILED,
        Outcome::Progressing => IN_PROGRESS,
        Outcome::Waiting => WAITING,
    }
}

async fn read(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Status> {
    let set = snapshot::daemon_set(client, namespace, name).await?;
    let nodes = snapshot::Nodes::read(client).await?;
    let snapshot = snapshot::read(client, set, nodes, None).await?;
    for note in &snapshot.unreadable {
        tracing::warn!("{note}");
    }
    let answer = explain(&snapshot);
    let problem = |node: &&NodeAnswer| !node.ok() || node.cause == Cause::NewPodNotAvailable;
    let views = Views::of(snapshot);
    Ok(Status::of(&views.outline(), |name| {
        let mut nodes = answer.nodes.iter().filter(problem);
        let found = nodes.find(|node| node.node == name);
        found.map(|node| node.message.clone())
    }))
}

/// Shows a rollout until it has an outcome.
struct Watch<'a> {
    args: &'a StatusArgs,
    client: &'a Client,
    namespace: &'a str,
    name: &'a str,
    deadline: Option<Instant>,
    on_terminal: bool,
    /// What is on the screen.
    shown: String,
    last: Option<Status>,
}

impl<'a> Watch<'a> {
    fn new(args: &'a StatusArgs, client: &'a Client, namespace: &'a str, name: &'a str) -> Self {
        Self {
            args,
            client,
            namespace,
            name,
            deadline: args
                .timeout
                .and_then(|timeout| Instant::now().checked_add(timeout)),
            on_terminal: std::io::stdout().is_terminal(),
            shown: String::new(),
            last: None,
        }
    }

    async fn run(mut self) -> anyhow::Result<ExitCode> {
        let mut seen: Option<(String, Instant)> = None;
        let mut failing_since = None;
        loop {
            match self.step_in_time(&mut seen).await {
                Ok(Some(code)) => return Ok(code),
                Ok(None) => failing_since = None,
                Err(error) => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    let is_gone = error.is::<snapshot::NotFound>();
                    let never = self.last.is_none();
                    if is_gone || never || since.elapsed() > UNREADABLE_MAX {
                        return Err(error);
                    }
                    tracing::warn!("{error:#}");
                    seen = None;
                }
            }
            if let Some(code) = self.timed_out()? {
                return Ok(code);
            }
            let left = self
                .deadline
                .map(|end| end.saturating_duration_since(Instant::now()));
            tokio::time::sleep(left.map_or(POLL, |left| left.min(POLL))).await;
        }
    }

    /// As [`step`](Self::step), but not beyond the deadline.
    async fn step_in_time(
        &mut self,
        seen: &mut Option<(String, Instant)>,
    ) -> anyhow::Result<Option<ExitCode>> {
        let Some(deadline) = self.deadline else {
            return self.step(seen).await;
        };
        let step = tokio::time::timeout_at(deadline.into(), self.step(seen)).await;
        step.unwrap_or_else(|_| match self.last {
            Some(_) => Ok(None),
            None => Err(NoAnswer.into()),
        })
    }

    /// Reads and shows the rollout if it may have changed. Returns the exit code once there is an outcome.
    async fn step(
        &mut self,
        seen: &mut Option<(String, Instant)>,
    ) -> anyhow::Result<Option<ExitCode>> {
        let version = self.version().await?;
        let fresh = seen
            .as_ref()
            .is_some_and(|(last, at)| *last == version && at.elapsed() < READ_ALL);
        if fresh {
            return Ok(None);
        }
        let status = read(self.client, self.namespace, self.name).await?;
        *seen = Some((version, Instant::now()));
        self.show(&status)?;
        let goes_back = status.phase == Phase::RollingBack.to_string();
        let outcome = status.outcome;
        let ends = outcome != Outcome::Progressing && !goes_back;
        if ends {
            self.finish(&status)?;
        }
        self.last = Some(status);
        Ok(ends.then(|| code(outcome).into()))
    }

    /// The resource versions of the DaemonSet and its revisions.
    async fn version(&self) -> anyhow::Result<String> {
        let (namespace, name) = (self.namespace, self.name);
        let set = snapshot::daemon_set(self.client, namespace, name).await?;
        let selector = set.selector.to_string();
        let path = snapshot::revisions(namespace);
        let revisions = lists::list(self.client, &path, Some(&selector), None).await;
        let version = |object: &Value| object["metadata"]["resourceVersion"].to_string();
        // Without the right to list them, the DaemonSet's conditions change as well.
        let revisions: String = revisions.unwrap_or_default().iter().map(version).collect();
        Ok(format!("{} {revisions}", set.version))
    }

    /// On a terminal the screen is redrawn; in a log there is a line for each change.
    fn show(&mut self, status: &Status) -> anyhow::Result<()> {
        let text = match (self.args.output, self.on_terminal) {
            (Output::Json, _) => serde_json::to_string(status)? + "\n",
            (Output::Yaml, _) => format!("---\n{}", serde_saphyr::to_string(status)?),
            (Output::Text, true) => status.text(),
            (Output::Text, false) => status.message.clone() + "\n",
        };
        if text == self.shown {
            return Ok(());
        }
        let redraws = self.on_terminal && self.args.output == Output::Text;
        let lines = self.shown.lines().count();
        if redraws && lines > 0 {
            print(&format!("\x1b[{lines}A\x1b[J{text}"))?;
        } else {
            print(&text)?;
        }
        self.shown = text;
        Ok(())
    }

    /// In a log, the whole screen comes at the end.
    fn finish(&self, status: &Status) -> anyhow::Result<()> {
        if self.args.output == Output::Text && !self.on_terminal {
            print(&format!("\n{}", status.text()))?;
        }
        Ok(())
    }

    fn timed_out(&self) -> anyhow::Result<Option<ExitCode>> {
        let over = self.deadline.is_some_and(|end| Instant::now() >= end);
        let Some(status) = self.last.as_ref().filter(|_| over) else {
            return Ok(None);
        };
        self.finish(status)?;
        // A rollout that goes back has failed, however long that takes.
        Ok(Some(code(status.outcome).into()))
    }
}
