//! Problems of YAML in the words of go-yaml, which users of Kubernetes search for. Nothing here parses.

use super::yaml_tree::Duplicate;

/// How deep lists and maps may nest: the bound of our parser. Upstream's is 10,000.
const DEPTH_MAX: usize = 64;

/// Where go-yaml notices a problem. It counts lines from zero, names the next one for problems of its scanner, and none for
/// the first.
#[derive(Clone, Copy)]
enum Stage {
    Scanner,
    Parser,
}

/// The beginning of our parser's message, go-yaml's words for it, and where it notices it.
const PROBLEMS: [(&str, &str, Stage); 19] = [
    (
        "mapping values are not allowed",
        "mapping values are not allowed in this context",
        Stage::Scanner,
    ),
    (
        "mapping keys are not allowed",
        "mapping keys are not allowed in this context",
        Stage::Scanner,
    ),
    (
        "block sequence entries are not allowed",
        "block sequence entries are not allowed in this context",
        Stage::Scanner,
    ),
    (
        "unexpected character",
        "found character that cannot start any token",
        Stage::Scanner,
    ),
    (
        "tabs disallowed",
        "found character that cannot start any token",
        Stage::Scanner,
    ),
    (
        "tab cannot be used as indentation",
        "found character that cannot start any token",
        Stage::Scanner,
    ),
    (
        "while scanning a plain scalar, found a tab",
        "found a tab character that violates indentation",
        Stage::Scanner,
    ),
    (
        "while scanning a quoted scalar, found unexpected document indicator",
        "found unexpected document indicator",
        Stage::Scanner,
    ),
    (
        "while parsing a quoted scalar, found unknown escape character",
        "found unknown escape character",
        Stage::Scanner,
    ),
    (
        "while parsing a quoted scalar, did not find expected hexadecimal number",
        "did not find expected hexdecimal number",
        Stage::Scanner,
    ),
    (
        "while parsing a quoted scalar, found high surrogate",
        "found invalid Unicode character escape code",
        Stage::Scanner,
    ),
    (
        "unexpected EOF while parsing an implicit flow mapping",
        "did not find expected node content",
        Stage::Parser,
    ),
    (
        "while parsing a node, did not find expected node content",
        "did not find expected node content",
        Stage::Parser,
    ),
    (
        "misplaced bracket",
        "did not find expected node content",
        Stage::Parser,
    ),
    (
        "while parsing a block mapping, did not find expected key",
        "did not find expected key",
        Stage::Parser,
    ),
    (
        "while parsing a flow mapping, did not find expected ',' or '}'",
        "did not find expected ',' or '}'",
        Stage::Parser,
    ),
    (
        "while parsing a flow sequence, expected ',' or ']'",
        "did not find expected ',' or ']'",
        Stage::Parser,
    ),
    (
        "while parsing a block collection, did not find expected '-' indicator",
        "did not find expected '-' indicator",
        Stage::Parser,
    ),
    (
        "invalid trailing content after",
        "did not find expected key",
        Stage::Parser,
    ),
];

/// A problem that our parser has described so, at a line counted from 1.
pub(super) fn describe(text: &str, message: &str, line: u64) -> String {
    // An unclosed quote takes in all that follows, which our parser refuses where it is not indented.
    let is_odd = |quote| text.matches(quote).count() % 2 == 1;
    let unclosed = message.contains("multiline quoted scalar") && (is_odd('"') || is_odd('\''));
    if unclosed || message == "unclosed quote" {
        let line = 1 + text.matches('\n').count();
        return at(
            line as u64,
            Stage::Scanner,
            "found unexpected end of stream",
        );
    }
    if let Some(open) = message.strip_prefix("unclosed bracket ") {
        let words = match text.trim_end().chars().next_back() {
            Some('{' | '[' | ',' | ':') => "did not find expected node content",
            _ if open == "'{'" => "did not find expected ',' or '}'",
            _ => "did not find expected ',' or ']'",
        };
        let line = 1 + text.lines().count();
        return at(line as u64, Stage::Parser, words);
    }
    if message == "recursion limit exceeded" {
        return too_deep();
    }
    let is_forbidden = |c: char| c.is_control() && !"\t\n\r\u{85}".contains(c);
    if text.contains(is_forbidden) {
        return "control characters are not allowed".to_owned();
    }
    if message.starts_with("simple key") {
        // Our parser names the line of the key, go-yaml the line at which it gives up on it.
        return at(
            next_line(text, line),
            Stage::Scanner,
            "could not find expected ':'",
        );
    }
    let known = PROBLEMS.iter().find(|(ours, ..)| message.starts_with(ours));
    match known {
        Some((_, words, stage)) => at(line, *stage, words),
        None => format!("line {line}: {message}"),
    }
}

/// The nesting of lists and maps is beyond the bound.
pub(super) fn too_deep() -> String {
    format!("exceeded max depth of {DEPTH_MAX}")
}

/// The first line after this one that has content, or the one after the last. Lines are counted from 1.
fn next_line(text: &str, line: u64) -> u64 {
    let has_content = |text: &str| !text.trim().is_empty() && !text.trim_start().starts_with('#');
    let mut numbered = (1..).zip(text.lines());
    let next = numbered.find(|(number, text)| *number > line && has_content(text));
    next.map_or(1 + text.lines().count() as u64, |(number, _)| number)
}

/// A key that occurs twice. go-yaml names the line of its value.
pub(super) fn duplicate_key(text: &str, duplicate: &Duplicate) -> String {
    let Duplicate { key, line, is_null } = duplicate;
    let index = usize::try_from(*line)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    let of_key = text.lines().nth(index).unwrap_or_default();
    let of_key = of_key.split(" #").next().unwrap_or_default();
    let is_below = of_key.trim_end().ends_with(':') && !is_null;
    let line = if is_below {
        next_line(text, *line)
    } else {
        *line
    };
    format!("line {line}: key {key} already set in map")
}

/// The name in an alias at a line and a column counted from 1.
pub(super) fn alias(text: &str, line: u64, column: u64) -> String {
    let number = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
    let line = text.lines().nth(number(line).saturating_sub(1));
    let rest = line.unwrap_or_default().chars();
    let rest = rest.skip(number(column).saturating_sub(1));
    rest.skip_while(|c| *c == '*')
        .take_while(|c| !c.is_whitespace() && !",[]{}".contains(*c))
        .collect()
}

/// A number that is not finite, as Go shows it.
pub(super) fn not_finite(number: &str) -> &'static str {
    match number.trim_start_matches(['+', '-', '.']) {
        rest if rest.eq_ignore_ascii_case("nan") => "NaN",
        _ if number.starts_with('-') => "-Inf",
        _ => "+Inf",
    }
}

fn at(line: u64, stage: Stage, words: &str) -> String {
    let line = match stage {
        _ if line <= 1 => return words.to_owned(),
        Stage::Scanner => line,
        Stage::Parser => line - 1,
    };
    format!("line {line}: {words}")
}
