//! From the text of a session to its steps. Knows nothing of how they are run or compared.

use crate::Version;

/// One command and what it must show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The line of the file it starts at, counted from 1.
    pub(super) line: usize,
    /// What happens.
    pub(super) kind: Kind,
    /// For `sh -c`, with its continuation lines.
    pub(super) command: String,
    /// The lines it must show.
    pub(super) expected: Vec<String>,
    /// The exit code it must end with.
    pub(super) code: i32,
    /// The kubectls it is meant for; all where it says none.
    pub(super) only: Vec<Version>,
    /// What must come before the command is whole.
    open: Open,
}

/// How a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Once, to its end.
    Once,
    /// Again and again, until it shows what it must.
    Until,
    /// Beside the rest of the session, which goes on when it has shown what it must.
    Beside,
    /// Not at all: the latest command that runs beside the session and begins like this is interrupted.
    Interrupt,
}

/// Why the next line still belongs to the command.
#[derive(Debug, PartialEq, Eq)]
enum Open {
    /// It does not, unless it starts with `>`.
    No,
    /// The last one ends with a backslash.
    Line,
    /// This word, on a line of its own, has not come yet.
    Document(String),
}

impl Step {
    /// Whether it is run with this kubectl.
    pub(super) fn is_for(&self, version: Version) -> bool {
        self.only.is_empty() || self.only.contains(&version)
    }

    fn new(line: usize, kind: Kind, command: &str) -> Self {
        Self {
            line,
            kind,
            command: command.to_owned(),
            expected: Vec::new(),
            code: 0,
            only: Vec::new(),
            open: Open::after(command),
        }
    }
}

impl Open {
    /// Whether this first line of a command is followed by others of it.
    fn after(command: &str) -> Self {
        if command.ends_with('\\') {
            return Self::Line;
        }
        let word = command.split_once("<<").map(|(_, rest)| {
            let rest = rest.trim_start_matches('-').trim_start();
            rest.trim_matches(['\'', '"']).to_owned()
        });
        let word = word.filter(|word| !word.is_empty() && word.chars().all(char::is_alphanumeric));
        word.map_or(Self::No, Self::Document)
    }
}

/// Reads a whole session. Panics with the line where it is not understood: a mark that is ignored
/// would make a test weaker than it reads.
pub(super) fn parse(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let open = steps.last_mut().filter(|step| step.open != Open::No);
        if let Some(step) = open {
            complete(step, line);
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(start_step(number, command));
        } else if let Some(which) = line.strip_prefix("^C") {
            steps.push(Step::new(number, Kind::Interrupt, which.trim()));
        } else if line.starts_with("# ") || line == "#" {
            // A comment ends the output above it.
        } else if let Some(step) = steps.last_mut() {
            continue_step(step, number, line);
        } else {
            assert!(
                line.trim().is_empty(),
                "line {number}: text before the first command"
            );
        }
    }
    for step in &mut steps {
        finish_step(step);
    }
    steps
}

fn start_step(line: usize, text: &str) -> Step {
    let (command, marks) = match text.rsplit_once(" # ") {
        Some((command, marks)) => (command.trim_end(), marks),
        None => (text, ""),
    };
    let mut step = Step::new(line, Kind::Once, command);
    for mark in marks
        .split(',')
        .map(str::trim)
        .filter(|mark| !mark.is_empty())
    {
        apply_mark(&mut step, mark);
    }
    step
}

fn apply_mark(step: &mut Step, mark: &str) {
    match mark {
        "until" | "after a moment" => step.kind = Kind::Until,
        "in another terminal" => step.kind = Kind::Beside,
        _ => step.only.extend(kubectls(step.line, mark)),
    }
}

/// The kubectls of `only 1.20` and of `from 1.32`.
fn kubectls(line: usize, mark: &str) -> Vec<Version> {
    let named = |prefix| {
        let name = mark.strip_prefix(prefix)?.trim();
        let mut all = Version::ALL.into_iter();
        all.find(|version| version.name() == name)
    };
    if let Some(version) = named("only ") {
        return vec![version];
    }
    let first = named("from ").unwrap_or_else(|| panic!("line {line}: unknown mark {mark:?}"));
    let all = Version::ALL.into_iter();
    all.filter(|version| *version >= first).collect()
}

/// A line that the command cannot do without.
fn complete(step: &mut Step, line: &str) {
    let more = line.strip_prefix('>').unwrap_or(line);
    let more = if more.len() < line.len() {
        more.strip_prefix(' ').unwrap_or(more)
    } else {
        more
    };
    step.command.push('\n');
    step.command.push_str(more);
    let done = match &step.open {
        Open::No => true,
        Open::Line => !more.ends_with('\\'),
        Open::Document(end) => more == end,
    };
    if done {
        step.open = Open::No;
    }
}

fn continue_step(step: &mut Step, number: usize, line: &str) {
    if let Some(more) = line.strip_prefix('>').filter(|_| step.expected.is_empty()) {
        step.command.push('\n');
        step.command
            .push_str(more.strip_prefix(' ').unwrap_or(more));
    } else if let Some(code) = line.strip_prefix("? ") {
        let code = code.trim().parse();
        step.code = code.unwrap_or_else(|_| panic!("line {number}: not an exit code"));
    } else {
        step.expected.push(line.to_owned());
    }
}

fn finish_step(step: &mut Step) {
    let line = step.line;
    assert!(step.open == Open::No, "line {line}: a command without end");
    while step
        .expected
        .last()
        .is_some_and(|line| line.trim().is_empty())
    {
        step.expected.pop();
    }
    assert!(
        step.kind != Kind::Interrupt || step.expected.is_empty(),
        "line {line}: what is shown after ^C is not compared"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_continuations_output_code_and_marks() {
        let text = "\n# intro\n$ kubectl create -f - <<EOF  # until, only 1.20\n> kind: Pod\n>   x: 1\n\
                    > EOF\nfirst\n\n  second\n\n? 1\n\n# next\n$ true\n";
        let steps = parse(text);
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0].line, 3);
        assert_eq!(
            steps[0].command,
            "kubectl create -f - <<EOF\nkind: Pod\n  x: 1\nEOF"
        );
        assert_eq!(steps[0].expected, ["first", "", "  second"]);
        assert_eq!((steps[0].code, steps[0].kind), (1, Kind::Until));
        assert!(steps[0].is_for(Version::V1_20) && !steps[0].is_for(Version::V1_32));
        assert_eq!((steps[1].command.as_str(), steps[1].code), ("true", 0));
        assert!(steps[1].expected.is_empty() && steps[1].is_for(Version::V1_32));
    }

    #[test]
    fn a_command_may_be_for_newer_kubectls() {
        let steps = parse("$ kubectl auth whoami # from 1.32\n");
        let run = Version::ALL.map(|version| steps[0].is_for(version));
        assert_eq!(run, [false, true, true]);
    }

    #[test]
    fn documents_and_long_lines_need_no_marks() {
        let text = "$ cat > f <<'EOF'\n# a comment\n\n$ no command\nEOF\nout\n$ a \\\n    b \\\n    c\nout\n";
        let steps = parse(text);
        assert_eq!(steps.len(), 2);
        assert_eq!(
            steps[0].command,
            "cat > f <<'EOF'\n# a comment\n\n$ no command\nEOF"
        );
        assert_eq!(steps[1].command, "a \\\n    b \\\n    c");
        assert!(steps.iter().all(|step| step.expected == ["out"]));
    }

    #[test]
    fn commands_are_run_again_or_beside_and_interrupted() {
        let text = "$ a # after a moment\n$ b   # in another terminal\nready\n\n^C\n";
        let kinds: Vec<Kind> = parse(text).iter().map(|step| step.kind).collect();
        assert_eq!(kinds, [Kind::Until, Kind::Beside, Kind::Interrupt]);
    }

    #[test]
    #[should_panic(expected = "line 1: unknown mark \"someday\"")]
    fn an_unknown_mark_is_refused() {
        parse("$ true # someday\n");
    }

    #[test]
    #[should_panic(expected = "line 1: text before the first command")]
    fn stray_text_is_refused() {
        parse("hello\n$ true\n");
    }

    #[test]
    #[should_panic(expected = "line 1: a command without end")]
    fn a_document_must_end() {
        parse("$ cat <<EOF\nhello\n");
    }
}
