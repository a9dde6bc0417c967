//! Errors are types: no function of the product returns text for one, and no alias hides that.

use std::path::{Path, PathBuf};

use super::words::{root, sources};

/// Crates that never ship.
const TESTS: [&str; 3] = ["browser", "test-support", "testkit"];

/// The text of a file without its tests, which end it.
fn production(text: &str) -> &str {
    let tests = text.find("#[cfg(test)]\nmod ");
    tests.map_or(text, |at| &text[..at])
}

fn is_test(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    parts.any(|part| part == "tests" || part == "fixture.rs" || part.ends_with("tests.rs"))
}

/// The type arguments of each `Result<…>`.
fn results(code: &str) -> Vec<Vec<&str>> {
    let starts = code
        .match_indices("Result<")
        .map(|(at, name)| at + name.len());
    starts.map(|at| arguments(&code[at..])).collect()
}

/// Splits `A, B<C, D>>…` at its own commas.
fn arguments(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth, mut before) = (Vec::new(), 0, 0_u32, ' ');
    for (at, letter) in text.char_indices() {
        let arrow = before == '-' && letter == '>';
        before = letter;
        match letter {
            '<' | '(' | '[' => depth += 1,
            ',' if depth == 0 => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            '>' if arrow => {}
            '>' | ')' | ']' if depth > 0 => depth -= 1,
            '>' | ')' | ']' | ';' | '{' => {
                found.push(text[from..at].trim());
                break;
            }
            _ => {}
        }
    }
    found.retain(|argument| !argument.is_empty());
    found
}

/// An owned or borrowed string.
fn is_text(argument: &str) -> bool {
    let borrowed = argument.strip_prefix('&').map(str::trim_start);
    let word = borrowed.map_or(argument, |rest| rest.rsplit(' ').next().unwrap_or(rest));
    // A function that returns text is none.
    !argument.contains('(') && matches!(word, "String" | "str")
}

/// `type Refusal = String;`, and the same as an associated type.
fn is_alias(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest.trim_start();
        let restricted = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        restricted.map_or(rest, |(_, rest)| rest.trim_start())
    });
    let Some((_, aliased)) = line
        .strip_prefix("type ")
        .and_then(|rest| rest.split_once('='))
    else {
        return false;
    };
    is_text(aliased.trim().trim_end_matches(';'))
}

#[test]
fn no_error_is_a_string() {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        let tests = entry.file_name();
        if !TESTS.iter().any(|name| tests == *name) {
            sources(&entry.path().join("src"), &mut files);
        }
    }
    files.retain(|path| !is_test(path));
    assert!(files.len() > 300, "the sources were found");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = production(&text);
        for arguments in results(code) {
            let error = arguments.get(1).is_some_and(|error| is_text(error));
            assert!(
                !error,
                "{}: Result<{}>",
                path.display(),
                arguments.join(", ")
            );
        }
        for line in code.lines() {
            assert!(!is_alias(line), "{}: {line}", path.display());
        }
    }
}

#[test]
fn strings_as_errors_are_found_however_they_are_written() {
    let found = |code: &str| {
        results(code)
            .iter()
            .any(|a| a.get(1).is_some_and(|e| is_text(e)))
    };
    for code in [
        "fn f() -> Result<(), String> {",
        "fn f() -> Result<Result<Plan, String>, Failure> {",
        "fn f() -> Result<\n    Vec<Box<dyn Fn(u8) -> u8>>,\n    &'static str,\n> {",
    ] {
        assert!(found(code), "{code}");
    }
    for code in [
        "fn f() -> Result<BTreeMap<String, String>, Failure> {",
        "fn f() -> io::Result<String> {",
        "fn f() -> Result<(String, String), E>;",
    ] {
        assert!(!found(code), "{code}");
    }
    for (line, expected) in [
        ("type Refusal = String;", true),
        ("pub(crate) type Refusal = &'static str;", true),
        ("    type Err = String;", true),
        ("type Names = Vec<String>;", false),
        ("let kind = String;", false),
    ] {
        assert_eq!(is_alias(line), expected, "{line}");
    }
}
