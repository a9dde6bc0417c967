//! Colours for terminals; none if `NO_COLOR` is set.

use std::io::IsTerminal as _;

/// Whether colours are enabled.
#[derive(Clone, Copy, Debug)]
pub struct Colours(bool);

impl Colours {
    /// Enabled if stdout is a terminal.
    pub fn of_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    pub fn none() -> Self {
        Self(false)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.with("1;33", text)
    }

    pub fn green(self, text: &str) -> String {
        self.with("1;32", text)
    }

    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }
}
