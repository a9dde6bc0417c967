//! Nodes as cells: as many as there is room for, else several nodes in one block.

use kennel_core::picture::CellState;

/// Writes colours, or letters where there are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn failed(self, text: &str) -> String {
        self.with("1;38;5;202", text)
    }

    /// One cell.
    pub(super) fn cell(self, state: CellState) -> String {
        if self.0 {
            format!("\x1b[{}m{}\x1b[0m", code(state), char::from(symbol(state)))
        } else {
            char::from(symbol(state)).to_string()
        }
    }

    /// Several cells; equal ones share their codes.
    fn row(self, states: &[CellState], gap: bool) -> String {
        let mut line = String::new();
        if !self.0 {
            for state in states {
                line.push(char::from(symbol(*state)));
                line.push_str(if gap { " " } else { "" });
            }
            return line.trim_end().to_owned();
        }
        let mut last = None;
        for state in states {
            if last != Some(*state) || gap {
                line.push_str("\x1b[0;");
                line.push_str(code(*state));
                line.push('m');
                last = Some(*state);
            }
            line.push(char::from(symbol(*state)));
            if gap {
                line.push_str("\x1b[0m ");
            }
        }
        line.push_str("\x1b[0m");
        line
    }
}

/// A symbol beside the colour, for those who cannot tell colours apart, in ASCII: its width is certain.
pub(super) const fn symbol(state: CellState) -> u8 {
    match state {
        CellState::New => b'#',
        CellState::Updating => b'~',
        CellState::Failed => b'X',
        CellState::Down => b'!',
        CellState::Waiting => b'.',
        CellState::Old => b'o',
        CellState::NotEligible => b'-',
    }
}

/// Colours that people tell apart who see red and green alike: of the symbol and of its background.
const fn code(state: CellState) -> &'static str {
    match state {
        CellState::New => "38;5;32;48;5;32",
        CellState::Updating => "38;5;16;48;5;214",
        CellState::Failed => "1;38;5;231;48;5;160",
        CellState::Down => "38;5;231;48;5;238",
        CellState::Waiting => "38;5;244",
        CellState::Old => "38;5;235;48;5;246",
        CellState::NotEligible => "38;5;240",
    }
}

/// The lines, and how many nodes one block is.
pub(super) fn cells(
    letters: &[u8],
    columns: usize,
    rows: usize,
    paint: Paint,
) -> (Vec<String>, usize) {
    let states: Vec<CellState> = letters
        .iter()
        .filter_map(|letter| CellState::of_letter(*letter))
        .collect();
    let (columns, rows) = (columns.max(1), rows.max(1));
    let gap = states.len() <= rows * (columns / 2);
    let per_row = if gap { columns / 2 } else { columns };
    let per_block = states.len().div_ceil(per_row * rows).max(1);
    let blocks: Vec<CellState> = states.chunks(per_block).map(worst).collect();
    let lines = blocks.chunks(per_row.max(1));
    (lines.map(|line| paint.row(line, gap)).collect(), per_block)
}

/// What a block of several nodes shows: what a person should look at first.
fn worst(states: &[CellState]) -> CellState {
    const ORDER: [CellState; 7] = [
        CellState::Failed,
        CellState::Updating,
        CellState::Down,
        CellState::Waiting,
        CellState::Old,
        CellState::New,
        CellState::NotEligible,
    ];
    let found = ORDER.into_iter().find(|state| states.contains(state));
    found.unwrap_or(CellState::NotEligible)
}
