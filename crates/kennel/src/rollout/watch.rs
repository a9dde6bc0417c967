//! `kennel rollout watch`: the nodes as cells on a terminal, or lines where there is none.

use std::fmt::Write as _;
use std::process::ExitCode;

use kennel_core::picture::{CellState, Counts};
use kennel_core::rollout::status::Status;
use kennel_core::rollout::{Outcome, ReportedPhase};
use kennel_inspect::record::{Causes, Failures};
use kennel_inspect::screen::{FAILURES_MAX, Frame, Pace, Size, printable};
use kennel_inspect::{screen, snapshot};
use kennel_types::Timestamp;

use super::follow::{Follow, Present, Woken};
use super::options::WatchArgs;
use super::status::code;
use super::terminal::Terminal;
use crate::inspect::print;

/// A line without a new stage or phase comes at most this often.
const LINE_EVERY_SECONDS: u64 = 10;

pub(super) async fn run(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    let mut follow = Follow::start(&args.target, args.timeout).await?;
    let mut watch = Watch::new(args.follow)?;
    let mut woken = Woken::Changed;
    let status = loop {
        let ended = follow.read(|present, causes| {
            watch.begin(present, causes);
            watch.failures.note(present.view, present.set, present.now);
            causes.want(&watch.failures.present());
            watch.failures.note_causes(causes);
            watch.show(present, woken == Woken::Resized)
        })??;
        if let Some(status) = ended {
            break status;
        }
        woken = follow.wait().await;
        if woken == Woken::Ended {
            break follow.read(|present, _| present.status.clone())?;
        }
    };
    watch.finish(&status)?;
    Ok(code(status.outcome).into())
}

struct Watch {
    /// Go on after the end.
    follows: bool,
    terminal: Option<Terminal>,
    colours: bool,
    pace: Pace,
    target: Option<String>,
    failures: Failures,
    lines: Lines,
}

impl Watch {
    fn new(follows: bool) -> anyhow::Result<Self> {
        Ok(Self {
            follows,
            terminal: Terminal::enter()?,
            colours: std::env::var_os("NO_COLOR").is_none(),
            pace: Pace::default(),
            target: None,
            failures: Failures::new(snapshot::now()),
            lines: Lines::default(),
        })
    }

    /// The failures are those of one target.
    fn begin(&mut self, present: &Present<'_>, causes: &mut Causes) {
        if self.target != present.status.target {
            self.target.clone_from(&present.status.target);
            self.failures = Failures::new(present.now);
            self.lines.failures = 0;
            causes.forget();
        }
    }

    /// Shows the present state. Returns the status if that ends the watch.
    fn show(&mut self, present: &Present<'_>, resized: bool) -> anyhow::Result<Option<Status>> {
        let picture = present.set.picture();
        let excluded = CellState::NotEligible.letter();
        let letters = present.order.iter();
        let letters = letters.filter_map(|index| picture.letters().get(*index).copied());
        let mut letters: Vec<u8> = letters.collect();
        let all = letters.len();
        letters.retain(|letter| *letter != excluded);
        let counts = Counts::of_letters(&letters);
        let updates = screen::updates(present.status);
        self.pace
            .note(present.now, counts.get(CellState::New), updates);
        let connection = present.view.connection();
        let failures: Vec<(String, String)> = self
            .failures
            .all()
            .iter()
            .take(FAILURES_MAX)
            .map(|one| (one.node.clone(), one.message.clone()))
            .collect();
        let frame = Frame {
            status: present.status,
            letters: &letters,
            excluded: all - letters.len(),
            pace: &self.pace,
            failures: &failures,
            disconnected: connection.why.as_deref(),
            now: present.now,
        };
        match &mut self.terminal {
            Some(terminal) => {
                let Size { columns, rows } = Terminal::size();
                let lines = frame.lines(Size { columns, rows }, self.colours);
                terminal.draw(lines, resized)?;
            }
            None => self.lines.show(&frame, counts, self.failures.all())?,
        }
        let waits = present.status.outcome == Outcome::Waiting;
        let ends = present.has_outcome() && !waits && !self.follows;
        Ok(ends.then(|| present.status.clone()))
    }

    fn finish(self, status: &Status) -> anyhow::Result<()> {
        match self.terminal {
            Some(terminal) => terminal.finish(),
            None => print(&format!("\n{}", status.text())),
        }
    }
}

/// What a log gets instead of a screen.
#[derive(Default)]
struct Lines {
    /// Phase and stage.
    phase: Option<(ReportedPhase, Option<usize>)>,
    last: String,
    at: Timestamp,
    failures: usize,
    disconnected: bool,
}

impl Lines {
    fn show(
        &mut self,
        frame: &Frame<'_>,
        counts: Counts,
        failures: &[kennel_inspect::record::Failure],
    ) -> anyhow::Result<()> {
        let status = frame.status;
        let mut text = String::new();
        let clock = frame.now.to_string();
        for failure in failures.iter().skip(self.failures) {
            let why = printable(&failure.message);
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "{clock} {} failed: {why}", failure.node);
        }
        self.failures = failures.len();
        let numbers = CellState::ALL
            .into_iter()
            .filter(|state| counts.get(*state) > 0);
        let numbers = numbers.map(|state| format!("{} {}", counts.get(state), state.name()));
        let numbers: Vec<String> = numbers.collect();
        let line = format!("{} ({})", printable(&status.message), numbers.join(", "));
        let phase = Some((status.phase, status.stage));
        let since = frame.now.saturating_since(self.at).as_secs();
        if phase != self.phase || (line != self.last && since >= LINE_EVERY_SECONDS) {
            let _ = writeln!(text, "{clock} {line}");
            (self.phase, self.last, self.at) = (phase, line, frame.now);
        }
        if let Some(why) = frame.disconnected.filter(|_| !self.disconnected) {
            let _ = writeln!(text, "{clock} reconnecting: {}", printable(why));
        }
        self.disconnected = frame.disconnected.is_some();
        print(&text)
    }
}
