//! From the text of a session to its steps. Knows nothing of how they are run or compared.

use crate::Version;

/// One command and what it must show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The line of the file it starts at, counted from 1.
    pub(super) line: usize,
    /// For `sh -c`, with its continuation lines.
    pub(super) command: String,
    /// The lines it must show.
    pub(super) expected: Vec<String>,
    /// The exit code it must end with.
    pub(super) code: i32,
    /// Whether it is repeated until it shows them.
    pub(super) until: bool,
    /// The kubectls it is meant for; all where it says none.
    pub(super) only: Vec<Version>,
}

impl Step {
    /// Whether it is run with this kubectl.
    pub(super) fn is_for(&self, version: Version) -> bool {
        self.only.is_empty() || self.only.contains(&version)
    }
}

/// Reads a whole session. Panics with the line where it is not understood: a mark that is ignored
/// would make a test weaker than it reads.
pub(super) fn parse(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(start_step(number, command));
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
    let mut step = Step {
        line,
        command: command.to_owned(),
        expected: Vec::new(),
        code: 0,
        until: false,
        only: Vec::new(),
    };
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
    if mark == "until" {
        step.until = true;
        return;
    }
    let version = mark.strip_prefix("only ").and_then(|name| {
        let name = name.trim();
        Version::ALL
            .into_iter()
            .find(|version| version.name() == name)
    });
    match version {
        Some(version) => step.only.push(version),
        None => panic!("line {}: unknown mark {mark:?}", step.line),
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
    while step
        .expected
        .last()
        .is_some_and(|line| line.trim().is_empty())
    {
        step.expected.pop();
    }
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
        assert_eq!((steps[0].code, steps[0].until), (1, true));
        assert!(steps[0].is_for(Version::V1_20) && !steps[0].is_for(Version::V1_32));
        assert_eq!((steps[1].command.as_str(), steps[1].code), ("true", 0));
        assert!(steps[1].expected.is_empty() && steps[1].is_for(Version::V1_32));
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
}
