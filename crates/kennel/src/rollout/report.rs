//! `kennel rollout report`: records a rollout, or reads what is left of one, and writes one file.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kennel_core::picture::CellState;
use kennel_inspect::record::{Recorder, Recording, past};
use kennel_inspect::report;

use super::OK;
use super::follow::{Follow, Present, Woken};
use super::options::{ReportArgs, ReportFormat};
use crate::inspect::print;

/// How long after the outcome pods that still start or stop are recorded: a revision is held as soon as no node has it.
const SETTLES: Duration = Duration::from_secs(15);

/// How long the end is recorded, so that a picture shows it.
const MARGIN: Duration = Duration::from_secs(1);

pub(super) async fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let mut follow = Follow::start(&args.target, args.r#for).await?;
    let over = follow.read(|present, _| present.has_outcome() && !args.next)?;
    let recording = if over {
        let causes = follow.causes.read().await.unwrap_or_else(|error| {
            tracing::warn!("the causes of failures cannot be read: {error}");
            BTreeMap::new()
        });
        follow.read(|p, _| past(p.view, p.set, &causes, p.now))?
    } else {
        record(&mut follow, args.next).await?
    };
    write(args, &recording)?;
    Ok(OK.into())
}

/// Records until the outcome, Ctrl-C or the time limit.
async fn record(follow: &mut Follow, waits: bool) -> anyhow::Result<Recording> {
    let mut course = Course {
        recorder: follow.read(|present, _| Recorder::start(present.set, present.now))?,
        begun: !waits,
        settles: None,
        calm: None,
    };
    let name = &follow.name;
    if waits {
        tracing::info!("waits for the next rollout of {name}");
    } else {
        tracing::info!("records the rollout of {name} until it has an outcome");
    }
    loop {
        let woken = follow.wait().await;
        let over = follow.read(|present, causes| {
            course.note(present);
            let failures = course.recorder.failures();
            causes.want(&failures.present());
            failures.note_causes(causes);
            course.is_over(present)
        })?;
        if over || woken == Woken::Ended {
            let recorder = course.recorder;
            return follow.read(|p, _| recorder.finish(p.view, p.set, p.now));
        }
    }
}

struct Course {
    recorder: Recorder,
    /// The rollout has begun.
    begun: bool,
    /// Since when there is an outcome.
    settles: Option<Instant>,
    /// Since when no node changes any more.
    calm: Option<Instant>,
}

impl Course {
    fn note(&mut self, present: &Present<'_>) {
        if !self.begun {
            // The recording begins once the new template counts.
            self.recorder = Recorder::start(present.set, present.now);
            self.begun = !present.has_outcome();
        }
        self.recorder.note(present.view, present.set, present.now);
    }

    fn is_over(&mut self, present: &Present<'_>) -> bool {
        if !self.begun || !present.has_outcome() {
            self.settles = None;
            return false;
        }
        let since = *self.settles.get_or_insert_with(Instant::now);
        if present.set.picture().counts().get(CellState::Updating) > 0 {
            self.calm = None;
            return since.elapsed() >= SETTLES;
        }
        let calm = *self.calm.get_or_insert_with(Instant::now);
        calm.elapsed() >= MARGIN
    }
}

fn write(args: &ReportArgs, recording: &Recording) -> anyhow::Result<()> {
    let text = match args.output {
        ReportFormat::Html => report::html(recording)?,
        ReportFormat::Svg => report::svg(recording),
        ReportFormat::Json => serde_json::to_string(recording)? + "\n",
    };
    match &args.file {
        None => print(&text),
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
    }
}
