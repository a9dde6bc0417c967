//! The table of figures with their bounds.

use std::fmt::Display;

struct Figure {
    name: String,
    measured: String,
    bound: String,
    verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    Exceeded,
    NotMeasured,
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
            verdict: if holds {
                Verdict::Holds
            } else {
                Verdict::Exceeded
            },
        });
    }

    /// A row for what this machine cannot measure.
    pub(super) fn leave_out(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.figures.push(Figure {
            name: name.into(),
            measured: "-".to_owned(),
            bound: why.into(),
            verdict: Verdict::NotMeasured,
        });
    }

    /// Whether no bound is exceeded.
    pub(super) fn holds(&self) -> bool {
        let mut verdicts = self.figures.iter().map(|figure| figure.verdict);
        verdicts.all(|verdict| verdict != Verdict::Exceeded)
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
            let verdict = match figure.verdict {
                Verdict::Holds => "ok",
                Verdict::Exceeded => "EXCEEDED",
                Verdict::NotMeasured => "NOT MEASURED",
            };
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
