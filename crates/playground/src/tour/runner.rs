//! Runs the steps of the tour: prints, runs commands, watches the cluster, and compares with the expectations. The
//! steps themselves are data (`steps`).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kennel_agent::cluster;
use kube::Client;

use super::command::Shell;
use super::expectation::Expectation;
use super::keyboard::{Answer, Keyboard};
use super::manifest::{FILE, Manifest, NAME, diff};
use super::observation::Observation;
use super::rollout_table::RolloutTable;
use super::steps::{Action, Run, Step, steps};
use super::terminal::{Style, Terminal, WIDTH};
use super::{Environment, Pace};

/// How long an expectation may take to be met, and the additional time per node.
const TIMEOUT: Duration = Duration::from_mins(1);
const TIMEOUT_PER_NODE: Duration = Duration::from_millis(200);

/// The interval between two observations is at least this long, and longer where reading takes long.
const POLL_INTERVAL: Duration = Duration::from_millis(60);
const INTERVAL_PER_READ: u32 = 3;

pub(super) struct Runner<'a> {
    environment: &'a Environment,
    terminal: Terminal,
    /// `None` without pauses.
    keyboard: Option<Keyboard>,
    shell: Shell,
    directory: PathBuf,
    /// The manifest as last written.
    manifest: Option<String>,
    last: Observation,
}

impl<'a> Runner<'a> {
    /// Creates the directory of the tour's files, beside the kubeconfig.
    pub(super) fn new(
        environment: &'a Environment,
        pace: Pace,
        terminal: Terminal,
    ) -> Result<Self> {
        let parent = environment.kubeconfig.parent();
        let parent = parent.context("the path of the kubeconfig has no directory")?;
        let directory = parent.join("tour");
        Ok(Self {
            shell: Shell::open(&environment.kubectl, &environment.kubeconfig, &directory)?,
            environment,
            terminal,
            keyboard: (pace == Pace::Step).then(Keyboard::listen),
            directory,
            manifest: None,
            last: Observation::default(),
        })
    }

    /// Runs all steps, until one fails or the user quits.
    pub(super) async fn run(mut self) -> Result<()> {
        let config = cluster::config(Some(&self.environment.kubeconfig)).await?;
        let client = Client::try_from(config).context("cannot make a client of the API")?;
        let root = rustix::process::geteuid().is_root();
        let steps = steps(self.environment, root);
        let total = steps.iter().filter(|step| !step.actions.is_empty()).count();
        self.print_introduction(total)?;
        let mut number = 0;
        for step in &steps {
            if step.actions.is_empty() {
                let text = format!("Left out: {}: {}", step.title, step.explanation);
                self.terminal.blank_line()?;
                self.terminal.line(Style::Dim, &text)?;
                continue;
            }
            number += 1;
            self.terminal.headline(number, total, step.title)?;
            self.terminal.prose(Style::Plain, &step.introduction)?;
            if self.user_quits().await? {
                return Ok(());
            }
            let result = self.run_step(&client, step).await;
            result.with_context(|| format!("step {number}, {}", step.title))?;
        }
        self.print_summary()
    }

    fn print_introduction(&self, steps: usize) -> Result<()> {
        let directory = self.directory.display();
        self.terminal.blank_line()?;
        let text = format!(
            "A tour of DaemonSets in {steps} steps. Every command is real and runs as shown, in\n\
             {directory}."
        );
        Ok(self.terminal.prose(Style::Plain, &text)?)
    }

    fn print_summary(&self) -> Result<()> {
        self.terminal.blank_line()?;
        self.terminal.line(Style::Bold, &"─".repeat(WIDTH))?;
        self.terminal.prose(
            Style::Plain,
            "That was the tour: placed, tolerated, labelled, rolled out, broken, undone, staged, adopted.\n\
             What to try next: delete a pod and see it come back; `kubectl cordon` a node;\n\
             `updateStrategy: {type: OnDelete}`; maxSurge: 1 with maxUnavailable: 0.",
        )?;
        Ok(())
    }

    async fn user_quits(&mut self) -> Result<bool> {
        let Some(keyboard) = &mut self.keyboard else {
            return Ok(false);
        };
        self.terminal.blank_line()?;
        self.terminal
            .prompt("[Enter] run it   [q] leave the tour")?;
        Ok(keyboard.answer().await == Answer::Quit)
    }

    async fn run_step(&mut self, client: &Client, step: &Step) -> Result<()> {
        // The user may have changed something since the last step.
        self.last = Observation::read(client, NAME).await?;
        for action in &step.actions {
            match action {
                Action::Edit(manifest) => self.edit(manifest).await?,
                Action::Run(run) => self.run_command(run).await?,
                Action::Watch(expectation) => self.watch(client, expectation).await?,
            }
        }
        self.terminal.blank_line()?;
        Ok(self.terminal.prose(Style::Green, &step.explanation)?)
    }

    /// Writes the manifest. Prints all of it the first time, and later a diff.
    async fn edit(&mut self, manifest: &Manifest) -> Result<()> {
        let text = manifest.yaml();
        self.shell.write(FILE, &text)?;
        match self.manifest.replace(text.clone()) {
            None => {
                let line = format!("cat {FILE}");
                self.terminal.command(&line)?;
                self.shell.run(self.terminal, &line, true).await?;
            }
            Some(old) => {
                self.terminal.blank_line()?;
                self.terminal
                    .line(Style::Bold, &format!("# {FILE} is edited:"))?;
                self.terminal.diff(&diff(&old, &text))?;
            }
        }
        Ok(())
    }

    /// Runs a command, and checks its exit code and output.
    async fn run_command(&mut self, run: &Run) -> Result<()> {
        let failing = self.last.failing().map_or("", |pod| pod.name.as_str());
        let line = run.line.replace("{failing}", failing);
        self.terminal.command(&line)?;
        // The output of `kennel why` is short.
        let whole = line.starts_with("kennel ");
        let finished = self.shell.run(self.terminal, &line, whole).await?;
        if finished.code != Some(run.code) {
            let tail = finished.tail();
            match finished.code {
                Some(code) => bail!("`{line}` ended with code {code}: {tail}"),
                None => bail!("`{line}` was killed: {tail}"),
            }
        }
        for text in &run.output_contains {
            let tail = finished.tail();
            ensure!(
                finished.output.contains(text),
                "the output of `{line}` does not contain {text:?}: {tail}"
            );
        }
        Ok(())
    }

    /// Prints how the cluster changes until the expectation is met.
    async fn watch(&mut self, client: &Client, expectation: &Expectation) -> Result<()> {
        let nodes = &self.environment.nodes;
        let timeout = TIMEOUT + TIMEOUT_PER_NODE * u32::try_from(nodes.len())?;
        let started_at = Instant::now();
        let before = std::mem::take(&mut self.last);
        let mut table = RolloutTable::new(self.terminal, nodes);
        loop {
            let read_at = Instant::now();
            self.last = Observation::read(client, NAME).await?;
            let met = expectation.is_met(&before, &self.last);
            table.update(&self.last, met)?;
            if met {
                return Ok(());
            }
            if started_at.elapsed() >= timeout {
                // Explains the failure.
                let line = format!("kennel why ds/{NAME}");
                self.terminal.command(&line)?;
                self.shell.run(self.terminal, &line, true).await?;
                let seconds = timeout.as_secs();
                bail!("expected {expectation}, which did not happen within {seconds} seconds");
            }
            tokio::time::sleep(POLL_INTERVAL.max(read_at.elapsed() * INTERVAL_PER_READ)).await;
        }
    }
}
