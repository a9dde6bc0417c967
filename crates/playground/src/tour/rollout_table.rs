//! Prints a rollout as a growing table: a column per node, a line per change. With many nodes, the columns are counts
//! per state. It moves no cursor, so it looks the same in a file.

use std::io;
use std::time::{Duration, Instant};

use super::observation::{Observation, ObservedPod, State};
use super::terminal::{Style, Terminal};

/// With more nodes, the columns are counts.
const NODE_COLUMNS_MAX: usize = 6;
/// Approximate maximum number of lines of a table of counts.
const LINES_MAX: u32 = 16;
/// Width of a node's column.
const CELL_WIDTH: usize = "3.0 starts".len();
/// Width of a column of counts.
const COUNT_WIDTH: usize = "25×1.0 25×2.0".len();
const COLUMN_GAP: usize = 3;

pub(super) struct RolloutTable<'a> {
    terminal: Terminal,
    nodes: &'a [String],
    started_at: Instant,
    last: Option<Vec<Cell>>,
    last_printed_at: Instant,
    min_interval: Duration,
}

type Cell = (String, Style);

impl<'a> RolloutTable<'a> {
    pub(super) fn new(terminal: Terminal, nodes: &'a [String]) -> Self {
        Self {
            terminal,
            nodes,
            started_at: Instant::now(),
            last: None,
            last_printed_at: Instant::now(),
            min_interval: Duration::ZERO,
        }
    }

    fn header(&self) -> io::Result<()> {
        let names = if self.is_counted() {
            let states = ["without", "starting", "running", "failing", "ending"];
            states.map(str::to_owned).to_vec()
        } else {
            self.nodes.to_vec()
        };
        let head: Vec<_> = names.into_iter().map(|name| (name, Style::Dim)).collect();
        self.terminal.blank_line()?;
        self.write("", &head)
    }

    fn is_counted(&self) -> bool {
        self.nodes.len() > NODE_COLUMNS_MAX
    }

    /// Prints a line if the observation differs from the previous one. The last line is always printed, unless it
    /// would be the only one.
    pub(super) fn update(&mut self, observation: &Observation, last: bool) -> io::Result<()> {
        let cells = if self.is_counted() {
            counts(observation, self.nodes)
        } else {
            let cell = |node: &String| cell(observation.on(node));
            self.nodes.iter().map(cell).collect()
        };
        let too_soon = self.last.is_some() && self.last_printed_at.elapsed() < self.min_interval;
        if self.last.as_ref() == Some(&cells) || too_soon && !last || self.last.is_none() && last {
            return Ok(());
        }
        if self.last.is_none() {
            self.header()?;
        }
        let elapsed = self.started_at.elapsed();
        if self.is_counted() {
            // The longer a rollout takes, the less often a line is printed.
            self.min_interval = elapsed / LINES_MAX + Duration::from_millis(200);
        }
        self.write(&format!("{:.1} s", elapsed.as_secs_f64()), &cells)?;
        self.last = Some(cells);
        self.last_printed_at = Instant::now();
        Ok(())
    }

    fn write(&self, time: &str, cells: &[Cell]) -> io::Result<()> {
        let names = self.nodes.iter().map(String::len);
        let widest = if self.is_counted() {
            COUNT_WIDTH
        } else {
            names.max().unwrap_or(0).max(CELL_WIDTH)
        };
        let width = widest + COLUMN_GAP;
        let mut line = self.terminal.paint(Style::Dim, &format!("{time:>8}   "));
        for (text, style) in cells {
            line += &self.terminal.paint(*style, &format!("{text:<width$}"));
        }
        self.terminal.line(Style::Plain, line.trim_end())
    }
}

fn cell(pod: Option<&ObservedPod>) -> Cell {
    let Some(pod) = pod else {
        return ("-".to_owned(), Style::Dim);
    };
    let (word, style) = match pod.state {
        State::Starting => (" starts", Style::Yellow),
        State::Ready => ("", Style::Green),
        State::Failing => (" fails", Style::Red),
        State::Terminating => (" ends", Style::Yellow),
    };
    (format!("{}{word}", pod.version), style)
}

/// The number of nodes without a pod, and the pods in each state by version.
fn counts(observation: &Observation, nodes: &[String]) -> Vec<Cell> {
    let bound = |pod: &&ObservedPod| pod.node.is_some();
    let without = nodes
        .len()
        .saturating_sub(observation.pods.iter().filter(bound).count());
    let mut cells = vec![(without.to_string(), Style::Dim)];
    let states = [
        (State::Starting, Style::Yellow),
        (State::Ready, Style::Green),
        (State::Failing, Style::Red),
        (State::Terminating, Style::Yellow),
    ];
    for (state, style) in states {
        cells.push((versions(observation, state), style));
    }
    cells
}

/// The pods in a state by version, such as `12×1.0 3×2.0`.
fn versions(observation: &Observation, state: State) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for pod in observation.pods.iter().filter(|pod| pod.state == state) {
        *counts.entry(pod.version.as_str()).or_insert(0_usize) += 1;
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(version, count)| format!("{count}×{version}"))
        .collect();
    if counts.is_empty() {
        "-".to_owned()
    } else {
        counts.join(" ")
    }
}
