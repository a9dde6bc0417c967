//! A rollout on a terminal: plain ANSI text, drawn again for each size. Pure.
//!
//! ```text
//!   Frame (status, cells, rate, failures) ─▶ waffle, lines ─▶ the text of one screen
//! ```

mod pace;
#[cfg(test)]
mod tests;
mod waffle;

use std::time::Duration;

use kennel_core::picture::{CellState, Counts};
use kennel_core::rollout::Outcome;
use kennel_core::rollout::plan::StageState;
use kennel_core::rollout::state::Phase;
use kennel_core::rollout::status::Status;
use kennel_core::why::human_duration;
use kennel_types::Timestamp;

pub use pace::Pace;
use waffle::{Paint, cells};

/// Failures that are named.
pub const FAILURES_MAX: usize = 5;
/// Stages that are shown, around the present one.
const STAGES_MAX: usize = 6;
/// Lines that the cells get at least.
const CELL_ROWS_MIN: usize = 3;

/// What one screen shows.
pub struct Frame<'a> {
    pub status: &'a Status,
    /// The letters of the nodes, in the order in which they are shown.
    pub letters: &'a [u8],
    /// Nodes that are not eligible and not shown.
    pub excluded: usize,
    pub pace: &'a Pace,
    /// The first nodes that fail, and why.
    pub failures: &'a [(String, String)],
    /// Why watches do not run.
    pub disconnected: Option<&'a str>,
    pub now: Timestamp,
}

/// Columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// Whether a rollout updates nodes: it does not bake, wait or go back.
pub fn updates(status: &Status) -> bool {
    status.outcome == Outcome::Progressing && status.phase == Phase::Updating.into()
}

impl Frame<'_> {
    /// The lines of the screen, none wider than it, and at most as many as it has rows.
    pub fn lines(&self, size: Size, colours: bool) -> Vec<String> {
        let paint = Paint(colours);
        let mut head = vec![paint.bold(&cut(&self.title(), size.columns))];
        head.extend(self.facts(size.columns));
        head.push(String::new());
        let mut tail = vec![String::new()];
        tail.extend(self.legend(paint, size.columns));
        let mut rest = self.stages(size.columns);
        rest.extend(self.failures(paint, size.columns));
        rest.extend(self.next(size.columns));
        if size.rows < head.len() + tail.len() + CELL_ROWS_MIN {
            tail.clear();
        }
        let fixed = head.len() + tail.len() + usize::from(self.disconnected.is_some());
        let room = size.rows.saturating_sub(fixed);
        rest.truncate(room.saturating_sub(CELL_ROWS_MIN));
        let rows = room.saturating_sub(rest.len());
        let mut lines = head;
        let (drawn, per_block) = cells(self.letters, size.columns, rows, paint);
        lines.extend(drawn);
        if per_block > 1 && !tail.is_empty() {
            let group = format!("one block is {per_block} nodes, as the worst of them is");
            tail[0] = paint.dim(&cut(&group, size.columns));
        }
        lines.extend(tail);
        lines.extend(rest);
        if let Some(why) = self.disconnected {
            let text = format!("reconnecting: {}", printable(why));
            lines.push(paint.failed(&cut(&text, size.columns)));
        }
        lines.truncate(size.rows);
        lines
    }

    fn title(&self) -> String {
        let Status {
            namespace, name, ..
        } = self.status;
        let message = printable(&self.status.message);
        format!("DaemonSet {namespace}/{name}: {message}")
    }

    /// In as many lines as they need.
    fn facts(&self, columns: usize) -> Vec<String> {
        let status = self.status;
        let mut parts = Vec::new();
        match (&status.stable, &status.target) {
            (Some(stable), Some(target)) if stable != target => {
                parts.push(format!("{stable} -> {target}"));
            }
            (_, Some(target)) => parts.push(target.clone()),
            _ => {}
        }
        if let Some(since) = status.since {
            let ago = human_duration(self.now.saturating_since(since));
            parts.push(format!("{} for {ago}", status.phase));
        }
        let rate = self.pace.per_minute().filter(|_| updates(status));
        if let Some(rate) = rate {
            parts.push(format!("{rate:.1} nodes/min"));
        }
        parts.extend(self.end());
        let mut lines: Vec<String> = Vec::new();
        for part in parts {
            match lines.last_mut() {
                Some(line) if line.len() + 3 + part.len() <= columns => {
                    line.push_str(" | ");
                    line.push_str(&part);
                }
                _ => lines.push(cut(&part, columns)),
            }
        }
        lines
    }

    /// When the rollout ends. Nothing while a stage ahead waits for a person.
    fn end(&self) -> Option<String> {
        let ahead = self
            .status
            .stages
            .iter()
            .filter(|s| matches!(s.state, StageState::Ahead | StageState::Present));
        if ahead.clone().any(|stage| stage.manual) {
            return None;
        }
        let end = self.status.earliest_end;
        let bakes = end.map_or(Duration::ZERO, |end| end.saturating_since(self.now));
        let nodes = self.pace.time_for(self.remaining());
        let (left, about, at_least) = match nodes {
            Some(nodes) => (nodes + bakes, "about ", ""),
            // No rate is known, but bakes are.
            None if bakes > Duration::ZERO => (bakes, "", " at the earliest"),
            None => return None,
        };
        let clock = (self.now + left).to_string();
        // 2026-01-01T10:20:30Z
        let clock = clock.get(11..16).unwrap_or_default();
        let left = human_duration(left);
        Some(format!("ends in {about}{left}{at_least} ({clock} UTC)"))
    }

    /// Nodes that do not have the target yet.
    fn remaining(&self) -> usize {
        let counts = Counts::of_letters(self.letters);
        let states = [CellState::Updating, CellState::Waiting, CellState::Old];
        states.into_iter().map(|state| counts.get(state)).sum()
    }

    fn legend(&self, paint: Paint, columns: usize) -> Vec<String> {
        let counts = Counts::of_letters(self.letters);
        let mut lines = vec![String::new()];
        let mut width = 0;
        for state in CellState::ALL {
            let count = match state {
                CellState::NotEligible => counts.get(state) + self.excluded,
                _ => counts.get(state),
            };
            let text = cut(
                &format!(" {} {count}", state.name()),
                columns.saturating_sub(1),
            );
            let needed = 1 + text.len() + 3;
            if width > 0 && width + needed > columns {
                lines.push(String::new());
                width = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(&paint.cell(state));
                line.push_str(&text);
                line.push_str("   ");
            }
            width += needed;
        }
        lines
    }

    fn stages(&self, columns: usize) -> Vec<String> {
        let stages = &self.status.stages;
        if stages.is_empty() {
            return Vec::new();
        }
        let present = stages.iter().position(|s| s.state == StageState::Present);
        let first = present.unwrap_or(0).saturating_sub(STAGES_MAX / 2);
        let first = first.min(stages.len().saturating_sub(STAGES_MAX));
        let width = stages.iter().map(|s| s.policy.len()).max().unwrap_or(0);
        let mut lines = vec![String::new()];
        for stage in stages.iter().skip(first).take(STAGES_MAX) {
            let (mark, state) = match stage.state {
                StageState::Present => ('>', self.status.phase.to_string()),
                StageState::Done => (' ', "done".to_owned()),
                StageState::PassedOver => (' ', "adds no node".to_owned()),
                StageState::Ahead if stage.manual => {
                    (' ', "ahead, then waits for a person".to_owned())
                }
                StageState::Ahead => (' ', "ahead".to_owned()),
            };
            let (number, policy, reaches) = (stage.stage, &stage.policy, stage.reaches);
            let line = format!(
                "{mark} stage {number:<2} {policy:<width$}  to {reaches:>5} nodes  {state}"
            );
            lines.push(cut(&line, columns));
        }
        lines
    }

    fn failures(&self, paint: Paint, columns: usize) -> Vec<String> {
        if self.failures.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![String::new(), paint.failed(&cut("First failures", columns))];
        let shown = self.failures.iter().take(FAILURES_MAX);
        lines.extend(shown.map(|(node, why)| {
            let line = format!("  {node}: {}", printable(why));
            cut(&line, columns)
        }));
        lines
    }

    fn next(&self, columns: usize) -> Vec<String> {
        let next = &self.status.next;
        if next.is_empty() {
            return Vec::new();
        }
        let width = next.iter().map(|n| n.command.len()).max().unwrap_or(0);
        let mut lines = vec![String::new()];
        lines.extend(next.iter().map(|next| {
            let line = format!("  {:<width$}  # {}", next.command, next.effect);
            cut(&line, columns)
        }));
        lines
    }
}

/// The first so many characters of a line.
fn cut(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let mut text: String = line.chars().take(columns.saturating_sub(1)).collect();
    // Not an ellipsis: some terminals show that in two columns.
    text.push('>');
    text
}

/// Without what would move the cursor or change colours: messages come from the cluster.
pub fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).collect()
}
