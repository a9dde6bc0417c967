//! Whether what a terminal shows is what a session expects, and a difference people can read if not.

/// Any text within a line.
const ANY_TEXT: &str = "[..]";
/// Any number of lines.
const ANY_LINES: &str = "...";

/// The difference between shown and expected lines, marked line by line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Difference(String);

/// Compares shown lines with expected ones.
pub(super) fn compare(expected: &[String], shown: &str) -> Result<(), Difference> {
    let mut shown: Vec<&str> = shown.lines().collect();
    while shown.last().is_some_and(|line| line.trim().is_empty()) {
        shown.pop();
    }
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    if lines_match(&expected, &shown) {
        Ok(())
    } else {
        Err(Difference(difference(&expected, &shown)))
    }
}

fn lines_match(expected: &[&str], shown: &[&str]) -> bool {
    match expected.split_first() {
        None => shown.is_empty(),
        Some((&ANY_LINES, rest)) => {
            (0..=shown.len()).any(|skipped| lines_match(rest, &shown[skipped..]))
        }
        Some((first, rest)) => shown
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let (pattern, line) = (fold_blanks(pattern), fold_blanks(line));
    text_matches(&pattern, &line)
        || without_namespace(&line).is_some_and(|line| text_matches(&pattern, &line))
}

/// kubectl's output of a deletion in the form before 1.34: `pod "a" deleted from default namespace` names the
/// namespace since.
fn without_namespace(line: &str) -> Option<String> {
    let (before, after) = line.split_once("deleted from ")?;
    let (_, rest) = after.split_once(" namespace")?;
    Some(format!("{before}deleted{rest}"))
}

/// Indentation as it is, runs of blanks after it as one, none at the end.
fn fold_blanks(line: &str) -> String {
    let text = line.trim_start();
    let indentation = &line[..line.len() - text.len()];
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("{indentation}{}", words.join(" "))
        .trim_end()
        .to_owned()
}

fn text_matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once(ANY_TEXT) else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    text.char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .any(|skipped| text_matches(rest, &text[skipped..]))
}

/// How many expected lines, from the first, match some beginning of what was shown.
fn matched(expected: &[&str], shown: &[&str]) -> usize {
    let fits = |count: &usize| {
        let head = [&expected[..*count], &[ANY_LINES]].concat();
        lines_match(&head, shown)
    };
    (0..=expected.len()).rev().find(fits).unwrap_or(0)
}

/// What is the same at both ends, and between them what was expected (`-`) and shown (`+`). With
/// wildcards over lines the ends say little, so that the line where the match breaks off is named too.
fn difference(expected: &[&str], shown: &[&str]) -> String {
    let mut text = marked_lines(expected, shown);
    if expected.contains(&ANY_LINES) {
        let missing = expected.get(matched(expected, shown));
        let missing = missing.map_or("the end of the output", |line| line);
        text.push_str("\nnot found: ");
        text.push_str(missing);
    }
    text
}

fn marked_lines(expected: &[&str], shown: &[&str]) -> String {
    let same = |(a, b): &(&&str, &&str)| **a != ANY_LINES && line_matches(a, b);
    let head = expected.iter().zip(shown).take_while(same).count();
    let (expected_rest, shown_rest) = (&expected[head..], &shown[head..]);
    let tail = expected_rest
        .iter()
        .rev()
        .zip(shown_rest.iter().rev())
        .take_while(same)
        .count();
    let mut lines = Vec::new();
    let mut push = |mark: &str, part: &[&str]| {
        lines.extend(part.iter().map(|line| format!("{mark} {line}")));
    };
    push(" ", &shown[..head]);
    push("-", &expected_rest[..expected_rest.len() - tail]);
    push("+", &shown_rest[..shown_rest.len() - tail]);
    push(" ", &shown_rest[shown_rest.len() - tail..]);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, shown: &str, matches: bool) {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        assert_eq!(
            compare(&expected, shown).is_ok(),
            matches,
            "{expected:?} / {shown:?}"
        );
    }

    #[test]
    fn text_matches_with_wildcards_and_folded_blanks() {
        check(
            "NAME   AGE\nweb    [..]",
            "NAME     AGE  \nweb      5m12s\n\n",
            true,
        );
        check("web [..] Ready", "web abc Ready", true);
        check("web [..] Ready", "web abc NotReady", false);
        check("uid: [..]-[..]", "uid: 12-34", true);
        check("a\n...\nz", "a\nb\nc\nz", true);
        check("a\n...\nz", "a\nz", true);
        check("a\n...\nz", "a\nb", false);
        check("...", "", true);
        check("", "", true);
        check("", "error", false);
        check("a", "a\nb", false);
        check("a\nb", "a", false);
    }

    #[test]
    fn a_deletion_may_name_its_namespace() {
        check(
            "pod \"a\" deleted",
            "pod \"a\" deleted from barn namespace",
            true,
        );
        check(
            "pod \"a\" force deleted (dry run)",
            "pod \"a\" force deleted from barn namespace (dry run)",
            true,
        );
        check(
            "pod \"a\" deleted from barn namespace",
            "pod \"a\" deleted",
            false,
        );
        check(
            "pod \"a\" deleted",
            "pod \"b\" deleted from barn namespace",
            false,
        );
    }

    #[test]
    fn indentation_counts() {
        check("  a: 1", "  a: 1", true);
        check("  a: 1", "    a: 1", false);
    }

    #[test]
    fn the_difference_shows_what_stays_and_what_differs() {
        let expected = ["a", "b [..]", "c", "d"].map(str::to_owned);
        assert_eq!(
            compare(&expected, "a\nb 1\nx\nd\n")
                .unwrap_err()
                .to_string(),
            "  a\n  b 1\n- c\n+ x\n  d"
        );
    }
}
