//! What a playground says. Whoever listens may be gone, and that is no reason to end: a terminal that was closed must
//! still be cleaned up after.

use std::fmt::Display;
use std::io::Write as _;
use std::time::Instant;

/// A line about what happens, on stderr; what can be used goes to stdout.
pub(super) fn line(words: impl Display) {
    let _unheard = writeln!(std::io::stderr(), "{words}");
}

/// Lines that can be used, on stdout.
pub(super) fn use_it(words: impl Display) {
    let mut out = std::io::stdout().lock();
    let _unheard = writeln!(out, "{words}").and_then(|()| out.flush());
}

/// A step that takes a moment: said when it begins, with what it took when it is done.
pub(super) struct Step {
    began: Instant,
    over: bool,
}

impl Step {
    /// Says what begins.
    pub(super) fn begin(words: impl Display) -> Self {
        let mut err = std::io::stderr().lock();
        let _unheard = write!(err, "  {words} … ").and_then(|()| err.flush());
        Self {
            began: Instant::now(),
            over: false,
        }
    }

    /// Says that it is done.
    pub(super) fn done(mut self) {
        self.over = true;
        line(format_args!("{:.1} s", self.began.elapsed().as_secs_f32()));
    }
}

impl Drop for Step {
    /// One that came to nothing says so, and leaves the line to others.
    fn drop(&mut self) {
        if !self.over {
            line("not done");
        }
    }
}
