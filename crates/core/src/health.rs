//! The answers of `/healthz`, `/livez` and `/readyz`, in the text of Kubernetes' own.
//!
//! ```text
//!   [+]ping ok
//!   [-]disk failed: reason withheld
//!   readyz check failed
//! ```

/// Which question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Whether everything is well.
    Healthz,
    /// Whether a restart would not help.
    Livez,
    /// Whether requests can be served.
    Readyz,
}

impl Endpoint {
    /// Of a path's first segment.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "healthz" => Some(Self::Healthz),
            "livez" => Some(Self::Livez),
            "readyz" => Some(Self::Readyz),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// Why a check fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unhealthy(pub String);

impl Unhealthy {
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub name: String,
    pub result: Result<(), Unhealthy>,
}

impl Outcome {
    pub fn new(name: impl Into<String>, result: Result<(), Unhealthy>) -> Self {
        Self {
            name: name.into(),
            result,
        }
    }
}

/// A request for health.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub endpoint: Endpoint,
    /// One check, as in `/livez/ping`; empty for all.
    pub check: &'a str,
    /// `?verbose`.
    pub verbose: bool,
    /// Checks that do not count: `?exclude`.
    pub excluded: &'a [&'a str],
    /// Whether the caller may know why a check fails.
    pub trusted: bool,
}

/// Status and text of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub code: u16,
    pub text: String,
}

/// None if there is no check of that name.
pub fn answer(question: &Question<'_>, outcomes: &[Outcome]) -> Option<Answer> {
    if !question.check.is_empty() {
        let outcome = outcomes.iter().find(|one| one.name == question.check)?;
        return Some(of_one(question, outcome));
    }
    let counts = |one: &&Outcome| !question.excluded.contains(&one.name.as_str());
    let failed = outcomes
        .iter()
        .filter(counts)
        .any(|one| one.result.is_err());
    let name = question.endpoint.name();
    if !failed && !question.verbose {
        return Some(Answer {
            code: 200,
            text: "ok".to_owned(),
        });
    }
    let mut lines: Vec<String> = outcomes.iter().map(|one| line(question, one)).collect();
    let unknown = |name: &&&str| outcomes.iter().all(|one| one.name != ***name);
    for name in question.excluded.iter().filter(unknown) {
        lines.push(format!(
            "warn: some health checks cannot be excluded: no matches for {name:?}\n"
        ));
    }
    let verdict = if failed { "failed" } else { "passed" };
    lines.push(format!("{name} check {verdict}\n"));
    Some(Answer {
        code: if failed { 500 } else { 200 },
        text: lines.concat(),
    })
}

fn of_one(question: &Question<'_>, outcome: &Outcome) -> Answer {
    match &outcome.result {
        Ok(()) => Answer {
            code: 200,
            text: "ok".to_owned(),
        },
        Err(reason) if question.trusted => Answer {
            code: 500,
            text: format!("internal server error: {reason}\n"),
        },
        Err(_) => Answer {
            code: 500,
            text: "internal server error: reason withheld\n".to_owned(),
        },
    }
}

fn line(question: &Question<'_>, outcome: &Outcome) -> String {
    let name = &outcome.name;
    if question.excluded.contains(&name.as_str()) {
        return format!("[+]{name} excluded: ok\n");
    }
    match outcome.result {
        Ok(()) => format!("[+]{name} ok\n"),
        Err(_) => format!("[-]{name} failed: reason withheld\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes() -> Vec<Outcome> {
        vec![
            Outcome::new("ping", Ok(())),
            Outcome::new("disk", Err(Unhealthy::new("no space left"))),
        ]
    }

    fn ask<'a>(check: &'a str, verbose: bool, excluded: &'a [&'a str]) -> Question<'a> {
        Question {
            endpoint: Endpoint::Readyz,
            check,
            verbose,
            excluded,
            trusted: true,
        }
    }

    #[test]
    fn the_answer_names_each_check_in_upstreams_words() {
        let check = |question: &Question<'_>, code: u16, text: &str| {
            let found = answer(question, &outcomes()).unwrap();
            assert_eq!((found.code, found.text.as_str()), (code, text));
        };
        let failed = "[+]ping ok\n[-]disk failed: reason withheld\nreadyz check failed\n";
        check(&ask("", false, &[]), 500, failed);
        check(&ask("", true, &[]), 500, failed);
        check(&ask("", false, &["disk"]), 200, "ok");
        let excluded = "[+]ping ok\n[+]disk excluded: ok\n\
            warn: some health checks cannot be excluded: no matches for \"x\"\nreadyz check passed\n";
        check(&ask("", true, &["disk", "x"]), 200, excluded);
        check(&ask("ping", false, &[]), 200, "ok");
        let reason = "internal server error: no space left\n";
        check(&ask("disk", false, &[]), 500, reason);
        let stranger = Question {
            trusted: false,
            ..ask("disk", false, &[])
        };
        let withheld = "internal server error: reason withheld\n";
        check(&stranger, 500, withheld);
        assert_eq!(answer(&ask("nothing", false, &[]), &outcomes()), None);
    }
}
