//! Checks `docs/conformance.md` against the sources: every test it names exists, every test named after a rule is in
//! it, and every rule has a test or a reason.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that reads the sources"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the table: rule, tests, remarks.
fn rows() -> Vec<(String, BTreeSet<String>, String)> {
    let text = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit());
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, _, tests, remarks] = cells[..] else {
            panic!("not four cells: {line}");
        };
        let names = tests
            .split_whitespace()
            .map(|name| name.trim_matches('`').to_owned());
        (rule.to_owned(), names.collect(), remarks.to_owned())
    })
    .collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// All functions whose names begin like those of tests of rules: `s3_4_2_…`.
fn tests_of_rules() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        for part in text.split("fn s").skip(1) {
            let name: String = part
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            let mut parts = name.split('_');
            let numbered = |part: Option<&str>| part.is_some_and(|p| p.parse::<u8>().is_ok());
            if numbered(parts.next()) && numbered(parts.next()) {
                names.insert(format!("s{name}"));
            }
        }
    }
    names
}

/// The section of a rule or test: the first number in it.
fn section(name: &str) -> u8 {
    let digits: String = name
        .chars()
        .filter(|c| *c != 's')
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

#[test]
fn every_test_that_is_named_exists_and_every_rule_has_a_test_or_a_reason() {
    let known = tests_of_rules();
    for (rule, tests, remarks) in rows() {
        assert!(
            !tests.is_empty() || !remarks.is_empty(),
            "rule {rule} has neither"
        );
        for test in tests {
            assert!(
                known.contains(&test),
                "rule {rule}: there is no test {test}"
            );
        }
    }
}

#[test]
fn every_test_of_a_rule_is_in_the_table() {
    let listed: BTreeSet<String> = rows().into_iter().flat_map(|(_, tests, _)| tests).collect();
    for test in tests_of_rules() {
        if (2..=8).contains(&section(&test)) {
            assert!(
                listed.contains(&test),
                "{test} is not in docs/conformance.md"
            );
        }
    }
}

#[test]
fn no_rule_is_missing() {
    // Section, and how many numbered rules each of its parts has.
    let parts: [(&str, u8); 37] = [
        ("2.1", 2),
        ("2.2", 6),
        ("2.3", 4),
        ("2.4", 6),
        ("2.5", 5),
        ("2.6", 2),
        ("3.1", 11),
        ("3.2", 7),
        ("3.3", 2),
        ("3.4", 4),
        ("3.5", 6),
        ("3.6", 2),
        ("3.7", 8),
        ("3.8", 4),
        ("3.9", 5),
        ("3.10", 2),
        ("3.11", 1),
        ("3.12", 5),
        ("4", 10),
        ("4.6", 2),
        ("5.1", 5),
        ("5.2", 2),
        ("5.3", 1),
        ("5.4", 5),
        ("5.5", 7),
        ("5.6", 5),
        ("6.1", 2),
        ("6.2", 4),
        ("6.3", 3),
        ("6.4", 3),
        ("7", 12),
        ("8", 10),
        ("3.4", 0),
        ("3.10", 0),
        ("6.1", 0),
        ("5.4", 0),
        ("5.5", 0),
    ];
    let listed: BTreeSet<String> = rows().into_iter().map(|(rule, ..)| rule).collect();
    for (part, count) in parts {
        for number in 1..=count {
            let rule = format!("{part}.{number}");
            assert!(listed.contains(&rule), "rule {rule} is missing");
        }
        if count == 0 {
            assert!(listed.contains(part), "rule {part} is missing");
        }
    }
}
