//! The table of figures with their bounds.

use std::fmt::Display;

struct Figure {
    name: String,
    measured: String,
    bound: String,
    holds: bool,
}

#[derive(Default)]
pub(super) struct Report {
    figures: Vec<Figure>,
}

impl Report {
    pub(super) fn judge(
        &mut self,
        name: impl Into<String>,
        measured: impl Into<String>,
        bound: impl Into<String>,
        holds: bool,
    ) {
        let (name, measured, bound) = (name.into(), measured.into(), bound.into());
        self.figures.push(Figure {
            name,
            measured,
            bound,
            holds,
        });
    }

    /// Whether all bounds hold.
    pub(super) fn holds(&self) -> bool {
        self.figures.iter().all(|figure| figure.holds)
    }

    pub(super) fn print(&self) {
        let width = |of: fn(&Figure) -> &str| {
            self.figures
                .iter()
                .map(|figure| of(figure).chars().count())
                .max()
                .unwrap_or(0)
        };
        let (names, measured, bounds) = (
            width(|f| &f.name),
            width(|f| &f.measured),
            width(|f| &f.bound),
        );
        say("");
        for figure in &self.figures {
            let verdict = if figure.holds { "ok" } else { "EXCEEDED" };
            say(format_args!(
                "{:names$}  {:>measured$}  {:bounds$}  {verdict}",
                figure.name, figure.measured, figure.bound
            ));
        }
    }
}

#[expect(clippy::print_stdout, reason = "the benchmark's output")]
pub(super) fn say(line: impl Display) {
    println!("{line}");
}
