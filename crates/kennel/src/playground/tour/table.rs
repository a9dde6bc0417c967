//! A rollout as a table that grows: a column for each node, a line whenever something has changed. With
//! many nodes, the columns count them. It needs no cursor, so it looks the same in a file.

use std::io;
use std::time::{Duration, Instant};

use super::screen::{Screen, Style};
use super::seen::{Pod, Seen, State};

/// With more nodes than this, they are counted.
const COLUMNS: usize = 6;
/// A table of counts has about so many lines at most.
const LINES: u32 = 16;
/// The widest state of a node.
const CELL: usize = "3.0 starts".len();
/// The same for a column that counts.
const COUNT: usize = "25×1.0 25×2.0".len();
/// Between columns.
const BETWEEN: usize = 3;

/// A table that is being written.
pub(super) struct Table<'a> {
    screen: Screen,
    nodes: &'a [String],
    begun: Instant,
    last: Option<Vec<Cell>>,
    last_line: Instant,
    pace: Duration,
}

/// One field: its text and how it looks.
type Cell = (String, Style);

impl<'a> Table<'a> {
    /// A table of these nodes.
    pub(super) fn new(screen: Screen, nodes: &'a [String]) -> Self {
        Self {
            screen,
            nodes,
            begun: Instant::now(),
            last: None,
            last_line: Instant::now(),
            pace: Duration::ZERO,
        }
    }

    fn head(&self) -> io::Result<()> {
        let names = if self.counts() {
            let states = ["without", "starting", "running", "failing", "ending"];
            states.map(str::to_owned).to_vec()
        } else {
            self.nodes.to_vec()
        };
        let head: Vec<_> = names.into_iter().map(|name| (name, Style::Dim)).collect();
        self.screen.gap()?;
        self.write("", &head)
    }

    fn counts(&self) -> bool {
        self.nodes.len() > COLUMNS
    }

    /// Writes a line if this look differs from the last. The last line of a table is never left out, unless
    /// it would be the only one: where nothing moves, there is nothing to watch.
    pub(super) fn show(&mut self, seen: &Seen, last: bool) -> io::Result<()> {
        let cells = if self.counts() {
            counted(seen, self.nodes)
        } else {
            let cell = |node: &String| cell(seen.on(node));
            self.nodes.iter().map(cell).collect()
        };
        let soon = self.last.is_some() && self.last_line.elapsed() < self.pace;
        if self.last.as_ref() == Some(&cells) || soon && !last || self.last.is_none() && last {
            return Ok(());
        }
        if self.last.is_none() {
            self.head()?;
        }
        let since = self.begun.elapsed();
        if self.counts() {
            // The longer it takes, the less often it is told.
            self.pace = since / LINES.max(1) + Duration::from_millis(200);
        }
        self.write(&format!("{:.1} s", since.as_secs_f64()), &cells)?;
        self.last = Some(cells);
        self.last_line = Instant::now();
        Ok(())
    }

    fn write(&self, time: &str, cells: &[Cell]) -> io::Result<()> {
        let names = self.nodes.iter().map(String::len);
        let widest = if self.counts() {
            COUNT
        } else {
            names.max().unwrap_or(0).max(CELL)
        };
        let width = widest + BETWEEN;
        let mut line = self.screen.paint(Style::Dim, &format!("{time:>8}   "));
        for (text, style) in cells {
            line += &self.screen.paint(*style, &format!("{text:<width$}"));
        }
        self.screen.line(Style::Plain, line.trim_end())
    }
}

/// What a node shows.
fn cell(pod: Option<&Pod>) -> Cell {
    let Some(pod) = pod else {
        return ("-".to_owned(), Style::Dim);
    };
    let (word, style) = match pod.state {
        State::Starts => (" starts", Style::Yellow),
        State::Runs => ("", Style::Green),
        State::Fails => (" fails", Style::Red),
        State::Ends => (" ends", Style::Yellow),
    };
    (format!("{}{word}", pod.version), style)
}

/// How many nodes show what, with the version where that is one.
fn counted(seen: &Seen, nodes: &[String]) -> Vec<Cell> {
    let placed = |pod: &&Pod| pod.node.is_some();
    let without = nodes
        .len()
        .saturating_sub(seen.pods.iter().filter(placed).count());
    let mut cells = vec![(without.to_string(), Style::Dim)];
    let states = [
        (State::Starts, Style::Yellow),
        (State::Runs, Style::Green),
        (State::Fails, Style::Red),
        (State::Ends, Style::Yellow),
    ];
    for (state, style) in states {
        cells.push((versions(seen, state), style));
    }
    cells
}

/// How many pods are in this state, by version: `12 of 1.0, 3 of 2.0`.
fn versions(seen: &Seen, state: State) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for pod in seen.pods.iter().filter(|pod| pod.state == state) {
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
