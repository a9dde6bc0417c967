//! Prints the tour: headlines, commands, their output, explanations. Uses colours only on a terminal, and never moves
//! the cursor, so that the output is readable in a file.

use std::io::{self, IsTerminal as _, Write as _};

pub(super) const WIDTH: usize = 78;
/// Number of output lines shown per command; the rest is only counted.
const LINES_MAX: usize = 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Red => "\x1b[31m",
        }
    }
}

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    colour: bool,
}

impl Terminal {
    pub(super) fn stdout() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colour: io::stdout().is_terminal() && !no_color,
        }
    }

    /// Styles the text if colours are used.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.colour && style != Style::Plain {
            format!("{}{text}\x1b[0m", style.code())
        } else {
            text.to_owned()
        }
    }

    pub(super) fn line(self, style: Style, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", self.paint(style, text))?;
        out.flush()
    }

    pub(super) fn blank_line(self) -> io::Result<()> {
        self.line(Style::Plain, "")
    }

    /// Prints a prompt without a line break.
    pub(super) fn prompt(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        write!(out, "{} ", self.paint(Style::Yellow, text))?;
        out.flush()
    }

    pub(super) fn headline(self, number: usize, of: usize, title: &str) -> io::Result<()> {
        let start = format!("── {number}/{of}  {title} ");
        let rest = WIDTH.saturating_sub(start.chars().count());
        self.blank_line()?;
        self.line(Style::Bold, &(start + &"─".repeat(rest)))
    }

    pub(super) fn command(self, line: &str) -> io::Result<()> {
        self.blank_line()?;
        self.line(Style::Bold, &format!("$ {line}"))
    }

    /// Prints a diff: removed lines in red, added ones in green.
    pub(super) fn diff(self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            let style = match line.chars().next() {
                Some('-') => Style::Red,
                Some('+') => Style::Green,
                _ => Style::Dim,
            };
            self.line(style, &format!("    {line}"))?;
        }
        Ok(())
    }

    /// Prints indented text.
    pub(super) fn prose(self, style: Style, text: &str) -> io::Result<()> {
        text.lines()
            .try_for_each(|line| self.line(style, &format!("  {line}")))
    }
}

/// Prints the first lines of a command's output, and how many more there are.
#[derive(Debug)]
pub(super) struct Output {
    terminal: Terminal,
    shown: usize,
    hidden: usize,
    /// Empty lines that are printed only if another line follows.
    blank: usize,
    whole: bool,
}

impl Output {
    /// `whole` prints all lines.
    pub(super) fn new(terminal: Terminal, whole: bool) -> Self {
        Self {
            terminal,
            shown: 0,
            hidden: 0,
            blank: 0,
            whole,
        }
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            self.blank += 1;
            return Ok(());
        }
        let blank = std::mem::take(&mut self.blank);
        if !self.whole && self.shown >= LINES_MAX {
            self.hidden += 1;
            return Ok(());
        }
        self.shown += 1;
        for _ in 0..blank {
            self.terminal.blank_line()?;
        }
        self.terminal.line(Style::Plain, text)
    }

    pub(super) fn end(self) -> io::Result<()> {
        match self.hidden {
            0 => Ok(()),
            hidden => {
                let text = format!("… and {hidden} lines more");
                self.terminal.line(Style::Dim, &text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_used_only_on_a_terminal() {
        let terminal = Terminal { colour: true };
        assert_eq!(terminal.paint(Style::Red, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(terminal.paint(Style::Plain, "x"), "x");
        let pipe = Terminal { colour: false };
        assert_eq!(pipe.paint(Style::Red, "x"), "x");
    }
}
