//! Prints progress. A closed stdout or stderr is ignored: a playground must clean up even after its terminal is
//! closed.

use std::fmt::Display;
use std::io::Write as _;
use std::time::Instant;

/// Prints progress to stderr; results go to stdout.
pub(super) fn line(text: impl Display) {
    let _closed = writeln!(std::io::stderr(), "{text}");
}

/// Prints a result to stdout.
pub(super) fn result(text: impl Display) {
    let mut stdout = std::io::stdout().lock();
    let _closed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// A step whose duration is printed when it is done.
pub(super) struct Step {
    started_at: Instant,
    done: bool,
}

impl Step {
    pub(super) fn begin(text: impl Display) -> Self {
        let mut stderr = std::io::stderr().lock();
        let _closed = write!(stderr, "  {text} … ").and_then(|()| stderr.flush());
        Self {
            started_at: Instant::now(),
            done: false,
        }
    }

    pub(super) fn done(mut self) {
        self.done = true;
        let seconds = self.started_at.elapsed().as_secs_f32();
        line(format_args!("{seconds:.1} s"));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.done {
            line("failed");
        }
    }
}
