//! `kennel rollout status`: once, or until the rollout has an outcome.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use kennel_client::feed;
use kennel_core::rollout::Outcome;
use kennel_core::rollout::state::Phase;
use kennel_core::rollout::status::Status;
use kennel_core::why::explain;
use kennel_inspect::{Error, causes, snapshot};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;

use super::OK;
use super::options::StatusArgs;
use crate::inspect::options::Output;
use crate::inspect::{connect, print};

const FAILED: u8 = 1;
const IN_PROGRESS: u8 = 3;
const WAITING: u8 = 4;

/// How long after a read the next one begins at the earliest, however much changes: it lists all nodes and pods.
const READ_AFTER: Duration = Duration::from_secs(1);
/// How long after a read the next one begins although no change has shown: nodes go down without a trace in the DaemonSet
/// and its revisions.
const READ_ANYWAY: Duration = Duration::from_secs(10);
/// How long the API may fail before `--watch` gives up.
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
    let (status, _) = read(&client, &namespace, name).await?;
    print(&args.output.render(&status, || status.text())?)?;
    Ok(code(status.outcome).into())
}

pub(super) fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Complete => OK,
        Outcome::Failed => FAILED,
        Outcome::Progressing => IN_PROGRESS,
        Outcome::Waiting => WAITING,
    }
}

/// The status, and the selector of the DaemonSet's revisions.
async fn read(client: &Client, namespace: &str, name: &str) -> anyhow::Result<(Status, String)> {
    let set = snapshot::daemon_set(client, namespace, name).await?;
    let selector = set.selector.to_string();
    let nodes = snapshot::Nodes::read(client).await?;
    let snapshot = snapshot::read(client, set, nodes, None).await?;
    for note in &snapshot.unreadable {
        tracing::warn!("{note}");
    }
    let answer = explain(&snapshot);
    let causes = causes::of(&answer);
    let status = Status::of(&snapshot::outline(&snapshot), |name| {
        causes.get(name).cloned()
    });
    Ok((status, selector))
}

/// Yields whenever the DaemonSet or one of its revisions has changed.
fn changes(client: &Client, namespace: &str, name: &str, selector: &str) -> BoxStream<'static, ()> {
    const WITHOUT: &str = "changes show within ten seconds";
    let watch = |resource: &ApiResource, config: Config, what: &'static str| {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
        feed::watch_optional(api, config, what, WITHOUT).map(|_| ())
    };
    let set = Config::default().fields(&format!("metadata.name={name}"));
    let set = watch(&ApiResource::erase::<DaemonSet>(&()), set, "the DaemonSet");
    let revisions = ApiResource::erase::<ControllerRevision>(&());
    let config = Config::default().labels(selector);
    let revisions = watch(&revisions, config, "controllerrevisions");
    stream::select(set, revisions).boxed()
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
    /// Open since the first read.
    changes: Option<BoxStream<'static, ()>>,
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
            changes: None,
        }
    }

    async fn run(mut self) -> anyhow::Result<ExitCode> {
        let mut failing_since = None;
        loop {
            let read_at = Instant::now();
            match self.step_in_time().await {
                Ok(Some(code)) => return Ok(code),
                Ok(None) => failing_since = None,
                Err(error) => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    let is_gone = error.downcast_ref().is_some_and(Error::is_not_found);
                    let never = self.last.is_none();
                    if is_gone || never || since.elapsed() > UNREADABLE_MAX {
                        return Err(error);
                    }
                    tracing::warn!("{error:#}");
                }
            }
            if let Some(code) = self.timed_out()? {
                return Ok(code);
            }
            let fails = failing_since.is_some();
            let at_latest = if fails { READ_AFTER } else { READ_ANYWAY };
            self.wait(read_at + READ_AFTER, read_at + at_latest).await;
        }
    }

    /// Waits for a change, between the two times and not beyond the deadline.
    async fn wait(&mut self, at_soonest: Instant, at_latest: Instant) {
        let bounded = |time: Instant| self.deadline.map_or(time, |end| end.min(time));
        let (at_soonest, at_latest) = (bounded(at_soonest).into(), bounded(at_latest).into());
        if let Some(changes) = &mut self.changes {
            // Without a change, everything is read anyway.
            let _none_in_time = tokio::time::timeout_at(at_latest, changes.next()).await;
            tokio::time::sleep_until(at_soonest).await;
            // One read shows all that have come meanwhile.
            while changes.next().now_or_never().flatten().is_some() {}
        } else {
            tokio::time::sleep_until(at_latest).await;
        }
    }

    /// As [`step`](Self::step), but not beyond the deadline.
    async fn step_in_time(&mut self) -> anyhow::Result<Option<ExitCode>> {
        let Some(deadline) = self.deadline else {
            return self.step().await;
        };
        let step = tokio::time::timeout_at(deadline.into(), self.step()).await;
        step.unwrap_or_else(|_| match self.last {
            Some(_) => Ok(None),
            None => Err(NoAnswer.into()),
        })
    }

    /// Reads and shows the rollout. Returns the exit code once there is an outcome.
    async fn step(&mut self) -> anyhow::Result<Option<ExitCode>> {
        let (client, namespace, name) = (self.client, self.namespace, self.name);
        let (status, selector) = read(client, namespace, name).await?;
        self.changes
            .get_or_insert_with(|| changes(client, namespace, name, &selector));
        self.show(&status)?;
        let goes_back = status.phase == Phase::RollingBack.into();
        let outcome = status.outcome;
        let ends = outcome != Outcome::Progressing && !goes_back;
        if ends {
            self.finish(&status)?;
        }
        self.last = Some(status);
        Ok(ends.then(|| code(outcome).into()))
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
