//! The screen of a terminal: drawn in place, and given back at the end.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use kennel_inspect::screen::Size;

/// Another screen, no cursor, and no wrapping of lines with wide characters.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Where a terminal does not tell its size.
const DEFAULT: Size = Size {
    columns: 80,
    rows: 24,
};

/// While it exists, the terminal shows its screen.
pub(super) struct Terminal {
    shown: Vec<String>,
}

impl Terminal {
    /// `None` if stdout is not a terminal.
    pub(super) fn enter() -> anyhow::Result<Option<Self>> {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if !std::io::stdout().is_terminal() || dumb {
            return Ok(None);
        }
        write(ENTER)?;
        Ok(Some(Self { shown: Vec::new() }))
    }

    pub(super) fn size() -> Size {
        let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) else {
            return DEFAULT;
        };
        let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
        if columns == 0 || rows == 0 {
            return DEFAULT;
        }
        Size { columns, rows }
    }

    /// Draws the lines that differ from the shown ones.
    pub(super) fn draw(&mut self, lines: Vec<String>, resized: bool) -> anyhow::Result<()> {
        let mut text = String::new();
        if resized || self.shown.is_empty() {
            text.push_str("\x1b[2J");
            self.shown.clear();
        }
        for (row, line) in lines.iter().enumerate() {
            if self.shown.get(row) != Some(line) {
                // Writing to a String cannot fail, here and below.
                let _ = write!(text, "\x1b[{};1H{line}\x1b[K", row + 1);
            }
        }
        if self.shown.len() > lines.len() {
            let _ = write!(text, "\x1b[{};1H\x1b[J", lines.len() + 1);
        }
        self.shown = lines;
        if text.is_empty() {
            return Ok(());
        }
        // Terminals that know it show the changes at once.
        write(&format!("\x1b[?2026h{text}\x1b[?2026l"))
    }

    /// Gives the screen back. What was shown last stays below the command.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let mut shown = std::mem::take(&mut self.shown);
        drop(self);
        let mut text = String::new();
        while shown.last().is_some_and(String::is_empty) {
            shown.pop();
        }
        for line in shown {
            text.push_str(&line);
            text.push('\n');
        }
        write(&text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _given_back = write(LEAVE);
    }
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    let written = written.and_then(|()| stdout.flush());
    written.context("cannot write to the terminal")
}
