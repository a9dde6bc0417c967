//! What the tour writes on the terminal, or into a pipe: headlines, commands, their output, explanations.
//! Colours only where somebody sees them; never anything that moves the cursor.

use std::io::{self, IsTerminal as _, Write as _};

/// How wide headlines are.
const WIDTH: usize = 78;
/// Output beyond so many lines is counted, not shown.
const LINES: usize = 14;

/// How a piece of text looks.
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

/// Where the tour writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    colour: bool,
}

impl Screen {
    /// Standard output.
    pub(super) fn new() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colour: io::stdout().is_terminal() && !unwanted,
        }
    }

    /// The text in this style, if there are any here.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.colour && style != Style::Plain {
            format!("{}{text}\x1b[0m", style.code())
        } else {
            text.to_owned()
        }
    }

    /// A line of its own.
    pub(super) fn line(self, style: Style, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", self.paint(style, text))?;
        out.flush()
    }

    /// An empty line.
    pub(super) fn gap(self) -> io::Result<()> {
        self.line(Style::Plain, "")
    }

    /// A question, with the answer to come on the same line.
    pub(super) fn ask(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        write!(out, "{} ", self.paint(Style::Yellow, text))?;
        out.flush()
    }

    /// A step's headline.
    pub(super) fn headline(self, number: usize, of: usize, title: &str) -> io::Result<()> {
        let start = format!("── {number}/{of}  {title} ");
        let rest = WIDTH.saturating_sub(start.chars().count());
        self.gap()?;
        self.line(Style::Bold, &(start + &"─".repeat(rest)))
    }

    /// A command that is about to run.
    pub(super) fn command(self, line: &str) -> io::Result<()> {
        self.gap()?;
        self.line(Style::Bold, &format!("$ {line}"))
    }

    /// Lines that start with `-` and `+` in their colours.
    pub(super) fn difference(self, lines: &[String]) -> io::Result<()> {
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

    /// Sentences, indented.
    pub(super) fn prose(self, style: Style, text: &str) -> io::Result<()> {
        text.lines()
            .try_for_each(|line| self.line(style, &format!("  {line}")))
    }
}

/// A command's output, line by line, of which not too many are shown.
#[derive(Debug)]
pub(super) struct Output {
    screen: Screen,
    shown: usize,
    hidden: usize,
    /// Empty lines that are shown if something follows.
    blank: usize,
    whole: bool,
}

impl Output {
    /// For a command that begins; `whole` is for those whose every line counts.
    pub(super) fn new(screen: Screen, whole: bool) -> Self {
        Self {
            screen,
            shown: 0,
            hidden: 0,
            blank: 0,
            whole,
        }
    }

    /// One line more.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            self.blank += 1;
            return Ok(());
        }
        let blank = std::mem::take(&mut self.blank);
        if !self.whole && self.shown >= LINES {
            self.hidden += 1;
            return Ok(());
        }
        self.shown += 1;
        for _ in 0..blank {
            self.screen.gap()?;
        }
        self.screen.line(Style::Plain, text)
    }

    /// The command has ended.
    pub(super) fn end(self) -> io::Result<()> {
        match self.hidden {
            0 => Ok(()),
            hidden => {
                let text = format!("… and {hidden} lines more");
                self.screen.line(Style::Dim, &text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_only_where_they_are_seen() {
        let terminal = Screen { colour: true };
        assert_eq!(terminal.paint(Style::Red, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(terminal.paint(Style::Plain, "x"), "x");
        let pipe = Screen { colour: false };
        assert_eq!(pipe.paint(Style::Red, "x"), "x");
    }
}
