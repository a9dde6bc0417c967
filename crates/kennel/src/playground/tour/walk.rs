//! The walk through the steps: shows, runs, watches, and compares with what was promised. What is said and
//! done is not decided here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::Client;

use super::super::stage::Stage;
use super::Pace;
use super::command::Shell;
use super::keys::{Answer, Keys};
use super::manifest::{FILE, Manifest, NAME, difference};
use super::promise::Promise;
use super::screen::{Screen, Style};
use super::seen::Seen;
use super::steps::{Act, Run, Step, steps};
use super::table::Table;
use crate::cluster;

/// How long a promise may take, and what each node adds to that.
const PATIENCE: Duration = Duration::from_mins(1);
const PATIENCE_PER_NODE: Duration = Duration::from_millis(200);

/// How often the cluster is looked at. A look at a large one takes long itself, and gets longer pauses.
const LOOK_EVERY: Duration = Duration::from_millis(60);
const PAUSE_PER_LOOK: u32 = 3;

/// Where the walk goes: the stage, and how to go on.
pub(super) struct Way<'a> {
    stage: &'a Stage,
    pace: Pace,
    shell: Shell,
    directory: PathBuf,
}

impl<'a> Way<'a> {
    /// Makes the directory of the tour's files, beside the kubeconfig.
    pub(super) fn new(stage: &'a Stage, pace: Pace) -> Result<Self> {
        let parent = stage.kubeconfig.parent();
        let parent = parent.context("the kubeconfig is in no directory")?;
        let directory = parent.join("tour");
        let shell = Shell::open(&stage.kubectl, &stage.kubeconfig, &directory)?;
        Ok(Self {
            stage,
            pace,
            shell,
            directory,
        })
    }
}

/// A walk under way.
pub(super) struct Walk<'a> {
    way: &'a Way<'a>,
    screen: Screen,
    keys: Option<Keys>,
    /// The file as it was last written.
    file: Option<String>,
    /// What was seen last.
    seen: Seen,
}

impl<'a> Walk<'a> {
    /// At the start.
    pub(super) fn new(way: &'a Way<'a>, screen: Screen) -> Self {
        Self {
            way,
            screen,
            keys: (way.pace == Pace::Step).then(Keys::listen),
            file: None,
            seen: Seen::default(),
        }
    }

    /// All steps, until one fails or the tour is left.
    pub(super) async fn all(mut self) -> Result<()> {
        let config = cluster::config(Some(&self.way.stage.kubeconfig)).await?;
        let client = Client::try_from(config).context("cannot make a client of the API")?;
        let root = rustix::process::geteuid().is_root();
        let steps = steps(self.way.stage, root);
        let of = steps.iter().filter(|step| !step.acts.is_empty()).count();
        self.welcome(of)?;
        let mut number = 0;
        for step in &steps {
            if step.acts.is_empty() {
                let text = format!("Left out: {}: {}", step.title, step.told);
                self.screen.gap()?;
                self.screen.line(Style::Dim, &text)?;
                continue;
            }
            number += 1;
            self.screen.headline(number, of, step.title)?;
            self.screen.prose(Style::Plain, &step.lead)?;
            if self.asked_to_leave().await? {
                return Ok(());
            }
            let taken = self.step(&client, step).await;
            taken.with_context(|| format!("step {number}, {}", step.title))?;
        }
        self.farewell()
    }

    fn welcome(&self, of: usize) -> Result<()> {
        let directory = self.way.directory.display();
        self.screen.gap()?;
        let words = format!(
            "A tour of DaemonSets in {of} steps. Every command is real, and runs as you see it, in\n\
             {directory}."
        );
        Ok(self.screen.prose(Style::Plain, &words)?)
    }

    fn farewell(&self) -> Result<()> {
        self.screen.gap()?;
        self.screen.line(Style::Bold, &"─".repeat(78))?;
        self.screen.prose(
            Style::Plain,
            "That was the tour: placed, tolerated, labelled, rolled out, broken, undone, adopted.\n\
             What to try next: delete a pod and see it come back; `kubectl cordon` a node;\n\
             `updateStrategy: {type: OnDelete}`; maxSurge: 1 with maxUnavailable: 0.",
        )?;
        Ok(())
    }

    async fn asked_to_leave(&mut self) -> Result<bool> {
        let Some(keys) = &mut self.keys else {
            return Ok(false);
        };
        self.screen.gap()?;
        self.screen.ask("[Enter] run it   [q] leave the tour")?;
        Ok(keys.answer().await == Answer::Leave)
    }

    async fn step(&mut self, client: &Client, step: &Step) -> Result<()> {
        // Somebody may have played with it since the last one.
        self.seen = Seen::look(client, NAME).await?;
        for act in &step.acts {
            match act {
                Act::Edit(manifest) => self.edit(manifest).await?,
                Act::Run(run) => self.run(run).await?,
                Act::Watch(promise) => self.watch(client, promise).await?,
            }
        }
        self.screen.gap()?;
        Ok(self.screen.prose(Style::Green, &step.told)?)
    }

    /// Writes the file, and shows it: whole at first, later what has changed in it.
    async fn edit(&mut self, manifest: &Manifest) -> Result<()> {
        let text = manifest.text();
        self.way.shell.write(FILE, &text)?;
        match self.file.replace(text.clone()) {
            None => {
                let line = format!("cat {FILE}");
                self.screen.command(&line)?;
                self.way.shell.run(self.screen, &line, true).await?;
            }
            Some(old) => {
                self.screen.gap()?;
                self.screen
                    .line(Style::Bold, &format!("# {FILE} is edited:"))?;
                self.screen.difference(&difference(&old, &text))?;
            }
        }
        Ok(())
    }

    /// Runs a command, and compares.
    async fn run(&mut self, run: &Run) -> Result<()> {
        let failing = self.seen.failing().map_or("", |pod| pod.name.as_str());
        let line = run.line.replace("{failing}", failing);
        self.screen.command(&line)?;
        // Our own answers are short enough.
        let whole = line.starts_with("kennel ");
        let ended = self.way.shell.run(self.screen, &line, whole).await?;
        if ended.code != Some(run.code) {
            let said = ended.last_words();
            match ended.code {
                Some(code) => bail!("`{line}` ended with code {code}: {said}"),
                None => bail!("`{line}` was killed: {said}"),
            }
        }
        for words in &run.shows {
            let said = ended.last_words();
            ensure!(
                ended.said.contains(words),
                "`{line}` was to say {words:?}, and said: {said}"
            );
        }
        Ok(())
    }

    /// Shows how the cluster changes until it is as promised.
    async fn watch(&mut self, client: &Client, promise: &Promise) -> Result<()> {
        let nodes = &self.way.stage.nodes;
        let patience = PATIENCE + PATIENCE_PER_NODE * u32::try_from(nodes.len())?;
        let begun = Instant::now();
        let before = std::mem::take(&mut self.seen);
        let mut table = Table::new(self.screen, nodes);
        loop {
            let looked = Instant::now();
            self.seen = Seen::look(client, NAME).await?;
            let kept = promise.kept(&before, &self.seen);
            table.show(&self.seen, kept)?;
            if kept {
                return Ok(());
            }
            if begun.elapsed() >= patience {
                // Whoever sees this wants to know why.
                let line = format!("kennel why ds/{NAME}");
                self.screen.command(&line)?;
                self.way.shell.run(self.screen, &line, true).await?;
                let seconds = patience.as_secs();
                bail!("it was to show {promise}, and did not within {seconds} seconds");
            }
            tokio::time::sleep(LOOK_EVERY.max(looked.elapsed() * PAUSE_PER_LOOK)).await;
        }
    }
}
