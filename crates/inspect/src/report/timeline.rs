//! The states of nodes over time: a row per node, or per group of nodes where there are many.

use std::fmt::Write as _;

use kennel_core::picture::CellState;

use super::axis::Axis;
use super::escape;
use crate::record::{Recording, Spans};

/// Rows with a name each.
const NAMED_MAX: usize = 40;
/// Rows at most; above, several nodes share one.
const ROWS_MAX: usize = 400;
/// Columns of the rows without a name, in which states are sampled.
const COLUMNS: usize = 740;
/// Characters shown of a node's name.
const NAME_MAX: usize = 22;

/// What a row of several nodes shows, first: what a person should look at.
const ORDER: [CellState; 7] = [
    CellState::Failed,
    CellState::Updating,
    CellState::Down,
    CellState::New,
    CellState::Old,
    CellState::Waiting,
    CellState::NotEligible,
];

/// See the [module](self).
pub(super) struct Timeline<'a> {
    recording: &'a Recording,
    spans: Spans,
    pub(super) axis: Axis,
    top: f64,
    /// The distance of two rows, and the height of a bar.
    row: (f64, f64),
    /// Nodes that share a row.
    per_row: usize,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(recording: &'a Recording, left: f64, right: f64, top: f64) -> Self {
        let nodes = recording.nodes.len();
        let per_row = nodes.div_ceil(ROWS_MAX).max(1);
        let row = match nodes {
            0..=NAMED_MAX => (21.0, 13.0),
            41..=100 => (6.0, 5.0),
            101..=200 => (3.0, 2.5),
            _ => (1.5, 1.5),
        };
        Self {
            recording,
            spans: Spans::of(recording.initial.as_bytes(), &recording.changes),
            axis: Axis {
                left,
                right,
                length: recording.length().max(1),
            },
            top,
            row,
            per_row,
        }
    }

    fn rows(&self) -> usize {
        self.recording.nodes.len().div_ceil(self.per_row)
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 400 rows")]
    fn y(&self, row: usize) -> f64 {
        self.top + row as f64 * self.row.0
    }

    /// Where the rows end.
    pub(super) fn bottom(&self) -> f64 {
        self.y(self.rows())
    }

    /// How many nodes share a row.
    pub(super) fn nodes_per_row(&self) -> usize {
        self.per_row
    }

    pub(super) fn draw(&self, out: &mut String) {
        if self.recording.nodes.len() <= NAMED_MAX {
            for node in 0..self.recording.nodes.len() {
                self.named_row(out, node);
            }
            return;
        }
        for row in 0..self.rows() {
            self.sampled_row(out, row);
        }
    }

    fn named_row(&self, out: &mut String, node: usize) {
        let y = self.y(node);
        let name = escape(&super::cut(&self.recording.nodes[node], NAME_MAX));
        let (right, base) = (self.axis.left - 10.0, y + self.row.1 - 2.5);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<text class=\"text mono\" x=\"{right}\" y=\"{base:.1}\" text-anchor=\"end\" font-size=\"11\">{name}</text>"
        );
        let spans = self.spans.node(node);
        for (index, (from, letter)) in spans.iter().enumerate() {
            let to = spans.get(index + 1).map_or(self.axis.length, |next| next.0);
            self.bar(out, *letter, (*from, to), y);
        }
    }

    /// The states at the beginning of each column; equal ones are one bar.
    fn sampled_row(&self, out: &mut String, row: usize) {
        let first = row * self.per_row;
        let last = (first + self.per_row).min(self.recording.nodes.len());
        let at = |column: usize| {
            let time = self.axis.column(column + 1, COLUMNS);
            let letters = (first..last).map(|node| self.spans.letter(node, time));
            let states: Vec<_> = letters.filter_map(CellState::of_letter).collect();
            ORDER.into_iter().find(|state| states.contains(state))
        };
        let (mut begun, mut state) = (0, at(0));
        for column in 1..=COLUMNS {
            let next = if column == COLUMNS { None } else { at(column) };
            if next == state && column < COLUMNS {
                continue;
            }
            if let Some(state) = state {
                let from = self.axis.column(begun, COLUMNS);
                let to = self.axis.column(column, COLUMNS);
                self.bar(out, state.letter(), (from, to), self.y(row));
            }
            (begun, state) = (column, next);
        }
    }

    fn bar(&self, out: &mut String, letter: u8, (from, to): (u64, u64), y: f64) {
        let Some(state) = CellState::of_letter(letter) else {
            return;
        };
        let (left, right) = (self.axis.x(from), self.axis.x(to));
        let width = right - left;
        if width < 0.2 {
            return;
        }
        let (class, height) = (class(state), self.row.1);
        let round = if height > 8.0 { " rx=\"2\"" } else { "" };
        // An outline is drawn around its middle.
        let inset = if state == CellState::Waiting && height > 8.0 {
            0.5
        } else {
            0.0
        };
        let (x, y) = (left + inset, y + inset);
        let (width, height) = (width - 2.0 * inset, height - 2.0 * inset);
        // An outline would hide what is thin.
        let thin = if height > 8.0 { "" } else { " thin" };
        if width > 0.0 {
            let _ = writeln!(
                out,
                "<rect class=\"{class}{thin}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"{round}/>"
            );
        }
        if state == CellState::Failed && height > 8.0 && width > 8.0 {
            let (x, y) = (left + 4.0, y + height / 2.0 - 3.0);
            let _ = writeln!(
                out,
                "<path class=\"mark\" d=\"M{x:.1} {y:.1}l6 6m0 -6l-6 6\"/>"
            );
        }
    }
}

/// The class of a state in the style sheets.
pub(super) const fn class(state: CellState) -> &'static str {
    match state {
        CellState::New => "new",
        CellState::Updating => "updating",
        CellState::Failed => "failed",
        CellState::Down => "down",
        CellState::Waiting => "waiting",
        CellState::Old => "old",
        CellState::NotEligible => "excluded",
    }
}
